"""promtool's notation, as promtool reads it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from inferslo.rules.testing.series import Span, counter, gauge, selector


def samples(values: str) -> list[float | str | None]:
    """What promtool makes of the notation, by its documentation."""
    read: list[float | str | None] = []
    for part in values.split():
        if part == "stale":
            read.append(part)
        elif part.startswith("_x"):
            read += [None] * int(part[2:])
        else:
            start, _, rest = part.partition("+")
            growth, _, times = rest.partition("x")
            read += [float(start) + float(growth) * n for n in range(int(times) + 1)]
    return read


def test_a_counter_grows_from_span_to_span() -> None:
    made = counter("a", {}, [Span(60, 1.0), Span(60, 0.0), Span(30, 2.0)], 15)
    assert samples(made.values) == [0, 15, 30, 45, 45, 45, 45, 45, 75, 105]


def test_a_counter_that_is_reset_begins_at_0() -> None:
    made = counter("a", {}, [Span(30, 1.0), Span(30, 1.0, reset=True)], 15, start=100)
    assert samples(made.values) == [100, 115, 0, 15]


def test_a_counter_that_is_born_late_has_its_first_events_in_it() -> None:
    made = counter("a", {}, [Span(30, None), Span(30, 1.0)], 15)
    assert samples(made.values) == [None, None, 15, 30]


def test_a_series_that_goes_is_marked_stale() -> None:
    made = gauge("a", {}, [Span(30, 7.0), Span(45, None), Span(15, 8.0)], 15)
    assert samples(made.values) == [7, 7, "stale", None, None, 8]


@pytest.mark.parametrize("growth", [0.1, 1 / 3, 19.88, 1e7 / 7])
def test_adding_up_makes_no_reset_of_a_rounding_error(growth: float) -> None:
    """Sample by sample in floats, as promtool does it, exactly what it would be without them."""
    made = counter("a", {}, [Span(1500, growth), Span(1500, 0.0)], 15, start=1e6)
    first, then = made.values.split()
    start, _, rest = first.partition("+")
    step, _, times = rest.partition("x")
    added, exact = float(start), Fraction(float(start)) + Fraction(float(step)) * int(times)
    for _ in range(int(times)):
        added += float(step)
    assert added == exact == float(then.partition("+")[0])


def test_labels_are_in_order_and_quoted() -> None:
    assert selector("a", {"z": 'say "hi"\n', "b": "\\"}) == r'a{b="\\",z="say \"hi\"\n"}'
