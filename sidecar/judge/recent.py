"""What others may read of the judge's history while it judges: through a connection of their own,
opened for each question, so that neither waits for the other."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

from ...slo.budget import burn_rate, composite_ratio
from ...slo.plan import Objective
from .history import GroupLabels, Key
from .verdict import is_composite

_MINUTE = 60
MINUTES = 60
Line = list[float | None]
_Counts = dict[Key, dict[int, tuple[float, float]]]
# CROSS JOIN keeps the order, in which each thing is one range of the table's key.
_COUNTS = """
SELECT name, 59 - CAST((:end - at) / 60 AS INTEGER) AS minute, total(bad), total(total)
FROM thing CROSS JOIN count ON thing = id WHERE at > :begin AND at <= :end GROUP BY id, minute
"""
_RUNS = """
SELECT name, first, last, incident, lead(first) OVER (PARTITION BY thing ORDER BY first)
FROM run JOIN thing ON thing = id ORDER BY first DESC LIMIT 1000
"""


class Recent:
    """Burn rates of the hour before `at`, a point a minute. file: None, or one that cannot be
    read, is an hour of which nothing is known."""

    def __init__(self, file: Path | None, at: float) -> None:
        begin = at - MINUTES * _MINUTE
        self._counts: _Counts = {}
        for name, minute, bad, total in _asked(file, _COUNTS, {"begin": begin, "end": at}):
            self._counts.setdefault(Key.of(name), {})[minute] = (bad, total)

    def burn(self, objective: Objective, group: GroupLabels) -> Line:
        """None where there was no traffic, or nothing is known."""
        weights = dict(objective.checks) if is_composite(objective) else {"": Decimal(1)}
        parts = {name: self._counts.get(Key(objective.name, group, name), {}) for name in weights}

        def at(minute: int) -> float | None:
            ratios = ((weights[name], _ratio(part.get(minute))) for name, part in parts.items())
            return burn_rate(composite_ratio(ratios), objective.budget)

        return [at(minute) for minute in range(MINUTES)]


def incidents(file: Path | None) -> list[tuple[float, str, bool]]:
    """When an incident began (True) or was over (False), and of what; of the last 1000 runs."""
    found = []
    for name, first, _, incident, then in _asked(file, _RUNS, {}):
        if not incident:
            continue
        key = Key.of(name)
        which = ",".join(f"{label}={value}" for label, value in key.group)
        what = " ".join(filter(None, (key.objective, which)))
        found.append((first, what, True))
        if then is not None:
            found.append((then, what, False))
    return found


def _ratio(counted: tuple[float, float] | None) -> float | None:
    return counted[0] / counted[1] if counted is not None and counted[1] > 0 else None


def _asked(file: Path | None, question: str, values: dict[str, float]) -> list[Any]:
    if file is None:
        return []
    try:
        address = f"{file.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as db:
            return db.execute(question, values).fetchall()
    except sqlite3.Error:
        return []
