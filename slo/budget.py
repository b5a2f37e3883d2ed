"""Error budgets and alert conditions over counts: pure functions.

They say the same as the PromQL that rules compile, on the same samples. The terms:

- A Count is one sample of the recorded pair: the events of one evaluation (base rate x interval),
  or under timeslices one slice. Where nothing could be read there is no Count, which is not a
  Count of zero events.
- A window reaches from now - window, left out, to now, included, as ranges do from Prometheus 3
  on. Before 3 a sample exactly at the left end counts too.
- Decimals are compared as the float64 that Prometheus reads them as.
- Ratios are of sums: sum(bad) / sum(total), so that a busy minute weighs more than a quiet one.
  Without traffic there is no ratio: None, where PromQL gives no sample.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from itertools import pairwise
from typing import Protocol

from .plan import Burn, Evaluation, Outage

# Share of the evaluations in a span that must be there before the span is judged as a whole.
ENOUGH = 0.9


@dataclass(frozen=True, slots=True)
class Count:
    """at: Unix seconds; 0 ≤ bad ≤ total."""

    at: float
    bad: float
    total: float


@dataclass(frozen=True, slots=True)
class Sums:
    """What a window holds. samples: how many Counts, for coverage."""

    bad: float
    total: float
    samples: int

    @property
    def ratio(self) -> float | None:
        """Of bad events; None without traffic."""
        return self.bad / self.total if self.total > 0 else None


class History(Protocol):
    """Counts of one thing, however they are kept."""

    def sums(self, begin: float, end: float) -> Sums:
        """Of the Counts in (begin, end]."""
        ...


@dataclass(frozen=True, slots=True)
class Counts:
    """A History of Counts in any order."""

    counts: Iterable[Count]

    def sums(self, begin: float, end: float) -> Sums:
        inside = [count for count in self.counts if begin < count.at <= end]
        return Sums(
            math.fsum(count.bad for count in inside),
            math.fsum(count.total for count in inside),
            len(inside),
        )


@dataclass(frozen=True, slots=True)
class Component:
    """The history of one thing that is counted. weight: its part of a composite objective, 1 if it
    is the whole of a plain one."""

    history: History
    weight: Decimal = Decimal(1)


class State(IntEnum):
    """Why an objective has or lacks a value; the values of inferslo:slo_state:enum."""

    OK = 0
    NO_TRAFFIC = 1
    NO_DATA = 2
    SIGNAL_MISSING = 3


def slice_of_events(count: Count, slice_target: Decimal) -> Count:
    """The slice that the events of one base window make: bad if fewer than `slice_target` of them
    were good. Without traffic there was nothing to judge: neither good nor bad."""
    if count.total <= 0:
        return Count(count.at, 0.0, 0.0)
    bad = count.bad / count.total > float(1 - slice_target)
    return Count(count.at, float(bad), 1.0)


def slice_of_value(at: float, value: float, threshold: Decimal) -> Count:
    """The slice of a VALUE signal: bad while above its threshold. NaN, the ratio of nothing to
    nothing, is nothing to judge."""
    if math.isnan(value):
        return Count(at, 0.0, 0.0)
    return Count(at, float(value > float(threshold)), 1.0)


def over(history: History, now: float, window: float, rates: Evaluation | None = None) -> Sums:
    """Sums over (now - window, now].

    rates: how base rates were recorded, under occurrences. A window no longer than the base window
    is then the newest rate itself, which is one over that window already. None: each Count stands
    for itself.
    """
    if rates is None or window > rates.base:
        return history.sums(now - window, now)
    newest, each = history.sums(now - rates.interval, now), rates.base / rates.interval
    return Sums(each * newest.bad, each * newest.total, newest.samples)


def composite_ratio(parts: Iterable[tuple[Decimal, float | None]]) -> float | None:
    """Mean of ratios by weights that add up to 1; unknown if one of them is unknown."""
    weighted = []
    for weight, ratio in parts:
        if ratio is None:
            return None
        weighted.append(float(weight) * ratio)
    return math.fsum(weighted)


def burn_rate(ratio: float | None, budget: Decimal) -> float | None:
    """How many times too fast the budget burns at this ratio of bad events."""
    return None if ratio is None else ratio / float(budget)


def coverage(samples: int, interval: float, seconds: float) -> float:
    """Share of `seconds` of which anything is known, 0 to 1. seconds: the period; of a calendar
    period what has passed of it."""
    return min(1.0, samples * interval / seconds)


def remaining(
    ratio: float | None, budget: Decimal, covered: float, min_coverage: Decimal
) -> float | None:
    """Share of the budget left: 1 untouched, 0 spent, below 0 overspent.

    ratio: over the period. None if it is unknown or too little of the period is covered to claim
    anything.
    """
    if ratio is None or covered < float(min_coverage):
        return None
    return 1 - ratio / float(budget)


def state(*, readable: bool, has_signal: bool, total: float) -> State:
    """readable: the source answered; has_signal: its page had the families; total: events in the
    base window."""
    if not readable:
        return State.NO_DATA
    if not has_signal:
        return State.SIGNAL_MISSING
    return State.OK if total > 0 else State.NO_TRAFFIC


def holds(
    condition: Burn | Outage,
    components: Sequence[Component],
    now: float,
    rates: Evaluation | None = None,
) -> bool | None:
    """Whether the condition alerts now; None if its longest window knows no ratio.

    A window is over its threshold at equality too. The floor is counted over the longest window,
    over all components together, unweighted: it asks how much happened, not how bad it was.
    rates: as of `over`.
    """
    threshold, *windows = (
        (condition.ratio, condition.window)
        if isinstance(condition, Outage)
        else (condition.threshold, condition.long, condition.short)
    )
    sums = [[over(part.history, now, window, rates) for part in components] for window in windows]
    ratios = [_ratio(components, of_window) for of_window in sums]
    if ratios[0] is None:
        return None
    return (
        all(ratio is not None and ratio >= float(threshold) for ratio in ratios)
        and math.fsum(part.bad for part in sums[0]) >= condition.floor.bad
        and math.fsum(part.total for part in sums[0]) >= condition.floor.total
    )


def _ratio(components: Sequence[Component], sums: Sequence[Sums]) -> float | None:
    return composite_ratio(
        (part.weight, of_part.ratio) for part, of_part in zip(components, sums, strict=True)
    )


def incident(paging: Iterable[bool | None]) -> bool | None:
    """Tier 1: any paging condition holds. None if not one of them can be judged."""
    known = [verdict for verdict in paging if verdict is not None]
    return any(known) if known else None


@dataclass(frozen=True, slots=True)
class Mark:
    """One evaluation of an incident that could be judged."""

    at: float
    on: bool


def lasted(marks: Iterable[Mark], now: float, after: float, interval: float) -> bool:
    """Tier 2: every evaluation of the last `after` seconds found the incident, and nearly all
    (ENOUGH) of those that were due were made."""
    inside = [mark.on for mark in marks if now - after < mark.at <= now]
    return all(inside) and len(inside) * interval >= ENOUGH * after


def incidents(marks: Iterable[Mark], now: float, within: float) -> int:
    """Tier 3: how many incidents of the last `within` seconds: those that ended in it (PromQL's
    resets()) and one that goes on. One that came and went between two evaluations is none."""
    inside = sorted((mark.at, mark.on) for mark in marks if now - within < mark.at <= now)
    on = [is_on for _, is_on in inside]
    ended = sum(before and not after for before, after in pairwise(on))
    return ended + (on[-1] if on else 0)
