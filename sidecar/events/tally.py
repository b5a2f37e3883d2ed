"""Totals of business events by series, under bounds on their labels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from ...exporters import names
from ...exporters.names import FAMILIES, Family
from .journal import Series
from .model import Event, SessionState, TurnOutcome

OTHER = "other"


@dataclass(frozen=True, slots=True)
class Limits:
    """label_values: distinct values of one label; series: of one family."""

    label_values: int
    series: int


# Families whose last label takes only these values. A new series brings the others along at 0,
# which is known and not guessed: without it a success ratio would not exist until the first
# success, and a total outage would not show.
_LISTED: Mapping[str, tuple[str, ...]] = {
    names.AGENT_TURNS.name: get_args(TurnOutcome),
    names.SESSIONS.name: get_args(SessionState),
    names.QUALITY_CHECKS.name: ("passed", "failed"),
}


class Tally:
    """Totals by series, under the label bounds.

    A label value or series, once counted, keeps its own series for ever, over restarts too:
    what is admitted follows from the totals alone.
    """

    def __init__(self, totals: Mapping[Series, int], limits: Limits) -> None:
        self._limits = limits
        self._totals = dict(totals)
        self._changed: set[Series] = set()
        self._series = Counter(name for name, _ in totals)
        self._values: defaultdict[str, set[str]] = defaultdict(set)
        for name, labels in totals:
            self._admit(FAMILIES[name], labels)

    def count(self, event: Event) -> None:
        family, given = event.family, event.labels()
        if (family.name, given) in self._totals:  # nearly always
            return self.add(family, given)
        kept = self._bounded(family, given)
        for label, before, after in zip(family.labels, given, kept, strict=True):
            if before != after:
                self.add(names.EVENTS_LABEL_OVERFLOW, (label,))
        return self.add(family, kept)

    def add(self, family: Family, labels: tuple[str, ...], amount: int = 1) -> None:
        series = (family.name, labels)
        if series not in self._totals:
            self._open(family, labels)
        self._totals[series] += amount
        self._changed.add(series)

    def take_changed(self) -> dict[Series, int]:
        """The totals that changed since the last call."""
        changed = {series: self._totals[series] for series in self._changed}
        self._changed.clear()
        return changed

    def _bounded(self, family: Family, given: tuple[str, ...]) -> tuple[str, ...]:
        free = len(given) - (family.name in _LISTED)
        kept = (*map(self._known, family.labels, given[:free]), *given[free:])
        if (family.name, kept) in self._totals or self._series[family.name] < self._limits.series:
            return kept
        return (*(value and OTHER for value in given[:free]), *given[free:])

    def _known(self, label: str, value: str) -> str:
        values = self._values[label]
        if not value or value in values or len(values) < self._limits.label_values:
            return value
        return OTHER

    def _open(self, family: Family, labels: tuple[str, ...]) -> None:
        self._admit(family, labels)
        for last in _LISTED.get(family.name, labels[-1:]):
            series = (family.name, (*labels[:-1], last))
            if series not in self._totals:
                self._totals[series] = 0
                self._changed.add(series)
                self._series[family.name] += 1

    def _admit(self, family: Family, labels: tuple[str, ...]) -> None:
        for label, value in zip(family.labels, labels, strict=True):
            if value and value != OTHER:
                self._values[label].add(value)
