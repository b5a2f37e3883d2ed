"""Simulated services as blocks of a Prometheus, recording rules evaluated.

What faults have in common is made once: a service in good health up to a moment, from which each
fault goes on by itself.
"""

from __future__ import annotations

import copy
import copyreg
import os
import re
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType

import replay

from inferslo.exporters.names import Family
from inferslo.rules.formats import write
from inferslo.rules.model import Format, Group
from inferslo.sidecar.demo.aggregate import HealthySpans
from inferslo.sidecar.demo.fleet import Fleet, Scenario
from inferslo.sidecar.demo.record import Happening, Recorder, backfill, record
from inferslo.sidecar.demo.sidecars import GATEWAY_INSTANCE, Sidecars
from inferslo.sidecar.demo.tally import Tally

# What deepcopy could not copy by itself.
copyreg.pickle(MappingProxyType, lambda proxy: (MappingProxyType, (dict(proxy),)))
copyreg.pickle(Tally, lambda tally: (Tally, (dict(tally),)))

INTERVAL = 60.0  # seconds between scrapes
_OF_A_SERVER = shutil.ignore_patterns("wal", "wbl", "chunks_head", "lock", "queries.active")


class Healthy:
    """A service in good health for so many seconds.

    rules: what is recorded of it; families that none of `read` reads are left out.
    """

    def __init__(
        self,
        scenario: Scenario,
        seconds: float,
        folder: Path,
        rules: Sequence[Group],
        read: Sequence[Group],
    ) -> None:
        self.tsdb = folder / "tsdb"
        self.end = scenario.start + seconds
        self._rules = rules
        self._keep = _read_by(read)
        self._spans = HealthySpans(scenario, INTERVAL)
        self._fleet = Fleet(scenario)
        self._sidecars = Sidecars(self._fleet)
        _go_on(
            self._fleet, self._sidecars, self._recorder(folder), self.tsdb, self.end, (),
            self._spans,
        )  # fmt: skip
        replay.record(rules, self.tsdb, scenario.start, self.end)

    def branch(self, folder: Path, happening: Happening, until: float) -> Path:
        """The blocks of the same service, to which something happens from there."""
        tsdb = folder / "tsdb"
        shutil.copytree(self.tsdb, tsdb, copy_function=os.link, ignore=_OF_A_SERVER)
        fleet, sidecars = copy.deepcopy((self._fleet, self._sidecars))
        _go_on(
            fleet, sidecars, self._recorder(folder), tsdb, until, [happening], self._spans,
        )  # fmt: skip
        replay.record(self._rules, tsdb, self.end + INTERVAL, until)
        return tsdb

    def _recorder(self, folder: Path) -> Recorder:
        labels = {
            replica.instance: {"revision": "canary" if replica.index else "stable"}
            for replica in self._fleet.replicas
        }
        labels[GATEWAY_INSTANCE] = {"revision": "stable"}
        return Recorder(folder / "text", target_labels=labels, keep=self._keep)


def _go_on(
    fleet: Fleet, sidecars: Sidecars, recorder: Recorder, tsdb: Path, until: float,
    happenings: Sequence[Happening], spans: HealthySpans,
) -> None:  # fmt: skip
    record(
        fleet, recorder, until,
        interval=INTERVAL, happenings=happenings, spans=spans, sidecars=sidecars,
    )  # fmt: skip
    backfill(recorder.files, tsdb)
    for file in recorder.files:
        file.unlink()


def _read_by(groups: Sequence[Group]) -> Callable[[Family], bool]:
    words = set(re.findall(r"\w+", write({"all": tuple(groups)}, Format.PROMETHEUS)))

    @cache
    def is_read(name: str) -> bool:
        return any(f"{name}{part}" in words for part in ("", "_bucket", "_count", "_sum"))

    return lambda family: is_read(family.name)
