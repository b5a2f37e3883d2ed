"""Moments from buckets: the truth is never outside the interval, and the interval is tight."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferslo.exporters.engines.excess import Restart
from inferslo.exporters.engines.moments import MomentCounter, Squares, squares
from inferslo.exporters.reading import Histogram

INF = math.inf
ITL_BOUNDS = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, INF)

bounds_lists = st.lists(
    st.floats(0.001, 100), min_size=1, max_size=8, unique_by=lambda bound: round(bound, 3)
).map(lambda bounds: (*sorted(bounds), INF))
sample_lists = st.lists(st.floats(0, 200), max_size=60)


def histogram(samples: Sequence[float], bounds: tuple[float, ...] = ITL_BOUNDS) -> Histogram:
    counts = tuple(float(sum(x <= bound for x in samples)) for bound in bounds)
    return Histogram(bounds, counts, math.fsum(samples))


def of(samples: Sequence[float], bounds: tuple[float, ...] = ITL_BOUNDS) -> Squares:
    return MomentCounter(count_first=True).update(histogram(samples, bounds))


def assert_brackets(found: Squares, truth: float) -> None:
    slack = 1e-9 * max(truth, 1.0)
    assert found.lower - slack <= truth <= found.upper + slack
    assert found.lower <= found.estimate <= found.upper


@given(sample_lists, bounds_lists)
def test_truth_and_estimate_lie_in_the_interval(
    samples: list[float], bounds: tuple[float, ...]
) -> None:
    found = of(samples, bounds)
    assert found.n == len(samples)
    assert found.sum == pytest.approx(math.fsum(samples))
    assert_brackets(found, math.fsum(x * x for x in samples))


@given(st.lists(sample_lists, min_size=1, max_size=5), bounds_lists)
def test_intervals_of_successive_reads_add_up(
    batches: list[list[float]], bounds: tuple[float, ...]
) -> None:
    counter = MomentCounter(count_first=True)
    totals = [
        counter.update(histogram(list(itertools.chain(*batches[: i + 1])), bounds))
        for i in range(len(batches))
    ]
    every = list(itertools.chain(*batches))
    assert_brackets(totals[-1], math.fsum(x * x for x in every))
    for before, after in itertools.pairwise(totals):
        assert after.n >= before.n
        assert after.sum >= before.sum
        assert after.lower >= before.lower
        assert after.estimate >= before.estimate
        assert after.upper >= before.upper


@pytest.mark.parametrize("counts", [(2, 0), (1, 1), (0, 2), (2, 1), (1, 2), (3, 0)])
def test_bounds_are_attained(counts: tuple[int, int]) -> None:
    """Against every placing of up to three samples on a grid of 1/8 in the buckets [0,1], [1,3]."""
    grids = [
        [i / 8 for i in range(8 + 1)],
        [1 + i / 8 for i in range(16 + 1)],
    ]
    places = [grids[bucket] for bucket in (0, 1) for _ in range(counts[bucket])]
    by_sum: dict[float, list[float]] = {}
    for xs in itertools.product(*places):
        by_sum.setdefault(sum(xs), []).append(sum(x * x for x in xs))
    for total, brute in by_sum.items():
        found = squares((1.0, 3.0), counts, total)
        assert found.upper == pytest.approx(max(brute))
        assert found.lower <= min(brute) + 1e-12
        # The least is where samples are equal, which may lie between two points of the grid.
        assert found.lower == pytest.approx(min(brute), abs=sum(counts) / 8**2)


def test_equal_samples_are_the_least_and_have_no_variance() -> None:
    found = of([0.012] * 1000)
    assert found.lower == pytest.approx(1000 * 0.012**2)
    assert found.lower - found.sum**2 / found.n == pytest.approx(0, abs=1e-12)


def test_one_sample_beyond_the_last_bound_takes_the_whole_excess() -> None:
    found = squares((1.0, INF), (0, 3), 13.0)
    assert found.upper == pytest.approx(1 + 1 + 11**2)
    assert found.lower == pytest.approx(3 * (13 / 3) ** 2)


def test_a_single_sample_is_known_exactly() -> None:
    found = of([0.0137])
    assert (
        pytest.approx(0.0137**2)
        == found.lower
        == pytest.approx(found.upper)
        == pytest.approx(found.estimate)
    )


def test_steady_stream_is_reported_with_a_wide_interval() -> None:
    """12 ± 1 ms: the default buckets cannot see jitter this small; the interval says so."""
    samples = [0.012 + 0.001 * math.sin(i) for i in range(20_000)]
    found = of(samples)
    mean = found.sum / found.n
    spread = [
        math.sqrt(max(q / found.n - mean**2, 0)) for q in (found.lower, found.estimate, found.upper)
    ]
    truth = math.sqrt(math.fsum((x - mean) ** 2 for x in samples) / len(samples))
    assert spread[0] < truth < spread[2]
    assert spread[2] > 4 * truth


def test_zeros_of_one_token_requests_count() -> None:
    found = of([0.0, 0.0, 0.03])
    assert found.n == 3
    assert_brackets(found, 0.03**2)


def test_a_sum_that_the_counts_do_not_allow_is_moved_to_the_nearest() -> None:
    low = squares((1.0, 2.0, INF), (0, 4, 0), -5.0)
    assert (low.sum, low.lower, low.upper) == (4.0, 4.0, 4.0)
    high = squares((1.0, 2.0, INF), (0, 4, 0), 100.0)
    assert (high.sum, high.lower, high.upper) == (8.0, 16.0, 16.0)


def test_a_bucket_of_no_width_and_one_below_zero_are_read() -> None:
    assert squares((0.0, 1.0, INF), (3, 0, 0), 0.0).upper == 0
    assert squares((-1.0, 1.0, INF), (1, 0, 0), -1.0).lower == 1


def test_nothing_gained_adds_nothing() -> None:
    counter = MomentCounter(count_first=False)
    first = counter.update(histogram([0.03] * 5))
    assert first == Squares()
    assert counter.update(histogram([0.03] * 5)) == first


def test_a_sidecar_that_starts_late_does_not_repeat_history() -> None:
    counter = MomentCounter(count_first=False)
    counter.update(histogram([0.03] * 5))
    found = counter.update(histogram([0.03] * 5 + [0.2]))
    assert found.n == 1
    assert found.sum == pytest.approx(0.2)


def test_an_engine_that_restarts_is_a_new_base() -> None:
    counter = MomentCounter(count_first=True)
    before = counter.update(histogram([0.03] * 50))
    assert counter.update(histogram([0.03] * 2)) == before
    assert counter.update(histogram([0.03] * 2 + [0.5])).n == 51


def test_what_an_engine_did_since_a_known_restart_counts() -> None:
    counter = MomentCounter(count_first=False)
    counter.update(histogram([0.03] * 2))
    assert counter.update(histogram([0.03] * 5), Restart.PROCESS).n == 5


def test_a_histogram_of_which_a_part_is_gone_is_a_new_base() -> None:
    counter = MomentCounter(count_first=True)
    before = counter.update(histogram([0.03] * 5))
    assert counter.update(histogram([0.03] * 9), Restart.PART) == before
    assert counter.update(histogram([0.03] * 10), Restart.PART).n == 5
    assert counter.update(histogram([0.03] * 11)).n == 6


def test_new_bounds_are_a_new_base() -> None:
    counter = MomentCounter(count_first=True)
    before = counter.update(histogram([0.03] * 5))
    assert counter.update(histogram([0.03] * 9, (0.02, 0.04, INF))) == before
    assert counter.update(histogram([0.03] * 10, (0.02, 0.04, INF))).n == 6


@pytest.mark.parametrize("damaged", [math.nan, INF, -INF])
def test_a_sum_that_is_no_number_is_left_out_and_made_up_for(damaged: float) -> None:
    counter = MomentCounter(count_first=True)
    before = counter.update(histogram([0.03] * 5))
    good = histogram([0.03] * 8)
    assert counter.update(Histogram(good.bounds, good.counts, damaged)) == before
    assert counter.update(good).n == 8


def test_a_bucket_less_than_the_one_below_it_is_taken_as_empty() -> None:
    """Multiprocess mode reads one process after the other."""
    found = MomentCounter(count_first=True).update(Histogram((1.0, 2.0, INF), (5, 4, 6), 6.0))
    assert found.n == 7
    assert found.lower <= found.estimate <= found.upper


def test_counters_of_a_busy_month_keep_their_precision() -> None:
    counter = MomentCounter(count_first=False)
    past = 5_000 * 86_400 * 30
    counts = (0.0, 0.0, *([float(past)] * (len(ITL_BOUNDS) - 2)))
    counter.update(Histogram(ITL_BOUNDS, counts, past * 0.03))
    now = (0.0, 0.0, *([float(past + 1000)] * (len(ITL_BOUNDS) - 2)))
    found = counter.update(Histogram(ITL_BOUNDS, now, past * 0.03 + 30.0))
    assert found.n == 1000
    assert found.sum == pytest.approx(30, rel=1e-6)
    assert found.lower == pytest.approx(0.9, rel=1e-6)
