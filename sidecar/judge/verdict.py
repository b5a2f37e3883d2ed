"""How one objective stands, by slo's maths over what the judge remembers. The compiled rules say
the same in PromQL (rules/conditions.py, rules/period.py, rules/alerts.py)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from ...slo import budget
from ...slo.budget import Component, State
from ...slo.calendar import period
from ...slo.plan import Budgeting, Burn, Evaluation, Objective, Outage, Plan, Severity, When
from .history import GroupLabels, History, Key

_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Spent:
    """The budget of a period. remaining: 1 untouched, 0 spent; None below the coverage that the
    objective asks for. failures: bad events, or slices. since: Unix time at which it begins."""

    remaining: float | None
    coverage: float
    failures: float
    since: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """An objective, or one of those that its `per` splits it into.

    ratio: of bad events in the base window; burn_rate: over the last hour; shown: what an alert
    tells; None without traffic. burns: by name of the condition, whether it holds; None where it
    cannot be judged. slowly: the ratio of the first that holds of those that ticket. incident: any
    that pages holds. lasting: tiers whose `after` it has lasted.
    incidents: how many, by tier that asks for it.
    """

    objective: Objective
    group: GroupLabels
    state: State | None
    ratio: float | None
    burn_rate: float | None
    shown: float | None
    burns: Mapping[str, bool | None]
    slowly: float | None
    incident: bool | None
    lasting: frozenset[int]
    incidents: Mapping[int, int]
    spent: Spent


class Verdicts:
    """Judges the objectives of a plan from their history."""

    def __init__(self, plan: Plan, history: History) -> None:
        self._plan = plan
        self._history = history

    def burns(
        self, objective: Objective, group: GroupLabels, at: float, severity: Severity
    ) -> dict[str, bool | None]:
        """The conditions of a severity by their names, OUTAGE among those that page."""
        conditions: dict[str, Burn | Outage] = {
            burn.name: burn for burn in objective.burns if burn.severity is severity
        }
        if objective.outage is not None and severity is Severity.PAGE:
            conditions[OUTAGE] = objective.outage
        parts, rates = self._parts(objective, group), self._rates(objective)
        return {
            name: budget.holds(condition, parts, at, rates)
            for name, condition in conditions.items()
        }

    def ratio(
        self, objective: Objective, group: GroupLabels, at: float, window: float
    ) -> float | None:
        rates = self._rates(objective)
        return budget.composite_ratio(
            (part.weight, budget.over(part.history, at, window, rates).ratio)
            for part in self._parts(objective, group)
        )

    def spent(self, objective: Objective, group: GroupLabels, at: float) -> Spent:
        window, interval = objective.window, self._plan.evaluation.interval
        since = at - window.seconds if window.calendar is None else period(window.calendar, at)[0]
        sums = [part.history.sums(since, at) for part in self._parts(objective, group)]
        parts = zip(self._parts(objective, group), sums, strict=True)
        used = budget.composite_ratio((part.weight, of.ratio) for part, of in parts)
        passed = max(at - since, self._plan.evaluation.base)
        covered = budget.coverage(min(of.samples for of in sums), interval, passed)
        return Spent(
            budget.remaining(used, objective.budget, covered, objective.min_coverage),
            covered,
            math.fsum(of.bad for of in sums),
            since,
        )

    def slowly(
        self, objective: Objective, group: GroupLabels, at: float, burns: Mapping[str, bool | None]
    ) -> float | None:
        """The ratio of the first ticket's condition that holds, over its long window."""
        for burn in objective.burns:
            if burn.severity is Severity.TICKET and burns[burn.name]:
                return self.ratio(objective, group, at, burn.long)
        return None

    def shown(self, objective: Objective, group: GroupLabels, at: float) -> float | None:
        """The ratio that an alert tells: of the base window if that is worse than the last hour."""
        shorts = [burn.short for burn in objective.burns if burn.severity is Severity.PAGE]
        shorts += [objective.outage.window] if objective.outage is not None else []
        if max(shorts, default=0) > _HOUR:
            return self.ratio(objective, group, at, max(shorts))
        hour = self.ratio(objective, group, at, _HOUR)
        base = self.ratio(objective, group, at, self._plan.evaluation.base)
        return hour if hour is None or base is None else max(hour, base)

    def lasting(self, objective: Objective, group: GroupLabels, at: float) -> frozenset[int]:
        """Tiers whose `after` the incident has lasted."""
        interval, key = self._plan.evaluation.interval, Key(objective.name, group)
        found = set()
        for tier in objective.response:
            if tier.after is None:
                continue
            marks = self._history.marks(key, at - tier.after, at, interval)
            if marks and budget.lasted(marks, at, tier.after, interval):
                found.add(tier.tier)
        return frozenset(found)

    def incidents(self, objective: Objective, group: GroupLabels, at: float) -> dict[int, int]:
        """Of the days that each tier looks back which asks for repeated incidents."""
        key, found = Key(objective.name, group), {}
        for tier in objective.response:
            if When.REPEATED in tier.when:
                edges = self._history.edges(key, at - tier.within, at)
                found[tier.tier] = budget.incidents(edges, at, tier.within)
        return found

    def _parts(self, objective: Objective, group: GroupLabels) -> Sequence[Component]:
        weights = dict(objective.checks) if is_composite(objective) else {"": Decimal(1)}
        return [
            Component(self._history.of(Key(objective.name, group, name)), weight)
            for name, weight in weights.items()
        ]

    def _rates(self, objective: Objective) -> Evaluation | None:
        occurrences = objective.budgeting is Budgeting.OCCURRENCES
        return self._plan.evaluation if occurrences else None


OUTAGE = "outage"


def is_composite(objective: Objective) -> bool:
    """Whether its components are counted apart."""
    return objective.budgeting is Budgeting.OCCURRENCES and len(objective.checks) > 1


def paging(objective: Objective, burns: Mapping[str, bool | None]) -> bool | None:
    """Whether any condition that pages holds; None if none can be judged, or none pages."""
    pages = [burns[burn.name] for burn in objective.burns if burn.severity is Severity.PAGE]
    pages += [burns[OUTAGE]] if objective.outage is not None else []
    return budget.incident(pages)
