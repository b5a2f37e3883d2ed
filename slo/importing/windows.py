"""OpenSLO's timeWindow: how long a budget lasts."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from ..calendar import period as calendar_period
from ..plan import Calendar
from .reading import Node

_DAYS = {"d": 1, "w": 7, "M": 30, "Q": 90, "Y": 365}  # months and more: nominal
_CALENDARS = {"1M": Calendar.MONTH, "1w": Calendar.WEEK}
_STARTS = "periods of the calendar begin on the first of a month or on a Monday, 00:00 UTC"


def period(spec: Node) -> dict[str, Any]:
    """The key `window` of an objective; nothing where the default is meant or none can be had."""
    windows = spec.children("timeWindow")
    if not windows:
        return {}
    window, *others = windows
    for other in others:
        other.lose_all("timeWindow", "an objective has one window: the first is taken")
    duration = window.text("duration")
    calendar = window.child("calendar")
    is_rolling = bool(window.flag("isRolling")) or not calendar.fields()
    if not is_rolling and duration in _CALENDARS:
        known = _CALENDARS[duration]
        start, zone = calendar.text("startTime"), calendar.text("timeZone")
        if zone not in ("", "UTC", "Etc/UTC") or not _begins(known, start):
            calendar.lose("startTime", _STARTS)
            calendar.lose("timeZone", _STARTS)
        return {"window": {"calendar": known.value}}
    if not is_rolling:
        window.lose("calendar", "only months and weeks of the calendar are known: it rolls")
    return _rolling(window, duration)


def _rolling(window: Node, duration: str) -> dict[str, Any]:
    found = re.fullmatch(r"(\d+)([mhdwMQY])", duration)
    if found is None:
        window.lose("duration", "this is no duration of OpenSLO: the default of 30d is taken")
        return {}
    count, unit = int(found[1]), found[2]
    if unit in "mh":
        return {"window": duration}
    if unit in "MQY":
        window.change("duration", f"a month is taken as 30 days, a year as 365: {count}{unit} is"
                      f" {count * _DAYS[unit]}d")  # fmt: skip
    return {"window": f"{count * _DAYS[unit]}d"}


def _begins(calendar: Calendar, start: str) -> bool:
    """Whether a period of ours begins at that time, taken as UTC."""
    try:
        at = datetime.fromisoformat(start).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return False
    return calendar_period(calendar, at)[0] == at
