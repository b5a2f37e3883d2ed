"""Simulated time into a real Prometheus: what each scrape would have found, as text that
`promtool tsdb create-blocks-from openmetrics` backfills.

Lines are in the order of time, not of families, which promtool does not mind; there is a file for
each block, since promtool reads its whole input again for every block. What backfilling cannot
say: a series that ends has no staleness mark, so that for five minutes it seems to stand still.
"""

from __future__ import annotations

import math
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from ...exporters.names import Family
from ...exporters.reading import Histogram, InfersloError, Point
from .aggregate import HealthySpans
from .faults import Fault
from .fleet import Fleet
from .sidecars import Sidecars

BLOCK = 54 * 3600  # seconds: 2 h times a power of 3, as Prometheus cuts blocks
_LEAD = 600.0  # seconds before and after a fault that go event by event
_AFTER = 1800.0


class BackfillError(InfersloError):
    """promtool did not make blocks; says why."""


@dataclass(frozen=True, slots=True)
class Happening:
    """A fault and when it is armed, simulated Unix time."""

    at: float
    fault: Fault

    @property
    def until(self) -> float:
        duration = self.fault.duration
        return math.inf if duration is None else self.at + self.fault.start + duration


@dataclass(slots=True)
class Recorder:
    """Writes points of scrapes to files in `folder`, one for each block.

    job: of all targets. target_labels: by instance, what the targets have beside job and instance.
    keep: whether a family is wanted; all are.
    """

    folder: Path
    job: str = "inferslo"
    target_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    keep: Callable[[Family], bool] = lambda _: True
    samples: int = 0
    files: list[Path] = field(default_factory=list)
    _series: dict[tuple[str, str, tuple[str, ...]], tuple[str, ...]] = field(default_factory=dict)
    _file: TextIO | None = None
    _block: int = -1

    @contextmanager
    def open(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            yield
        finally:
            self._close()

    def write(self, now: float, instance: str, points: Sequence[Point]) -> None:
        """One scrape of one sidecar, at a simulated Unix time of whole seconds."""
        out = self._out(now)
        end = f" {now:.0f}\n"
        lines = [f"{self._up(instance)} 1{end}"]
        for point in points:
            if not self.keep(point.family):
                continue
            key = instance, point.family.name, point.labels
            series = self._series.get(key)
            if series is None:
                series = self._series[key] = tuple(self._names(instance, point))
            value = point.value
            numbers = (
                (*value.counts, value.count, value.sum)
                if isinstance(value, Histogram)
                else (value,)
            )
            for name, number in zip(series, numbers, strict=True):
                lines.append(f"{name} {number!r}{end}")
        out.write("".join(lines))
        self.samples += len(lines)

    def _out(self, now: float) -> TextIO:
        block = int(now // BLOCK)
        if self._file is None or block != self._block:
            self._close()
            self._block = block
            path = self.folder / f"{block * BLOCK}.txt"
            self._file = path.open("w", encoding="utf-8")
            self.files.append(path)
        return self._file

    def _close(self) -> None:
        if self._file is not None:
            self._file.write("# EOF\n")
            self._file.close()
            self._file = None

    def _up(self, instance: str) -> str:
        """What Prometheus itself says of the target."""
        return f"up{{{_labels(self._target(instance))}}}"

    def _target(self, instance: str) -> dict[str, str]:
        return {"job": self.job, "instance": instance, **self.target_labels.get(instance, {})}

    def _names(self, instance: str, point: Point) -> Iterator[str]:
        own = dict(zip(point.family.labels, point.labels, strict=True))
        labels, name = self._target(instance) | own, point.family.name
        if not isinstance(point.value, Histogram):
            yield f"{name}{{{_labels(labels)}}}"
            return
        for bound in point.value.bounds:
            le = "+Inf" if math.isinf(bound) else repr(float(bound))
            yield f"{name}_bucket{{{_labels({**labels, 'le': le})}}}"
        yield f"{name}_count{{{_labels(labels)}}}"
        yield f"{name}_sum{{{_labels(labels)}}}"


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{value}"' for name, value in labels.items())


def record(
    fleet: Fleet,
    recorder: Recorder,
    until: float,
    *,
    interval: float = 60.0,
    happenings: Sequence[Happening] = (),
    spans: HealthySpans | None = None,
    sidecars: Sidecars | None = None,
) -> None:
    """Scrapes all sidecars every `interval` seconds until a simulated time, each scrape a whole
    interval after the one before.

    spans: what the healthy time between faults is taken from; None simulates all event by event.
    sidecars: those of an earlier recording that this one goes on from; None starts new ones.
    """
    sidecars = sidecars or Sidecars(fleet)
    with recorder.open():
        while fleet.now < until:
            to = fleet.now + interval
            if spans is not None and fleet.healthy and not _near(happenings, fleet.now, to):
                spans.advance(fleet)
            else:
                _by_events(fleet, to, happenings)
            for instance, points in sidecars.scrape().items():
                recorder.write(fleet.now, instance, points)


def _near(happenings: Sequence[Happening], start: float, end: float) -> bool:
    return any(h.at - _LEAD < end and start < h.until + _AFTER for h in happenings)


def _by_events(fleet: Fleet, to: float, happenings: Sequence[Happening]) -> None:
    changes = [
        (moment, act, happening.fault)
        for happening in happenings
        for moment, act in ((happening.at, fleet.arm), (happening.until, fleet.disarm))
        if fleet.now <= moment < to
    ]
    for moment, act, fault in sorted(changes, key=lambda change: change[0]):
        fleet.advance(moment)
        act(fault)
    fleet.advance(to)


def backfill(files: Sequence[Path], tsdb: Path) -> None:
    """Makes blocks of recorded files in the folder of a Prometheus that does not run.

    Raises BackfillError. Give that Prometheus --storage.tsdb.retention.time of more than the age
    of what was recorded, else it deletes it at once.
    """
    for file in files:
        command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet"]
        command += [f"--max-block-duration={BLOCK}s", str(file), str(tsdb)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        except FileNotFoundError:
            raise BackfillError("promtool is not installed: it comes with Prometheus") from None
        if done.returncode:
            raise BackfillError(f"promtool, {file.name}: {done.stderr.strip()}")
