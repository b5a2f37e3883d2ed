"""Unit tests of rules as promtool reads them, made of cases with checks.

A check says in its expression, as a comment, what it is about: promtool prints the expression of
what fails, and no more than that of a query's test.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...slo.plan import Plan
from ...slo.quantities import format_duration
from ..model import Alert
from ..yamltext import dump
from .series import Series, selector

_NOTE = re.compile(r" # (?P<case>[^|]*) \| (?P<about>[^|]*) \| (?P<says>[^|]*)$")


@dataclass(frozen=True, slots=True)
class Check:
    """What an expression gives at a time. about: the SLO, or the alert of no SLO. says: what that
    means, in words. at: seconds. expected: None is nothing at all, else one nameless sample.
    alert: the one that it is about, if it is about one."""

    about: str
    says: str
    expr: str
    at: int
    expected: float | None
    alert: Alert | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One story. step: seconds between the samples of its series."""

    name: str
    step: int
    series: Sequence[Series]
    checks: Sequence[Check]


@dataclass(frozen=True, slots=True)
class Note:
    """What a check said of itself, found again in promtool's output."""

    case: str
    about: str
    says: str


def note_of(expr: str) -> Note | None:
    """None for an expression that was not written here."""
    found = _NOTE.search(expr)
    return Note(**found.groupdict()) if found else None


def fires(alert: Alert, about: str, at: int, says: str) -> Check:
    return Check(about, says, f"count({_firing(alert)})", at, 1, alert)


def quiet(alert: Alert, about: str, at: int, says: str) -> Check:
    return Check(about, says, f"count({_firing(alert)})", at, None, alert)


def silent(plan: Plan, slo: str, at: int, says: str, **labels: str) -> Check:
    """Nothing is told of an SLO, or nothing with these labels."""
    told = {"alertstate": "firing", "service": plan.service, "slo": slo, **labels}
    return Check(slo, says, selector("ALERTS", told), at, None)


def who(alert: Alert) -> str:
    return f"tier {alert.labels['tier']}"


def _firing(alert: Alert) -> str:
    """ALERTS with every label that the rule sets, so that a wrong one fails the test too."""
    labels = {"alertname": alert.alert, "alertstate": "firing", **alert.labels}
    return selector("ALERTS", labels)


def as_yaml(cases: Iterable[Case], rule_file: str, interval: int, order: Sequence[str]) -> str:
    """The test file. interval: seconds between evaluations, whatever the groups' own. order: of the
    groups, without which promtool evaluates them in any."""
    whole = {
        "rule_files": [rule_file],
        "evaluation_interval": format_duration(interval),
        "group_eval_order": list(order),
        "tests": [_test(case) for case in cases],
    }
    return dump(whole)


def _test(case: Case) -> dict[str, Any]:
    return {
        "name": case.name,
        "interval": format_duration(case.step),
        "input_series": [
            {"series": series.selector, "values": series.values} for series in case.series
        ],
        "promql_expr_test": [
            {
                "expr": f"{check.expr} # {case.name} | {check.about} | {check.says}",
                "eval_time": format_duration(check.at),
                "exp_samples": (
                    [] if check.expected is None else [{"labels": "{}", "value": check.expected}]
                ),
            }
            for check in case.checks
        ],
    }
