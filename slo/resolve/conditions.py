"""The burn-rate and outage conditions of an objective, as the file or the defaults have them."""

from __future__ import annotations

from decimal import Decimal

from ..burn import BurnError, BurnRule, OutageRule, burns_for, outage_for
from ..plan import Budgeting, Burn, Outage
from ..spec import AlertingSpec, OutageSpec
from ..yamlfile import Keys
from .case import Case


def burns(case: Case, budget: Decimal, budgeting: Budgeting, *, pages: bool) -> tuple[Burn, ...]:
    alerting, at = _alerting(case)
    window = case.spec.window or case.context.window
    try:
        found, notes = burns_for(
            budget, window, budgeting, case.context.evaluation, pages=pages, rules=_rules(alerting)
        )
    except BurnError as error:
        case.found.fault((*at, "burns"), str(error))
        return ()
    case.found.notes += [f"{case.spec.name}: {note}" for note in notes]
    return found


def outage(case: Case, budget: Decimal, budgeting: Budgeting, *, pages: bool) -> Outage | None:
    """None where the objective never pages."""
    alerting, at = _alerting(case)
    if not pages:
        if case.spec.alerting is not None and alerting.outage is not None:
            case.found.fault((*at, "outage"), "an outage pages, and this objective only tickets")
        return None
    try:
        return outage_for(budget, budgeting, case.context.evaluation, _rule(alerting.outage))
    except BurnError as error:
        case.found.fault((*at, "outage"), str(error))
        return None


def _alerting(case: Case) -> tuple[AlertingSpec, Keys]:
    """What applies, and where it stands; the defaults stand nowhere."""
    if case.spec.alerting is not None:
        return case.spec.alerting, (*case.at, "alerting")
    return case.context.spec.alerting or AlertingSpec(), ("alerting",)


def _rules(alerting: AlertingSpec) -> tuple[BurnRule, ...] | None:
    """None takes the defaults. Raises BurnError."""
    if alerting.burns is None:
        return None
    return tuple(
        BurnRule(
            name=burn.name,
            long=burn.long,
            short=burn.short,
            share=burn.budget,
            severity=burn.severity,
            min_bad=_count(burn.min_bad),
            min_total=_count(burn.min_total),
        )
        for burn in alerting.burns
    )


def _rule(spec: OutageSpec | None) -> OutageRule:
    if spec is None:
        return OutageRule()
    return OutageRule(spec.ratio, spec.window, _count(spec.min_bad), _count(spec.min_total))


def _count(count: int | None) -> Decimal | None:
    return None if count is None else Decimal(count)
