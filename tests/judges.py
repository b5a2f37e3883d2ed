"""A judge over pages made by hand: an engine's requests, or the turns of tenants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from plans import plan

from inferslo.exporters import names
from inferslo.exporters.reading import Point
from inferslo.sidecar.judge.history import History
from inferslo.sidecar.judge.judge import Judge, Judgement
from inferslo.slo.plan import Selection

DAY, STEP = 86400, 30
ANY = Selection()
TURNS: dict[str, Any] = {"selection": replace(ANY, per=("tenant",))}


def judge(*objectives: Any, history: History | None = None, **overrides: Any) -> Judge:
    fields = {"selection": ANY, **overrides}
    return Judge(plan(*objectives, **fields), history or History(None, 31 * DAY), slow=1)


def page(good: float, bad: float = 0.0, *, up: bool = True) -> Iterator[Point]:
    yield Point(names.BUILD_INFO, ("1", "3"), 1.0)
    yield Point(names.ENGINE_UP, ("e",), float(up))
    if up:
        yield Point(names.ENGINE_INFO, ("e", "vllm", "1", "m"), 1.0)
        yield Point(names.REQUESTS, ("e", "m", "success", "engine"), good)
        yield Point(names.REQUESTS, ("e", "m", "error", "engine"), bad)


def turns(**tenants: tuple[float, float]) -> Iterator[Point]:
    yield Point(names.BUILD_INFO, ("1", "3"), 1.0)
    for tenant, (good, bad) in tenants.items():
        yield Point(names.AGENT_TURNS, ("", "", tenant, "", "success"), good)
        yield Point(names.AGENT_TURNS, ("", "", tenant, "", "error"), bad)


def play(one: Judge, pages: Iterable[Iterable[Point]], begin: int = 0) -> Judgement:
    """A page each STEP seconds from the step `begin` on; the last judgement."""
    judged = [one.step(points, (begin + n) * STEP) for n, points in enumerate(pages)]
    return judged[-1]
