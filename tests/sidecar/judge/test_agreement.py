"""The judge and a real Prometheus with the compiled rules, over the same samples: the same alerts
fire at every evaluation.

Of 200 histories, made by chance of stretches: traffic well, partly or wholly bad, no traffic, the
engine away, restarted, its page without a family. What the judge says is written as the
expectation of a promtool test. promtool evaluates all groups at one interval, and so the judge does
here; windows are no multiples of it, so that no sample lies on an edge, where versions of
Prometheus differ.
"""

from __future__ import annotations

import math
import random
import subprocess
from collections.abc import Iterator, Sequence
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

KINDS = {"well": 6, "partly": 4, "all": 3, "idle": 2, "away": 1, "without": 1}
STEP, STEPS, HISTORIES, AT_ONCE = 10, 120, 200, 25
BASE = 45
FIRING = (
    "count by (alertname, slo, tier, severity)"
    ' (ALERTS{alertstate="firing",alertname!="InfersloWatchdog"})'
)
OFF = tuple((warning.name, None) for warning in catalogue())
NOBODY = Selection()
OUTAGE = Outage(Decimal("0.5"), BASE, Floor(Decimal(3), Decimal(3)))
SLICED = Floor(Decimal(6), Decimal(6))


def burn(name: str, long: int, short: int, threshold: str, severity: Severity, least: int) -> Burn:
    floor = Floor(Decimal(least), Decimal(2 * least))
    return Burn(name, long, short, Decimal(10), Decimal(threshold), severity, floor)


BURNS = (
    burn("fast", 95, BASE, "0.3", Severity.PAGE, 5),
    burn("medium", 215, 95, "0.15", Severity.PAGE, 5),
    burn("slow", 305, 95, "0.08", Severity.TICKET, 5),
    burn("creeping", 605, 215, "0.05", Severity.TICKET, 5),
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


def judged() -> Plan:
    objectives = (
        objective("availability", "95", expect_traffic=True, **COMMON),
        objective("ttft", "95", threshold=Decimal(1), **COMMON),
        objective("e2e", "95", threshold=Decimal(5), slice_target=Decimal("0.9"), **OF_SLICES),
        objective("fallback_count", "95", over=65, threshold=Decimal(20), **OF_SLICES),
        objective("context_retention", "95", **COMMON),
        objective("agent_turn_success", "90", **COMMON),
        composite("95", **COMMON),
    )
    evaluation = Evaluation(STEP, STEP, BASE)
    return plan(
        *objectives, selection=NOBODY, response=RESPONSES, evaluation=evaluation, warnings=OFF
    )


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


def history(seed: int) -> list[list[Point]]:
    """The page at each step."""
    pick = random.Random(seed)
    world, pages = World.new(pick), []
    while len(pages) < STEPS:
        kind = pick.choices(
            ("well", "partly", "all", "idle", "away", "without"), (6, 4, 3, 2, 1, 1)
        )[0]
        bad = {"well": 0.01, "partly": pick.uniform(0.03, 0.5), "all": 1.0}.get(kind, 0.02)
        rate = 0.0 if kind in ("idle", "away") else pick.choice((0.1, 1, 5, 5))
        world.up = kind != "away"
        world.without = pick.choice((names.TTFT, names.REQUESTS)) if kind == "without" else None
        if pick.random() < 0.3:
            world.restart()
        for _ in range(pick.randint(3, 30)):
            world.serve(rate, bad)
            pages.append(list(world.points()))
    return pages[:STEPS]


# --- what is said of it --------------------------------------------------------------------------


def judgements(pages: Sequence[list[Point]]) -> list[Judgement]:
    judge = Judge(judged(), History(None, 3600), slow=1, closed=True)
    return [judge.step(points, at * STEP) for at, points in enumerate(pages)]


def expectation(judgement: Judgement) -> list[dict[str, Any]]:
    counts: dict[str, int] = {}
    for firing in judgement.firing:
        told = {"alertname": firing.alert.alert, **firing.labels}
        labels = ",".join(f'{k}="{told[k]}"' for k in ("alertname", "slo", "tier", "severity"))
        counts[f"{{{labels}}}"] = counts.get(f"{{{labels}}}", 0) + 1
    return [{"labels": labels, "value": count} for labels, count in sorted(counts.items())]


def promtest(seed: int) -> dict[str, Any]:
    pages = history(seed)
    return {
        "name": f"history {seed}",
        "interval": f"{STEP}s",
        "input_series": [
            {"series": series, "values": values} for series, values in written(pages).items()
        ],
        "promql_expr_test": [
            {"expr": FIRING, "eval_time": f"{at * STEP}s", "exp_samples": expectation(judgement)}
            for at, judgement in enumerate(judgements(pages))
        ],
    }


def written(pages: Sequence[list[Point]]) -> dict[str, str]:
    """The pages in promtool's notation: `_` before a series is born, `stale` once it is gone."""
    found: dict[str, list[str]] = {}
    for at, points in enumerate(pages):
        for name, labels, value in samples_of(points, FAMILIES.keys()):
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
    groups = compile_rules(judged())
    (tmp_path / "rules.yaml").write_text(write({"all": groups}, Format.PROMETHEUS))
    test = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": f"{STEP}s",
        "group_eval_order": [group.name for group in sorted(groups, key=_order)],
        "tests": [promtest(seed) for seed in range(first, first + AT_ONCE)],
    }
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(test, sort_keys=False))
    done = subprocess.run(
        ["promtool", "test", "rules", tmp_path / "test.yaml"], capture_output=True, text=True
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[:6000]


def _order(group: Any) -> int:
    kinds = ("engines", "base", "derived", "budget")
    kind = group.name.rpartition("-")[2]
    return kinds.index(kind) if kind in kinds else len(kinds)
