"""What stands around the engines, as sources of the real sidecar: GPUs, host, gateway, and the
in-engine probe, in the form that the real sources have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ....exporters import names
from ....exporters.names import Family
from ....exporters.reading import Observation, Point
from .. import probe
from ..fleet import Fleet
from .world import PREFIX, World

_INTERVAL = 1.0  # seconds
_DEADLINE = 5.0
# The gateway's own counter of what it posts as events here, where it would count twice.
_POSTED = names.GATEWAY_FALLBACKS
_COUNTS = (names.GPU_VISIBLE, names.GPU_EXPECTED)


@dataclass(frozen=True, slots=True)
class WorldSource:
    """A source that asks the world."""

    name: str
    world: World
    points: Callable[[Fleet], Iterable[Point]]
    interval: float = _INTERVAL
    deadline: float = _DEADLINE

    def up_point(self, up: bool) -> Point | None:
        del up
        return None

    def observe(self) -> Observation:
        with self.world.locked() as fleet:
            return Observation(tuple(self.points(fleet)), facts={"simulated": "true"})


def sources(world: World) -> tuple[WorldSource, ...]:
    readers = {"gpu": _gpus, "host": _hosts, "gateway": _gateway, "probe": _probes}
    return tuple(WorldSource(PREFIX + name, world, read) for name, read in readers.items())


def _gpus(fleet: Fleet) -> Iterator[Point]:
    """The GPUs of one machine, which are counted together."""
    counted: dict[Family, float] = dict.fromkeys(_COUNTS, 0.0)
    for replica in fleet.replicas:
        for point in replica.gpu.observation().points:
            if point.family in counted:
                assert isinstance(point.value, float)  # noqa: S101
                counted[point.family] += point.value
            else:
                yield point
    for family, count in counted.items():
        yield Point(family, (), count)


def _hosts(fleet: Fleet) -> Iterator[Point]:
    for replica in fleet.replicas:
        yield from replica.host.observation(with_network=replica.index == 0).points


def _gateway(fleet: Fleet) -> Iterator[Point]:
    points = fleet.gateway.observation(fleet.now).points
    return (point for point in points if point.family is not _POSTED)


def _probes(fleet: Fleet) -> Iterator[Point]:
    for replica in fleet.replicas:
        if not replica.engine.down:
            yield from probe.points(replica)
