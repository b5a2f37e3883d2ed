"""The demo played as fast as it goes, by a driven clock: for figures and tests.

The sidecar's own sources, board, events and judge watch the world, as they do live; left out are
threads, sockets, and the disk.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from ....exporters.engines.source import EngineSource
from ....exporters.http import Response
from ....exporters.reading import ErrorKind, Point, Reading, Source, SourceError
from ....slo.load import load_text
from ....slo.plan import Plan
from ...board import Board
from ...events.business import Business
from ...events.journal import Journal
from ...events.tally import Limits
from ...judge.history import History
from ...judge.judge import Judge, Judgement
from ...judge.start import remembered
from ..sidecars import VERSION
from .reports import Reporter
from .sources import sources
from .world import World

_STEP = 1.0  # seconds between two reads, as live


def plan() -> Plan:
    """Of the demo's SLO file."""
    return load_text(files(__package__).joinpath("slo.yaml").read_text(encoding="utf-8"))


class _Wire:
    """In place of HTTP: the engine's pages, or nobody at all."""

    def __init__(self, world: World, index: int) -> None:
        self._world = world
        self._index = index

    def get(self, url: str) -> Response:
        if self._world.replica(self._index).engine.down:
            raise SourceError(ErrorKind.REFUSED, "nobody listens")
        if url.endswith("/version"):
            return Response(json.dumps({"version": VERSION}).encode(), "application/json")
        return Response(self._world.page(self._index), "text/plain; version=0.0.4")


class Rehearsal:
    """advance() plays so many seconds and gives the judgement after each evaluation."""

    def __init__(self, world: World, business: Business, history: History) -> None:
        self.world = world
        self._business = business
        self._plan = plan()
        self.judge = Judge(self._plan, history)
        self._reporter = Reporter(world)
        self._board = Board(wall=lambda: world.now, clock=lambda: world.now)
        self._sources: list[Source] = [*self._engines(), *sources(world)]
        for source in self._sources:
            self._board.add(source)
        self._read()

    def _engines(self) -> Iterator[Source]:
        for index in range(2):
            name, wire = self.world.replica(index).name, _Wire(self.world, index)
            yield EngineSource(name, "http://simulated/metrics", wire, interval=_STEP, deadline=5.0)

    def advance(self, seconds: float) -> Iterator[Judgement]:
        until = self.world.now + seconds
        interval = self._plan.evaluation.interval
        while self.world.now < until:
            self.world.advance(self.world.now + _STEP)
            self._reporter.post(self._business)
            self._read()
            if round(self.world.now - self.world.start) % interval == 0:
                yield self.judge.step(self.points(), self.world.now)

    def points(self) -> list[Point]:
        return [*self._board.points(), *self._business.points()]

    def _read(self) -> None:
        for source in self._sources:
            self._board.begin(source.name)
            self._board.finish(_reading(source, self.world.now))


def _reading(source: Source, now: float) -> Reading:
    try:
        return Reading(source.name, now, 0.0, source.observe())
    except SourceError as error:
        return Reading(source.name, now, 0.0, None, error.kind, error.detail)


@contextmanager
def rehearsal(folder: Path, start: float, seed: int = 1) -> Iterator[Rehearsal]:
    """folder: for the events' journal and the judge's history. start: Unix time."""
    business = Business(Journal(folder / "events.db"), Limits(label_values=50, series=1000))
    history = History(folder / "slo.db", remembered(plan()))
    try:
        yield Rehearsal(World(start, seed), business, history)
    finally:
        business.close()
        history.close()
