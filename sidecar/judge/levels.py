"""How grave it is, in five steps, with a word: of the page, of /v1/slo and of `inferslo status`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from ...slo.budget import State
from ...slo.plan import Severity

if TYPE_CHECKING:
    from .verdict import Verdict


class Level(StrEnum):
    """The gravest first."""

    PAGE = "page"
    TICKET = "ticket"
    UNKNOWN = "unknown"
    IDLE = "idle"
    OK = "ok"

    @property
    def rank(self) -> int:
        return list(Level).index(self)


_STATES = {
    State.OK: (Level.OK, "OK"),
    State.NO_TRAFFIC: (Level.IDLE, "No traffic"),
    State.NO_DATA: (Level.UNKNOWN, "No data"),
    State.SIGNAL_MISSING: (Level.UNKNOWN, "No signal"),
}
_SOURCES = {"up": Level.OK, "starting": Level.IDLE}


def standing(verdict: Verdict) -> tuple[Level, str]:
    """Of an objective, with its word."""
    if verdict.incident:
        return Level.PAGE, "Incident"
    tickets = [b.name for b in verdict.objective.burns if b.severity is Severity.TICKET]
    if any(verdict.burns.get(name) for name in tickets):
        return Level.TICKET, "Burns slowly"
    if verdict.spent.remaining is not None and verdict.spent.remaining <= 0:
        return Level.TICKET, "Budget spent"
    return (Level.UNKNOWN, "Not known") if verdict.state is None else _STATES[verdict.state]


def of_severity(severity: str) -> Level:
    return Level.PAGE if severity == Severity.PAGE else Level.TICKET


def of_source(state: str) -> Level:
    return _SOURCES.get(state, Level.TICKET)
