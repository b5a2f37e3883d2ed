"""The real `inferslo sidecar`, as a user starts it, and its pages read by prometheus_client."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
from e2e.processes import Server, free_port, wait_until
from prometheus_client.parser import text_string_to_metric_families

from inferslo.exporters.names import FAMILIES, SOURCE_LAST_SUCCESS

EXECUTABLE = Path(sys.executable).with_name("inferslo")
POLL_SECONDS = 1
Labels = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Page:
    """The samples of one metrics page, as prometheus_client (not our own parser) reads them."""

    samples: Mapping[tuple[str, Labels], float]

    def series(self, name: str, **labels: str) -> dict[Labels, float]:
        """Samples of that exposed name whose labels include the given ones."""
        wanted = set(labels.items())
        return {
            has: value
            for (sample, has), value in self.samples.items()
            if sample == name and wanted <= has
        }

    def value(self, name: str, **labels: str) -> float:
        """Their sum; KeyError if there is none: absent is not zero."""
        if not (found := self.series(name, **labels)):
            raise KeyError(f"{name} {labels}")
        return sum(found.values())

    def families(self) -> set[str]:
        """Of the contract: a histogram by its own name, not those of its samples."""
        exposed = {name for name, _ in self.samples}
        return {
            family.name
            for family in FAMILIES.values()
            if family.name in exposed or f"{family.name}_bucket" in exposed
        }

    def buckets(self, histogram: str, **labels: str) -> dict[float, float]:
        """Cumulative count by upper bound, added up over the series that match."""
        totals: dict[float, float] = {}
        for has, value in self.series(f"{histogram}_bucket", **labels).items():
            bound = float(dict(has)["le"])
            totals[bound] = totals.get(bound, 0) + value
        return totals


def read(url: str) -> Page:
    answer = httpx.get(f"{url}/metrics", timeout=10)
    answer.raise_for_status()
    return Page(
        {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(answer.text)
            for sample in family.samples
        }
    )


def wait_for_polls(url: str, source: str, polls: int = 3, seconds: float = 30) -> None:
    """Waits until reads of the source that began from now on have succeeded `polls` times."""
    since = time.time() + polls * POLL_SECONDS

    def polled() -> bool:
        last = read(url).series(SOURCE_LAST_SUCCESS.name, source=source)
        return any(moment > since for moment in last.values())

    wait_until(f"{polls} polls of {source}", polled, seconds)


def sidecar(
    scratch: Path,
    *engines: str,
    flags: Sequence[str] = ("--gpu", "off"),
    poll: str = f"{POLL_SECONDS}s",
    env: Mapping[str, str] | None = None,
) -> Server:
    listen = f"127.0.0.1:{free_port()}"
    command: list[str | Path] = [EXECUTABLE, "sidecar", "--listen", listen]
    for engine in engines:
        command += ["--engine", engine]
    command += ["--poll-interval", poll, "--events-journal", scratch / "events.sqlite", *flags]
    return Server(command, f"http://{listen}", "/readyz", scratch / "sidecar.log", env=env)
