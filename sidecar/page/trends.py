"""The last hour of the numbers that the page draws: a ring for each, of fixed size."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence

STEP = 10.0  # seconds of a slot
SLOTS = 360
MOST = 400  # numbers; 3 kB each
_BIN = 6  # slots of a point that is drawn
_NAN = math.nan

Key = tuple[str, ...]
Line = list[float | None]


class Trends:
    """A later value of the same slot takes the place of the one before it."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._times = _ring()
        self._rings: dict[Key, array[float]] = {}
        self._slot: int | None = None

    def put(self, at: float, values: Mapping[Key, float]) -> None:
        """at: Unix seconds. After a clock was set back all begins anew."""
        slot = int(at // STEP)
        if self._slot is not None and slot < self._slot:
            self._begin()
        self._open(slot)
        self._times[slot % SLOTS] = at
        for key, value in values.items():
            ring = self._rings.get(key)
            if ring is None:
                if len(self._rings) >= MOST:
                    continue
                ring = self._rings[key] = _ring()
            ring[slot % SLOTS] = value

    def known(self) -> list[Key]:
        return list(self._rings)

    def now(self, key: Key) -> float | None:
        """In the latest slot."""
        return self._back(key, 0)

    def change(self, key: Key, seconds: float = 60) -> tuple[float, float] | None:
        """How much a counter grew lately, and in how many seconds; None over a reset or a gap."""
        end = self._back(key, 0)
        for back in range(round(seconds / STEP), 0, -1):
            begin = self._back(key, back)
            if end is not None and begin is not None:
                passed = self._time(0) - self._time(back)
                return (end - begin, passed) if end >= begin and passed > 0 else None
        return None

    def gained(self, key: Key) -> float:
        """How much a counter that never resets, and is absent at 0, grew since `since`."""
        return max(0.0, self._last(key) - self._first(key))

    @property
    def since(self) -> float | None:
        """Unix time of the oldest slot."""
        known = [at for at in self._times if not math.isnan(at)]
        return min(known, default=None)

    def gauge(self, key: Key) -> Line:
        """A point a minute, the mean."""
        return [_mean(part) for part in self._bins(key)]

    def rate(self, key: Key) -> Line:
        """A point a minute, growth a second."""
        minutes: Line = [60.0] * (SLOTS // _BIN)
        return _ratios(self._growth(key), minutes)

    def ratio(self, above: Key, below: Key) -> Line:
        """A point a minute: growth of one counter by growth of another."""
        return _ratios(self._growth(above), self._growth(below))

    def _open(self, slot: int) -> None:
        """Slots that were skipped are empty, whatever they held an hour ago."""
        if self._slot == slot:
            return
        first = slot if self._slot is None else max(self._slot + 1, slot - SLOTS + 1)
        for number in range(first, slot + 1):
            for ring in (self._times, *self._rings.values()):
                ring[number % SLOTS] = _NAN
        self._slot = slot
        if slot % _BIN == 0:
            for key in [key for key, ring in self._rings.items() if all(map(math.isnan, ring))]:
                del self._rings[key]

    def _time(self, back: int) -> float:
        return self._times[((self._slot or 0) - back) % SLOTS]

    def _back(self, key: Key, back: int) -> float | None:
        ring = self._rings.get(key)
        if ring is None or self._slot is None:
            return None
        value = ring[(self._slot - back) % SLOTS]
        return None if math.isnan(value) else value

    def _ordered(self, ring: Sequence[float]) -> Sequence[float]:
        begin = ((self._slot or 0) + 1) % SLOTS
        return [*ring[begin:], *ring[:begin]]

    def _bins(self, key: Key) -> list[list[float]]:
        ring = self._rings.get(key)
        values = self._ordered(ring) if ring is not None else [_NAN] * SLOTS
        parts = [values[begin : begin + _BIN] for begin in range(0, SLOTS, _BIN)]
        return [[value for value in part if not math.isnan(value)] for part in parts]

    def _growth(self, key: Key) -> Line:
        lasts = [part[-1] if part else None for part in self._bins(key)]
        pairs = zip([None, *lasts], lasts, strict=False)
        return [None if a is None or b is None or b < a else b - a for a, b in pairs]

    def _last(self, key: Key) -> float:
        ring = self._rings.get(key)
        known = [v for v in self._ordered(ring) if not math.isnan(v)] if ring is not None else []
        return known[-1] if known else 0.0

    def _first(self, key: Key) -> float:
        """At the time of the oldest slot: 0 where it was not there yet."""
        ring = self._rings.get(key)
        if ring is None:
            return 0.0
        pairs = zip(self._ordered(self._times), self._ordered(ring), strict=True)
        first = next((value for at, value in pairs if not math.isnan(at)), _NAN)
        return 0.0 if math.isnan(first) else first


def _ring() -> array[float]:
    return array("d", [_NAN]) * SLOTS


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _ratios(above: Line, below: Line) -> Line:
    pairs = zip(above, below, strict=True)
    return [a / b if a is not None and b else None for a, b in pairs]
