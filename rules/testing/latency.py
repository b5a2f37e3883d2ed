"""Stories that only a latency has: how bounds are spelled, and requests that no histogram shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal

from ...slo.plan import Objective, When
from ...slo.signals import Shape
from ..naming import BAD, TOTAL
from .case import Case, Check, fires
from .stage import RATE, Stage, is_whole, pages_within
from .traffic import Phase
from .world import World


def spellings(stage: Stage) -> Iterator[Case]:
    """Three sidecars whose bounds are written in three ways; one request in twenty is late."""
    late = _only(stage, lambda each: not is_whole(each))
    if not late.objectives:
        return
    at = late.even(1.6 * late.base)
    scenes = [
        late.scene(own={"instance": f"10.0.1.{n}:9400", "engine": f"10.0.1.{n}:8000"}, le=le)
        for n, le in enumerate((_python, _prometheus, _scientific), 1)
    ]
    checks = [
        Check(each.name, "one of twenty is late, however bounds are spelled", _share(late, each),
              at, 0.05)
        for each in late.objectives
    ]  # fmt: skip
    yield late.case(
        "bucket spellings", lambda _: [Phase(at + late.step, RATE, 0.05)], checks, scenes
    )


def _only(stage: Stage, wanted: Callable[[Objective], bool]) -> Stage:
    latencies = [each for each in stage.objectives if each.signal.shape is Shape.LATENCY]
    chosen = tuple(each for each in latencies if wanted(each))
    return Stage(World(stage.plan, chosen), stage.alerts)


def _share(stage: Stage, each: Objective) -> str:
    bad, total = (f"sum({stage.recorded(each, series)})" for series in (BAD, TOTAL))
    return f"round({bad} / {total}, 0.001)"


def _python(bound: Decimal) -> str:
    return str(float(bound))


def _prometheus(bound: Decimal) -> str:
    """As Prometheus 2 and most clients: 1, 2.5."""
    return f"{bound.normalize():f}"


def _scientific(bound: Decimal) -> str:
    return f"{float(bound):e}".replace("0e", "e") if bound else "0e+00"


def gave_up(stage: Stage) -> Iterator[Case]:
    """Everybody gives up before the answer: an engine has no latency to show then, and is not fast
    for that."""
    waiting = _only(stage, lambda each: bool(each.bad_outcomes))
    warm, page, checks = stage.warm, stage.base, list[Check]()
    for each in waiting.objectives:
        if each.outage is None:
            continue
        soon = stage.even(pages_within(each, stage.base, stage.lag))
        page = max(page, soon)
        for alert in stage.paging(each, When.INCIDENT):
            says = f"tier {alert.labels['tier']} is paged when everybody gives up"
            checks.append(fires(alert, each.name, warm + soon, says))
    if checks:
        phases: Sequence[Phase] = [Phase(warm, RATE), Phase(page + stage.step, RATE, 1.0)]
        scenes = [waiting.scene(gave_up=True)]
        yield waiting.case("clients give up", lambda _: phases, checks, scenes)
