"""Multi-window burn rates: which conditions an objective gets, and when they hold.

Google, The Site Reliability Workbook, chapter 5, "Alerting on SLOs" (approach 6). The burn rate is
the ratio of bad events divided by the budget: at 1 the budget lasts exactly its period. A rule
says which share of the budget may be gone within its long window; from it follows
factor = share x period / long, and threshold = factor x budget.

A Burn holds while the ratio of bad events is at least its threshold over the long window (budget
was really spent) and over the short one (it is still being spent), and the long window has at
least the events of its floor. An Outage holds while the ratio over its one window is at least its
own, and the events in that window reach its floor. docs/maths.md has the tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from .detection import reachable, unreachable_at
from .errors import SloError
from .plan import Budgeting, Burn, Evaluation, Floor, Outage, Severity, Window
from .quantities import format_duration, plain

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
# Below this period a tenth of the budget within a day is what the budget allows anyway.
_SHORT_PERIOD = 10 * _DAY
_OUTAGE_RATIO = Decimal("0.5")


class BurnError(SloError):
    """A rule that cannot work as it was written; one line that says why and what to do."""


@dataclass(frozen=True, slots=True)
class BurnRule:
    """share: of the budget that may be gone within the long window. Windows in seconds.
    min_bad, min_total: the floor; None takes the default of severity and budgeting.

    Raises BurnError.
    """

    name: str
    long: int
    short: int
    share: Decimal
    severity: Severity
    min_bad: Decimal | None = None
    min_total: Decimal | None = None

    def __post_init__(self) -> None:
        if not 0 < self.short < self.long:
            raise BurnError(
                f"burn {self.name}: its short window, {format_duration(self.short)}, is not shorter"
                f" than its long one, {format_duration(self.long)}"
            )
        if not 0 < self.share < 1:
            raise BurnError(
                f"burn {self.name}: the share of the budget spent within"
                f" {format_duration(self.long)} is above 0 % and below 100 %,"
                f" not {_percent(self.share)} %"
            )


@dataclass(frozen=True, slots=True)
class OutageRule:
    """What the file says of the outage tier; None takes the default."""

    ratio: Decimal | None = None
    window: int | None = None
    min_bad: Decimal | None = None
    min_total: Decimal | None = None


def _rules(fast: str, medium: str, slow: str, creeping: str) -> tuple[BurnRule, ...]:
    page, ticket = Severity.PAGE, Severity.TICKET
    return (
        BurnRule("fast", _HOUR, 5 * _MINUTE, Decimal(fast), page),
        BurnRule("medium", 6 * _HOUR, 30 * _MINUTE, Decimal(medium), page),
        BurnRule("slow", _DAY, 2 * _HOUR, Decimal(slow), ticket),
        BurnRule("creeping", 3 * _DAY, 6 * _HOUR, Decimal(creeping), ticket),
    )


# Workbook, table 5-8, and the 1 d window that Sloth and kubernetes-mixin add.
WORKBOOK = _rules("0.02", "0.05", "0.10", "0.10")
# Sloth, examples/windows/7d.yaml: the same windows weigh more in a short period.
SHORT = _rules("0.08", "0.125", "0.20", "0.42")


def default_rules(window: Window) -> tuple[BurnRule, ...]:
    """The rules of an objective whose file names none."""
    return SHORT if window.seconds < _SHORT_PERIOD else WORKBOOK


def burns_for(
    budget: Decimal,
    window: Window,
    budgeting: Budgeting,
    evaluation: Evaluation,
    *,
    pages: bool,
    rules: Sequence[BurnRule] | None = None,
) -> tuple[tuple[Burn, ...], tuple[str, ...]]:
    """The conditions of one objective, and a note on every rule that was left out or changed.

    rules: those of the file, which hold as they are written or raise BurnError; None takes the
    defaults, fitted to the period. Either way what no failure could set off is left out.
    """
    notes: list[str] = []
    if rules is None:
        rules = _fitted(default_rules(window), window, evaluation, notes)
    burns = []
    for rule in rules:
        _refuse_misfit(rule, window, evaluation)
        burn = _burn(rule, budget, window, budgeting, evaluation)
        if burn.severity is Severity.PAGE and not pages:
            notes.append(f"burn {rule.name} left out: this objective only tickets")
        elif not reachable(burn.factor, budget):
            notes.append(_unreachable(burn, budget))
        elif missing := _missing_slices(burn.floor.bad, burn.long, budgeting, evaluation):
            notes.append(f"burn {rule.name} left out: {missing}")
        else:
            burns.append(burn)
    return tuple(burns), tuple(notes)


def outage_for(
    budget: Decimal,
    budgeting: Budgeting,
    evaluation: Evaluation,
    rule: OutageRule = OutageRule(),
) -> Outage:
    """The condition that pages within minutes whatever the objective.

    By default half of all over the base window; where that is near the budget, twice the budget or
    half way from the budget to all. One failure alone can spoil every slice of a base window, so
    under timeslices the window has room for as many slices again. Raises BurnError.
    """
    least, default = Decimal(3), evaluation.base
    if budgeting is Budgeting.TIMESLICES:
        least = Decimal(spoilt_slices(evaluation) + 1)
        default = 2 * int(least) * evaluation.interval
    usual = max(_OUTAGE_RATIO, min(2 * budget, (1 + budget) / 2))
    ratio = usual if rule.ratio is None else rule.ratio
    window = default if rule.window is None else rule.window
    bad = least if rule.min_bad is None else rule.min_bad
    if not budget < ratio <= 1:
        raise BurnError(
            f"outage: a ratio of {_percent(ratio)} % is not between the budget,"
            f" {_percent(budget)} %, and 100 %"
        )
    if window < evaluation.base:
        raise BurnError(
            f"outage: its window {format_duration(window)} is shorter than the base window"
            f" {format_duration(evaluation.base)}; lengthen it, or shorten evaluation.base"
        )
    if missing := _missing_slices(bad, window, budgeting, evaluation):
        raise BurnError(f"outage: {missing}")
    return Outage(ratio, window, Floor(bad, bad if rule.min_total is None else rule.min_total))


def spoilt_slices(evaluation: Evaluation) -> int:
    """Slices, one for each evaluation, that a single failure can make bad: for as long as the base
    window sees it. Ranges are closed at both ends before Prometheus 3, hence one more."""
    return math.ceil(evaluation.base / evaluation.interval) + 1


def _fitted(
    rules: Sequence[BurnRule], window: Window, evaluation: Evaluation, notes: list[str]
) -> list[BurnRule]:
    """The default rules as this period and this base window can have them."""
    base, period = format_duration(evaluation.base), format_duration(window.seconds)
    fitted = []
    for rule in rules:
        long = format_duration(rule.long)
        if not evaluation.base < rule.long < window.seconds:
            notes.append(
                f"burn {rule.name} left out: its {long} are not between the base window {base} and"
                f" the period {period}"
            )
            continue
        if rule.short < evaluation.base:
            rule = replace(rule, short=evaluation.base)
            notes.append(f"burn {rule.name}: short window raised to the base window, {base}")
        if _factor(rule, window) < 1:  # a pace that the budget allows wakes nobody
            share = Decimal(rule.long) / window.seconds
            notes.append(
                f"burn {rule.name}: raised from {_percent(rule.share)} to {_percent(share)} % of"
                f" the budget in {long}, the even pace of a period of {period}; a ticket"
            )
            rule = replace(rule, share=share, severity=Severity.TICKET)
        fitted.append(rule)
    return fitted


def _refuse_misfit(rule: BurnRule, window: Window, evaluation: Evaluation) -> None:
    """Raises BurnError for a rule that the period or the base window does not allow."""
    base, period = format_duration(evaluation.base), format_duration(window.seconds)
    long, short = format_duration(rule.long), format_duration(rule.short)
    if rule.long >= window.seconds:
        raise BurnError(
            f"burn {rule.name}: its long window {long} does not fit into the period {period}"
        )
    if rule.short < evaluation.base:
        raise BurnError(
            f"burn {rule.name}: its short window {short} is shorter than the base window {base};"
            " lengthen it, or shorten evaluation.base"
        )
    if _factor(rule, window) < 1:
        least = (100 * Decimal(rule.long) / window.seconds).quantize(Decimal("0.01"), ROUND_CEILING)
        raise BurnError(
            f"burn {rule.name}: {_percent(rule.share)} % of the budget in {long} is slower than the"
            f" even pace of a period of {period}: it would alert with budget left over; write at"
            f" least {least} %"
        )


def _burn(
    rule: BurnRule, budget: Decimal, window: Window, budgeting: Budgeting, evaluation: Evaluation
) -> Burn:
    factor = _factor(rule, window)
    threshold = plain(factor * budget)
    page = rule.severity is Severity.PAGE
    bad = Decimal(5)
    if budgeting is Budgeting.TIMESLICES:
        bad = max(bad, Decimal(spoilt_slices(evaluation) + 1))
    floor = Floor(
        bad if rule.min_bad is None else rule.min_bad,
        bad * (2 if page else 4) if rule.min_total is None else rule.min_total,
    )
    return Burn(rule.name, rule.long, rule.short, factor, threshold, rule.severity, floor)


def _factor(rule: BurnRule, window: Window) -> Decimal:
    """Exact, or to nine places where it would not end; without trailing zeros."""
    return plain(round(rule.share * window.seconds / rule.long, 9))


def _unreachable(burn: Burn, budget: Decimal) -> str:
    limit = _percent(unreachable_at(burn.factor))
    instead = "; the outage alert pages instead" if burn.severity is Severity.PAGE else ""
    return (
        f"burn {burn.name} left out: {burn.factor} times too fast is unreachable at or below"
        f" {limit} %, and even a total outage burns this budget only {_two_places(1 / budget)}"
        f" times too fast{instead}"
    )


def _missing_slices(bad: Decimal, window: int, budgeting: Budgeting, evaluation: Evaluation) -> str:
    """Why so many bad slices can never be in the window; empty if they can."""
    slices = window // evaluation.interval
    if budgeting is Budgeting.OCCURRENCES or bad <= slices:
        return ""
    return (
        f"at least {bad} bad slices are asked for, so that one failure does not alert, and"
        f" {format_duration(window)} has {slices}; shorten evaluation.interval or evaluation.base"
    )


def _percent(ratio: Decimal) -> str:
    return _two_places(ratio * 100)


def _two_places(number: Decimal) -> str:
    """Cut after two places, with an ellipsis if it goes on."""
    cut = number.quantize(Decimal("0.01"), ROUND_FLOOR)
    return f"{plain(cut)}" + ("…" if cut != number else "")
