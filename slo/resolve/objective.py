"""One objective of an SLO file, every default filled in and everything checked."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from ..errors import closest
from ..plan import Budgeting, Objective, Query, Urgency, Window
from ..quantities import format_duration, parse_duration, parse_number
from ..signals import SIGNALS, Shape
from .case import Case, Context, signal_name
from .conditions import burns, outage
from .faults import Findings
from .response import response
from .selection import selection

# What may become of a request (exporters.names.Outcome), success apart.
OUTCOMES = ("error", "timeout", "aborted", "rejected", "empty", "invalid")
FAILED = ("error", "timeout", "aborted", "rejected", "empty")
# Requests that gave up are in no histogram: left out, a slow engine would look the faster.
GAVE_UP = ("aborted", "timeout")
_HOUR = 3600
_LONGEST_PERIOD = 366 * 86400
# Between these the number lies whatever happens: a threshold beyond would hold always or never.
_SHARES = ("kv_fragmentation", "memory_growth")
_AT_LEAST_ONE = ("tail_ratio",)
_OVER = {"fallback_count": _HOUR, "memory_growth": _HOUR}  # others: the base window


def resolve_objective(index: int, context: Context, found: Findings) -> Objective | None:
    """None if there is no telling what it means; every fault is among the findings."""
    spec = context.spec.objectives[index]
    name = signal_name(spec)
    if name not in SIGNALS:
        what = f'"{name}" is not a signal' if name else "this is missing"
        found.fault(("objectives", index, "signal"), what + closest(name, SIGNALS))
        return None
    signal = SIGNALS[name]
    if spec.promql is not None and spec.promql.value is not None:
        signal = replace(signal, shape=Shape.VALUE)
    return _objective(Case(spec, signal, ("objectives", index), context, found))


def _objective(case: Case) -> Objective:
    spec, signal, budgeting = case.spec, case.signal, _budgeting(case)
    pages = signal.pages if spec.pages is None else spec.pages
    budget = 1 - spec.objective
    urgency = case.target.urgency if case.target else Urgency.ALWAYS
    return Objective(
        name=spec.name,
        signal=signal,
        objective=spec.objective,
        budget=budget,
        budgeting=budgeting,
        window=_window(case),
        selection=selection(case),
        burns=burns(case, budget, budgeting, pages=pages),
        outage=outage(case, budget, budgeting, pages=pages),
        response=case.context.response
        if spec.response is None
        else response(spec.response, case.context.spec, (*case.at, "response"), case.found),
        urgency=spec.urgency or urgency,
        description=spec.description or "",
        threshold=_threshold(case),
        over=_over(case),
        bad_outcomes=_bad_outcomes(case),
        checks=_checks(case),
        query=_query(case),
        slice_target=_slice_target(case, budgeting),
        min_coverage=spec.min_coverage,
        expect_traffic=spec.expect_traffic,
    )


def _window(case: Case) -> Window:
    window, base = case.spec.window or case.context.window, case.context.evaluation.base
    keys = (*case.at, "window") if case.spec.window else ("window",)
    if window.seconds <= base:
        case.found.fault(
            keys, f"the period must be longer than the base window, {format_duration(base)}"
        )
    if window.seconds > _LONGEST_PERIOD:
        case.found.fault(keys, "no Prometheus answers for so long: write at most 366d")
    return window


# --- what is bad ---------------------------------------------------------------------------------


def _threshold(case: Case) -> Decimal | None:
    signal, given = case.signal, case.spec.threshold
    if signal.shape is Shape.EVENTS:
        case.refuse("threshold", f"{signal.name} counts events that are good or bad")
        return None
    if given is None:
        return _default_threshold(case)
    try:
        number = parse_duration(given) if signal.unit == "seconds" else parse_number(given)
    except ValueError as error:
        case.fault("threshold", str(error))
        return None
    if number <= 0:
        case.fault("threshold", f'"{given}" must be above 0')
    elif signal.name in _SHARES and number >= 1:
        case.fault("threshold", f'"{given}" is never reached: it is a share, as 0.15 or "15 %"')
    elif signal.name in _AT_LEAST_ONE and number < 1:
        case.fault("threshold", f'"{given}" is always exceeded: P95 is at least P50')
    return number


def _default_threshold(case: Case) -> Decimal | None:
    """The target of the class, else that of the signal."""
    of_class: Decimal | None = getattr(case.target, case.signal.name, None)
    default = case.signal.default if of_class is None else of_class
    if default is None:
        example = "2s" if case.signal.unit == "seconds" else "0.5"
        case.fault("threshold", f"this is missing: write what is too much, as {example}")
    return default


def _over(case: Case) -> int | None:
    if case.signal.shape is not Shape.VALUE or case.spec.promql is not None:
        case.refuse("over", "only a value of ours is taken over a window")
        return None
    base = case.context.evaluation.base
    over = case.spec.over or max(base, _OVER.get(case.signal.name, 0))
    if over < base:
        case.fault("over", f"this is shorter than the base window, {format_duration(base)}")
    return over


def _bad_outcomes(case: Case) -> tuple[str, ...]:
    given, is_latency = case.spec.bad_outcomes, case.signal.shape is Shape.LATENCY
    if case.signal.name != "availability" and not is_latency:
        case.refuse("bad_outcomes", f"{case.signal.name} knows no outcomes of requests")
        return ()
    if given is None:
        return GAVE_UP if is_latency else FAILED
    if not given and not is_latency:
        case.fault("bad_outcomes", "no outcome would be bad: name at least one")
    for outcome in given:
        if outcome not in OUTCOMES:
            hint = closest(outcome, OUTCOMES)
            case.fault("bad_outcomes", f'"{outcome}" is not an outcome that can be bad{hint}')
    return tuple(outcome for outcome in OUTCOMES if outcome in given)


def _checks(case: Case) -> tuple[tuple[str, Decimal], ...]:
    name, weights = case.spec.check, case.spec.composite
    for key in ("check", "composite", "promql"):
        if key != case.signal.name:
            case.refuse(key, f"the signal is {case.signal.name}")
        elif getattr(case.spec, key) is None:
            case.fault(key, f"this is missing: the signal {key} is told by it")
    if case.signal.name == "check" and name is not None:
        return ((name, Decimal(1)),)
    if case.signal.name != "composite" or weights is None:
        return ()
    if (total := sum(weights.values())) != 1:
        case.fault("composite", f"the weights add up to {total}, not to 1")
    return tuple(weights.items())


def _query(case: Case) -> Query | None:
    query = case.spec.promql
    return None if query is None else Query(query.bad, query.total, query.value)


# --- how it is counted ---------------------------------------------------------------------------


def _budgeting(case: Case) -> Budgeting:
    given = case.spec.budgeting
    if case.signal.shape is not Shape.VALUE:
        return given or Budgeting.OCCURRENCES
    if given is Budgeting.OCCURRENCES:
        case.fault(
            "budgeting",
            f"{case.signal.name} is a value, of which only bad time can be counted: write"
            " timeslices or leave the key out",
        )
    return Budgeting.TIMESLICES


def _slice_target(case: Case, budgeting: Budgeting) -> Decimal | None:
    given = case.spec.slice_target
    if budgeting is Budgeting.OCCURRENCES:
        case.refuse("slice_target", "it belongs to `budgeting: timeslices`")
        return None
    if case.signal.shape is Shape.VALUE:
        case.refuse("slice_target", "a slice is bad while the value is above the threshold")
        return None
    if not given:
        case.fault(
            "slice_target",
            "this is missing: write which percentage of its events makes a slice good, as 95",
        )
    return given
