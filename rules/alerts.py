"""The alerts of an objective: each tier of the response its own, and what is not known told apart.

Symptoms are muted by their cause in PromQL, not by Alertmanager: a resolve that happens while an
alert is inhibited is never delivered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ..slo.plan import Objective, Plan, Severity, Tier, When
from ..slo.quantities import format_duration, format_percent
from ..slo.signals import Needs, Shape
from . import advice, carried, period
from .causes import all_down
from .conditions import Conditions
from .model import Alert
from .naming import (
    BUDGET_EXHAUSTED,
    BUDGET_REMAINING,
    INCIDENT,
    INCIDENT_REPEATS,
    NO_DATA,
    NO_TRAFFIC,
    SIGNAL_MISSING,
    STATE,
    AlertName,
    burn_alert,
)
from .sli import is_value
from .sources import seen

# Engines restart and are scraped anew within these; whoever waits longer is told.
_NO_DATA_HOLD = 900
_NO_TRAFFIC_HOLD = 1800
_ENGINEERING = 2  # whose the monitoring of the objective is
_LONG = 80  # characters of a description that a summary has room for
_RATIO = "{{ $value | humanizePercentage }}"


def of_engine(objective: Objective) -> bool:
    """Whether the engine itself is read: without one the objective has no data."""
    return objective.signal.needs in (Needs.SCRAPE, Needs.PROBE, Needs.GPU)


def is_muted(objective: Objective) -> bool:
    """Whether all engines being down says it all. Not of what the users' side counts, nor of
    availability: those are true then too."""
    return of_engine(objective) and objective.signal.name != "availability"


class Because(StrEnum):
    """What an alert of an objective is about."""

    INCIDENT = "incident"  # that calls this tier: at once, because it burns fast, or after a while
    SLOW_BURN = "slow burn"
    BUDGET_EXHAUSTED = "budget exhausted"
    REPEATED = "repeated"
    NO_DATA = "no data"
    SIGNAL_MISSING = "signal missing"
    NO_TRAFFIC = "no traffic"


@dataclass(frozen=True, slots=True)
class Told:
    """An alert, why it fires, and the tier whose `when` asks for it, if one does."""

    alert: Alert
    because: Because
    tier: Tier | None = None


def urgent(plan: Plan, objective: Objective) -> Iterator[Told]:
    """Pages, and what tells that nothing is known."""
    alerts = _Alerts(plan, objective)
    for tier in objective.response:
        if (page := alerts.page(tier)) is not None:
            yield Told(page, Because.INCIDENT, tier)
    for because, alert in alerts.unknown():
        yield Told(alert, because)


def patient(plan: Plan, objective: Objective) -> Iterator[Told]:
    """Tickets about what builds up over hours and days."""
    alerts = _Alerts(plan, objective)
    for tier in objective.response:
        for because, alert in alerts.tickets(tier):
            yield Told(alert, because, tier)


class _Alerts:
    def __init__(self, plan: Plan, objective: Objective) -> None:
        # What the carried labels say of tiers is the objective's own response.
        self._plan = replace(plan, response=objective.response)
        self._objective = objective
        self._conditions = Conditions(plan, objective)
        self._about = _about(plan, objective)
        calendar = objective.window.calendar
        period = f"the {calendar}" if calendar else format_duration(objective.window.seconds)
        self._promise = f"objective {format_percent(objective.objective)} over {period}"
        self._bad = f"{_RATIO} {_bad(objective)}"

    def page(self, tier: Tier) -> Alert | None:
        """One alert for whatever calls this tier at once, or after a while."""
        if not (reasons := self._reasons(tier)):
            return None
        holding = f"{self._conditions.now()} and ({' or '.join(reasons)})"
        bad = _over(self._objective) if self._conditions.at_once else self._bad
        summary = f"{self._about}: {bad}, {self._promise}{self._why(tier)}"
        return self._burn(tier, Severity.PAGE, self._muted(holding), summary)

    def _why(self, tier: Tier) -> str:
        """What calls a tier beside the one that acts at once."""
        if When.INCIDENT in tier.when:
            return ""
        why = ["burns fast"] if When.FAST_BURN in tier.when else []
        why += [f"has lasted {format_duration(tier.after)}"] if tier.after is not None else []
        return f"; it {' or '.join(why)}"

    def _reasons(self, tier: Tier) -> list[str]:
        conditions = self._conditions
        if not conditions.paging():
            return []
        if When.INCIDENT in tier.when:
            return [f"{conditions.recorded(INCIDENT)} == 1"]
        reasons = []
        if When.FAST_BURN in tier.when and (fast := conditions.burns_fast()) is not None:
            reasons.append(fast)
        if tier.after is not None:
            reasons.append(f"({conditions.lasted(tier.after)})")
        return reasons

    def tickets(self, tier: Tier) -> Iterator[tuple[Because, Alert]]:
        conditions = self._conditions
        slow = [conditions.holds(burn) for burn in conditions.ticketing()]
        if When.SLOW_BURN in tier.when and slow:
            summary = f"{self._about}: {self._bad}, and for long; {self._promise}"
            muted = self._muted(" or ".join(slow))
            yield Because.SLOW_BURN, self._burn(tier, Severity.TICKET, muted, summary)
        if When.BUDGET_EXHAUSTED in tier.when:
            spent = f"{conditions.recorded(BUDGET_REMAINING)} <= 0"
            spent += f" and {period.failures(conditions)} >= {self._objective.chance:f}"
            summary = f"{self._about}: error budget spent, {_RATIO} left, {self._promise}"
            alert = self._review(BUDGET_EXHAUSTED, spent, tier, summary)
            yield Because.BUDGET_EXHAUSTED, alert
        if When.REPEATED in tier.when and conditions.paging():
            repeated = conditions.repeated(tier.times, tier.within)
            within = format_duration(tier.within)
            summary = f"{self._about}: {{{{ $value }}}} incidents within {within}"
            alert = self._review(INCIDENT_REPEATS, repeated, tier, summary)
            yield Because.REPEATED, alert

    def unknown(self) -> Iterator[tuple[Because, Alert]]:
        silent = f"{self._conditions.recorded(STATE)} == 2"
        if of_engine(self._objective):
            silent = f"{silent} unless on () {all_down(self._plan)}"
        yield Because.NO_DATA, self._state(NO_DATA, silent, advice.NO_DATA, _NO_DATA_HOLD)
        if seen(self._objective) is not None:  # else it can only not have come yet
            missing = f"{self._conditions.recorded(STATE)} == 3"
            alert = self._state(SIGNAL_MISSING, missing, advice.SIGNAL_MISSING, _NO_DATA_HOLD)
            yield Because.SIGNAL_MISSING, alert
        if self._objective.expect_traffic:
            idle = f"{self._conditions.recorded(STATE)} == 1"
            alert = self._state(NO_TRAFFIC, idle, advice.NO_TRAFFIC, _NO_TRAFFIC_HOLD)
            yield Because.NO_TRAFFIC, alert

    def _state(self, name: AlertName, expr: str, actions: Sequence[str], hold: int) -> Alert:
        tier = carried.tier_of(self._plan, _ENGINEERING)
        # Said of the objective as a whole: what is unknown has no labels.
        summary = f"{self._plan.service}/{self._objective.name}: {name.meaning}"
        return self._alert(
            name.name, expr, tier, summary, actions,
            impact="Unknown: nobody can say how users fare.", hold=hold,
        )  # fmt: skip

    def _muted(self, expr: str) -> str:
        if not is_muted(self._objective):
            return expr
        return f"({expr}) unless on () {all_down(self._plan)}"

    def _burn(self, tier: Tier, severity: Severity, expr: str, summary: str) -> Alert:
        signal, paged = self._objective.signal, severity is Severity.PAGE
        return self._alert(
            burn_alert(signal), expr, tier, summary,
            advice.burning(signal, self._plan.service, paged=paged), severity=severity,
        )  # fmt: skip

    def _review(self, name: AlertName, expr: str, tier: Tier, summary: str) -> Alert:
        feels = self._feels()  # it goes on long after users have felt it
        impact = f"Now or earlier: {feels[:1].lower()}{feels[1:]}"
        return self._alert(name.name, expr, tier, summary, advice.REVIEW, impact=impact)

    def _feels(self) -> str:
        objective = self._objective
        if objective.query is not None and objective.description:
            return _described(objective)
        return f"{_sentence(objective.signal.feels)}."

    def _alert(
        self, name: str, expr: str, tier: Tier, summary: str, actions: Sequence[str], *,
        severity: Severity = Severity.TICKET, impact: str | None = None, hold: int = 0,
    ) -> Alert:  # fmt: skip
        labels = carried.labels(self._plan, self._objective.name, tier.tier, severity)
        felt = impact or self._feels()
        annotations = carried.annotations(self._plan, name, summary, felt, actions)
        if self._objective.description:
            annotations["description"] = _described(self._objective)
        return Alert(
            alert=name,
            expr=expr,
            labels=labels | {"urgency": self._objective.urgency},
            annotations=annotations,
            hold=hold,
        )


def _about(plan: Plan, objective: Objective) -> str:
    """Service, objective, and which of those that it is split into."""
    which = (f"{label}={{{{ $labels.{label} }}}}" for label in objective.selection.per)
    return " ".join([f"{plan.service}/{objective.name}", *which])


def _bad(objective: Objective) -> str:
    """What the share of bad events is of, that the alert shows."""
    signal, threshold = objective.signal, objective.threshold
    if signal.shape is Shape.LATENCY and threshold is not None:
        return f"{signal.bad} over {format_duration(threshold)} ({signal.title})"
    if is_value(objective):
        return f"of the time {_over(objective)}"
    named = f" ({', '.join(name for name, _ in objective.checks)})" if objective.checks else ""
    return f"{signal.bad}{named}"


def _over(objective: Objective) -> str:
    return f"{_title(objective)} above {objective.threshold:f}"


def _title(objective: Objective) -> str:
    """What a query of the user's own measures only its description can say."""
    described = _described(objective).removesuffix(".")
    if objective.query is None or not described or len(described) > _LONG:
        return objective.signal.title
    return described[:1].lower() + described[1:]


def _described(objective: Objective) -> str:
    return carried.literal(" ".join(objective.description.split()))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
