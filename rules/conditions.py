"""Alert conditions over the recorded pair of an objective. slo.budget says the same in Python.

Ratios over a window are of sums, so that a busy minute weighs more than a quiet one. The base
window itself is read from the rates directly: summing them would blunt an outage once more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal

from ..slo.budget import ENOUGH
from ..slo.plan import Budgeting, Burn, Floor, Objective, Outage, Plan, Severity
from ..slo.quantities import format_duration
from .naming import BAD, BURN_RATE, INCIDENT, TOTAL, Series
from .promql import matcher, ratio, series
from .values import VALUES

_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Conditions:
    """PromQL about one objective; every vector has the labels service, slo and those of `per`."""

    plan: Plan
    objective: Objective

    def recorded(self, what: Series, *more: str) -> str:
        own = (matcher("service", [self.plan.service]), matcher("slo", [self.objective.name]))
        return series(what.name, (*own, *more))

    def one(self, vector: str, operator: str = "sum") -> str:
        """The parts of a composite as one."""
        return f"{operator} without (component) ({vector})" if self.parts else vector

    @property
    def parts(self) -> tuple[tuple[str, Decimal], ...]:
        """Components that are recorded apart, and their weights."""
        counts_slices = self.objective.budgeting is Budgeting.TIMESLICES
        return () if counts_slices or len(self.objective.checks) < 2 else self.objective.checks

    def ratio(self, window: int) -> str:
        """Of bad events over `window` seconds; in brackets. None without traffic."""
        return self.ratio_of(lambda selector: self._over(selector, window))

    def ratio_of(self, over: Callable[[str], str]) -> str:
        """The ratio where `over` makes one vector of what a selector of base series has."""
        if not self.parts:
            return f"({ratio(over(self.recorded(BAD)), over(self.recorded(TOTAL)))})"
        means = []
        for name, weight in self.parts:
            part = matcher("component", [name])
            bad, total = (over(self.recorded(what, part)) for what in (BAD, TOTAL))
            means.append(f"{weight:f} * ({ratio(bad, total)})")
        return f"({' + ignoring (component) '.join(means)})"

    def _over(self, selector: str, window: int) -> str:
        if self._is_base(window):
            return selector
        return f"sum_over_time({selector}[{format_duration(window)}])"

    def _is_base(self, window: int) -> bool:
        occurrences = self.objective.budgeting is Budgeting.OCCURRENCES
        return occurrences and window <= self.plan.evaluation.base

    def events(self, what: Series, window: int) -> str:
        """How many over the window; slices, under timeslices."""
        vector = self.one(self._over(self.recorded(what), window))
        if self.objective.budgeting is Budgeting.TIMESLICES:
            return vector
        evaluation = self.plan.evaluation
        return f"{vector} * {evaluation.base if self._is_base(window) else evaluation.interval}"

    def holds(self, condition: Burn | Outage) -> str:
        """The ratio over the condition's longest window while the condition holds."""
        if isinstance(condition, Outage):
            return f"({self._enough(condition.floor, condition.window)} >= {condition.ratio:f})"
        least = f"{condition.threshold:f}"
        return (
            f"({self._enough(condition.floor, condition.long)} >= {least}"
            f" and {self.ratio(condition.short)} >= {least})"
        )

    def _enough(self, floor: Floor, window: int) -> str:
        """The ratio over a window that has at least the events of the floor."""
        bad, total = (self.events(what, window) for what in (BAD, TOTAL))
        if self.parts:  # whose events are counted together, and whose ratios are not
            # `and` keeps the value on its left: the ratio, to be compared with a threshold.
            return (
                f"({self.ratio(window)} and {bad} >= {floor.bad:f} and {total} >= {floor.total:f})"
            )
        # Filtered, then divided: each series is read once.
        some = f">= {floor.total:f}" if floor.total > 0 else "> 0"
        return f"({bad} >= {floor.bad:f}) / ({total} {some})"

    def paging(self) -> tuple[Burn | Outage, ...]:
        outage = (self.objective.outage,) if self.objective.outage else ()
        return outage + self._burns(Severity.PAGE)

    def ticketing(self) -> tuple[Burn, ...]:
        return self._burns(Severity.TICKET)

    def _burns(self, severity: Severity) -> tuple[Burn, ...]:
        return tuple(burn for burn in self.objective.burns if burn.severity is severity)

    @property
    def at_once(self) -> bool:
        """Whether it is an incident the moment that a number is over its threshold."""
        return self.objective.signal.at_once and self.objective.outage is not None

    def fastest(self) -> Burn | None:
        """The page burn that looks back least."""
        return min(self._burns(Severity.PAGE), key=lambda burn: burn.long, default=None)

    def burns_fast(self) -> str | None:
        """What calls the next tier at once. Of a count that is an incident by itself: an incident,
        and within the base window so many times too many as the fastest burn is too fast."""
        if (fast := self.fastest()) is None:
            return None
        if not self.at_once or self.objective.threshold is None or self.objective.over is None:
            return self.holds(fast)
        base, per = self.plan.evaluation.base, ", ".join(self.objective.selection.per)
        count = VALUES[self.objective.signal.name](
            replace(self.objective, over=base), self.plan.evaluation
        )
        many = fast.factor * self.objective.threshold * base / self.objective.over
        return f"({self.recorded(INCIDENT)} == 1 and on ({per}) ({count}) >= {many:f})"

    def incident(self) -> str | None:
        """1 while a paging condition holds, else 0; None if the objective never pages."""
        if self.at_once:
            return f"{self.recorded(BAD)} == bool 1"
        if not (paging := self.paging()):
            return None
        holds = " or ".join(self.holds(condition) for condition in paging)
        longest = max(_longest(condition) for condition in paging)
        return f"({holds}) >= bool 0 or 0 * {self._known(longest)}"

    def _known(self, window: int) -> str:
        """Has a value where the ratio over the window has one."""
        if self.parts:
            return self.ratio(window)
        return f"({self._over(self.recorded(TOTAL), window)} > 0)"

    def lasted(self, seconds: int) -> str:
        """The incident was there in each evaluation of so many seconds, and nearly all were."""
        span = f"{self.recorded(INCIDENT)}[{format_duration(seconds)}]"
        enough = ENOUGH * seconds / self.plan.evaluation.interval
        return f"min_over_time({span}) == 1 and count_over_time({span}) >= {enough:g}"

    def repeated(self, times: int, within: int) -> str:
        """Incidents that ended within so many seconds, and the one that goes on."""
        incident = self.recorded(INCIDENT)
        return f"resets({incident}[{format_duration(within)}]) + {incident} >= {times}"

    def now(self) -> str:
        """The ratio that a page shows, known whenever a paging condition holds: of the base window
        if that is worse than the last hour, in which an outage of minutes looks small."""
        shorts = [c.window if isinstance(c, Outage) else c.short for c in self.paging()]
        if max(shorts) > _HOUR:
            return self.ratio(max(shorts))
        hour = f"{self.recorded(BURN_RATE)} * {self.objective.budget:f}"
        return f"({self.ratio(self.plan.evaluation.base)} > {hour} or {hour})"


def _longest(condition: Burn | Outage) -> int:
    return condition.window if isinstance(condition, Outage) else condition.long
