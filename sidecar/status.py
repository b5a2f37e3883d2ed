"""What /v1/status says: each source, what it gives, what is missing and how to get it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from ..exporters.reading import Gap
from .board import SourceState
from .events.business import Business


def status(
    states: Iterable[SourceState], not_watched: Iterable[Gap] = (), business: Business | None = None
) -> dict[str, Any]:
    """The JSON document of GET /v1/status. Times are Unix seconds, durations seconds."""
    return {
        "version": version("inferslo"),
        "sources": [_source(state) for state in states],
        "events": _events(business),
        "not_watched": [_gap(gap) for gap in not_watched],
    }


def _events(business: Business | None) -> dict[str, Any]:
    if business is None:
        return {"state": "off"}
    return {"state": "refused", "detail": business.fault} if business.fault else {"state": "taken"}


def _gap(gap: Gap) -> dict[str, str]:
    return {"signal": gap.signal, "reason": gap.reason, "remedy": gap.remedy}


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
    if watched := _watched(state):
        document["watches"] = watched
    if latest is None:
        return document
    document["read_seconds"] = round(latest.seconds, 6)
    if latest.error is not None:
        document["error"] = {"kind": str(latest.error), "detail": latest.detail}
    if state.up and latest.observation is not None:
        document["facts"] = dict(latest.observation.facts)
        document["gives"] = sorted({point.family.name for point in latest.observation.points})
        document["missing"] = [_gap(gap) for gap in latest.observation.gaps]
    return document


def _watched(state: SourceState) -> dict[str, str]:
    """Which engine, GPU or gateway the source reads, answer it or not; empty of other sources."""
    health = state.source.up_point(up=False)
    if health is None or not any(health.labels):
        return {}
    labels = dict(zip(health.family.labels, health.labels, strict=True))
    return {"feed": str(health.family.feed), **labels}


def _state(state: SourceState) -> str:
    if state.hung:
        return "hung"
    if state.latest is None:
        return "starting"
    if state.latest.ok and not state.fresh:
        return "stale"
    return "up" if state.up else "down"
