"""Do the alerts find what goes wrong, and keep quiet while nothing does? Prints tables.

    .venv/bin/python bench/detection.py [--faults F1 F3 …] [--healthy 1 30 1000] [--days 30]

Simulated services (docs/simulator.md), scraped every minute through the sidecar's own code, go into
a real Prometheus; the rules of bench/detection.slo.yaml are evaluated there, and beside them what
others would watch the same service with (bench/peers.py). A fault comes at ten o'clock on the
second day. Of each: the alert that names it and the minutes until it fired, the first page, what
else fired meanwhile, and how long the others took to say anything at all. Of healthy days: what
fired.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

import peers
import replay
from simulated import INTERVAL, Healthy

from inferslo.rules.compile import compile_rules
from inferslo.rules.model import Group
from inferslo.sidecar.demo.faults import Fault, catalogue
from inferslo.sidecar.demo.fleet import Scenario
from inferslo.sidecar.demo.record import Happening
from inferslo.slo.load import load_text

SLO = Path(__file__).with_suffix(".slo.yaml").read_text(encoding="utf-8")
DAY, HOUR = 86400.0, 3600.0
FAULT_AT = DAY + 10 * HOUR
BEFORE = 1 * HOUR  # looked at too: what fires there is not of the fault
AFTER = 1 * HOUR  # in which an alert is still taken to be of the fault
QUIET = frozenset({"InfersloWatchdog"})


@dataclass(frozen=True, slots=True)
class RuleSets:
    """The rules that judge a service, by whose they are. recorded: those that record something."""

    alerting: Mapping[str, tuple[Group, ...]]
    recorded: tuple[Group, ...]

    @property
    def read(self) -> tuple[Group, ...]:
        return (*self.recorded, *(group for each in self.alerting.values() for group in each))


@cache
def rules_of(scenario: Scenario) -> RuleSets:
    """A number of fallbacks in an hour is right for one traffic only: a fifth of the requests a
    minute, but no less than the file's."""
    fallbacks = f"threshold: {max(50, scenario.rate / 5):.0f}, over"
    plan = load_text(SLO.replace("threshold: 50, over", fallbacks))
    ours, sloth = tuple(compile_rules(plan)), peers.sloth(plan)
    published = peers.published(plan.selection)
    return RuleSets({"ours": ours, "sloth": sloth, "published": published}, (*ours, *sloth))


@dataclass(frozen=True, slots=True)
class Found:
    """What fired by set of rules, in the order of time, and when the fault began and ended."""

    at: float
    until: float
    firings: Mapping[str, Sequence[replay.Firing]]

    def before(self, rules: str) -> list[replay.Firing]:
        return [each for each in self.firings[rules] if each.start < self.at]

    def during(self, rules: str) -> list[replay.Firing]:
        """What fired on healthy traffic an hour ago as well has found nothing."""
        last, known = self.until + AFTER, {each.alert for each in self.before(rules)}
        return [
            each
            for each in self.firings[rules]
            if self.at <= each.start <= last and each.alert not in known
        ]


def scenario_of(fault: Fault) -> Scenario:
    return Scenario(rate=fault.rate or 30.0, replicas=fault.replicas or 2, per_host=fault.per_host)


def judge(faults: Iterable[Fault]) -> Iterator[tuple[Fault, Found]]:
    ordered = sorted(faults, key=lambda fault: repr(scenario_of(fault)))
    for scenario, alike in groupby(ordered, key=scenario_of):
        with tempfile.TemporaryDirectory() as folder:
            healthy = _healthy(scenario, FAULT_AT - HOUR / 4, Path(folder))
            for fault in alike:
                with tempfile.TemporaryDirectory() as scratch:
                    yield fault, _judged(fault, healthy, scenario, Path(scratch))


def _healthy(scenario: Scenario, seconds: float, folder: Path) -> Healthy:
    rules = rules_of(scenario)
    return Healthy(scenario, seconds, folder, rules.recorded, rules.read)


def _judged(fault: Fault, healthy: Healthy, scenario: Scenario, scratch: Path) -> Found:
    at = scenario.start + FAULT_AT
    until = at + (fault.duration or HOUR)
    end = until + AFTER
    tsdb = healthy.branch(scratch, Happening(at, fault), end)
    return Found(at, until, _firings(rules_of(scenario), tsdb, at - BEFORE, end))


def _firings(
    rules: RuleSets, tsdb: Path, begin: float, end: float
) -> dict[str, list[replay.Firing]]:
    with replay.served(tsdb, tsdb.parent / "prometheus.log") as url:
        return {
            name: [
                each
                for each in replay.firings(groups, url, begin, end, INTERVAL)
                if each.alert not in QUIET
            ]
            for name, groups in rules.alerting.items()
        }


HEAD = (
    "| | fault | named by | tier, severity | after, min | first page, min | side alerts |"
    " Sloth's shape, min | published thresholds, min |\n|---|---|---|---|---|---|---|---|---|"
)

HEALTHY_HEAD = (
    "| requests a minute | engines | days | rules | pages | tickets |\n|---|---|---|---|---|---|"
)


def row(fault: Fault, found: Found) -> str:
    during = found.during("ours")
    named = next((each for each in during if each.alert in fault.expect), None)
    page = next((each for each in during if each.pages), None)
    side = Counter(each.alert for each in during if each.alert not in fault.expect)
    cells = [
        fault.id,
        fault.title,
        named.alert if named else "**missed**",
        f"{named.labels['tier']}, {named.labels['severity']}" if named else "",
        _minutes(named, found) if named else "",
        f"{_minutes(page, found)} ({page.alert})" if page else "",
        _counted(side),
        *(_first(found, peer) for peer in ("sloth", "published")),
    ]
    return "| " + " | ".join(cells) + " |"


def _first(found: Found, rules: str) -> str:
    """When a set of rules said anything at all, and what."""
    first = next(iter(found.during(rules)), None)
    return f"{_minutes(first, found)} ({first.alert})" if first else "never"


def _minutes(firing: replay.Firing, found: Found) -> str:
    return f"{(firing.start - found.at) / 60:.0f}"


def healthy(rates: Sequence[float], days: float) -> Iterator[str]:
    for rate in rates:
        scenario = Scenario(rate=rate)
        with tempfile.TemporaryDirectory() as folder:
            service = _healthy(scenario, days * DAY, Path(folder))
            found = _firings(rules_of(scenario), service.tsdb, scenario.start + HOUR, service.end)
        for name, firings in found.items():
            pages = Counter(each.alert for each in firings if each.pages)
            tickets = Counter(each.alert for each in firings if not each.pages)
            yield (
                f"| {rate:g} | {scenario.engines} | {days:g} | {name} |"
                f" {_counted(pages, 'none')} | {_counted(tickets, 'none')} |"
            )


def _counted(alerts: Counter[str], none: str = "") -> str:
    counts = (f"{count} {alert}" if count > 1 else alert for alert, count in sorted(alerts.items()))
    return ", ".join(counts) or none


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", nargs="*", default=list(catalogue()))
    parser.add_argument("--healthy", type=float, nargs="*", default=[1, 30, 1000])
    parser.add_argument("--days", type=float, default=30)
    args = parser.parse_args()
    begun = time.monotonic()
    if args.faults:
        print(HEAD)
    for fault, found in judge(catalogue()[id] for id in args.faults):
        print(row(fault, found), flush=True)
        minutes = (time.monotonic() - begun) / 60
        before = sorted({each.alert for each in found.before("ours")})
        print(f"{minutes:.1f} min: {fault.id}; before it: {before}", file=sys.stderr, flush=True)
    if args.healthy:
        print("\n" + HEALTHY_HEAD)
    for line in healthy(args.healthy, args.days):
        print(line, flush=True)


if __name__ == "__main__":
    main()
