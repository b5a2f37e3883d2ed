"""Durations, percentages and ranges: exact, and read back as they are written."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferslo.slo.plan import PromptRange
from inferslo.slo.quantities import (
    format_duration,
    format_percent,
    format_prompt_range,
    parse_duration,
    parse_number,
    parse_percent,
    parse_prompt_range,
    parse_whole_seconds,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("800ms", "0.8"),
        ("1.2s", "1.2"),
        ("0.1s", "0.1"),
        ("1h30m", "5400"),
        ("30d", "2592000"),
        ("1w", "604800"),
        (" 2s ", "2"),
    ],
)
def test_durations_are_exact(text: str, seconds: str) -> None:
    found = parse_duration(text)

    assert (found, str(found)) == (Decimal(seconds), seconds)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (2, '"2" has no unit: write 2s or 2ms'),
        ("2", '"2" has no unit: write 2s or 2ms'),
        (0.5, '"0.5" has no unit: write 0.5s or 0.5ms'),
        ("2 parsecs", '"2 parsecs" is not a duration'),
        ("s2", '"s2" is not a duration'),
        ("-1s", '"-1s" is not a duration'),
        ("٣s", '"٣s" is not a duration'),
        (True, '"true" is not a duration'),
        (None, '"None" is not a duration'),
        ("0s", '"0s" is not between 1ms and ten years'),
        ("99999d", '"99999d" is not between 1ms and ten years'),
    ],
)
def test_what_is_no_duration_says_how_one_is_written(value: object, complaint: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_duration(value)

    assert str(caught.value).startswith(complaint)


def test_windows_have_no_part_of_a_second() -> None:
    assert parse_whole_seconds("5m") == 300
    assert parse_whole_seconds("1000ms") == 1
    with pytest.raises(ValueError, match="is not a whole number of seconds"):
        parse_whole_seconds("1500ms")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        ("0.8", "800ms"),
        ("0.0005", "0.0005s"),
        ("1", "1s"),
        ("1.2", "1.2s"),
        ("90", "90s"),
        ("5400", "90m"),
        ("604800", "7d"),
    ],
)
def test_a_duration_is_written_in_the_greatest_unit_that_divides_it(
    seconds: str, text: str
) -> None:
    assert format_duration(Decimal(seconds)) == text


@given(st.integers(1, 10**9))
def test_every_millisecond_is_read_back(milliseconds: int) -> None:
    seconds = Decimal(milliseconds).scaleb(-3)

    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("value", "ratio"),
    [(99.9, "0.999"), ("99.90 %", "0.999"), (99.99, "0.9999"), (0, "0"), (100, "1")],
)
def test_percentages_are_exact_ratios(value: object, ratio: str) -> None:
    found = parse_percent(value)

    assert (found, str(found)) == (Decimal(ratio), ratio)


@pytest.mark.parametrize("value", [-1, 100.0001, "x", "", None, True, float("nan"), float("inf")])
def test_what_is_no_percentage_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="is not a percentage: write a number from 0 to 100"):
        parse_percent(value)


@given(st.decimals(0, 1, places=6))
def test_every_percentage_is_read_back(ratio: Decimal) -> None:
    assert parse_percent(format_percent(ratio)) == ratio


def test_numbers_may_be_percentages() -> None:
    assert str(parse_number("15 %")) == "0.15"
    assert str(parse_number(50)) == "50"
    assert str(parse_number(0.50)) == "0.5"
    for value in ("", "x", True, [], "1e999", float("nan"), "1_0", "٣", "0." + "1" * 20):
        with pytest.raises(ValueError, match="is not a number"):
            parse_number(value)


@pytest.mark.parametrize(
    ("text", "above", "upto"),
    [
        ("> 8000", 8000, None),
        (">8000", 8000, None),
        (">= 8000", 7999, None),
        ("<= 8000", None, 8000),
        ("≤ 8000", None, 8000),
        ("< 8000", None, 7999),
        ("2000..8000", 2000, 8000),
        ("2000 .. 8000", 2000, 8000),
        ("0..8000", None, 8000),
    ],
)
def test_ranges_of_prompt_lengths(text: str, above: int | None, upto: int | None) -> None:
    found = parse_prompt_range(text)

    assert found == PromptRange(above, upto)
    assert parse_prompt_range(format_prompt_range(found)) == found


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (8000, '"8000" is not a range of prompt lengths: write "> 8000", "<= 8000" or'),
        ("long", '"long" is not a range'),
        ("8000..2000", '"8000..2000" is empty: write the smaller number first'),
        ("5..5", '"5..5" is empty'),
        ("< 1", '"< 1" is empty: every prompt has at least one token'),
        ("<= 0", '"<= 0" is empty'),
        ("> 0", '"> 0" is every length: leave the key out'),
        (">= 1", '">= 1" is every length'),
        ("> 99999999999", '"99999999999" is more than any prompt has'),
    ],
)
def test_what_is_no_range_says_how_one_is_written(value: object, complaint: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_prompt_range(value)

    assert str(caught.value).startswith(complaint)
