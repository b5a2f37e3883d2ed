"""The judge and a real Prometheus with the compiled rules, over the same samples: the same alerts
fire at every evaluation.

Of 200 histories, made by chance of stretches: traffic well, partly or wholly bad, no traffic, the
engine away, restarted, its page without a family, the sidecar itself down. What the judge says is
written as the expectation of a promtool test. promtool evaluates all groups at one interval, and so
the judge does here. Windows are no multiples of it and thresholds no ratios of small numbers, so
that nothing lies on an edge, where versions of Prometheus differ or the last bit of a sum decides.

A Prometheus goes on judging for a base window by what it read before the sidecar went down, and the
judge, which went down too, does not. They are compared again once no window reaches back to then.
"""

from __future__ import annotations

import math
import random
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from plans import RESPONSE, composite, objective, plan

from inferslo.exporters import names
from inferslo.exporters.names import FAMILIES, Family
from inferslo.exporters.reading import Histogram, Point
from inferslo.rules import naming
from inferslo.rules.compile import compile_rules
from inferslo.rules.formats import write
from inferslo.rules.model import Format
from inferslo.rules.warnings import catalogue
from inferslo.sidecar.judge.history import History
from inferslo.sidecar.judge.judge import Judge, Judgement
from inferslo.sidecar.judge.page import samples_of
from inferslo.slo.plan import (
    Budgeting,
    Burn,
    Evaluation,
    Floor,
    Outage,
    Plan,
    Selection,
    Severity,
    Window,
)

KINDS = {"well": 6, "partly": 4, "all": 3, "idle": 2, "away": 1, "without": 1, "down": 1}
STEP, STEPS, HISTORIES, AT_ONCE = 10, 100, 200, 20
BASE = 45
WATCHDOG = naming.WATCHDOG.name
BUDGETS = "InfersloBudgetExhausted|InfersloIncidentRepeats"


@dataclass(frozen=True)
class Kind:
    """Alerts by how far back they look, in seconds: their longest window, or longest hold."""

    reach: float
    severity: str
    tier: str = ".+"
    named: str = ""

    @property
    def selector(self) -> str:
        own = f'alertstate="firing",severity="{self.severity}",tier=~"{self.tier}"'
        name = f'alertname=~"{self.named}"' if self.named else f'alertname!~"{BUDGETS}|{WATCHDOG}"'
        return f"ALERTS{{{own},{name}}}"

    def has(self, told: Mapping[str, str]) -> bool:
        right = bool(re.fullmatch(self.named or f"(?!{BUDGETS}).*", told["alertname"]))
        tier = re.fullmatch(self.tier, told["tier"])
        return right and told["severity"] == self.severity and bool(tier)


ALERTS = (
    Kind(305, "page", "1"),
    Kind(305 + 125, "page", "[23]"),
    Kind(905, "ticket"),  # of no data, the longest
    Kind(1005, "ticket", named=BUDGETS),
)
OFF = tuple((warning.name, None) for warning in catalogue())
NOBODY = Selection()
OUTAGE = Outage(Decimal("0.5003"), BASE, Floor(Decimal("2.903"), Decimal("2.903")))
SLICED = Floor(Decimal("5.5"), Decimal("5.5"))


def burn(name: str, long: int, short: int, threshold: str, severity: Severity) -> Burn:
    floor = Floor(Decimal("4.903"), Decimal("9.907"))
    return Burn(name, long, short, Decimal(10), Decimal(threshold), severity, floor)


BURNS = (
    burn("fast", 95, BASE, "0.3003", Severity.PAGE),
    burn("medium", 215, 95, "0.1503", Severity.PAGE),
    burn("slow", 305, 95, "0.0803", Severity.TICKET),
    burn("creeping", 605, 215, "0.0503", Severity.TICKET),
)
RESPONSES = tuple(
    replace(tier, after=None if tier.after is None else 125, within=905) for tier in RESPONSE
)
COMMON: dict[str, Any] = {
    "selection": NOBODY,
    "response": RESPONSES,
    "burns": BURNS,
    "outage": OUTAGE,
    "window": Window(1005),
    "min_coverage": Decimal("0.1"),
}
OF_SLICES: dict[str, Any] = COMMON | {
    "budgeting": Budgeting.TIMESLICES,
    "burns": tuple(replace(each, floor=SLICED) for each in BURNS),
    "outage": replace(OUTAGE, window=95, floor=SLICED),
}


OBJECTIVES = (
    (
        objective("availability", "95.03", expect_traffic=True, **COMMON),
        objective("fallback_count", "95.03", over=65, threshold=Decimal(20), **OF_SLICES),
        composite("95.03", **COMMON),
    ),
    (
        objective("ttft", "95.03", threshold=Decimal(1), **COMMON),
        objective(
            "e2e", "95.03", threshold=Decimal(5), slice_target=Decimal("0.9003"), **OF_SLICES
        ),
        objective("context_retention", "95.03", **COMMON),
        objective("agent_turn_success", "90.03", **COMMON),
    ),
)
PLANS = [
    plan(
        *objectives, selection=NOBODY, response=RESPONSES, warnings=OFF,
        evaluation=Evaluation(STEP, STEP, BASE),
    )
    for objectives in OBJECTIVES
]  # fmt: skip


# --- what happens --------------------------------------------------------------------------------


@dataclass
class World:
    """An engine, an application and what they have counted so far."""

    pick: random.Random
    requests: dict[str, float]
    late: dict[Family, tuple[float, float]]  # of each histogram: all, and those that were late
    events: dict[tuple[Family, tuple[str, ...]], float]
    up: bool = True
    without: Family | None = None

    @classmethod
    def new(cls, pick: random.Random) -> World:
        late = {names.TTFT: (0.0, 0.0), names.E2E: (0.0, 0.0)}
        return cls(pick, dict.fromkeys(("success", "error", "aborted"), 0.0), late, {})

    def serve(self, rate: float, bad: float) -> None:
        """STEP seconds of so many requests, of which a share is bad in each way there is."""
        asked = self._about(rate * STEP)
        failed, left = self._about(asked * bad), self._about(asked * bad / 4)
        for outcome, count in (("error", failed), ("aborted", left)):
            self.requests[outcome] += count
        served = max(0, asked - failed - left)
        self.requests["success"] += served
        for family, (all_, late) in self.late.items():
            self.late[family] = all_ + served, late + min(served, self._about(served * bad))
        self._tell(names.AGENT_TURNS, ("success",), ("timeout",), asked, bad)
        for check in ("context_retention", "negation", "vague_request"):
            self._tell(names.QUALITY_CHECKS, (check, "passed"), (check, "failed"), asked, bad)
        if failed:
            self._count(names.FALLBACKS, ("a", "b", "error", "1"), failed)

    def restart(self) -> None:
        self.requests = dict.fromkeys(self.requests, 0.0)
        self.late = dict.fromkeys(self.late, (0.0, 0.0))

    def points(self) -> Iterator[Point]:
        yield Point(names.BUILD_INFO, ("1", "3"), 1.0)
        yield Point(names.ENGINE_UP, ("e",), float(self.up))
        for (family, labels), count in self.events.items():
            yield Point(family, labels, count)
        if self.up:
            yield Point(names.ENGINE_INFO, ("e", "vllm", "1", "m"), 1.0)
            yield from (point for point in self._engine() if point.family is not self.without)

    def _engine(self) -> Iterator[Point]:
        for outcome, count in self.requests.items():
            yield Point(names.REQUESTS, ("e", "m", outcome, "engine"), count)
        for family, bound in ((names.TTFT, 1.0), (names.E2E, 5.0)):
            all_, late = self.late[family]
            histogram = Histogram((bound, math.inf), (all_ - late, all_), all_)
            yield Point(family, _labels(family), histogram)

    def _about(self, mean: float) -> int:
        whole = int(mean)
        return whole + (self.pick.random() < mean - whole)

    def _tell(
        self, family: Family, good: tuple[str, ...], bad: tuple[str, ...], asked: int, share: float
    ) -> None:
        failed = self._about(asked * share)
        self._count(family, good, asked - failed)
        self._count(family, bad, failed)

    def _count(self, family: Family, labels: tuple[str, ...], count: int) -> None:
        """A counter of events is born with its first."""
        whole = labels + ("",) * (len(family.labels) - len(labels))
        if count or (family, whole) in self.events:
            self.events[family, whole] = self.events.get((family, whole), 0.0) + count


def _labels(family: Family) -> tuple[str, ...]:
    known = {"engine": "e", "model_name": "m", "source": "engine"}
    return tuple(known.get(label, "") for label in family.labels)


Page = list[Point] | None  # None while the sidecar is down


def history(seed: int) -> list[Page]:
    """The page at each step."""
    pick = random.Random(seed)
    world, pages = World.new(pick), list[Page]()
    while len(pages) < STEPS:
        kind = pick.choices(list(KINDS), list(KINDS.values()))[0]
        bad = {"well": 0.01, "partly": pick.uniform(0.03, 0.5), "all": 1.0}.get(kind, 0.02)
        rate = 0.0 if kind in ("idle", "away") else pick.choice((0.1, 1, 5, 5))
        world.up = kind != "away"
        world.without = pick.choice((names.TTFT, names.REQUESTS)) if kind == "without" else None
        if pick.random() < 0.3:
            world.restart()
        # Down longer than the base window: within it Prometheus still has what the judge lost.
        for _ in range(pick.randint(5, 12) if kind == "down" else pick.randint(3, 30)):
            world.serve(rate, bad)
            pages.append(None if kind == "down" and pages else list(world.points()))
    return pages[:STEPS]


# --- what is said of it --------------------------------------------------------------------------


def judgements(pages: Sequence[Page], of: Plan, file: Path) -> Iterator[tuple[int, Judgement]]:
    """By a judge whose process ends, by SIGKILL for all it knows, whenever the sidecar is down."""
    history = judge = None
    for at, points in enumerate(pages):
        if points is None:
            judge = None
            continue
        if judge is None:
            if history is not None:
                history.close()
            history = History(file, 3600)
            judge = Judge(of, history, slow=1, closed=True)
        yield at * STEP, judge.step(points, at * STEP)
    if history is not None:
        history.close()


def promtest(seed: int, of: Plan, file: Path) -> dict[str, Any]:
    pages = history(seed)
    return {
        "name": f"history {seed}",
        "interval": f"{STEP}s",
        "input_series": [
            {"series": series, "values": values} for series, values in written(pages).items()
        ],
        "promql_expr_test": list(compared(pages, of, file)),
    }


def compared(pages: Sequence[Page], of: Plan, file: Path) -> Iterator[dict[str, Any]]:
    """What each step is asked, once windows no longer reach back to a time without the sidecar."""
    up = -math.inf  # since when the sidecar is, if it was down before
    for at, judgement in judgements(pages, of, file):
        if at and pages[at // STEP - 1] is None:
            up = at
        for kind in (each for each in ALERTS if at - up > each.reach):
            yield {
                "expr": f"count by (alertname, slo, tier, severity) ({kind.selector})",
                "eval_time": f"{at}s",
                "exp_samples": expectation(judgement, kind),
            }


def expectation(judgement: Judgement, kind: Kind) -> list[dict[str, Any]]:
    counts: dict[str, int] = {}
    for firing in judgement.alerts:
        told = {"alertname": firing.alert.alert, **firing.labels}
        if kind.has(told):
            labels = ",".join(f'{k}="{told[k]}"' for k in ("alertname", "slo", "tier", "severity"))
            counts[f"{{{labels}}}"] = counts.get(f"{{{labels}}}", 0) + 1
    return [{"labels": labels, "value": count} for labels, count in sorted(counts.items())]


def written(pages: Sequence[Page]) -> dict[str, str]:
    """The pages in promtool's notation: `_` before a series is born, `stale` once it is gone."""
    found: dict[str, list[str]] = {}
    for at, points in enumerate(pages):
        for name, labels, value in samples_of(points or (), FAMILIES.keys()):
            inside = ",".join(f'{k}="{v}"' for k, v in sorted(labels))
            values = found.setdefault(f"{name}{{{inside}}}", [])
            values += ["stale" if values else "_"] * (at - len(values))
            values.append(f"{value:g}")
    for values in found.values():
        values += ["stale"] * (len(pages) - len(values))
    return {series: " ".join(values) for series, values in found.items()}


@pytest.mark.promtool
@pytest.mark.parametrize("first", range(0, HISTORIES, AT_ONCE))
def test_the_same_alerts_fire_at_every_step(first: int, tmp_path: Path) -> None:
    seeds = range(first, first + AT_ONCE)
    halves = [(tmp_path / str(n), of, seeds[n :: len(PLANS)]) for n, of in enumerate(PLANS)]
    running = [started(*half) for half in halves]
    for process in running:
        printed = process.communicate()[0]
        assert process.returncode == 0, printed[:6000]


def started(folder: Path, of: Plan, seeds: Iterable[int]) -> subprocess.Popen[str]:
    """promtool with the histories of these seeds."""
    folder.mkdir()
    groups = compile_rules(of)
    (folder / "rules.yaml").write_text(write({"all": groups}, Format.PROMETHEUS))
    tests = [promtest(seed, of, folder / f"{seed}.db") for seed in seeds]
    fires = [any(asked["exp_samples"] for asked in test["promql_expr_test"]) for test in tests]
    assert sum(fires) > len(fires) / 2  # a few histories are all well
    suite = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": f"{STEP}s",
        "group_eval_order": [group.name for group in sorted(groups, key=_order)],
        "tests": tests,
    }
    (folder / "test.yaml").write_text(yaml.safe_dump(suite, sort_keys=False))
    command = ["promtool", "test", "rules", folder / "test.yaml"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _order(group: Any) -> int:
    kinds = ("engines", "base", "derived", "budget")
    kind = group.name.rpartition("-")[2]
    return kinds.index(kind) if kind in kinds else len(kinds)
