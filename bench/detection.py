"""Do the alerts find what goes wrong, and keep quiet while nothing does? Prints tables.

    .venv/bin/python bench/detection.py [--faults F1 F3 …] [--healthy 1 30 1000] [--days 30]

Simulated services (docs/simulator.md), scraped every minute through the sidecar's own code, go into
a real Prometheus; the rules of bench/detection.slo.yaml are evaluated there. A fault comes at ten
o'clock on the third day. Of each: the alerts that name it, how many minutes until the first of
them fired, and what else fired meanwhile. Of healthy months: pages and tickets.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

import replay

from inferslo.exporters.names import Family
from inferslo.rules.compile import compile_rules
from inferslo.rules.formats import write
from inferslo.rules.model import Format, Group
from inferslo.sidecar.demo.aggregate import HealthySpans
from inferslo.sidecar.demo.faults import Fault, catalogue
from inferslo.sidecar.demo.fleet import Fleet, Scenario
from inferslo.sidecar.demo.record import Happening, Recorder, backfill, record
from inferslo.slo.load import load_text

SLO = Path(__file__).with_suffix(".slo.yaml").read_text(encoding="utf-8")
INTERVAL = 60.0
DAY, HOUR = 86400.0, 3600.0
FAULT_AT = 2 * DAY + 10 * HOUR
AFTER = 1 * HOUR  # in which an alert is still taken to be of the fault
TOGETHER = 6  # faults in one Prometheus
QUIET = frozenset({"InfersloWatchdog"})


@dataclass(frozen=True, slots=True)
class Case:
    """A service of its own: all its series have the label cluster=name."""

    name: str
    scenario: Scenario
    fault: Fault | None
    seconds: float

    @property
    def groups(self) -> tuple[Group, ...]:
        return compile_rules(load_text(SLO.replace("NAME", self.name)))

    @property
    def fault_at(self) -> float:
        return self.scenario.start + FAULT_AT

    @property
    def fault_until(self) -> float:
        duration = (self.fault and self.fault.duration) or 0.0
        return self.fault_at + duration


def case_of(fault: Fault) -> Case:
    scenario = Scenario(
        rate=fault.rate or 30.0, replicas=fault.replicas or 2, per_host=fault.per_host
    )
    seconds = FAULT_AT + (fault.duration or HOUR) + AFTER
    return Case(fault.id.lower(), scenario, fault, math.ceil(seconds / HOUR) * HOUR)


@lru_cache
def spans_of(scenario: Scenario) -> HealthySpans:
    return HealthySpans(scenario, INTERVAL)


def simulate(case: Case, folder: Path, tsdb: Path) -> None:
    rules = write({case.name: case.groups}, Format.PROMETHEUS)
    fleet = Fleet(case.scenario)

    def is_read(family: Family) -> bool:
        return family.name in rules

    labels = {
        replica.instance: {
            "cluster": case.name,
            "revision": "canary" if replica.index else "stable",
        }
        for replica in fleet.replicas
    } | {"gateway:9108": {"cluster": case.name, "revision": "stable"}}
    recorder = Recorder(folder / case.name, target_labels=labels, keep=is_read)
    happenings = [Happening(case.fault_at, case.fault)] if case.fault else []
    record(
        fleet, recorder, case.scenario.start + case.seconds, interval=INTERVAL,
        happenings=happenings, spans=spans_of(case.scenario),
    )  # fmt: skip
    backfill(recorder.files, tsdb)
    for file in recorder.files:
        file.unlink()


def judge(cases: Sequence[Case], *, lead: float) -> dict[str, list[replay.Firing]]:
    """By case, what fired from `lead` seconds before its fault to its end."""
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder, tsdb = Path(scratch), Path(scratch) / "tsdb"
        for case in cases:
            simulate(case, folder, tsdb)
        start = min(case.scenario.start for case in cases)
        groups = [group for case in cases for group in case.groups]
        replay.record(groups, tsdb, start, start + max(case.seconds for case in cases))
        with replay.served(tsdb, folder / "prometheus.log") as url:
            for case in cases:
                begin = case.fault_at - lead if case.fault else case.scenario.start + HOUR
                end = case.scenario.start + case.seconds
                firings = replay.firings(case.groups, url, begin, end)
                found[case.name] = [each for each in firings if each.alert not in QUIET]
    return found


def row(case: Case, firings: Sequence[replay.Firing]) -> str:
    assert case.fault is not None
    fault = case.fault
    before = [f for f in firings if f.start < case.fault_at]
    during = [f for f in firings if case.fault_at <= f.start <= case.fault_until + AFTER]
    naming = [f for f in during if f.alert in fault.expect]
    side = Counter(f.alert for f in during if f.alert not in fault.expect)
    if naming:
        first = naming[0]
        minutes = f"{(first.start - case.fault_at) / 60:.0f}"
        named = f"{first.alert} | {first.labels['tier']} ({first.labels['severity']}) | {minutes}"
    else:
        named = "**missed** | | "
    pages = sorted({f.alert for f in during if f.pages})
    return (
        f"| {fault.id} | {fault.title} | {named} | {', '.join(pages)} |"
        f" {', '.join(sorted(side))} | {', '.join(sorted({f.alert for f in before}))} |"
    )


def healthy(rates: Sequence[float], days: float) -> Iterator[str]:
    yield "| requests a minute | engines | days | pages | tickets |"
    yield "|---|---|---|---|---|"
    for rate in rates:
        case = Case(f"healthy-{rate:g}", Scenario(rate=rate), None, days * DAY)
        firings = judge([case], lead=0)[case.name]
        pages = Counter(f.alert for f in firings if f.pages)
        tickets = Counter(f.alert for f in firings if not f.pages)
        yield (
            f"| {rate:g} | {case.scenario.engines} | {days:g} | {_counted(pages)} |"
            f" {_counted(tickets)} |"
        )


def _counted(alerts: Counter[str]) -> str:
    return ", ".join(f"{count} {alert}" for alert, count in sorted(alerts.items())) or "none"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", nargs="*", default=list(catalogue()))
    parser.add_argument("--healthy", type=float, nargs="*", default=[1, 30, 1000])
    parser.add_argument("--days", type=float, default=30)
    args = parser.parse_args()
    if args.faults:
        print("| id | fault | named by | tier | minutes | pages | side alerts | before it |")
        print("|---|---|---|---|---|---|---|---|")
    cases = [case_of(catalogue()[id]) for id in args.faults]
    for at in range(0, len(cases), TOGETHER):
        batch = cases[at : at + TOGETHER]
        found = judge(batch, lead=2 * HOUR)
        for case in batch:
            print(row(case, found[case.name]), flush=True)
    if args.healthy:
        print("\n".join(["", *healthy(args.healthy, args.days)]), flush=True)


if __name__ == "__main__":
    main()
