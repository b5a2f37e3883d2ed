"""One world with the alerts that its objectives can make: what the stories are told on.

All times follow from the plan: a file with windows of seconds is tested in minutes. Nothing is
asked at the very edge of a window, where Prometheus 2 and 3 differ by a sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...slo.detection import seconds_to_alert
from ...slo.plan import Budgeting, Burn, Objective, Plan, Selection, Severity, Tier, When
from ...slo.signals import Shape
from ..model import Alert
from ..naming import Series as Recorded
from ..naming import burn_alert
from .case import Case, Check
from .series import Series, Span, selector
from .traffic import Phase, Scene, series_of
from .world import World, identity, neighbour

RATE = 20.0  # events a second where there is traffic: floors are reached in no time
Traffic = Callable[[Objective], Sequence[Phase]]


@dataclass(frozen=True, slots=True)
class Stage:
    """alerts: by the label `slo`."""

    world: World
    alerts: Mapping[str, Sequence[Alert]]

    @property
    def plan(self) -> Plan:
        return self.world.plan

    @property
    def objectives(self) -> Sequence[Objective]:
        return self.world.objectives

    @property
    def selections(self) -> list[Selection]:
        return [each.selection for each in self.objectives]

    @property
    def base(self) -> int:
        """The base window; also the length of most stretches."""
        return self.plan.evaluation.base

    @property
    def warm(self) -> int:
        """Long enough for the base window to have been full."""
        return self.even(1.2 * self.base)

    @property
    def step(self) -> int:
        return self.plan.evaluation.scrape_interval

    @property
    def lag(self) -> int:
        """A scrape and two evaluations: from what happens to an alert on it."""
        return self.step + 2 * self.plan.evaluation.interval

    def even(self, seconds: float) -> int:
        """At least so many seconds, in whole scrapes and evaluations."""
        unit = math.lcm(self.step, self.plan.evaluation.interval)
        return math.ceil(seconds / unit) * unit

    def case(
        self, name: str, traffic: Traffic, checks: Sequence[Check], scenes: Sequence[Scene] = ()
    ) -> Case:
        """A story in which sidecars and engines are well all the time. scenes: one for each
        sidecar."""
        made: dict[str, Series] = {}
        for scene in scenes or [self.scene()]:
            for objective in self.objectives:
                for one in series_of(objective, traffic(objective), scene):
                    made[one.selector] = one
            for one in self._around(traffic, scene):
                made[one.selector] = one
        return Case(name, self.step, list(made.values()), checks)

    def scene(self, **fields: object) -> Scene:
        return Scene(self.plan.service, self.step, **fields)  # type: ignore[arg-type]

    def _around(self, traffic: Traffic, scene: Scene) -> Iterator[Series]:
        lasts = max(sum(phase.seconds for phase in traffic(each)) for each in self.objectives)
        yield from identity(self.selections, [Span(lasts, 1)], self.step, **scene.own)
        yield from neighbour(self.plan, lasts, self.step)

    def recorded(self, objective: Objective, what: Recorded) -> str:
        """A recorded series, whatever its `per` labels."""
        return selector(what.name, {"service": self.plan.service, "slo": objective.name})

    def of(self, objective: Objective, alert: str) -> list[Alert]:
        return [each for each in self.alerts.get(objective.name, ()) if each.alert == alert]

    def burning(self, objective: Objective, severity: Severity) -> list[tuple[Alert, Tier]]:
        """The alerts of the burn itself and who is told by them."""
        tiers = {str(tier.tier): tier for tier in objective.response}
        return [
            (alert, tiers[alert.labels["tier"]])
            for alert in self.of(objective, burn_alert(objective.signal))
            if alert.labels["severity"] == severity
        ]

    def paging(self, objective: Objective, when: When) -> list[Alert]:
        pages = self.burning(objective, Severity.PAGE)
        return [alert for alert, tier in pages if when in tier.when]


def stages(worlds: Sequence[World], alerts: Iterable[Alert]) -> list[Stage]:
    by_slo: dict[str, list[Alert]] = {}
    for alert in alerts:
        by_slo.setdefault(alert.labels["slo"], []).append(alert)
    return [Stage(world, by_slo) for world in worlds]


def burns(objective: Objective, severity: Severity) -> list[Burn]:
    return [burn for burn in objective.burns if burn.severity is severity]


def is_at_once(objective: Objective) -> bool:
    """Whether a number pages the moment that it is over its threshold."""
    return objective.signal.at_once and objective.outage is not None


def fastest(objective: Objective) -> Burn | None:
    """The page burn that looks back least."""
    return min(burns(objective, Severity.PAGE), key=lambda burn: burn.long, default=None)


def is_whole(objective: Objective) -> bool:
    """Whether it can only be bad or not, with no share between them, at one time."""
    return objective.signal.shape is Shape.VALUE or objective.budgeting is Budgeting.TIMESLICES


def pages_within(objective: Objective, base: int, lag: int) -> float:
    """Seconds from the first failure of a total outage to its page: a base window, unless the
    file's own numbers make it later. Only of an objective that pages."""
    if objective.outage is None:
        raise ValueError(f"{objective.name} never pages")
    late = base if is_whole(objective) else 0
    return max(base, seconds_to_alert(objective.outage, 1.0, base) + late + lag)


def clears_within(objective: Objective, base: int) -> int:
    """Seconds of good traffic after which no paging condition can hold any more."""
    if is_at_once(objective):
        return (objective.over or base) + base
    looks_back = [burn.short for burn in burns(objective, Severity.PAGE)]
    looks_back += [objective.outage.window] if objective.outage else []
    return max(looks_back, default=base) + 2 * base
