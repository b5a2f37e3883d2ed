"""A judgement as published points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...exporters import names
from ...exporters.names import Family
from ...exporters.reading import Point
from ...slo.plan import Plan, Severity, Tier
from .judge import Judgement
from .verdict import Verdict

_ESCAPED = {ord("\\"): "\\\\", ord(","): "\\,"}


def age(plan: Plan, judgement: Judgement) -> Point:
    """All that is published of one that is not of now."""
    return Point(names.SLO_JUDGED_TIMESTAMP, (plan.service,), judgement.at)


def points(plan: Plan, judgement: Judgement) -> Iterator[Point]:
    yield age(plan, judgement)
    for verdict in judgement.verdicts:
        yield from _of_verdict(plan, verdict)
    firing = Counter((one.labels["tier"], one.labels["severity"]) for one in judgement.alerts)
    for tier in sorted({str(tier.tier) for tier in _tiers(plan)}):
        for severity in Severity:
            labels = (plan.service, tier, str(severity))
            yield Point(names.SLO_ALERTS, labels, float(firing[tier, str(severity)]))


def _tiers(plan: Plan) -> Iterator[Tier]:
    yield from plan.response
    for objective in plan.objectives:
        yield from objective.response


def _of_verdict(plan: Plan, verdict: Verdict) -> Iterator[Point]:
    labels = (plan.service, verdict.objective.name, group_text(verdict))
    good = None if verdict.ratio is None else 1 - verdict.ratio
    values: tuple[tuple[Family, float | None], ...] = (
        (names.SLO_OBJECTIVE, float(verdict.objective.objective)),
        (names.SLO_GOOD, good),
        (names.SLO_BURN_RATE, verdict.burn_rate),
        (names.SLO_BUDGET_REMAINING, verdict.spent.remaining),
        (names.SLO_BUDGET_COVERAGE, verdict.spent.coverage),
        (names.SLO_STATE, verdict.state),
        (names.SLO_INCIDENT, verdict.incident),
    )
    for family, value in values:
        if value is not None:
            yield Point(family, labels, float(value))


def group_text(verdict: Verdict) -> str:
    """tenant=acme,region=eu; empty where the objective is not split. Of two groups never alike."""
    return ",".join(f"{label}={value.translate(_ESCAPED)}" for label, value in verdict.group)
