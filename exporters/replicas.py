"""Whether one process answers at an address or several in turn, told by their start times."""

from __future__ import annotations

import math
from collections import deque

from .exposition import Page

START_TIME = "process_start_time_seconds"
_REMEMBERED = 100


def start_time(page: Page) -> float | None:
    """Unix time at which the process that made the page started; None where it does not tell."""
    starts = [sample.value for sample in page.samples(START_TIME)]
    return starts[0] if len(starts) == 1 and math.isfinite(starts[0]) else None


class Replicas:
    """Follows the start times that an address tells, page by page.

    A new one is a restart. One that comes back after another is not: several processes answer in
    turn, so that no page continues the one before. That is over with the next new start time.
    """

    def __init__(self) -> None:
        self._known: deque[float] = deque(maxlen=_REMEMBERED)
        self._last: float | None = None
        self.several = False

    def seen(self, start: float) -> bool:
        """Whether the process is new. start: Unix time."""
        new = start not in self._known
        if new:
            self._known.append(start)
        self.several = not new and (self.several or start != self._last)
        self._last = start
        return new
