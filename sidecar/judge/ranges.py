"""What PromQL's functions make of the samples of one range, or of the buckets of one histogram.

Formulas of Prometheus 2.42, promql/functions.go and promql/quantile.go. Points are (Unix seconds,
value) in the order of time; None is no answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Range:
    """The samples of one series within `span` seconds that end at `end`."""

    points: Points
    end: float
    span: float


def _counter(whole: Range) -> float | None:
    """Growth over all of the range, resets taken into account."""
    values = [value for _, value in whole.points]
    resets = sum(before for before, after in pairwise(values) if after < before)
    return _extrapolated(whole, values[-1] - values[0] + resets, is_counter=True)


def _increase(whole: Range) -> float | None:
    return _counter(whole) if len(whole.points) >= 2 else None


def _rate(whole: Range) -> float | None:
    grown = _increase(whole)
    return None if grown is None else grown / whole.span


def _delta(whole: Range) -> float | None:
    if len(whole.points) < 2:
        return None
    return _extrapolated(whole, whole.points[-1][1] - whole.points[0][1], is_counter=False)


def _extrapolated(whole: Range, seen: float, *, is_counter: bool) -> float:
    """From the samples to the ends of the range: all the way where the next sample would have come
    there, else half a step; a counter not to before it was 0."""
    (first, first_value), (last, _) = whole.points[0], whole.points[-1]
    sampled = last - first
    step = sampled / (len(whole.points) - 1)
    before, after = first - (whole.end - whole.span), whole.end - last
    if is_counter and seen > 0 and first_value >= 0:
        before = min(before, sampled * first_value / seen)
    reach = sampled + sum(gap if gap < 1.1 * step else step / 2 for gap in (before, after))
    return seen * reach / sampled


def _deriv(whole: Range) -> float | None:
    """Slope by least squares, a second."""
    if len(whole.points) < 2:
        return None
    begin = whole.points[0][0]
    xs = [at - begin for at, _ in whole.points]
    ys = [value for _, value in whole.points]
    if all(y == ys[0] for y in ys):
        return 0.0
    n, x, y = len(xs), math.fsum(xs), math.fsum(ys)
    covariance = math.fsum(a * b for a, b in zip(xs, ys, strict=True)) - x * y / n
    return covariance / (math.fsum(a * a for a in xs) - x * x / n)


def _values(function: Callable[[list[float]], float]) -> Callable[[Range], float | None]:
    return lambda whole: function([value for _, value in whole.points])


def _resets(values: list[float]) -> float:
    return float(sum(after < before for before, after in pairwise(values)))


def _changes(values: list[float]) -> float:
    return float(sum(after != before for before, after in pairwise(values)))


FUNCTIONS: Mapping[str, Callable[[Range], float | None]] = MappingProxyType(
    {
        "rate": _rate,
        "increase": _increase,
        "delta": _delta,
        "deriv": _deriv,
        "resets": _values(_resets),
        "changes": _values(_changes),
        "sum_over_time": _values(math.fsum),
        "count_over_time": _values(lambda values: float(len(values))),
        "avg_over_time": _values(lambda values: math.fsum(values) / len(values)),
        "min_over_time": _values(min),
        "max_over_time": _values(max),
        "last_over_time": _values(lambda values: values[-1]),
    }
)


def quantile(q: float, buckets: Sequence[tuple[float, float]]) -> float:
    """Of a histogram's buckets (upper bound, cumulative count), linear within a bucket. NaN without
    observations, and without a bucket up to infinity and one below it."""
    merged: dict[float, float] = {}
    for bound, count in sorted(buckets):
        merged[bound] = merged.get(bound, 0.0) + count
    bounds, counts, most = list(merged), [], -math.inf
    for count in merged.values():
        most = max(most, count)  # buckets that were read at different moments may fall
        counts.append(most)
    if len(bounds) < 2 or not math.isinf(bounds[-1]) or counts[-1] == 0:
        return math.nan
    rank = q * counts[-1]
    n = next((i for i, count in enumerate(counts[:-1]) if count >= rank), len(counts) - 1)
    if n == len(counts) - 1:
        return bounds[-2]
    if n == 0 and bounds[0] <= 0:
        return bounds[0]
    start, below = (bounds[n - 1], counts[n - 1]) if n else (0.0, 0.0)
    return start + (bounds[n] - start) * (rank - below) / (counts[n] - below)
