"""Simulated time follows the clock, and never at the cost of the machine."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from ...log import fields
from .world import World

TICK = 0.025  # seconds between two steps
_SLICE = 0.1  # simulated seconds after which a step looks at what it has cost
_SHARE = 0.15  # of a core, at most
_BEHIND = 5.0  # seconds that are still caught up with
_log = logging.getLogger(__name__)


class Pace:
    """tick() brings the world to now. Where that takes too long it is late, and catches up; what is
    later than some seconds is given up, as after a laptop slept, and counted in `lag`.

    clock: monotonic seconds.
    """

    def __init__(self, world: World, clock: Callable[[], float] = time.monotonic) -> None:
        self.world = world
        self.lag = 0.0
        self._clock = clock
        self._offset = world.now - clock()

    def tick(self) -> None:
        began = self._clock()
        target = began + self._offset - self.lag
        self._give_up(target - self.world.now)
        target = min(target, self.world.now + _BEHIND)
        while self.world.now < target:
            self.world.advance(min(target, self.world.now + _SLICE))
            if self._clock() - began > _SHARE * TICK:
                return

    def _give_up(self, behind: float) -> None:
        if behind <= _BEHIND:
            return
        if not self.lag:
            _log.warning(
                "the demo cannot keep up with the clock: this machine slept, or is too slow",
                extra=fields(seconds=round(behind, 1)),
            )
        self.lag += behind - _BEHIND
