"""Sources for the sidecar's own tests: what they do is scripted, the threads around are real."""

from __future__ import annotations

import threading
from collections.abc import Callable

from inferslo.exporters import names
from inferslo.exporters.reading import Observation, Point


class Scripted:
    """Calls `script` on each read; `reads` counts them."""

    def __init__(
        self,
        script: Callable[[], Observation],
        name: str = "engine",
        *,
        interval: float = 0.01,
        deadline: float = 5.0,
    ) -> None:
        self.name = name
        self.interval = interval
        self.deadline = deadline
        self.reads = 0
        self._script = script

    def up_point(self, up: bool) -> Point | None:
        return Point(names.ENGINE_UP, (self.name,), float(up))

    def observe(self) -> Observation:
        self.reads += 1
        return self._script()


class Gate:
    """A script that blocks until it is opened, like a driver call that hangs."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()

    def __call__(self) -> Observation:
        self.entered.set()
        self.opened.wait(30)
        return running(1.0)


def running(value: float, model: str = "m") -> Observation:
    """An observation of one gauge."""
    return Observation((Point(names.REQUESTS_RUNNING, ("engine", model), value),))
