"""What the whole period of a budget has, rolling or of the calendar, as PromQL over the recorded
pair."""

from __future__ import annotations

from ..slo.plan import Budgeting, Calendar
from ..slo.quantities import format_duration
from .conditions import Conditions
from .naming import BAD, TOTAL


def ratio(conditions: Conditions) -> str:
    """Of bad events; in brackets."""
    window = conditions.objective.window
    if (calendar := window.calendar) is None:
        return conditions.ratio(window.seconds)
    return conditions.ratio_of(lambda selector: _so_far("sum", selector, conditions, calendar))


def failures(conditions: Conditions) -> str:
    """How many bad events; slices, under timeslices."""
    objective, evaluation = conditions.objective, conditions.plan.evaluation
    window = objective.window
    if window.calendar is None:
        return conditions.events(BAD, window.seconds)
    counted = conditions.one(_so_far("sum", conditions.recorded(BAD), conditions, window.calendar))
    if objective.budgeting is Budgeting.TIMESLICES:
        return f"{counted} * {evaluation.base} / {evaluation.interval}"
    return f"{counted} * {evaluation.base}"


def coverage(conditions: Conditions) -> str:
    """Share of the period of which anything is known; of a calendar period, of what has passed."""
    window, evaluation = conditions.objective.window, conditions.plan.evaluation
    total = conditions.recorded(TOTAL)
    if window.calendar is None:
        span = format_duration(window.seconds)
        count = conditions.one(f"count_over_time({total}[{span}])", "min")
        return f"clamp_max({count} * {evaluation.interval} / {window.seconds}, 1)"
    count = conditions.one(_so_far("count", total, conditions, window.calendar), "min")
    passed = f"clamp_min({_PASSED[window.calendar]}, {evaluation.base})"
    return f"clamp_max({count} * {evaluation.base} / on () group_left () {passed}, 1)"


def _so_far(what: str, selector: str, conditions: Conditions, calendar: Calendar) -> str:
    """Over the calendar period so far, in steps of the base window, which rates tile without a
    gap. Each sample is labelled with the number of its period; those of the period that it is now
    are taken. (`@ end()` would do, but costs a sample for each step, whether there are data.)"""
    step = format_duration(conditions.plan.evaluation.base)
    then, now = (
        f'count_values("{_PERIOD}", {_NUMBER[calendar].format(time)})'
        for time in (f"max(timestamp({selector}))", "vector(time())")
    )
    labelled = f"{selector} * on () group_left ({_PERIOD}) {then}"
    of_all = f"{what}_over_time(({labelled})[{_LONGEST[calendar]}:{step}])"
    return f"sum without ({_PERIOD}) ({of_all} and on ({_PERIOD}) {now})"


_PERIOD = "calendar_period"
# Weeks begin on Monday, four days after the epoch. UTC.
_NUMBER = {
    Calendar.MONTH: "month({})",
    Calendar.WEEK: "floor(({} - 345600) / 604800)",
}
_LONGEST = {Calendar.MONTH: "31d", Calendar.WEEK: "7d"}
_PASSED = {
    Calendar.MONTH: "(day_of_month() - 1) * 86400 + hour() * 3600 + minute() * 60",
    Calendar.WEEK: "(vector(time()) - 345600) % 604800",
}
