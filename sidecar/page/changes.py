"""The last changes of state, of whatever has one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..judge.levels import Level

MOST = 30


@dataclass(frozen=True, slots=True)
class Now:
    """How a thing stands: a word, and how grave that is."""

    level: Level
    word: str


OVER = Now(Level.OK, "over")


@dataclass(frozen=True, slots=True)
class Change:
    """At a time (Unix seconds) a thing came to stand so. was: None if it did not stand at all, or
    that is not known."""

    at: float
    what: str
    now: Now
    was: Now | None = None


class Changes:
    """Told again and again how all stands, remembers what changed. before: known changes of
    earlier, of another process."""

    def __init__(self, before: Iterable[Change] = ()) -> None:
        self._states: dict[str, Now] | None = None
        self._changes = deque(sorted(before, key=lambda change: change.at), MOST)

    def look(self, at: float, states: Mapping[str, Now]) -> None:
        """What is no longer named is over."""
        known, self._states = self._states, dict(states)
        if known is None:
            return
        for what in dict.fromkeys((*known, *states)):
            was, now = known.get(what), states.get(what, OVER)
            if was != now:
                self._changes.append(Change(at, what, now, was))

    def latest(self) -> list[Change]:
        """The newest first."""
        return list(reversed(self._changes))
