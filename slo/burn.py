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

from .errors import SloError
from .plan import Budgeting, Burn, Evaluation, Floor, Outage, Severity, Window

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
                f"burn {self.name}: the short window ({duration(self.short)}) must be shorter than"
                f" the long one ({duration(self.long)})"
            )
        if not 0 < self.share < 1:
            raise BurnError(
                f"burn {self.name}: budget is the share spent within {duration(self.long)}, above"
                f" 0 % and below 100 %, not {percent(self.share)} %"
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
            f"outage: a ratio of {percent(ratio)} % is not between the budget,"
            f" {percent(budget)} %, and 100 %"
        )
    if window < evaluation.base:
        raise BurnError(
            f"outage: its window {duration(window)} is shorter than the base window"
            f" {duration(evaluation.base)}; lengthen it, or shorten evaluation.base"
        )
    if missing := _missing_slices(bad, window, budgeting, evaluation):
        raise BurnError(f"outage: {missing}")
    return Outage(ratio, window, Floor(bad, bad if rule.min_total is None else rule.min_total))


def reachable(factor: Decimal, budget: Decimal) -> bool:
    """Whether a total outage burns the budget faster than `factor`."""
    return factor * budget < 1


def unreachable_at(factor: Decimal) -> Decimal:
    """The highest objective at which not even a total outage exceeds `factor`: 1 - 1/factor."""
    return 1 - 1 / factor


def spoilt_slices(evaluation: Evaluation) -> int:
    """Slices, one for each evaluation, that a single failure can make bad: for as long as the base
    window sees it. Ranges are closed at both ends before Prometheus 3, hence one more."""
    return math.ceil(evaluation.base / evaluation.interval) + 1


def seconds_to_alert(condition: Burn | Outage, bad_ratio: float, base: int = 0) -> float:
    """Seconds from a step to `bad_ratio`, after clean history at even traffic, until the condition
    holds in all its windows; infinity if it never does. Floors, scrapes and evaluations come on
    top.

    base: window of the base rates over which the condition's windows are sums, which blunts the
    step; 0 counts events themselves. An outage over just the base window reads the rates directly.
    """
    if isinstance(condition, Outage):
        blunt = 0 if condition.window == base else base
        return _crossing(float(condition.ratio), bad_ratio, condition.window, blunt)
    threshold = float(condition.threshold)
    return max(_crossing(threshold, bad_ratio, w, base) for w in (condition.long, condition.short))


def _crossing(threshold: float, bad_ratio: float, window: int, base: int) -> float:
    """When the mean over `window` of a ramp of `base` seconds up to `bad_ratio` is `threshold`."""
    if bad_ratio < threshold:
        return math.inf
    needed = threshold / bad_ratio * window  # seconds at the full ratio
    if needed < base / 2:  # still on the ramp: t² / 2 base = needed
        return math.sqrt(2 * base * needed)
    if needed <= window - base / 2:
        return needed + base / 2
    # The window's own tail is still on the ramp.
    return window + base - math.sqrt(2 * base * (window - needed))


def _fitted(
    rules: Sequence[BurnRule], window: Window, evaluation: Evaluation, notes: list[str]
) -> list[BurnRule]:
    """The default rules as this period and this base window can have them."""
    fitted = []
    for rule in rules:
        long = duration(rule.long)
        if not evaluation.base < rule.long < window.seconds:
            notes.append(
                f"burn {rule.name} left out: its {long} are not between the base window"
                f" {duration(evaluation.base)} and the period {duration(window.seconds)}"
            )
            continue
        if rule.short < evaluation.base:
            rule = replace(rule, short=evaluation.base)
            notes.append(f"burn {rule.name}: short window raised to {duration(rule.short)}")
        if _factor(rule, window) < 1:  # a pace that the budget allows wakes nobody
            share = Decimal(rule.long) / window.seconds
            notes.append(
                f"burn {rule.name}: budget raised from {percent(rule.share)} to {percent(share)} %"
                f" in {long}, the even pace of {duration(window.seconds)}; a ticket"
            )
            rule = replace(rule, share=share, severity=Severity.TICKET)
        fitted.append(rule)
    return fitted


def _refuse_misfit(rule: BurnRule, window: Window, evaluation: Evaluation) -> None:
    """Raises BurnError for a rule that the period or the base window does not allow."""
    long, period = duration(rule.long), duration(window.seconds)
    if rule.long >= window.seconds:
        raise BurnError(
            f"burn {rule.name}: its long window {long} does not fit into the period {period}"
        )
    if rule.short < evaluation.base:
        raise BurnError(
            f"burn {rule.name}: its short window {duration(rule.short)} is shorter than the base"
            f" window {duration(evaluation.base)}; lengthen it, or shorten evaluation.base"
        )
    if _factor(rule, window) < 1:
        least = percent(Decimal(rule.long) / window.seconds, ROUND_CEILING)
        raise BurnError(
            f"burn {rule.name}: {percent(rule.share)} % of the budget in {long} is slower than the"
            f" even pace of a period of {period}: it would alert with budget left over; write at"
            f" least {least} %"
        )


def _burn(
    rule: BurnRule, budget: Decimal, window: Window, budgeting: Budgeting, evaluation: Evaluation
) -> Burn:
    factor = _factor(rule, window)
    page = rule.severity is Severity.PAGE
    bad = Decimal(5)
    if budgeting is Budgeting.TIMESLICES:
        bad = max(bad, Decimal(spoilt_slices(evaluation) + 1))
    floor = Floor(
        bad if rule.min_bad is None else rule.min_bad,
        bad * (2 if page else 4) if rule.min_total is None else rule.min_total,
    )
    return Burn(rule.name, rule.long, rule.short, factor, factor * budget, rule.severity, floor)


def _factor(rule: BurnRule, window: Window) -> Decimal:
    """Exact, or to nine places where it would not end; without trailing zeros."""
    factor = round(rule.share * window.seconds / rule.long, 9)
    return Decimal(f"{factor.normalize():f}")


def _unreachable(burn: Burn, budget: Decimal) -> str:
    limit = percent(unreachable_at(burn.factor))
    instead = "; the outage alert pages instead" if burn.severity is Severity.PAGE else ""
    return (
        f"burn {burn.name} left out: {burn.factor} times too fast is unreachable at or below"
        f" {limit} %, and even a total outage burns this budget only {percent(1 / budget / 100)}"
        f" times too fast{instead}"
    )


def _missing_slices(bad: Decimal, window: int, budgeting: Budgeting, evaluation: Evaluation) -> str:
    """Why so many bad slices can never be in the window; empty if they can."""
    slices = window // evaluation.interval
    if budgeting is Budgeting.OCCURRENCES or bad <= slices:
        return ""
    return (
        f"at least {bad} bad slices are asked for, so that one failure does not alert, and"
        f" {duration(window)} has {slices}; shorten evaluation.interval or evaluation.base"
    )


def percent(ratio: Decimal, rounding: str = ROUND_FLOOR) -> str:
    """0.001 is "0.1". To two places, with an ellipsis where it goes on below them."""
    hundredths = (ratio * 100).quantize(Decimal("0.01"), rounding)
    goes_on = rounding == ROUND_FLOOR and hundredths != ratio * 100
    return f"{hundredths.normalize():f}" + ("…" if goes_on else "")


def duration(seconds: int) -> str:
    """As Prometheus writes it: 5m, 1h30m, 30d."""
    text = ""
    for unit, length in (("d", _DAY), ("h", _HOUR), ("m", _MINUTE), ("s", 1)):
        if count := seconds // length:
            text += f"{count}{unit}"
            seconds %= length
    return text
