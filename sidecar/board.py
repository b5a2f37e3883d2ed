"""The latest reading of every source, and how the sources do.

The poller's threads write, the web server's thread reads; the lock is held for a few assignments
only, so a source that hangs never holds up a scrape.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from ..exporters import names
from ..exporters.names import Family
from ..exporters.reading import ErrorKind, Histogram, Point, Reading, Source

_SLACK = 2.0  # seconds that a thread of a busy machine may come late


@dataclass(slots=True)
class _Entry:
    source: Source
    latest: Reading | None = None
    began: float | None = None  # monotonic start of the read under way
    hung: bool = False
    ended: float = 0.0  # monotonic end of the latest read
    last_success: float | None = None
    errors: Counter[ErrorKind] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class SourceState:
    """One source as it stands now.

    in_flight: seconds, 0 when no read is under way. fresh: the latest reading is not older than
    a read and its pause may take; it is, after the whole process or machine stood still.
    """

    source: Source
    latest: Reading | None
    in_flight: float
    hung: bool
    fresh: bool
    last_success: float | None
    errors: dict[ErrorKind, int]

    @property
    def up(self) -> bool:
        return self.latest is not None and self.latest.ok and self.fresh and not self.hung


class Board:
    """Holds one entry per source. `on_reading` hears of every reading, also of a hang."""

    def __init__(
        self,
        *,
        on_reading: Callable[[Reading], None] = lambda _: None,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._entries: dict[str, _Entry] = {}
        self._lock = threading.Lock()
        self._on_reading = on_reading
        self._wall = wall
        self._clock = clock
        self.version = 0

    def add(self, source: Source) -> None:
        """Raises ValueError if a source of that name is there already."""
        with self._lock:
            if source.name in self._entries:
                raise ValueError(f"two sources are named {source.name!r}")
            self._entries[source.name] = _Entry(source)
            self.version += 1

    def begin(self, name: str) -> None:
        """A read of the source starts."""
        with self._lock:
            self._entries[name].began = self._clock()

    def finish(self, reading: Reading) -> None:
        """The read has ended. What comes after the deadline is dropped: it was counted as hung."""
        with self._lock:
            entry = self._entries[reading.source]
            late, entry.hung, entry.began = entry.hung, False, None
            if late:
                reading = _timed_out(reading.source, reading.started, reading.seconds)
                entry.latest = reading
            else:
                self._record(entry, reading)
            self.version += 1
        if not late:
            self._on_reading(reading)

    def check(self) -> None:
        """Marks the sources whose read is past its deadline; to be called about every second."""
        for name, entry in list(self._entries.items()):
            with self._lock:
                age = self._in_flight(entry)
                if entry.hung or age <= entry.source.deadline:
                    continue
                entry.hung = True
                reading = _timed_out(name, self._wall() - age, age)
                self._record(entry, reading)
                self.version += 1
            self._on_reading(reading)

    def states(self) -> list[SourceState]:
        with self._lock:
            return [
                SourceState(
                    e.source,
                    e.latest,
                    self._in_flight(e),
                    e.hung,
                    self._clock() - e.ended <= e.source.interval + e.source.deadline + _SLACK,
                    e.last_success,
                    dict(e.errors),
                )
                for e in self._entries.values()
            ]

    def points(self) -> list[Point]:
        """What the sources gave in their last read, and their health; never an older value."""
        points: list[Point] = []
        for state in self.states():
            points.extend(_health(state))
            if state.up and state.latest and state.latest.observation:
                points.extend(state.latest.observation.points)
        return points

    def _record(self, entry: _Entry, reading: Reading) -> None:
        entry.latest = reading
        entry.ended = self._clock()
        if reading.error is None:
            entry.last_success = reading.started + reading.seconds
        else:
            entry.errors[reading.error] += 1

    def _in_flight(self, entry: _Entry) -> float:
        return 0.0 if entry.began is None else self._clock() - entry.began


def _timed_out(source: str, started: float, seconds: float) -> Reading:
    return Reading(
        source, started, seconds, None, ErrorKind.TIMEOUT,
        "the read is past its deadline and goes on; nothing of it is published",
    )  # fmt: skip


def _health(state: SourceState) -> list[Point]:
    name = state.source.name

    def point(family: Family, value: float | Histogram, *labels: str) -> Point:
        return Point(family, (name, *labels), value)

    points = [point(names.SOURCE_IN_FLIGHT, state.in_flight)]
    points += [point(names.SOURCE_ERRORS, float(n), kind) for kind, n in state.errors.items()]
    if state.latest is not None:  # before the first read has ended nobody knows
        points.append(point(names.SOURCE_UP, float(state.up)))
        points.append(point(names.SOURCE_READ_SECONDS, state.latest.seconds))
        up = state.source.up_point(state.up)
        if up is not None:
            points.append(up)
    if state.last_success is not None:
        points.append(point(names.SOURCE_LAST_SUCCESS, state.last_success))
    return points
