"""What /v1/status says: each source, what it gives, what is missing and how to get it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from .board import SourceState


def status(states: Iterable[SourceState]) -> dict[str, Any]:
    """The JSON document of GET /v1/status. Times are Unix seconds, durations seconds."""
    return {"version": version("inferslo"), "sources": [_source(state) for state in states]}


def _source(state: SourceState) -> dict[str, Any]:
    latest = state.latest
    document: dict[str, Any] = {
        "name": state.source.name,
        "state": _state(state),
        "interval_seconds": state.source.interval,
        "deadline_seconds": state.source.deadline,
        "in_flight_seconds": round(state.in_flight, 3),
        "last_success": state.last_success,
        "errors": {str(kind): count for kind, count in state.errors.items()},
    }
    if latest is None:
        return document
    document["read_seconds"] = round(latest.seconds, 6)
    if latest.error is not None:
        document["error"] = {"kind": str(latest.error), "detail": latest.detail}
    if state.up and latest.observation is not None:
        document["facts"] = dict(latest.observation.facts)
        document["gives"] = sorted({point.family.name for point in latest.observation.points})
        document["missing"] = [
            {"signal": gap.signal, "reason": gap.reason, "remedy": gap.remedy}
            for gap in latest.observation.gaps
        ]
    return document


def _state(state: SourceState) -> str:
    if state.hung:
        return "hung"
    if state.latest is None:
        return "starting"
    return "up" if state.up else "down"
