"""One SLO file becomes groups of rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..slo.plan import Objective, Plan, Severity
from . import alerts, carried, causes, recording, warnings
from .model import Alert, Group, Recording
from .naming import WATCHDOG

_RulesOf = Callable[[Plan, Objective], Iterable[Recording | Alert]]
# Beyond five minutes a series would be stale before its next sample.
_SLOWEST = 240


def compile_rules(plan: Plan) -> tuple[Group, ...]:
    """All rules of a file: recorded series, the alerts of its objectives, of causes and of early
    warnings, and the watchdog. No rule reads a series of its own group.

    Raises SpecError for an early warning that there is not.
    """
    interval, slow = plan.evaluation.interval, slow_interval(plan)
    own = (
        _group(plan, "base", interval, recording.base),
        _group(plan, "derived", interval, recording.derived),
        _group(plan, "budget", slow, recording.budget),
        _group(plan, "alerts", interval, _alerts(alerts.urgent)),
        _group(plan, "tickets", slow, _alerts(alerts.patient)),
        Group(f"inferslo-{plan.service}-watchdog", interval, (watchdog(plan),)),
    )
    return tuple(g for g in (*own, *causes.groups(plan), *warnings.groups(plan)) if g.rules)


def slow_interval(plan: Plan) -> int:
    """Seconds between two evaluations of budgets and tickets."""
    interval = plan.evaluation.interval
    return max(interval, min(4 * interval, _SLOWEST))


def _group(
    plan: Plan,
    name: str,
    interval: int,
    rules_of: _RulesOf,
) -> Group:
    rules = tuple(rule for objective in plan.objectives for rule in rules_of(plan, objective))
    return Group(f"inferslo-{plan.service}-{name}", interval, rules)


def _alerts(told: Callable[[Plan, Objective], Iterable[alerts.Told]]) -> _RulesOf:
    return lambda plan, objective: [each.alert for each in told(plan, objective)]


def watchdog(plan: Plan) -> Alert:
    """Always fires."""
    return Alert(
        alert=WATCHDOG.name,
        expr="vector(1)",
        labels=carried.labels(plan, "watchdog", 1, Severity.TICKET),
        annotations=carried.annotations(
            plan, WATCHDOG.name, f"Alerting of {plan.service} works.", WATCHDOG.meaning,
            ("Route it to whoever notices when it stops: a dead man's switch.",),
        ),
    )  # fmt: skip
