"""A sidecar whose world and time are scripted: what its page shows is what was played."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from plans import objective, plan
from scripted import Scripted

from inferslo.exporters import names
from inferslo.exporters.reading import ErrorKind, Gap, Histogram, Observation, Point, Reading
from inferslo.sidecar.app import create_app
from inferslo.sidecar.board import Board
from inferslo.sidecar.judge.history import History
from inferslo.sidecar.judge.judge import Judge
from inferslo.sidecar.judge.loop import Judging
from inferslo.sidecar.page.api import page_router
from inferslo.sidecar.page.document import Part, Simulation, parts
from inferslo.sidecar.page.html import Html, join, tag
from inferslo.sidecar.page.watch import Facts, Watch
from inferslo.sidecar.publisher import Publisher
from inferslo.sidecar.status import status
from inferslo.slo.plan import Evaluation, Plan, Selection

DAY, STEP = 86400, 30
NOON = 1_764_590_400.0  # 2025-12-01 12:00 UTC
ANY = Selection()
GAP = Gap("class_ttft", "no probe in the engine", "add the probe: pip install inferslo")
_BOUNDS = (0.5, 1.0, 2.5, 5.0, 10.0, math.inf)


def small_plan(**overrides: Any) -> Plan:
    """Four objectives, one of them about the business."""
    objectives = (
        objective("availability", "99.5", name="answered", selection=ANY),
        objective("ttft", name="first-token", selection=ANY),
        objective("queue", "95", name="admitted", selection=ANY, threshold=Decimal(1)),
        objective("agent_turn_success", "98", name="turns", selection=ANY),
    )
    fields: dict[str, Any] = {"selection": ANY, "evaluation": Evaluation(interval=STEP)}
    return plan(*objectives, **fields | overrides)


@dataclass(frozen=True)
class Played:
    """What a demo says of itself, with one button."""

    simulated: str

    def panel(self) -> Html:
        return join(tag("h2", "Break something", id="demo-h"), tag("button", self.simulated))


class Stage:
    """judged: without an SLO file if None. at: the time that is played."""

    def __init__(
        self, folder: Path, judged: Plan | None = None, *, engine: str = "qwen-0",
        model: str = "qwen3-27b", simulation: Simulation | None = None, at: float = NOON,
    ) -> None:  # fmt: skip
        self.at = at
        self.engine, self.model, self.simulation = engine, model, simulation
        self.totals: dict[str, float] = dict.fromkeys(
            ("good", "bad", "slow", "turns", "lost", "fallbacks", "kept", "forgot"), 0.0
        )
        self.waiting = 2.0
        self.up = True
        self.stopping = False
        self.board = Board(wall=lambda: self.at, clock=lambda: self.at)
        self.board.add(Scripted(lambda: self._observed(), engine, interval=5))
        self.history = History(folder / "slo.db", 31 * DAY) if judged else None
        self.judging = (
            Judging(Judge(judged, self.history, slow=1), wall=lambda: self.at)
            if judged and self.history
            else None
        )
        self.watch = Watch(self.points, self._status, self.judging, wall=lambda: self.at)

    def play(
        self, steps: int, *, bad: float = 0.0, slow: float = 0.0, lost: float = 0.0,
        fallbacks: float = 0.0, requests: float = 300.0, turns: float = 60.0, waiting: float = 2.0,
        up: bool = True,
    ) -> None:  # fmt: skip
        """Steps of STEP seconds. bad, slow, lost: shares of requests, of those answered, of turns.
        requests, turns, fallbacks: in each step."""
        for _ in range(steps):
            self.at += STEP
            self.up, self.waiting = up, waiting
            if up:
                self.totals["bad"] += requests * bad
                self.totals["good"] += requests * (1 - bad)
                self.totals["slow"] += requests * (1 - bad) * slow
            self.totals["turns"] += turns * (1 - lost)
            self.totals["lost"] += turns * lost
            self.totals["fallbacks"] += fallbacks
            self.totals["kept"] += turns * 0.9
            self.totals["forgot"] += turns * 0.1 * lost
            self.read()
            if self.judging is not None:
                self.judging.step(self.points(), self.at)
            self.watch.look()

    def read(self) -> None:
        observation = self._observed() if self.up else None
        error = None if self.up else ErrorKind.REFUSED
        detail = "" if self.up else "nobody listens at 127.0.0.1:8000"
        self.board.finish(Reading(self.engine, self.at, 0.01, observation, error, detail))

    def facts(self) -> Facts:
        return self.watch.look()

    def parts(self) -> dict[str, Part]:
        return {part.id: part for part in parts(self.facts())}

    def html(self) -> str:
        return "".join(part.html for part in self.parts().values())

    def points(self) -> list[Point]:
        build = Point(names.BUILD_INFO, ("1", "3"), 1.0)
        return [build, *self.board.points(), *self._events()]

    def app(self) -> FastAPI:
        page = page_router(self.watch, self.simulation, stopping=lambda: self.stopping)
        publisher = Publisher(self.points, lambda: self.board.version)
        return create_app(self.board, publisher, judging=self.judging, page=page)

    def close(self) -> None:
        if self.history is not None:
            self.history.close()

    def _status(self) -> dict[str, Any]:
        document = status(self.board.states(), [Gap("gateway", "none is configured", "--litellm")])
        return document | {"events": {"state": "taken"}}

    def _observed(self) -> Observation:
        facts = {"engine_type": "vllm", "version": "0.32.0"}
        return Observation(tuple(self._of_engine()), (GAP,), facts)

    def _of_engine(self) -> Iterator[Point]:
        own, total = (self.engine, self.model), self.totals
        yield Point(names.ENGINE_INFO, (self.engine, "vllm", "0.32.0", self.model), 1.0)
        yield Point(names.REQUESTS, (*own, "success", "engine"), total["good"])
        yield Point(names.REQUESTS, (*own, "error", "engine"), total["bad"])
        for family in (names.TTFT, names.QUEUE):
            yield Point(family, (*own, "engine"), self._histogram())
        yield Point(names.GENERATION_TOKENS, own, 200 * total["good"])
        yield Point(names.REQUESTS_RUNNING, own, 24.0)
        yield Point(names.REQUESTS_WAITING, own, self.waiting)
        yield Point(names.PREEMPTIONS, own, total["slow"] / 50)
        yield Point(names.KV_USAGE_MAX, own, min(0.99, 0.4 + self.waiting / 100))
        yield Point(names.KV_TAIL_WASTE_UPPER_BOUND, (*own, "derived"), 0.06)
        gpu = ("0", "GPU-1f2e")
        yield Point(names.GPU_UTILIZATION, gpu, 0.93)
        yield Point(names.GPU_MEMORY_USED, gpu, 128.0 * 2**30)
        yield Point(names.GPU_MEMORY_TOTAL, gpu, 140.0 * 2**30)
        yield Point(names.GPU_TEMPERATURE, (*gpu, "gpu"), 61.0)
        yield Point(names.GPU_POWER, (*gpu, "average"), 540.0)
        yield Point(names.GPU_CLOCK_EVENT_ACTIVE, (*gpu, "hw_thermal_slowdown"), 0.0)

    def _histogram(self) -> Histogram:
        good, slow = self.totals["good"], self.totals["slow"]
        quick = good - slow
        counts = (0.8 * quick, quick, quick, quick, good, good)
        return Histogram(_BOUNDS, counts, 0.4 * quick + 7 * slow)

    def _events(self) -> Iterator[Point]:
        app, total = ("shop", self.model, "", ""), self.totals
        yield Point(names.AGENT_TURNS, (*app, "success"), total["turns"])
        yield Point(names.AGENT_TURNS, (*app, "timeout"), total["lost"])
        yield Point(names.SESSIONS, (*app, "started"), total["turns"] / 4)
        yield Point(names.SESSIONS, (*app, "completed"), total["turns"] / 5)
        yield Point(names.SESSIONS, (*app, "interrupted"), total["lost"] / 5)
        yield Point(names.FALLBACKS, (*app, "big", "small", "timeout", "2"), total["fallbacks"])
        yield Point(names.QUALITY_CHECKS, (*app, "context_retention", "passed"), total["kept"])
        yield Point(names.QUALITY_CHECKS, (*app, "context_retention", "failed"), total["forgot"])
