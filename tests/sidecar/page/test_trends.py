"""The hour of numbers behind the page's sparklines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from inferslo.sidecar.page.trends import MOST, SLOTS, STEP, Trends

KEY = ("family", "group", "")
OTHER = ("other", "group", "")


def filled(values: Sequence[float | None], key: Any = KEY, begin: float = 1e9) -> Trends:
    """One value a slot; None is a slot without it."""
    trends = Trends()
    for n, value in enumerate(values):
        trends.put(begin + n * STEP, {} if value is None else {key: value})
    return trends


def test_nothing_is_known_at_first() -> None:
    trends = Trends()
    assert trends.now(KEY) is None
    assert trends.change(KEY) is None
    assert trends.since is None
    assert set(trends.gauge(KEY)) == {None}


def test_the_latest_value_of_a_slot_counts() -> None:
    trends = Trends()
    trends.put(1e9, {KEY: 1.0})
    trends.put(1e9 + 3, {KEY: 2.0})
    assert trends.now(KEY) == 2.0


def test_a_value_that_is_no_longer_told_is_not_shown() -> None:
    assert filled([1.0, None]).now(KEY) is None


def test_growth_is_of_the_last_minute() -> None:
    assert filled([float(n) for n in range(20)]).change(KEY) == (6.0, 60.0)


def test_growth_over_a_reset_or_a_gap_is_unknown() -> None:
    assert filled([100.0] * 6 + [3.0]).change(KEY) is None
    assert filled([1.0, 2.0, None]).change(KEY) is None


def test_the_hour_has_a_point_a_minute_and_gaps_stay_open() -> None:
    line = filled([3.0] * 60 + [None] * 60 + [5.0] * 60).gauge(KEY)
    assert len(line) == 60
    assert line[-1] == 5.0
    assert [value for value in line if value is None] == [None] * 40
    assert line.index(3.0) == 30


def test_a_pause_leaves_no_value_of_an_hour_ago() -> None:
    trends = filled([7.0] * SLOTS)
    trends.put(1e9 + (SLOTS + SLOTS // 2) * STEP, {OTHER: 1.0})
    assert trends.gauge(KEY).count(7.0) == 30
    trends.put(1e9 + 10 * SLOTS * STEP, {OTHER: 1.0})
    assert set(trends.gauge(KEY)) == {None}


def test_a_rate_and_a_ratio_by_the_minute() -> None:
    trends = Trends()
    for n in range(61):
        trends.put(1e9 + n * STEP, {KEY: 20.0 * n, OTHER: 10.0 * n})
    assert [v for v in trends.rate(KEY) if v is not None] == pytest.approx([2.0] * 10)
    assert [v for v in trends.ratio(KEY, OTHER) if v is not None] == pytest.approx([2.0] * 10)


def test_what_was_gained_counts_from_zero_where_it_was_absent() -> None:
    assert filled([None, None, 3.0, 5.0]).gained(KEY) == 5.0
    assert filled([10.0, 12.0]).gained(KEY) == 2.0
    assert filled([None]).gained(KEY) == 0.0


def test_a_clock_set_back_begins_anew() -> None:
    trends = filled([1.0] * 10)
    trends.put(1e9 - 3600, {KEY: 4.0})
    assert trends.since == 1e9 - 3600
    assert trends.gained(KEY) == 0.0


def test_numbers_are_bounded_and_those_gone_for_an_hour_make_room() -> None:
    trends = Trends()
    trends.put(1e9, {("family", str(n), ""): 1.0 for n in range(MOST + 50)})
    assert len(trends.known()) == MOST
    for n in range(1, SLOTS + 10):
        trends.put(1e9 + n * STEP, {KEY: 1.0})
    assert trends.known() == [KEY]
