"""What is counted for an objective: bad and total, as PromQL over the families of exporters.names.

Counters are rated before they are summed, so that a restart of one engine is a reset of one
series. What has not happened yet is 0 beside what has; what nothing says anything of is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

from ..exporters.names import (
    AGENT_TURNS,
    GATEWAY_REQUESTS,
    QUALITY_CHECKS,
    SESSIONS,
    Family,
    Outcome,
)
from ..slo.plan import Budgeting, Evaluation, Objective
from ..slo.quantities import format_duration
from ..slo.signals import Shape
from .promql import aggregate, any_model, matcher, or_zero, quoted, rate, select, sum_by
from .sources import bucket, counted, requests, seen
from .values import VALUES, fallbacks


@dataclass(frozen=True, slots=True)
class Sli:
    """One pair of what is counted, with the labels of `per` alone.

    bad, total: events a second over the base window; of slices 0 or 1.
    wrong: 1 where the raw data left [0, total], else 0; None where they cannot.
    component, weight: of the parts of a composite.
    """

    bad: str
    total: str
    wrong: str | None = None
    component: str | None = None
    weight: Decimal = Decimal(1)


def slis(objective: Objective, evaluation: Evaluation) -> tuple[Sli, ...]:
    """What to record of an objective: one pair, or one for each part of a composite."""
    if is_value(objective):
        return (_slices_of_value(objective, evaluation),)
    events = _COUNTERS.get(objective.signal.name, _latency)(objective, evaluation)
    if objective.budgeting is Budgeting.TIMESLICES:
        return (_slices_of_events(objective, events),)
    return events


def is_value(objective: Objective) -> bool:
    """Whether a number is over its threshold or not, instead of events being counted."""
    return objective.signal.shape is Shape.VALUE or bool(objective.query and objective.query.value)


def _slices_of_value(objective: Objective, evaluation: Evaluation) -> Sli:
    if objective.query is not None and objective.query.value is not None:
        own = _own(objective.query.value, evaluation)
        value = aggregate("max", objective.selection.per, own)
    else:
        value = VALUES[objective.signal.name](objective, evaluation)
    bad, total = f"({value}) > bool {objective.threshold:f}", f"({value}) * 0 + 1"
    if (family := seen(objective)) is not None:  # is there, and has no value: nothing to judge
        none = aggregate("max", objective.selection.per, family)
        bad, total = or_zero(bad, none), or_zero(total, none)
    return Sli(bad, total)


def _slices_of_events(objective: Objective, events: Sequence[Sli]) -> Sli:
    """A slice is bad if fewer of its events were good than the target asks; without events it is
    none."""
    target = objective.slice_target or objective.objective
    means = (f"{part.weight:f} * (({part.bad}) / (({part.total}) > 0))" for part in events)
    total = " * ".join(f"({part.total})" for part in events)  # none where a part has none
    bad = or_zero(f"({' + '.join(means)} > bool {1 - target:f})", f"({total})")
    return Sli(bad, f"{total} > bool 0", events[0].wrong)


def _availability(objective: Objective, evaluation: Evaluation) -> tuple[Sli, ...]:
    bad = objective.bad_outcomes
    refused = () if Outcome.INVALID in bad else (f"outcome!={quoted(Outcome.INVALID)}",)
    return (
        _part_of(requests(objective.selection), _outcomes(bad), refused, objective, evaluation),
    )


def _goodput(objective: Objective, evaluation: Evaluation) -> tuple[Sli, ...]:
    return (_part_of(counted(objective), 'result="bad"', (), objective, evaluation),)


def _turns(objective: Objective, evaluation: Evaluation) -> tuple[Sli, ...]:
    return (_part_of(AGENT_TURNS, 'outcome!="success"', (), objective, evaluation),)


def _retention(objective: Objective, evaluation: Evaluation) -> tuple[Sli, ...]:
    return (_check("context_retention", objective, evaluation),)


def _checks(objective: Objective, evaluation: Evaluation) -> tuple[Sli, ...]:
    if len(objective.checks) == 1:
        return (_check(objective.checks[0][0], objective, evaluation),)
    parts = []
    for name, weight in objective.checks:
        part = _check(name, objective, evaluation)
        parts.append(Sli(part.bad, part.total, component=name, weight=weight))
    return tuple(parts)


def _check(name: str, objective: Objective, evaluation: Evaluation) -> Sli:
    named = matcher("check", [name])
    return _part_of(QUALITY_CHECKS, f'{named},result="failed"', (named,), objective, evaluation)


# Sessions that ended; those still going on are neither.
_ENDED = matcher("state", ["completed", "interrupted", "escalated"])


def _completion(objective: Objective, evaluation: Evaluation) -> tuple[Sli, ...]:
    unfinished = matcher("state", ["interrupted", "escalated"])
    return (_part_of(SESSIONS, unfinished, (_ENDED,), objective, evaluation),)


def _interruption(objective: Objective, evaluation: Evaluation) -> tuple[Sli, ...]:
    return (_part_of(SESSIONS, 'state="interrupted"', (_ENDED,), objective, evaluation),)


def _part_of(
    family: Family,
    bad: str | None,
    all_: Sequence[str],
    objective: Objective,
    evaluation: Evaluation,
) -> Sli:
    """Bad events are some of the series that are all of them. None is bad if `bad` is None."""
    total = _rate(family, objective, evaluation, *all_)
    none = f"0 * {sum_by(objective.selection.per, select(family, objective.selection, *all_))}"
    if bad is None:
        return Sli(none, total)
    return Sli(f"{_rate(family, objective, evaluation, bad)} or {none}", total)


def _latency(objective: Objective, evaluation: Evaluation) -> tuple[Sli, ...]:
    """Slower than the threshold, and those that gave up: an engine leaves them out of every
    histogram, so that the slower it is the better it would look."""
    family, selection, base = counted(objective), objective.selection, evaluation.base
    per, all_, quick = selection.per, select(family, selection, part="_count"), bucket(objective)
    count, good = (sum_by(per, rate(counter, family, base)) for counter in (all_, quick))
    # Rates outlive their series by a window: neither part may without the other.
    there = sum_by(per, quick)
    late, total = f"(clamp_min({count} - {good}, 0) and {there})", f"({count} and {there})"
    if (outcomes := _outcomes(objective.bad_outcomes)) is not None:
        gave_up = _rate(requests(selection), objective, evaluation, outcomes)
        late, total = (f"{part} + {or_zero(gave_up, sum_by(per, all_))}" for part in (late, total))
    return (Sli(late, total, wrong=f"{count} < bool {good}"),)


def _fallback_rate(objective: Objective, evaluation: Evaluation) -> tuple[Sli, ...]:
    """Of what the gateway answered; without a gateway, of what the engine was asked. What fell back
    is counted beside what did not, so that it is never more than all."""
    selection, per, base = objective.selection, objective.selection.per, evaluation.base
    rates = [rate(*counter, base) for counter in fallbacks(selection)]
    asked = select(GATEWAY_REQUESTS, any_model(selection))
    requested = select(requests(selection), selection)
    bad = or_zero(sum_by(per, " or ".join(rates)), sum_by(per, f"{asked} or {requested}"))
    fell = or_zero(sum_by(per, rates[-1]), sum_by(per, asked))
    through = f"clamp_min({sum_by(per, rate(asked, GATEWAY_REQUESTS, base))} - {fell}, 0)"
    engine = _rate(requests(selection), objective, evaluation)
    return (Sli(bad, f"({through} or {engine}) + {bad}"),)


def _query(objective: Objective, evaluation: Evaluation) -> tuple[Sli, ...]:
    query, per = objective.query, objective.selection.per
    if query is None or query.bad is None or query.total is None:
        raise ValueError(f"{objective.name}: a plan without the query of promql")
    bad, total = (sum_by(per, _own(text, evaluation)) for text in (query.bad, query.total))
    bad = or_zero(bad, total)
    wrong = f"({bad} < bool 0) + ({bad} > bool {total})"
    least = f"({bad} <= {total} or {total})"  # the lesser of both
    return (Sli(f"clamp_min({least}, 0)", total, wrong),)


def _own(query: str, evaluation: Evaluation) -> str:
    """The user's PromQL with its window. A comment may end it: what follows is on a line of its
    own."""
    text = query.strip().replace("$window", format_duration(evaluation.base))
    return f"{text}\n" if "#" in text else text


def _rate(family: Family, objective: Objective, evaluation: Evaluation, *matchers: str) -> str:
    counter = select(family, objective.selection, *matchers)
    return sum_by(objective.selection.per, rate(counter, family, evaluation.base))


def _outcomes(outcomes: Sequence[str]) -> str | None:
    return matcher("outcome", outcomes) if outcomes else None


_COUNTERS: Mapping[str, Callable[[Objective, Evaluation], tuple[Sli, ...]]] = MappingProxyType(
    {
        "availability": _availability,
        "goodput": _goodput,
        "agent_turn_success": _turns,
        "context_retention": _retention,
        "session_completion": _completion,
        "session_interruption": _interruption,
        "check": _checks,
        "composite": _checks,
        "fallback_rate": _fallback_rate,
        "promql": _query,
    }
)
