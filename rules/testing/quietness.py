"""Stories in which nobody must be told of a burn, or only that nothing is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...slo.burn import spoilt_slices
from ...slo.plan import Budgeting, Objective, Outage, When
from ...slo.signals import Needs, Shape
from ..naming import BAD, NO_DATA, NO_TRAFFIC, SIGNAL_MISSING, STATE, TOTAL, burn_alert
from .case import Case, Check, fires, silent, who
from .series import Series, Span
from .stage import RATE, Stage, is_whole, pages_within
from .traffic import Phase, series_of
from .world import identity

_SECOND = {"instance": "10.0.0.3:9400", "engine": "10.0.0.3:8000"}
_PAST = 1e6  # bad events of an outage long ago, still in the counters
_TRICKLE = 1 / 30  # events a second: two a minute


def night(stage: Stage) -> Iterator[Case]:
    """One of very few requests fails. In the morning there is traffic within its budget, and one of
    two engines restarts while the other's counters remember an outage. Then nobody asks."""
    step = stage.step
    one_more, failed, morning, restart, evening, end = (
        stage.even(part * stage.base) for part in (0.6, 1.2, 2.6, 3.4, 4.8, 6.2)
    )

    def traffic(each: Objective, *, second: bool) -> Sequence[Phase]:
        one, within = 1 / step if second else 0.0, 0.6 * _least(each)
        return (
            Phase(one_more - step, 0.0), Phase(step, one), Phase(failed - one_more - step, 0.0),
            Phase(step, one, 1.0), Phase(morning - failed, 0.0),
            Phase(restart - morning, RATE, within),
            Phase(evening - restart, RATE, within, reset=second),
            Phase(end + step - evening, 0.0),
        )  # fmt: skip

    checks: list[Check] = []
    for each in stage.objectives:
        for after, says in (
            (failed, "one failed request is nobody's page or ticket"),
            (restart, "an engine that restarts is no failure"),
            (evening, "no traffic is no failure, and not unknown"),
        ):
            if after == failed and not _forgives(stage, each):
                continue
            asked = (after + stage.even(part * stage.base) - step for part in (0.2, 0.6, 1.3))
            checks += [silent(stage.plan, each.name, at, says) for at in asked]
        if _counts(each):
            checks.append(
                _state(stage, each, 1, end - step, "it is known that there is no traffic")
            )
    series: dict[str, Series] = {}
    for second in (False, True):
        scene = stage.scene(own=_SECOND) if second else stage.scene(past=_PAST)
        for each in stage.objectives:
            made = series_of(each, traffic(each, second=second), scene)
            series |= {one.selector: one for one in made}
        there = identity(stage.selections, [Span(end + step, 1)], step, **scene.own)
        series |= {one.selector: one for one in there}
    yield Case("quiet night", step, list(series.values()), checks)


def _forgives(stage: Stage, objective: Objective) -> bool:
    """Whether the floors of the file let one failure pass."""
    floors = [burn.floor for burn in objective.burns]
    floors += [objective.outage.floor] if objective.outage else []
    sliced = objective.budgeting is Budgeting.TIMESLICES
    least = spoilt_slices(stage.plan.evaluation) if sliced else 1
    return all(floor.bad > least for floor in floors)


def _least(objective: Objective) -> float:
    """The least share of bad events that any condition minds; of what is all or nothing, none."""
    if is_whole(objective):
        return 0.0
    return min((float(burn.threshold) for burn in objective.burns), default=0.0)


def _counts(objective: Objective) -> bool:
    """Whether its state is known to be without traffic when its counters stand still."""
    by_query = objective.signal.needs is Needs.PROMETHEUS
    return objective.signal.shape is not Shape.VALUE and not by_query


def _state(stage: Stage, each: Objective, state: int, at: int, says: str) -> Check:
    return Check(each.name, says, f"max({stage.recorded(each, STATE)})", at, state)


def trickle(stage: Stage) -> Iterator[Case]:
    """Two requests a minute, and all of them fail: few, but nobody is served."""
    # Of so few requests no number is made.
    asked = [e for e in stage.objectives if e.outage and e.signal.shape is not Shape.VALUE]
    start, checks, page = stage.warm, list[Check](), stage.base
    for each in asked:
        soon = stage.even(pages_within(each, stage.base, stage.lag))
        page = max(page, soon)
        for alert in stage.paging(each, When.INCIDENT):
            says = f"{who(alert)} is paged although few ask"
            checks.append(fires(alert, each.name, start + soon, says))
    rate = max([_TRICKLE, *(_enough(each.outage) for each in asked if each.outage)])
    phases = [Phase(start, rate), Phase(page + stage.step, rate, 1.0)]
    if checks:
        yield stage.case("low-traffic outage", lambda _: phases, checks)


def _enough(outage: Outage) -> float:
    """Events a second that reach the floor of an outage well before its window is over."""
    return 2 * float(max(outage.floor.bad, outage.floor.total)) / outage.window


def idle(stage: Stage) -> Iterator[Case]:
    """Nobody asks where somebody should."""
    start, lasts, checks = stage.warm, 0, list[Check]()
    for each in stage.objectives:
        for alert in stage.of(each, NO_TRAFFIC.name):
            lasts = max(lasts, stage.even(stage.base + alert.hold + 2 * stage.lag))
            checks.append(fires(alert, each.name, start + lasts, f"{who(alert)} gets a ticket"))
    phases = [Phase(start, RATE), Phase(lasts + stage.step, 0.0)]
    if checks:
        yield stage.case("no traffic", lambda _: phases, checks)


def missing(stages: Sequence[Stage]) -> Iterator[Case]:
    """Sidecars and engines answer, without anything that the objectives are about: renamed, or the
    probe is not there."""
    known = (Needs.SCRAPE, Needs.PROBE, Needs.GPU)  # others may just not have come yet
    asked = [(stage, e) for stage in stages for e in stage.objectives if e.signal.needs in known]
    yield from _absent("signal missing", asked, SIGNAL_MISSING.name, there=True)


def unknown(stages: Sequence[Stage]) -> Iterator[Case]:
    """Nothing answers at all, as when Prometheus scrapes the wrong job."""
    asked = [(stage, each) for stage in stages for each in stage.objectives]
    yield from _absent("no data", asked, NO_DATA.name, there=False)


def _absent(
    name: str, asked: Sequence[tuple[Stage, Objective]], told: str, *, there: bool
) -> Iterator[Case]:
    """there: whether sidecars and engines answer."""
    checks: list[Check] = []
    lasts = 0
    for stage, each in asked:
        for alert in stage.of(each, told):
            lasts = max(lasts, stage.even(alert.hold + 2 * stage.lag))
            checks.append(fires(alert, each.name, lasts, f"{who(alert)} gets a ticket of it"))
    for stage, each in asked:
        burn = burn_alert(each.signal)
        checks.append(silent(stage.plan, each.name, lasts, "it is no failure", alertname=burn))
        for series in (BAD, TOTAL):
            says = f"{series.name} is absent, neither good nor bad"
            expr = f"count({stage.recorded(each, series)})"
            checks.append(Check(each.name, says, expr, lasts, None))
    if checks:
        stage = asked[0][0]
        selections, spans = [each.selection for _, each in asked], [Span(lasts + stage.step, 1)]
        series_: list[Series] = identity(selections, spans, stage.step) if there else []
        yield Case(name, stage.step, series_, checks)
