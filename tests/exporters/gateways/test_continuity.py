"""Sums over series that come and go; one true value among stale ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inferslo.exporters.gateways.continuity import CounterSums, LatestChange


def test_series_of_one_key_add_up() -> None:
    sums: CounterSums[str] = CounterSums()
    assert sums.add({"a": ("x", 3), "b": ("x", 4), "c": ("y", 1)}) == {"x": 7, "y": 1}


def test_a_series_that_is_dropped_leaves_its_count() -> None:
    sums: CounterSums[str] = CounterSums()
    sums.add({"a": ("x", 3), "b": ("x", 4)})
    assert sums.add({"b": ("x", 5)}) == {"x": 8}
    assert sums.add({}) == {"x": 8}


def test_a_dropped_series_that_starts_again_counts_on() -> None:
    sums: CounterSums[str] = CounterSums()
    sums.add({"a": ("x", 3)})
    sums.add({})
    assert sums.add({"a": ("x", 1)}) == {"x": 4}
    assert sums.add({"a": ("x", 2)}) == {"x": 5}


def test_a_series_dropped_and_begun_again_between_two_pages_counts_on() -> None:
    sums: CounterSums[str] = CounterSums()
    sums.add({"a": ("x", 3)})
    assert sums.add({"a": ("x", 1)}) == {"x": 4}


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 5)), max_size=8))
def test_a_sum_never_falls(pages: list[dict[str, int]]) -> None:
    sums: CounterSums[str] = CounterSums()
    last = 0.0
    for page in pages:
        now = sums.add({series: ("x", value) for series, value in page.items()}).get("x", 0)
        assert now >= last
        last = now


def test_one_series_is_the_value() -> None:
    assert LatestChange[str]().add({"gpu": {"a": 2}}) == {"gpu": 2}


def test_series_that_differ_from_the_first_are_no_value() -> None:
    states: LatestChange[str] = LatestChange()
    assert states.add({"gpu": {"a": 0, "b": 2}}) == {}
    assert states.add({"gpu": {"a": 0, "b": 2}}) == {}


def test_the_series_that_changed_last_is_the_value_until_another_changes() -> None:
    states: LatestChange[str] = LatestChange()
    pages = [{"a": 0.0}, {"a": 1, "b": 2}, {"a": 1, "b": 2}, {"a": 0, "b": 2}, {"a": 0, "b": 2}]
    assert [states.add({"gpu": page})["gpu"] for page in pages] == [0, 2, 2, 0, 0]


def test_a_thing_that_leaves_the_page_has_no_value() -> None:
    states: LatestChange[str] = LatestChange()
    states.add({"gpu": {"a": 0}, "cpu": {"c": 1}})
    assert states.add({"cpu": {"c": 1}}) == {"cpu": 1}
