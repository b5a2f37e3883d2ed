"""The simulated service as the demo has it: two engines, busy all day, and the fault that is armed.

Everything else of the demo reaches it through here, from any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..engine import EngineConfig
from ..faults import Fault
from ..fleet import Fleet, Replica, Scenario
from ..page import EnginePage
from ..traffic import Traffic
from .buttons import Button

MODEL = "simulated-qwen"
PREFIX = "simulated-"
RATE = 600.0  # requests a minute: half of what both engines can do
_SLICE = 0.05  # seconds of simulated time that the lock is held for


@dataclass(frozen=True, slots=True)
class Armed:
    """since: Unix time of the world."""

    button: Button
    since: float
    faults: tuple[Fault, ...]

    @property
    def until(self) -> float:
        """When it is over by itself."""
        return self.since + self.button.lasts


class World:
    """start: Unix time at which it begins. `now` is its own time, which others move."""

    def __init__(self, start: float, seed: int = 1) -> None:
        self.start = start
        config = EngineConfig(model_name=MODEL)
        scenario = Scenario(RATE, replicas=2, config=config, seed=seed, start=start, prefix=PREFIX)
        self._fleet = Fleet(scenario, Traffic(RATE, shape=(1.0,)))
        self._pages = EnginePage(config)
        self._lock = threading.RLock()
        self._armed: Armed | None = None

    @property
    def now(self) -> float:
        return self._fleet.now

    @property
    def armed(self) -> Armed | None:
        return self._armed

    @contextmanager
    def locked(self) -> Iterator[Fleet]:
        """The fleet, which stands still meanwhile."""
        with self._lock:
            yield self._fleet

    def advance(self, to: float) -> None:
        """to: Unix time. Others get their turn in between."""
        while self._fleet.now < to:
            with self._lock:
                self._fleet.advance(min(to, self._fleet.now + _SLICE))
                if self._armed is not None and self._armed.until <= self._fleet.now:
                    self.recover()

    def arm(self, button: Button) -> None:
        """In place of what was armed before."""
        with self._lock:
            self.recover()
            faults = button.faults()
            for fault in faults:
                self._fleet.arm(fault)
            self._armed = Armed(button, self._fleet.now, faults)
            self._fleet.look()

    def recover(self) -> None:
        """What an operator mends in a minute is mended at once; what waits still waits."""
        with self._lock:
            if self._armed is not None:
                self._armed = None
                self._fleet.mend()

    def replica(self, index: int) -> Replica:
        return self._fleet.replicas[index]

    def page(self, index: int) -> bytes:
        """An engine's /metrics."""
        with self._lock:
            replica = self.replica(index)
            engine = replica.engine
            return self._pages.text(engine.counts.page, replica.state, engine.started)
