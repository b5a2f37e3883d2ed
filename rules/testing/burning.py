"""Stories of budgets that burn: who is told, how soon, and when it is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...slo.plan import Budgeting, Burn, Objective, Severity, When
from ..naming import BAD, BUDGET_EXHAUSTED, BUDGET_REMAINING, INCIDENT, INCIDENT_REPEATS
from .case import Case, Check, fires, quiet, silent, who
from .labels import recorded
from .series import Series, Span, gauge
from .stage import RATE, Stage, burns, clears_within, fastest, is_at_once, is_whole, pages_within
from .traffic import Phase

_ABOVE, _BELOW = 1.15, 0.85  # of a threshold: clearly over it, clearly not


def outage(stage: Stage) -> Iterator[Case]:
    """Nothing works for a while, then all is well again: tier 1 is paged at once, the next tier
    when it goes on, and both are told that it is over."""
    paging = [each for each in stage.objectives if each.outage is not None]
    if not paging:
        return
    start = stage.warm
    waits = [tier.after or 0 for each in paging for tier in each.response]
    bad = stage.even(max(waits) + max(pages_within(each, stage.base, stage.lag) for each in paging))
    bad += stage.base
    over = stage.even(max(_over_after(stage, each, bad) for each in paging))

    def traffic(each: Objective) -> Sequence[Phase]:
        # A count stays over its threshold by itself.
        lasts = stage.base if is_at_once(each) else bad
        return Phase(start, RATE), Phase(lasts, RATE, 1.0), Phase(over - lasts, RATE)

    checks: list[Check] = []
    for each in paging:
        checks += _pages(stage, each, start, start + over - stage.step)
    yield stage.case("outage", traffic, checks)


def _over_after(stage: Stage, each: Objective, bad: int) -> int:
    """Seconds from the first failure to the end of it all."""
    lasts = stage.base if is_at_once(each) else bad
    return lasts + clears_within(each, stage.base)


def _pages(stage: Stage, each: Objective, start: int, over: int) -> Iterator[Check]:
    soon = stage.even(pages_within(each, stage.base, stage.lag))
    yield silent(stage.plan, each.name, start - stage.step, "nobody is told while all is well")
    for alert, tier in stage.burning(each, Severity.PAGE):
        if When.INCIDENT in tier.when:
            says = f"{who(alert)} is paged by an outage"
            yield fires(alert, each.name, start + soon, says)
        elif tier.after is not None:
            at = start + stage.even(soon + tier.after + stage.lag)
            yield fires(alert, each.name, at, f"{who(alert)} is told when it goes on")
        yield quiet(alert, each.name, over, f"the page of {who(alert)} resolves")
    ended = f"sum({stage.recorded(each, INCIDENT)})"
    yield Check(each.name, "the incident is over, and known to be", ended, over, 0)


def page_burn(stage: Stage) -> Iterator[Case]:
    """A burn that is just fast enough for a page: tier 1 is told, the next tier not yet."""
    checks: list[Check] = []
    soon = _soon(stage, Severity.PAGE)
    for each in stage.objectives:
        if (share := _paged(each)) is None or is_at_once(each):
            continue
        for alert, tier in stage.burning(each, Severity.PAGE):
            if When.INCIDENT in tier.when:
                says = f"{who(alert)} is paged by {share:.2%} of bad events"
                checks.append(fires(alert, each.name, soon, says))
            elif not _is_fast(each, share) and (tier.after or 0) > soon:
                checks.append(quiet(alert, each.name, soon, f"{who(alert)} is not told yet"))
    yield from _burn(stage, "page burn", _paged, soon, checks)


def _paged(objective: Objective) -> float | None:
    """The least share of bad events that pages; None if none does."""
    thresholds = [float(burn.threshold) for burn in burns(objective, Severity.PAGE)]
    thresholds += [float(objective.outage.ratio)] if objective.outage else []
    return _above(thresholds, objective)


def _is_fast(objective: Objective, share: float) -> bool:
    fast = fastest(objective)
    return fast is not None and share >= float(fast.threshold)


def fast_burn(stage: Stage) -> Iterator[Case]:
    """So fast that the next tier is told at once."""
    soon = _soon(stage, Severity.PAGE)
    checks = [
        fires(alert, each.name, soon, f"{who(alert)} is told of a fast burn at once")
        for each in stage.objectives
        for alert, tier in stage.burning(each, Severity.PAGE)
        if When.FAST_BURN in tier.when and fastest(each) is not None
        if tier.after is None or tier.after > soon
    ]
    yield from _burn(stage, "fast burn", _fast, soon, checks)


def _fast(objective: Objective) -> float | None:
    fast = fastest(objective)
    return _above([float(fast.threshold)] if fast else [], objective)


def slow_burn(stage: Stage) -> Iterator[Case]:
    """As fast as it can be without a page: a ticket, and nobody is woken."""
    checks: list[Check] = []
    soon = _soon(stage, Severity.TICKET)
    for each in stage.objectives:
        if _slow(each) is None:
            continue
        for alert, _ in stage.burning(each, Severity.TICKET):
            says = f"{who(alert)} gets a ticket of a slow burn"
            checks.append(fires(alert, each.name, soon, says))
        if not is_whole(each):
            says = "a slow burn pages nobody"
            checks.append(silent(stage.plan, each.name, soon, says, severity=Severity.PAGE))
    yield from _burn(stage, "slow burn", _slow, soon, checks)


def _slow(objective: Objective) -> float | None:
    creeping, paged = _creeping(objective), _paged(objective)
    if creeping is None or paged is None or is_whole(objective):
        return creeping
    below = paged / _ABOVE * _BELOW
    return below if below > creeping else None


def creeping_burn(stage: Stage) -> Iterator[Case]:
    """Barely fast enough for anything at all: that is a ticket, too."""
    soon = _soon(stage, Severity.TICKET)
    checks = [
        fires(alert, each.name, soon, f"{who(alert)} gets a ticket of {share:.2%} of bad events")
        for each in stage.objectives
        if not is_whole(each) and (share := _creeping(each)) is not None
        for alert, _ in stage.burning(each, Severity.TICKET)
    ]
    yield from _burn(stage, "creeping burn", _creeping, soon, checks)


def _creeping(objective: Objective) -> float | None:
    return _above([float(burn.threshold) for burn in burns(objective, Severity.TICKET)], objective)


def _above(thresholds: Sequence[float], objective: Objective) -> float | None:
    if not thresholds:
        return None
    return 1.0 if is_whole(objective) else min(1.0, _ABOVE * min(thresholds))


def _soon(stage: Stage, severity: Severity) -> int:
    """When a burn that has been there from the first sample on is told of, floors reached."""
    filled = [
        _filled(burn, stage.plan.evaluation.interval, each.budgeting)
        for each in stage.objectives
        for burn in burns(each, severity)
    ]
    return stage.even(max([0.4 * stage.base, *filled]) + stage.base)


def _filled(burn: Burn, interval: int, budgeting: Budgeting) -> float:
    """Seconds after which the floor is reached by a share of bad events just over the threshold."""
    bad, total = float(burn.floor.bad), float(burn.floor.total)
    if budgeting is Budgeting.TIMESLICES:
        return max(bad, total) * interval
    return max(bad / float(burn.threshold), total) / RATE


def _burn(
    stage: Stage,
    name: str,
    share: Callable[[Objective], float | None],
    soon: int,
    checks: Sequence[Check],
) -> Iterator[Case]:
    """From the first sample on: with no better history the long windows see it at once."""
    if checks:
        yield stage.case(
            name, lambda each: [Phase(soon + stage.step, RATE, share(each) or 0.0)], checks
        )


def spent(stages: Sequence[Stage]) -> Iterator[Case]:
    """A budget of which nothing is left, fed in as recorded, and so are its failures: promtool has
    no memory for a period of days."""
    checks: list[Check] = []
    fed: list[Series] = []
    for stage in stages:
        part, few = _part(stage), 2 * _part(stage)
        # A calendar period is read in steps of the base window.
        many = few + stage.even(stage.base + 2 * stage.lag)
        for each in stage.objectives:
            labels = _recorded(stage, each)
            left = [Span(part, 0.01), Span(many - part, -0.01)]
            fed.append(gauge(BUDGET_REMAINING.name, labels, left, stage.step))
            failed = [Span(few, 0), Span(many - few, float(each.chance))]
            fed.append(gauge(BAD.name, labels, failed, stage.step))
            for alert in stage.of(each, BUDGET_EXHAUSTED.name):
                for until, says in ((part, "some budget is left"), (few, "few have failed")):
                    says = f"{who(alert)} is not told while {says}"
                    checks.append(quiet(alert, each.name, until - stage.step, says))
                says = f"{who(alert)} is told of no budget"
                checks.append(fires(alert, each.name, many - stage.step, says))
    if checks:
        yield Case("budget", stages[0].step, fed, checks)


def repeats(stages: Sequence[Stage]) -> Iterator[Case]:
    """Incidents that repeat, fed in as recorded."""
    checks: list[Check] = []
    fed: list[Series] = []
    for stage in stages:
        for each in stage.objectives:
            if each.outage is None:
                continue
            checks += _repeated(stage, each)
            ups = [Span(_part(stage), value) for _ in range(_times(each)) for value in (0, 1)]
            fed.append(gauge(INCIDENT.name, _recorded(stage, each), ups, stage.step))
    if checks:
        yield Case("incidents", stages[0].step, fed, checks)


def _repeated(stage: Stage, each: Objective) -> Iterator[Check]:
    tiers = {str(tier.tier): tier for tier in each.response}
    part = _part(stage)
    for alert in stage.of(each, INCIDENT_REPEATS.name):
        times = tiers[alert.labels["tier"]].times
        start = (2 * times - 1) * part
        yield fires(alert, each.name, start + part - stage.step, f"{who(alert)}: {times} incidents")
        if times > 1:
            says = f"{who(alert)} is not told of {times - 1}"
            yield quiet(alert, each.name, start - stage.step, says)


def _times(objective: Objective) -> int:
    told = [tier.times for tier in objective.response if When.REPEATED in tier.when]
    return max(told, default=1)


def _part(stage: Stage) -> int:
    return stage.even(2 * stage.lag)


def _recorded(stage: Stage, each: Objective) -> dict[str, str]:
    return recorded(stage.plan.service, each.name, each.selection)
