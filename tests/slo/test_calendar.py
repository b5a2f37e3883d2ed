"""Calendar periods in UTC."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferslo.slo.calendar import period
from inferslo.slo.plan import Calendar


def unix(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("calendar", "at", "start", "end"),
    [
        (Calendar.MONTH, "2024-02-29T23:59:59", "2024-02-01", "2024-03-01"),
        (Calendar.MONTH, "2024-12-31T12:00:00", "2024-12-01", "2025-01-01"),
        (Calendar.MONTH, "2025-01-01T00:00:00", "2025-01-01", "2025-02-01"),
        (Calendar.WEEK, "2024-12-29T23:59:59", "2024-12-23", "2024-12-30"),  # a Sunday
        (Calendar.WEEK, "2024-12-30T00:00:00", "2024-12-30", "2025-01-06"),  # a Monday
    ],
)
def test_the_period_of_a_moment(calendar: Calendar, at: str, start: str, end: str) -> None:
    assert period(calendar, unix(at)) == (unix(start), unix(end))


@given(st.sampled_from(Calendar), st.floats(0, 4e9))
def test_periods_follow_one_another_without_a_gap(calendar: Calendar, at: float) -> None:
    start, end = period(calendar, at)
    assert start <= at < end
    assert period(calendar, start) == (start, end)
    assert period(calendar, end)[0] == end
