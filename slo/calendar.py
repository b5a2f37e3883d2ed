"""Calendar periods: budgets that start anew with each month or week, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from .plan import Calendar


def period(calendar: Calendar, at: float) -> tuple[float, float]:
    """Start and end, Unix seconds, of the period that `at` lies in; the end is the next one's
    start and not part of it. Weeks begin on Monday (ISO 8601)."""
    day = datetime.fromtimestamp(at, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if calendar is Calendar.WEEK:
        start = day - timedelta(days=day.weekday())
        end = start + timedelta(days=7)
    else:
        start = day.replace(day=1)
        end = (start + timedelta(days=31)).replace(day=1)
    return start.timestamp(), end.timestamp()
