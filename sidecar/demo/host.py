"""The host around one engine: sockets, TCP, descriptors, threads, container memory."""

from __future__ import annotations

from collections.abc import Iterator

from ...exporters import names
from ...exporters.reading import Observation, Point
from .faults import Effects
from .gpu import GIB

_MEMORY, _LIMIT = 14.0 * GIB, 64.0 * GIB
_KEPT_ALIVE = 12  # connections of the gateway's pool
_SEGMENTS_PER_REQUEST = 40
_MAX_FDS = 20000.0


class Host:
    """engine: the label of the engine, host:port."""

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self._segments = 0.0
        self._retransmitted = 0.0
        self._cpu = 0.0
        self._ooms = 0.0
        self._sockets = {"established": float(_KEPT_ALIVE), "time_wait": 0.0}
        self.restarted()

    def restarted(self) -> None:
        """The engine's process began anew."""
        self._grown = {"threads": 0.0, "fds": 0.0, "memory": 0.0}

    def killed_for_memory(self) -> None:
        self._ooms += 1

    def advance(self, seconds: float, in_flight: float, answers: float, effects: Effects) -> None:
        """answers: responses in these seconds."""
        segments = answers * _SEGMENTS_PER_REQUEST + 2 * seconds
        self._segments += segments
        self._retransmitted += segments * (0.0005 + effects.retransmit_share)
        self._cpu += seconds * 0.3 + answers * 0.02
        self._sockets = {"established": _KEPT_ALIVE + in_flight, "time_wait": answers}
        for state, more in effects.sockets.items():
            self._sockets[state] = self._sockets.get(state, 0.0) + more
        hours = seconds / 3600
        self._grown["threads"] += effects.threads_per_hour * hours
        self._grown["fds"] += effects.fds_per_hour * hours
        self._grown["memory"] += effects.memory_gib_per_hour * GIB * hours

    def observation(self, *, with_network: bool) -> Observation:
        """with_network: what is counted for the whole network namespace, once for a sidecar."""
        network = self._network() if with_network else ()
        return Observation((*self._points(), *network))

    def _points(self) -> Iterator[Point]:
        engine = (self._engine,)
        for state, sockets in self._sockets.items():
            yield Point(names.HOST_SOCKETS, (*engine, state), round(sockets))
        fds = 60 + self._sockets["established"] + self._grown["fds"]
        memory = min(_MEMORY + self._grown["memory"], _LIMIT)
        yield Point(names.HOST_LISTEN_BACKLOG, engine, 0.0)
        yield Point(names.HOST_OPEN_FDS, engine, min(round(fds), _MAX_FDS))
        yield Point(names.HOST_MAX_FDS, engine, _MAX_FDS)
        yield Point(names.HOST_THREADS, engine, round(48 + self._grown["threads"]))
        yield Point(names.CONTAINER_MEMORY, engine, memory)
        yield Point(names.CONTAINER_MEMORY_LIMIT, engine, _LIMIT)
        yield Point(names.CONTAINER_OOM_KILLS, engine, self._ooms)
        yield Point(names.CONTAINER_CPU, engine, self._cpu)
        yield Point(names.CONTAINER_CPU_THROTTLED, engine, 0.0)

    def _network(self) -> Iterator[Point]:
        yield Point(names.HOST_LISTEN_OVERFLOWS, (), 0.0)
        yield Point(names.HOST_LISTEN_DROPS, (), 0.0)
        yield Point(names.HOST_TCP_SEGMENTS, (), self._segments)
        yield Point(names.HOST_TCP_RETRANSMITS, (), self._retransmitted)
