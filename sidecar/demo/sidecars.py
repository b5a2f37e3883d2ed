"""The sidecars' view of the simulated service: at each scrape, the points of each instance.

Engines go the whole way of the real code: page as text, parsed, interpreted by `Vllm`. GPU, host,
gateway and business observations are made by the simulation in the form that their sources have.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version

from ...exporters import names
from ...exporters.engines.vllm import Vllm
from ...exporters.exposition import Parser
from ...exporters.names import Family
from ...exporters.reading import Point
from . import probe
from .fleet import GATEWAY, Fleet, Replica
from .page import EnginePage

VERSION = "0.32.0"
GATEWAY_INSTANCE = "gateway:9108"


@dataclass(slots=True)
class _Health:
    """Of one source of a sidecar."""

    errors: int = 0
    last_success: float | None = None

    def points(self, source: str, now: float, up: bool) -> Iterator[Point]:
        def point(family: Family, value: float, *labels: str) -> Point:
            return Point(family, (source, *labels), value)

        if up:
            self.last_success = now
        else:
            self.errors += 1
        yield point(names.SOURCE_UP, float(up))
        yield point(names.SOURCE_IN_FLIGHT, 0.0)
        yield point(names.SOURCE_READ_SECONDS, 0.01)
        if self.errors:
            yield point(names.SOURCE_ERRORS, float(self.errors), "refused")
        if self.last_success is not None:
            yield point(names.SOURCE_LAST_SUCCESS, self.last_success)


@dataclass(slots=True)
class _Watch:
    vllm: Vllm
    parser: Parser = field(default_factory=Parser)


class Sidecars:
    """with_probe: whether engines run with the in-engine probe."""

    def __init__(self, fleet: Fleet, *, with_probe: bool = True) -> None:
        self._fleet = fleet
        self._with_probe = with_probe
        self._page = EnginePage(fleet.scenario.config)
        self._watches = {replica.name: _Watch(Vllm(replica.name, count_first=False))
                         for replica in fleet.replicas}  # fmt: skip
        self._health: dict[str, _Health] = {}
        self.scrape()  # a real sidecar polls all the time: it saw the engines before any request

    def scrape(self) -> Mapping[str, list[Point]]:
        """By instance, what its sidecar publishes now."""
        found: dict[str, list[Point]] = {}
        for replica in self._fleet.replicas:
            points = found.setdefault(replica.instance, [_build_info()])
            points.extend(self._engine(replica))
            first = replica.index % self._fleet.scenario.per_host == 0
            if first:
                points.extend(self._source("gpu", replica.instance, up=True))
                points.extend(replica.gpu.observation().points)
            points.extend(replica.host.observation(with_network=first).points)
        found[GATEWAY_INSTANCE] = [
            _build_info(),
            *self._source(GATEWAY, GATEWAY_INSTANCE, up=True),
            *self._fleet.gateway.observation(self._fleet.now).points,
            *self._fleet.clients.observation().points,
        ]
        return found

    def _engine(self, replica: Replica) -> Iterator[Point]:
        engine, up = replica.engine, not replica.engine.down
        yield from self._source(replica.name, replica.instance, up=up)
        yield Point(names.ENGINE_UP, (replica.name,), float(up))
        if not up:
            return
        page = self._page.text(engine.counts.page, replica.state, engine.started)
        watch = self._watches[replica.name]
        yield from watch.vllm.observe(watch.parser.parse(page), VERSION).points
        if self._with_probe:
            yield from probe.points(replica)

    def _source(self, source: str, instance: str, *, up: bool) -> Iterator[Point]:
        health = self._health.setdefault(f"{instance} {source}", _Health())
        return health.points(source, self._fleet.now, up)


def _build_info() -> Point:
    return Point(names.BUILD_INFO, (version("inferslo"), platform.python_version()), 1.0)
