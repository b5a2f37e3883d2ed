"""What a simulated part has counted: one flat table of numbers, so that a minute of them can be
taken out, kept, and added elsewhere as a whole."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

from ...exporters.reading import Histogram

SUM = "sum"
Key: TypeAlias = Any  # a text, or a tuple that begins with one


class Tally(defaultdict[Key, float]):
    """Counters by key; a histogram is one counter per bucket, (key, index), and (key, SUM)."""

    def __init__(self, values: Mapping[Key, float] | None = None) -> None:
        super().__init__(float, values or {})

    def observe(self, key: Key, bounds: Sequence[float], value: float, n: float = 1) -> None:
        """bounds: ascending, the last is infinity."""
        self[key, bisect_left(bounds, value)] += n
        self[key, SUM] += n * value

    def histogram(self, key: Key, bounds: Sequence[float]) -> Histogram:
        counts = accumulate(self.get((key, index), 0.0) for index in range(len(bounds)))
        return Histogram(tuple(bounds), tuple(counts), self.get((key, SUM), 0.0))

    def since(self, earlier: Mapping[Key, float]) -> dict[Key, float]:
        """What was gained; only what changed."""
        return {
            key: value - earlier.get(key, 0.0)
            for key, value in self.items()
            if value != earlier.get(key, 0.0)
        }

    def gain(self, gained: Mapping[Key, float]) -> None:
        for key, value in gained.items():
            self[key] += value
