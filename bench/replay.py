"""Rules over recorded history, by a real Prometheus: what the recording rules would have recorded,
and when each alert would have fired.

All rules are range queries at the interval of their group, or of the scrapes if that is longer,
answered by the server. What recording
rules give is backfilled level by level: a rule that reads a recorded series comes after it.
(promtool can do the same, but asks for every two hours anew.) `for` is applied here.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

import httpx

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))  # real servers are started there as here

from e2e.processes import Server, free_port  # noqa: E402

from inferslo.rules.model import Alert, Group, Recording  # noqa: E402
from inferslo.sidecar.demo.record import BLOCK, backfill  # noqa: E402

_POINTS = 10_000  # Prometheus answers 11,000 a series


@dataclass(frozen=True, slots=True)
class Firing:
    """An alert from when it fired to when it was last seen so, Unix seconds."""

    alert: str
    labels: Mapping[str, str]
    start: float
    end: float

    @property
    def pages(self) -> bool:
        labels = self.labels
        return labels.get("severity", labels.get("sloth_severity")) in ("page", "critical")


@contextmanager
def served(tsdb: Path, log: Path) -> Iterator[str]:
    """A Prometheus over these blocks; gives its URL."""
    config = tsdb.parent / "prometheus.yml"
    config.write_text("{}\n", encoding="utf-8")
    listen = f"127.0.0.1:{free_port()}"
    command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={tsdb}"]
    command += ["--storage.tsdb.retention.time=100y", f"--web.listen-address={listen}"]
    command += ["--query.timeout=20m", "--query.max-samples=500000000"]
    with Server(command, f"http://{listen}", "/-/ready", log, patience=120) as server:
        yield server.url


def record(
    groups: Sequence[Group], tsdb: Path, start: float, end: float, least: float = 60
) -> None:
    """Adds what the recording rules give, to the blocks of a Prometheus that does not run.

    least: seconds between evaluations that bring anything new.
    """
    for number, level in enumerate(_levels(groups)):
        folder = tsdb.parent / f"level-{number}"
        folder.mkdir()
        with served(tsdb, tsdb.parent / "prometheus.log") as url, ExitStack() as files:
            written: dict[float, TextIO] = {}
            with httpx.Client(base_url=url, timeout=1800) as client:
                for group in level:
                    for rule in group.rules:
                        step = max(group.interval, int(least))
                        for line, at in _recorded(rule, step, client, start, end):
                            block = at // BLOCK
                            if block not in written:
                                path = folder / f"{block:.0f}.txt"
                                written[block] = files.enter_context(path.open("w"))
                            written[block].write(line)
            for file in written.values():
                file.write("# EOF\n")
        backfill(sorted(folder.iterdir()), tsdb)
        shutil.rmtree(folder)


def _recorded(
    rule: Recording | Alert, interval: int, client: httpx.Client, start: float, end: float
) -> Iterator[tuple[str, float]]:
    assert isinstance(rule, Recording)
    # Series of the answer that differ only in what the rule's labels replace are one, in turn.
    merged: dict[str, list[tuple[float, str]]] = {}
    for metric, values in _ranges(rule.expr, interval, client, start, end):
        labels = {k: v for k, v in metric.items() if k != "__name__"} | dict(rule.labels)
        series = ",".join(f'{name}="{value}"' for name, value in sorted(labels.items()))
        merged.setdefault(series, []).extend(values)
    for series, values in merged.items():
        for at, value in sorted(values):
            yield f"{rule.record}{{{series}}} {value} {at:.0f}\n", at


def _ranges(
    expression: str, step: int, client: httpx.Client, start: float, end: float
) -> Iterator[tuple[dict[str, str], list[tuple[float, str]]]]:
    """Series and their values, in pieces that Prometheus answers."""
    at = start + -start % step
    while at <= end:
        until = at + _POINTS * step
        asked = {"query": expression, "start": at, "end": min(until, end), "step": step}
        answer = client.post("/api/v1/query_range", data=asked)
        if answer.status_code != 200:
            raise SystemExit(f"{expression}: {answer.text}")
        for series in answer.json()["data"]["result"]:
            yield series["metric"], series["values"]
        at = until + step


def _levels(groups: Sequence[Group]) -> Iterator[list[Group]]:
    """Groups of recording rules, each after those whose series it reads."""
    left = [
        replace(group, rules=rules)
        for group in groups
        if (rules := tuple(rule for rule in group.rules if isinstance(rule, Recording)))
    ]
    while left:
        names = {
            rule.record for group in left for rule in group.rules if isinstance(rule, Recording)
        }
        ready = [group for group in left if not _reads(group, names)]
        yield ready or left  # a group may read its own series of an evaluation before
        left = [group for group in left if ready and group not in ready]


def _reads(group: Group, names: set[str]) -> bool:
    return any(name in rule.expr for rule in group.rules for name in names)


def firings(
    groups: Sequence[Group], url: str, start: float, end: float, least: float = 60
) -> list[Firing]:
    """What would have fired from `start` to `end`, in the order of time.

    least: seconds between evaluations that bring anything new.
    """
    found: list[Firing] = []
    with httpx.Client(base_url=url, timeout=1800) as client:
        for group in groups:
            for rule in group.rules:
                if isinstance(rule, Alert):
                    found += _of(rule, max(group.interval, int(least)), client, start, end)
    return sorted(found, key=lambda firing: firing.start)


def _of(
    rule: Alert, interval: int, client: httpx.Client, start: float, end: float
) -> Iterator[Firing]:
    points: dict[frozenset[tuple[str, str]], list[float]] = {}
    for metric, values in _ranges(rule.expr, interval, client, start, end):
        labels = {k: v for k, v in metric.items() if k != "__name__"} | dict(rule.labels)
        points.setdefault(frozenset(labels.items()), []).extend(at for at, _ in values)
    for labels, times in points.items():
        for first, last in _runs(sorted(times), interval):
            if last - first >= rule.hold:
                yield Firing(rule.alert, dict(labels), first + rule.hold, last)


def _runs(times: Sequence[float], interval: float) -> Iterator[tuple[float, float]]:
    """First and last of each unbroken run."""
    first = last = None
    for time in times:
        if first is None or last is None:
            first = time
        elif time - last > interval:
            yield first, last
            first = time
        last = time
    if first is not None and last is not None:
        yield first, last
