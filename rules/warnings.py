"""Early warnings: tickets before users feel anything, never pages. What they are is data:
warnings.yaml beside this file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from ..slo.errors import SpecError, closest
from ..slo.plan import Plan, PromptRange, Severity
from . import carried
from .model import Alert, Group
from .naming import INCIDENT
from .promql import ON_TARGET, matcher, series
from .template import ON_ENGINE, expand, of_engines

SLO = "early-warning"  # the label `slo` of all of them
_FAST = 60
_SLOW = 300
_JOINS = {"target": ON_TARGET, "engine": ON_ENGINE}


@dataclass(frozen=True, slots=True)
class EarlyWarning:
    """One early warning as in warnings.yaml, whose head says what the fields are."""

    name: str
    alert: str
    page: str
    source: str
    hold: int
    tier: int
    faults: tuple[str, ...]
    expr: str
    summary: str
    impact: str
    actions: tuple[str, ...]
    threshold: Decimal | None = None
    unit: str = ""
    slow: bool = False
    join: str = "target"
    needs: str = ""


@cache
def catalogue() -> tuple[EarlyWarning, ...]:
    """All that there are, whether a file can use them or not."""
    text = (files(__package__) / "warnings.yaml").read_text(encoding="utf-8")
    return tuple(_read(entry) for entry in yaml.safe_load(text))


def of_plan(plan: Plan) -> tuple[EarlyWarning, ...]:
    """Those of a file: none that it switches off, nor that ask for what it does not say.

    Raises SpecError for a name that there is not.
    """
    asked = dict(plan.warnings)
    _check(plan)
    return tuple(
        warning
        for warning in catalogue()
        if asked.get(warning.name, Decimal(0)) is not None
        and (not warning.needs or getattr(plan, warning.needs))
    )


def threshold(plan: Plan, warning: EarlyWarning) -> Decimal | None:
    """The file's own, else the default; None where the warning has none."""
    return dict(plan.warnings).get(warning.name, warning.threshold)


def groups(plan: Plan) -> tuple[Group, ...]:
    """A group of what is asked each minute and one of what looks back for hours."""
    wanted = of_plan(plan)
    fast = tuple(_alert(plan, warning) for warning in wanted if not warning.slow)
    slow = tuple(_alert(plan, warning) for warning in wanted if warning.slow)
    made = (
        Group(f"inferslo-{plan.service}-warnings", _FAST, fast),
        Group(f"inferslo-{plan.service}-warnings-slow", _SLOW, slow),
    )
    return tuple(group for group in made if group.rules)


def _read(entry: Mapping[str, Any]) -> EarlyWarning:
    number = entry.get("threshold")
    lists = {key: tuple(entry[key]) for key in ("faults", "actions")}
    exact = None if number is None else Decimal(str(number))
    return EarlyWarning(**{**entry, **lists, "threshold": exact})


def _check(plan: Plan) -> None:
    by_name = {warning.name: warning for warning in catalogue()}
    problems = []
    for name, number in plan.warnings:
        if name not in by_name:
            problems.append(f"warnings: there is no {name}{closest(name, by_name)}")
        elif number is not None and by_name[name].threshold is None:
            problems.append(f"warnings: {name} has no threshold: write off, or leave it out")
    if problems:
        raise SpecError(problems)


def _alert(plan: Plan, warning: EarlyWarning) -> Alert:
    text = _filled(plan, warning)
    expr = expand(text, plan.selection)
    return Alert(
        alert=warning.alert,
        expr=of_engines(expr, text, plan.selection, _JOINS[warning.join]),
        labels=carried.labels(plan, SLO, warning.tier, Severity.TICKET),
        annotations=carried.annotations(
            plan, warning.alert, warning.summary, warning.impact, warning.actions
        ),
        hold=warning.hold,
    )


def _filled(plan: Plan, warning: EarlyWarning) -> str:
    """In one pass: a value may hold another's word."""
    words = _words(plan, warning)
    return re.sub("|".join(words), lambda word: words[word[0]], warning.expr)


def _words(plan: Plan, warning: EarlyWarning) -> dict[str, str]:
    words = {"INCIDENT": series(INCIDENT.name, [matcher("service", [plan.service])])}
    if (number := threshold(plan, warning)) is not None:
        words["THRESHOLD"] = f"{number:f}"
    if plan.canary is not None:
        words["CANARY"] = matcher(plan.canary.label, [plan.canary.canary])
        words["BASELINE"] = matcher(plan.canary.label, [plan.canary.baseline])
    if plan.prompt_classes:
        ordered = sorted(plan.prompt_classes, key=_length)
        words["SHORTEST"] = matcher("prompt_class", [ordered[0].label])
        words["LONGEST"] = matcher("prompt_class", [ordered[-1].label])
    return words


def _length(prompts: PromptRange) -> tuple[int, int]:
    return prompts.above or 0, prompts.upto or 0
