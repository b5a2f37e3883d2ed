"""Rules over recorded history, by a real Prometheus: what the recording rules would have recorded,
and when each alert would have fired.

Recording rules are evaluated by promtool against the server, level by level: a rule that reads a
recorded series comes after it. Alerts are queried as the server would evaluate them, and `for` is
applied here.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))  # real servers are started there as here

from e2e.processes import Server, free_port  # noqa: E402

from inferslo.rules.formats import write  # noqa: E402
from inferslo.rules.model import Alert, Format, Group, Recording  # noqa: E402

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
        return self.labels.get("severity") == "page"


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


def record(groups: Sequence[Group], tsdb: Path, start: float, end: float) -> None:
    """Adds what the recording rules give, to the blocks of a Prometheus that does not run."""
    for number, level in enumerate(_levels(groups)):
        file = tsdb.parent / f"level-{number}.yaml"
        file.write_text(write({"bench": level}, Format.PROMETHEUS), encoding="utf-8")
        with served(tsdb, tsdb.parent / "prometheus.log") as url:
            command = ["promtool", "tsdb", "create-blocks-from", "rules", "--quiet"]
            command += [f"--start={start:.0f}", f"--end={end:.0f}", f"--url={url}"]
            command += [f"--output-dir={tsdb}", str(file)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"promtool: {done.stdout[-500:]} {done.stderr[-2000:]}")


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


def firings(groups: Sequence[Group], url: str, start: float, end: float) -> list[Firing]:
    """What would have fired from `start` to `end`, in the order of time."""
    found: list[Firing] = []
    with httpx.Client(base_url=url, timeout=1800) as client:
        for group in groups:
            for rule in group.rules:
                if isinstance(rule, Alert):
                    found += _of(rule, group.interval, client, start, end)
    return sorted(found, key=lambda firing: firing.start)


def _of(
    rule: Alert, interval: int, client: httpx.Client, start: float, end: float
) -> Iterator[Firing]:
    points: dict[frozenset[tuple[str, str]], list[float]] = {}
    at = start - start % interval
    while at <= end:
        until = min(at + _POINTS * interval, end)
        asked = {"query": rule.expr, "start": at, "end": until, "step": interval}
        answer = client.post("/api/v1/query_range", data=asked)
        if answer.status_code != 200:
            raise SystemExit(f"{rule.alert}: {answer.text}")
        for series in answer.json()["data"]["result"]:
            labels = {k: v for k, v in series["metric"].items() if k != "__name__"}
            times = points.setdefault(frozenset((labels | dict(rule.labels)).items()), [])
            times += [float(time) for time, _ in series["values"]]
        at = until + interval
    for labels, times in points.items():
        for first, last in _runs(times, interval):
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
