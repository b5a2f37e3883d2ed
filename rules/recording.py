"""The recorded series of an objective. naming.py says what each of them means.

Base series come from the families, all others from base series: they stand in groups of their own,
because vmalert would see a series of the same group one evaluation late.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..slo.plan import Objective, Plan
from ..slo.quantities import format_duration
from . import period
from .conditions import Conditions
from .model import Recording
from .naming import (
    BAD,
    BUDGET_COVERAGE,
    BUDGET_REMAINING,
    BURN_RATE,
    CLAMPED,
    INCIDENT,
    OBJECTIVE,
    STATE,
    TOTAL,
    Series,
)
from .sli import slis
from .sources import readable, seen

_HOUR = 3600


def base(plan: Plan, objective: Objective) -> Iterator[Recording]:
    for sli in slis(objective, plan.evaluation):
        part = {"component": sli.component} if sli.component else {}
        yield _recording(BAD, sli.bad, plan, objective, **part)
        yield _recording(TOTAL, sli.total, plan, objective, **part)
        if sli.wrong is not None:
            yield _recording(CLAMPED, sli.wrong, plan, objective, **part)
    yield _recording(
        OBJECTIVE, f"vector({objective.objective:f})", plan, objective, **_about(objective)
    )


def _about(objective: Objective) -> dict[str, str]:
    window, sla_class = objective.window, objective.selection.sla_class
    about = {
        "budgeting": str(objective.budgeting),
        "signal": objective.signal.name,
        "period": str(window.calendar or format_duration(window.seconds)),
    }
    return about | ({"class": sla_class} if sla_class else {})


def derived(plan: Plan, objective: Objective) -> Iterator[Recording]:
    """What is asked of short windows."""
    conditions = Conditions(plan, objective)
    burned = f"{conditions.ratio(_HOUR)} / {objective.budget:f}"
    yield _recording(BURN_RATE, burned, plan, objective)
    if (incident := conditions.incident()) is not None:
        yield _recording(INCIDENT, incident, plan, objective)
    yield _recording(STATE, _state(conditions), plan, objective)


def _state(conditions: Conditions) -> str:
    """Each answer where those before it know none: `or on ()` adds no second one."""
    total = conditions.recorded(TOTAL)
    if conditions.parts:  # judged only when every part is
        total = f"({conditions.one(total, 'min')} and {conditions.one(total, 'count')}"
        total += f" == {len(conditions.parts)})"
    answers = [f"({total} <= bool 0)"]
    present, answering = seen(conditions.objective), readable(conditions.objective)
    if present is not None:
        answers.append(f"(0 * count({present}) + 1)")
    if answering is not None:  # what is posted cannot be missing, it has just not come yet
        answers.append(f"(0 * count({answering}) + {1 if present is None else 3})")
    return " or on () ".join([*answers, "vector(2)"])


def budget(plan: Plan, objective: Objective) -> Iterator[Recording]:
    """What is asked of the whole period."""
    conditions = Conditions(plan, objective)
    covered = period.coverage(conditions)
    used = period.ratio(conditions)
    left = f"1 - {used} / {objective.budget:f} and {covered} >= {objective.min_coverage:f}"
    yield _recording(BUDGET_REMAINING, left, plan, objective)
    yield _recording(BUDGET_COVERAGE, covered, plan, objective)


def _recording(
    series: Series, expr: str, plan: Plan, objective: Objective, **labels: str
) -> Recording:
    named = {"service": plan.service, "slo": objective.name}
    return Recording(series.name, expr, named | labels)
