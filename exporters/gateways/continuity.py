"""What a reader of someone else's page must remember between two pages of one process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class CounterSums(Generic[Key]):
    """Sums of counters over series that come and go.

    LiteLLM drops idle series and may start them again from zero; what they had counted stays in
    the sum. Else the sum would fall, and Prometheus would take that for a restart.
    """

    def __init__(self) -> None:
        self._seen: Mapping[Hashable, tuple[Key, float]] = {}
        self._dropped: defaultdict[Key, float] = defaultdict(float)

    def add(self, page: Mapping[Hashable, tuple[Key, float]]) -> Mapping[Key, float]:
        """page: for each series of the page, the sum that it belongs to and its value."""
        for series, (key, value) in self._seen.items():
            if page.get(series, (key, 0.0))[1] < value:
                self._dropped[key] += value
        self._seen = page
        sums = defaultdict(float, self._dropped)
        for key, value in page.values():
            sums[key] += value
        return sums


class BoundedValues:
    """Label values as they are published: the first so many that were seen, then `other`."""

    def __init__(self, most: int, length: int = 256) -> None:
        self._most = most
        self._length = length
        self._known: set[str] = set()

    def bounded(self, value: str) -> str:
        if len(value) <= self._length and len(self._known) < self._most:
            self._known.add(value)
        return value if value in self._known else "other"


class LatestChange(Generic[Key]):
    """The value of a thing that has several series, all but one of them stale.

    The one that changed last is right. Where they differ on the first page nobody can tell, and
    the thing has no value until one of them changes.
    """

    def __init__(self) -> None:
        self._seen: Mapping[Key, Mapping[Hashable, float]] | None = None
        self._values: dict[Key, float] = {}

    def add(self, page: Mapping[Key, Mapping[Hashable, float]]) -> Mapping[Key, float]:
        """page: for each thing, its series. If several changed at once the highest counts."""
        for thing, series in page.items():
            before = (self._seen or {}).get(thing, {})
            changed = [value for name, value in series.items() if before.get(name) != value]
            if len(set(series.values())) == 1 or (changed and self._seen is not None):
                self._values[thing] = max(changed or series.values())
        self._seen = page
        self._values = {thing: value for thing, value in self._values.items() if thing in page}
        return self._values
