"""What the simulated application and gateway post: turns, sessions, checks and fallbacks, as the
business events that a real one would send to /v1/events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ....exporters import names
from ...events.business import Business, BusyError
from ...events.journal import JournalWriteError
from ...events.model import MAX_BATCH, Event, parse
from ..tally import Key
from .world import MODEL, World

_APP = "simulated-app"
_Document = Callable[..., dict[str, Any]]
# By family: the event of its labels.
_EVENTS: Mapping[str, _Document] = {
    names.AGENT_TURNS.name: lambda outcome: {"type": "agent_turn", "outcome": outcome},
    names.SESSIONS.name: lambda state: {"type": "session", "state": state},
    names.REGENERATIONS.name: lambda: {"type": "regenerate"},
    names.SCHEMA_FAILURES.name: lambda schema: {"type": "schema_failure", "schema": schema},
    names.QUALITY_CHECKS.name: lambda check, result: {
        "type": "quality_check", "check": check, "passed": result == "passed",
    },
    names.GATEWAY_FALLBACKS.name: lambda model, backup, reason, _: {
        "type": "fallback", "from_model": model, "to_model": backup, "reason": reason,
    },
}  # fmt: skip


class Reporter:
    """post() reports what has happened since the last time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._told: dict[Key, float] = {}

    def post(self, business: Business) -> None:
        """Counts on disk a moment later. What cannot be taken now is reported the next time."""
        with self._world.locked() as fleet:
            counted = {**fleet.clients.tally, **fleet.gateway.tally}
        events = list(self._since(counted))
        try:
            for first in range(0, len(events), MAX_BATCH):
                business.record(events[first : first + MAX_BATCH])
        except (BusyError, JournalWriteError):
            return
        self._told = counted

    def _since(self, counted: Mapping[Key, float]) -> Iterator[Event]:
        for key, count in counted.items():
            family, *labels = key
            if family in _EVENTS:
                document = {**_EVENTS[family](*labels), "app": _APP, "model_name": MODEL}
                event = parse(document)
                for _ in range(round(count - self._told.get(key, 0.0))):
                    yield event
