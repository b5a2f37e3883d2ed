"""The last minutes of some series, held as a Prometheus that scrapes this page would hold them."""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
# Written where a series was not there any more, as Prometheus does: what comes before is not now.
STALE = math.nan
_FORGET_EVERY = 60  # seconds


class Matcher(NamedTuple):
    """A label and what its value must be; "" is also no such label."""

    label: str
    accepts: Callable[[str], object]


def equals(label: str, value: str) -> Matcher:
    return Matcher(label, value.__eq__)


def differs(label: str, value: str) -> Matcher:
    return Matcher(label, value.__ne__)


def like(label: str, pattern: str) -> Matcher:
    return Matcher(label, re.compile(pattern, re.DOTALL).fullmatch)


def unlike(label: str, pattern: str) -> Matcher:
    matches = re.compile(pattern, re.DOTALL).fullmatch
    return Matcher(label, lambda value: matches(value) is None)


class Series:
    """Samples of one series in the order of time: Unix seconds and values, NaN where it is gone."""

    __slots__ = ("at", "labels", "values")

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.at = array("d")
        self.values = array("d")

    def append(self, at: float, value: float) -> None:
        """A sample that is not newer than the last is dropped, as Prometheus does."""
        if not self.at or at > self.at[-1]:
            self.at.append(at)
            self.values.append(value)

    def now(self, at: float, lookback: float, *, closed: bool) -> float | None:
        """The newest value, unless it is older than `lookback` or the series is gone."""
        n = bisect_right(self.at, at) - 1
        if n < 0:
            return None
        age, value = at - self.at[n], self.values[n]
        too_old = age > lookback if closed else age >= lookback
        return None if too_old or math.isnan(value) else value

    def within(self, at: float, span: float, *, closed: bool) -> list[tuple[float, float]]:
        """Time and value of each sample of the span that ends `at`."""
        last, begin = bisect_right(self.at, at), at - span
        first = bisect_right(self.at, begin, 0, last)
        if closed and first and self.at[first - 1] == begin:
            first -= 1
        pairs = zip(self.at[first:last], self.values[first:last], strict=True)
        return [(time, value) for time, value in pairs if not math.isnan(value)]

    def thin(self, before: float) -> None:
        """Of what is older, the last of each minute is kept: no instant query misses any."""
        n = bisect_left(self.at, before)
        last = {at // 60: index for index, at in enumerate(self.at[:n])}
        if len(last) < n:
            kept = list(last.values())
            self.values[:n] = array("d", map(self.values.__getitem__, kept))
            self.at[:n] = array("d", map(self.at.__getitem__, kept))

    def forget(self, before: float) -> None:
        first = bisect_left(self.at, before)
        del self.at[:first]
        del self.values[:first]


class Samples:
    """Series by name; of those that nobody asks for nothing is held. most: seconds that are
    remembered of any, at most; of a name in `longer`, so many, and then a sample a minute."""

    def __init__(self, most: float, longer: Mapping[str, float] = MappingProxyType({})) -> None:
        self._most = most
        self._longer = longer
        self._keep: dict[str, float] = {}
        self._series: dict[str, dict[Labels, Series]] = {}
        self._there: dict[object, set[tuple[str, Labels]]] = {}
        self._forgot = -math.inf
        self.version = 0  # other once there are other series

    def remember(self, name: str, seconds: float) -> None:
        """Somebody asks for it, so far back."""
        most = self._longer.get(name, self._most)
        self._keep[name] = min(max(seconds, self._keep.get(name, 0)), most)

    def append(
        self, whose: object, at: float, samples: Iterable[tuple[str, Labels, float]]
    ) -> None:
        """What was there at a time. What was there the last time and is not now has ended.

        whose: who saw it; each knows only what it saw itself.
        """
        there = set()
        for name, labels, value in samples:
            if name not in self._keep:
                continue
            self._of(name, labels).append(at, value)
            there.add((name, labels))
        for name, labels in self._there.get(whose, set()) - there:
            self._of(name, labels).append(at, STALE)
        self._there[whose] = there
        if at - self._forgot >= _FORGET_EVERY:
            self._forget(at)

    def select(self, name: str, matchers: Iterable[Matcher]) -> list[Series]:
        wanted = list(matchers)
        return [
            series
            for labels, series in self._series.get(name, {}).items()
            if _matches(dict(labels), wanted)
        ]

    def _of(self, name: str, labels: Labels) -> Series:
        named = self._series.setdefault(name, {})
        if labels not in named:
            named[labels] = Series(labels)
            self.version += 1
        return named[labels]

    def _forget(self, at: float) -> None:
        self._forgot = at
        for name, named in self._series.items():
            before = at - self._keep[name]
            for labels, series in list(named.items()):
                series.forget(before)
                series.thin(at - self._most)
                if not series.at:
                    del named[labels]
                    self.version += 1


def _matches(labels: Mapping[str, str], matchers: Iterable[Matcher]) -> bool:
    return all(matcher.accepts(labels.get(matcher.label, "")) for matcher in matchers)
