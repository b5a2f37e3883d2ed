"""Moments (n, Σx, Σx²) of a latency of which only a histogram is known.

Bucket counts and the exact sum confine Σx² to an interval whose both ends are attained:

- least: within a bucket all samples are equal, and the bucket means are as close to each other
  as their buckets let them be (m_i = clamp(λ, a_i, b_i) with λ such that Σ c_i·m_i = S);
- greatest: the samples sit at the ends of their buckets, as many as the sum allows at the upper
  ends of the highest ones, and at most one in between.

The estimate is n·(variance of bucket midpoints + mean²), kept inside the interval. Intervals of
successive reads add up, so all five are counters: exact over any window and additive over pods.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..reading import Histogram
from .excess import Restart

_FROM_ZERO = (Restart.PROCESS, Restart.STATISTICS)


@dataclass(frozen=True, slots=True)
class Squares:
    """n samples of sum `sum`; their Σx² is in [lower, upper], `estimate` is our best guess.

    Units: those of x, and its square.
    """

    n: float = 0.0
    sum: float = 0.0
    lower: float = 0.0
    estimate: float = 0.0
    upper: float = 0.0

    def __add__(self, other: Squares) -> Squares:
        return Squares(
            self.n + other.n,
            self.sum + other.sum,
            self.lower + other.lower,
            self.estimate + other.estimate,
            self.upper + other.upper,
        )


def squares(bounds: Sequence[float], counts: Sequence[float], sum: float) -> Squares:
    """What `counts` samples per bucket (not cumulative) with the given sum allow for Σx².

    bounds: upper bounds, ascending, the last may be +Inf; the first bucket begins at 0 (no latency
    is negative). counts: whole numbers. A sum
    that the counts do not allow (several processes writing, a stepped clock) is moved to the
    nearest that they do.
    """
    buckets = [
        (low, high, count)
        for low, high, count in zip(
            [min(0.0, bounds[0]), *bounds[:-1]], bounds, counts, strict=True
        )
        if count > 0
    ]
    if not buckets:
        return Squares()
    floor = math.fsum(low * count for low, _, count in buckets)
    ceiling = math.fsum(high * count for _, high, count in buckets)
    sum = min(max(sum, floor), ceiling)
    n = math.fsum(count for _, _, count in buckets)
    lower = _least(buckets, sum, floor)
    upper = max(_greatest(buckets, sum - floor), lower)
    estimate = min(max(_midpoint(buckets, n, sum), lower), upper)
    return Squares(n, sum, lower, estimate, upper)


_Bucket = tuple[float, float, float]  # lower end, upper end, samples


def _least(buckets: Sequence[_Bucket], sum: float, floor: float) -> float:
    """Raise the lowest buckets to their upper ends until the sum is reached.

    Buckets do not overlap, so λ lies in one of them: those below it are at their upper ends,
    those above it at their lower ends.
    """
    excess = sum - floor
    total = 0.0
    for low, high, count in buckets:
        raised = min(high - low, excess / count)
        excess = max(excess - raised * count, 0.0)
        total += count * (low + raised) ** 2
    return total


def _greatest(buckets: Sequence[_Bucket], excess: float) -> float:
    """Raise single samples of the highest buckets to their upper ends until the sum is reached.

    Moving an amount from a smaller sample to a greater one always adds to Σx², so greed is right.
    """
    total = 0.0
    for low, high, count in reversed(buckets):
        width = high - low
        full = min(math.floor(excess / width), count) if width else count
        if full:
            total += full * high**2
            excess = max(excess - full * width, 0.0)
        if full < count:
            total += (low + excess) ** 2 + (count - full - 1) * low**2
            excess = 0.0
    return total


def _midpoint(buckets: Sequence[_Bucket], n: float, sum: float) -> float:
    """The unbounded bucket counts as its lower end: nothing says how far beyond it samples are."""
    middles = [
        (low if math.isinf(high) else (low + high) / 2, count) for low, high, count in buckets
    ]
    middle = math.fsum(value * count for value, count in middles) / n
    spread = math.fsum(count * (value - middle) ** 2 for value, count in middles)
    return spread + sum**2 / n


class MomentCounter:
    """Adds up the moments of what a cumulative histogram gained from read to read.

    count_first: the first histogram counts from zero (a one-off read). Otherwise counting begins
    with it: a restarted sidecar must not give Prometheus the engine's whole history again.
    """

    def __init__(self, *, count_first: bool) -> None:
        self._last: Histogram | None = None
        self._count_first = count_first
        self._total = Squares()

    def update(self, histogram: Histogram, restart: Restart = Restart.NONE) -> Squares:
        """The totals so far; never less than before.

        After a restart the histogram has begun again at zero. One of which a part is gone, that
        went backwards or changed its bounds is a new base. One whose sum is not a number is left
        out, and the next good one makes up for it.
        """
        if not math.isfinite(histogram.sum):
            return self._total
        last, self._last = self._last, histogram
        if restart in _FROM_ZERO or (last is None and self._count_first):
            last = Histogram(histogram.bounds, (0.0,) * len(histogram.bounds), 0.0)
        elif restart is Restart.PART:
            last = None
        if last is not None and not _went_back(last, histogram):
            self._total += _gained(last, histogram)
        return self._total


def _went_back(last: Histogram, now: Histogram) -> bool:
    """True if `now` cannot continue `last`: it has other bounds, or a count fell."""
    return last.bounds != now.bounds or any(
        after < before for before, after in zip(last.counts, now.counts, strict=True)
    )


def _gained(last: Histogram, now: Histogram) -> Squares:
    cumulative = [after - before for before, after in zip(last.counts, now.counts, strict=True)]
    # Processes that are read one after the other can leave a bucket less than the one below it.
    counts = [max(above - below, 0.0) for below, above in pairwise([0.0, *cumulative])]
    return squares(now.bounds, counts, now.sum - last.sum)
