"""What others would watch the same service with: rules of Sloth's shape for the same objectives,
and the static thresholds that serving projects publish (published_thresholds.yaml)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import sloth_shape
import yaml

from inferslo.exporters.names import AGENT_TURNS, QUALITY_CHECKS, Family
from inferslo.rules import sources
from inferslo.rules.model import Alert, Group
from inferslo.rules.promql import select
from inferslo.rules.template import expand
from inferslo.slo.plan import Objective, Plan, Selection
from inferslo.slo.quantities import parse_whole_seconds
from inferslo.slo.signals import Shape

_PUBLISHED = Path(__file__).parent / "published_thresholds.yaml"
_Window = Callable[[str], str]


def sloth(plan: Plan) -> tuple[Group, ...]:
    """Of the objectives that count events: a ratio of a value (tpot_cv) or a number of fallbacks
    is none that Sloth's query of errors and total could say. Only what its alerts read."""
    made = []
    for objective in plan.objectives:
        if (queries := _queries(objective)) is None:
            continue
        errors, total = queries
        slo = sloth_shape.SlothSlo(plan.service, objective.name, objective.objective, errors, total)
        ratios, _, alerts = sloth_shape.groups(slo, plan.evaluation.interval)
        wanted = tuple(each for each in ratios.rules if "sum_over_time" not in each.expr)
        made += [replace(ratios, rules=wanted), alerts]
    return tuple(made)


def _queries(objective: Objective) -> tuple[_Window, _Window] | None:
    """Errors and total as a user of Sloth writes them: from the engine's own counters."""
    signal, selection = objective.signal, objective.selection
    if signal.shape is Shape.LATENCY:
        count = select(sources.counted(objective), selection, part="_count")
        good = sources.bucket(objective)
        return (lambda w: f"{_rate(count, w)} - {_rate(good, w)}"), (lambda w: _rate(count, w))
    parts = _PARTS.get(signal.name)
    if parts is None:
        return None
    family, bad, all_ = parts(objective)
    errors, total = select(family, selection, *bad), select(family, selection, *all_)
    return (lambda w: _rate(errors, w)), (lambda w: _rate(total, w))


def _rate(series: str, window: str) -> str:
    return f"sum(rate({series}[{window}]))"


_Part = tuple[Family, tuple[str, ...], tuple[str, ...]]
_RETENTION = 'check="context_retention"'


def _availability(objective: Objective) -> _Part:
    bad = f'outcome=~"{"|".join(objective.bad_outcomes)}"'
    return sources.requests(objective.selection), (bad,), ('outcome!="invalid"',)


_PARTS: dict[str, Callable[[Objective], _Part]] = {
    "availability": _availability,
    "goodput": lambda each: (sources.counted(each), ('result="bad"',), ()),
    "agent_turn_success": lambda _: (AGENT_TURNS, ('outcome!="success"',), ()),
    "context_retention": lambda _: (
        QUALITY_CHECKS, (_RETENTION, 'result="failed"'), (_RETENTION,),
    ),
}  # fmt: skip


def published(selection: Selection) -> tuple[Group, ...]:
    return (Group("published", 60, tuple(_published(selection))),)


def _published(selection: Selection) -> Iterator[Alert]:
    for project in yaml.safe_load(_PUBLISHED.read_text(encoding="utf-8")):
        for rule in project["rules"]:
            yield Alert(
                f"{project['project']}: {rule['alert']}",
                expand(rule["expr"], selection),
                {"severity": rule["severity"]},
                {},
                hold=parse_whole_seconds(rule["for"]),
            )
