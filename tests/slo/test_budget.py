"""Budgets and verdicts over counts; what PromQL says of the same samples is the same."""

import json
import random
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferslo.slo.budget import (
    Component,
    Count,
    Counts,
    Mark,
    State,
    burn_rate,
    composite_ratio,
    coverage,
    holds,
    incident,
    incidents,
    lasted,
    over,
    remaining,
    slice_of_events,
    slice_of_value,
    state,
)
from inferslo.slo.plan import Burn, Evaluation, Floor, Outage, Severity

counts = st.builds(
    lambda at, bad, good: Count(float(at), float(bad), float(bad + good)),
    st.integers(1, 1000),
    st.integers(0, 1000),
    st.integers(0, 1000),
)
histories = st.lists(counts, max_size=30)


def test_ratios_are_weighted_by_events_and_no_mean_of_ratios() -> None:
    """Sloth #332: an hour at 100 a minute, all well, then an hour at 1 a minute, all bad."""
    busy = [Count(60 * i, 0, 100) for i in range(1, 61)]
    quiet = [Count(60 * i, 1, 1) for i in range(61, 121)]
    assert over(Counts(busy + quiet), 7200, 7200).ratio == 60 / 6060
    slices = [slice_of_events(count, Decimal("0.95")) for count in busy + quiet]
    assert over(Counts(slices), 7200, 7200).ratio == 0.5  # if asked for


def test_a_window_is_open_on_the_left_and_closed_on_the_right() -> None:
    history = [Count(0, 1, 1), Count(30, 1, 1), Count(60, 1, 1), Count(90, 1, 1)]
    assert over(Counts(history), 60, 60).samples == 2


@given(histories, st.randoms())
def test_order_does_not_matter(history: list[Count], shuffling: random.Random) -> None:
    shuffled = list(history)
    shuffling.shuffle(shuffled)
    assert over(Counts(shuffled), 1000, 700) == over(Counts(history), 1000, 700)


@given(histories, st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 1000))
def test_a_window_is_the_sum_of_its_parts(
    history: list[Count], now: int, first: int, second: int
) -> None:
    whole, late, early = (
        over(Counts(history), now, first + second), over(Counts(history), now, second),
        over(Counts(history), now - second, first),
    )  # fmt: skip
    assert whole.bad == late.bad + early.bad
    assert whole.total == late.total + early.total
    assert whole.samples == late.samples + early.samples


@given(histories.filter(lambda history: sum(count.total for count in history) > 0))
def test_the_burn_is_linear_in_the_bad_events(history: list[Count]) -> None:
    half = [Count(count.at, count.bad / 2, count.total) for count in history]
    budget = Decimal("0.001")
    full = burn_rate(over(Counts(history), 1000, 1000).ratio, budget)
    assert full is not None
    assert burn_rate(over(Counts(half), 1000, 1000).ratio, budget) == full / 2


def test_the_budget_of_999_is_exact() -> None:
    assert 1 - Decimal("99.9") / 100 == Decimal("0.001")
    assert burn_rate(0.0144, Decimal("0.001")) == pytest.approx(14.4, abs=1e-12)


def test_without_traffic_nothing_is_known() -> None:
    silent = over(Counts([Count(30, 0, 0)]), 60, 60)
    assert silent.ratio is None
    assert burn_rate(None, Decimal("0.001")) is None
    assert remaining(None, Decimal("0.001"), 1.0, Decimal(0)) is None


def test_a_slice_is_bad_if_too_few_of_its_events_were_good() -> None:
    target = Decimal("0.95")
    assert slice_of_events(Count(9, 5, 100), target) == Count(9, 0, 1)
    assert slice_of_events(Count(9, 6, 100), target) == Count(9, 1, 1)


def test_a_value_is_bad_above_its_threshold() -> None:
    assert slice_of_value(9, 0.3, Decimal("0.3")) == Count(9, 0, 1)
    assert slice_of_value(9, 0.31, Decimal("0.3")) == Count(9, 1, 1)


def test_a_slice_of_nothing_is_neither_good_nor_bad_and_known() -> None:
    nothing = slice_of_events(Count(9, 0, 0), Decimal("0.95"))
    assert nothing == slice_of_value(9, float("nan"), Decimal("0.3")) == Count(9, 0, 0)
    sums = over(Counts([nothing, Count(20, 1, 1)]), 30, 30)
    assert (sums.ratio, sums.samples) == (1.0, 2)


def test_a_composite_is_the_weighted_mean_of_ratios_whatever_their_traffic() -> None:
    weights = Decimal("0.4"), Decimal("0.6")
    assert composite_ratio(zip(weights, [0.5, 0.0], strict=True)) == 0.2
    assert composite_ratio(zip(weights, [0.5, None], strict=True)) is None


def test_a_budget_is_claimed_only_of_a_period_that_was_seen() -> None:
    month, half = 30 * 86400, Decimal("0.5")
    assert coverage(43200, 30, month) == 0.5
    assert coverage(100_000, 30, month) == 1.0
    assert remaining(0.0005, Decimal("0.001"), 0.5, half) == 0.5
    assert remaining(0.002, Decimal("0.001"), 0.5, half) == -1
    assert remaining(0.0005, Decimal("0.001"), 0.49, half) is None


@pytest.mark.parametrize(
    ("readable", "has_signal", "total", "expected"),
    [
        (True, True, 0.1, State.OK),
        (True, True, 0, State.NO_TRAFFIC),
        (True, False, 0, State.SIGNAL_MISSING),
        (False, False, 0, State.NO_DATA),
        (False, True, 5, State.NO_DATA),
    ],
)
def test_no_traffic_no_data_and_a_renamed_metric_are_three_things(
    readable: bool, has_signal: bool, total: float, expected: State
) -> None:
    assert state(readable=readable, has_signal=has_signal, total=total) is expected


def burn(threshold: str, bad: int = 5, total: int = 10) -> Burn:
    floor = Floor(Decimal(bad), Decimal(total))
    return Burn("b", 600, 120, Decimal(1), Decimal(threshold), Severity.PAGE, floor)


def minutes(*bad_of_ten: int) -> list[Component]:
    return [Component(Counts([Count(60 * i, bad, 10) for i, bad in enumerate(bad_of_ten, 1)]))]


def test_a_burn_holds_at_its_threshold_in_both_windows() -> None:
    assert holds(burn("0.5"), minutes(5, 5, 5, 5), 240) is True
    assert holds(burn("0.51"), minutes(5, 5, 5, 5), 240) is False


def test_a_burn_that_is_over_is_quiet_by_its_short_window() -> None:
    assert holds(burn("0.5"), minutes(9, 9, 9, 0, 0), 300) is False


def test_a_burn_needs_its_floor() -> None:
    assert holds(burn("0.1", bad=20, total=40), minutes(5, 5, 5, 5), 240) is True
    assert holds(burn("0.1", bad=21, total=40), minutes(5, 5, 5, 5), 240) is False
    assert holds(burn("0.1", bad=20, total=41), minutes(5, 5, 5, 5), 240) is False


def test_without_traffic_a_burn_is_unknown_and_after_it_quiet() -> None:
    assert holds(burn("0.1"), [Component(Counts([]))], 240) is None
    assert holds(burn("0.1"), [Component(Counts([Count(60, 0, 0)]))], 240) is None
    assert holds(burn("0.1"), minutes(9, 9), 360) is False  # nothing in the short window


def test_a_composite_burns_by_weight_and_counts_its_events_together() -> None:
    bad = [Count(60 * i, 5, 5) for i in range(1, 5)]
    good = [Count(60 * i, 0, 500) for i in range(1, 5)]
    parts = [Component(Counts(bad), Decimal("0.4")), Component(Counts(good), Decimal("0.6"))]
    assert holds(burn("0.4", bad=20, total=2020), parts, 240) is True
    assert holds(burn("0.41"), parts, 240) is False
    assert holds(burn("0.4"), [parts[0], Component(Counts([]), Decimal("0.6"))], 240) is None


def test_an_incident_is_any_paging_condition_that_is_known_to_hold() -> None:
    assert incident([False, None, True]) is True
    assert incident([False, None]) is False
    assert incident([None, None]) is None
    assert incident([]) is None


def marks(text: str) -> list[Mark]:
    """One a minute: "1" on, "0" off, "." not judged."""
    return [Mark(60 * i, c == "1") for i, c in enumerate(text, 1) if c != "."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1" * 20, True),
        ("0" * 10 + "1" * 10, True),
        ("0" * 11 + "1" * 9, False),
        ("1" * 15 + "0" + "1" * 4, False),
        ("1" * 15 + "." + "1" * 4, True),  # one of ten evaluations missed
        ("1" * 15 + ".." + "1" * 3, False),
        ("." * 20, False),
    ],
)
def test_an_incident_has_lasted_if_every_evaluation_found_it(text: str, expected: bool) -> None:
    assert lasted(marks(text), now=1200, after=600, interval=60) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0000", 0), ("0110", 1), ("0111", 1), ("0101", 2), ("1010101", 4), ("1..0", 1), ("", 0)],
)
def test_incidents_are_counted_by_their_ends_and_one_that_goes_on(text: str, expected: int) -> None:
    assert incidents(reversed(marks(text)), 60 * len(text), 6000) == expected


def test_incidents_of_before_the_window_do_not_count() -> None:
    assert incidents(marks("10" * 5 + "0" * 10), 60 * 20, 60 * 10) == 0


RATES = Evaluation(interval=30, base=120)
STEP, SAMPLES = RATES.interval, 40


def test_a_window_no_longer_than_the_base_reads_the_newest_rate() -> None:
    history = [Count(30 * i, bad, 10) for i, bad in enumerate((9, 9, 9, 1))]
    newest = over(Counts(history), 90, 120, RATES)
    assert (newest.bad, newest.total, newest.ratio) == (4, 40, 0.1)
    assert over(Counts(history), 120, 120, RATES).ratio is None  # not yesterday's news
    assert over(Counts(history), 90, 150, RATES).bad == over(Counts(history), 90, 120).bad == 28


def played(rng: random.Random) -> list[Count]:
    """Twenty minutes of samples, some of them missing, some without traffic."""
    history = []
    for i in range(SAMPLES):
        total = rng.choice([0, 1, 5, 100])
        bad = rng.choice([0, 0, rng.randint(0, total), total])
        if rng.random() < 0.9:
            history.append(Count(STEP * i, bad, total))
    return history


def series(history: list[Count], field: str) -> dict[str, str]:
    """A rule that has no result marks its series as stale."""
    by_time = {count.at: getattr(count, field) for count in history}
    values = " ".join(str(by_time.get(STEP * i, "stale")) for i in range(SAMPLES))
    return {"series": field, "values": values}


def sum_query(field: str, window: int, rates: Evaluation | None) -> str:
    """As rules ask it; the samples are the events of an evaluation already."""
    if rates is None or window > rates.base:
        return f"sum_over_time({field}[{window}s])"
    return f"{field} * {rates.base // rates.interval}"


def alert_query(condition: Burn | Outage, rates: Evaluation | None) -> str:
    threshold, *windows = (
        (condition.ratio, condition.window)
        if isinstance(condition, Outage)
        else (condition.threshold, condition.long, condition.short)
    )
    sums = [[f"({sum_query(field, w, rates)})" for field in ("bad", "total")] for w in windows]
    parts = [f"({bad} / ({total} > 0) >= {threshold})" for bad, total in sums]
    floor = condition.floor.bad, condition.floor.total
    parts += [f"({sum_} >= {least})" for sum_, least in zip(sums[0], floor, strict=True)]
    return f"count({' and '.join(parts)})"


def expectation(query: str, now: int, value: float | None) -> dict[str, object]:
    samples = [] if value is None else [{"labels": "{}", "value": value}]
    return {"expr": query, "eval_time": f"{now}s", "exp_samples": samples}


@pytest.mark.parametrize("rates", [None, RATES], ids=["events", "rates"])
def test_prometheus_says_the_same_of_the_same_samples(
    rates: Evaluation | None, tmp_path: Path
) -> None:
    """Between samples: at one, the left end of a window differs from Prometheus 3 on."""
    promtool = shutil.which("promtool")
    assert promtool, "no promtool: it comes with Prometheus (make system)"
    rng = random.Random(11)
    three = Floor(Decimal(3), Decimal(3))
    conditions = [burn("0.3"), burn("0.05", bad=1, total=1), Outage(Decimal("0.5"), 120, three)]
    ratio_query = "sum_over_time(bad[300s]) / (sum_over_time(total[300s]) > 0)"
    verdicts, tests = [], []
    for _ in range(40):
        history, now = played(rng), STEP * rng.randrange(20, SAMPLES) + STEP // 2
        expectations = [expectation(ratio_query, now, over(Counts(history), now, 300, rates).ratio)]
        for condition in conditions:
            verdicts.append(holds(condition, [Component(Counts(history))], now, rates))
            found = 1 if verdicts[-1] else None
            expectations.append(expectation(alert_query(condition, rates), now, found))
        inputs = [series(history, "bad"), series(history, "total")]
        tests.append(
            {"interval": f"{STEP}s", "input_series": inputs, "promql_expr_test": expectations}
        )
    file = tmp_path / "test.yaml"
    file.write_text(json.dumps({"evaluation_interval": f"{STEP}s", "tests": tests}))
    ran = subprocess.run([promtool, "test", "rules", str(file)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert {True, False} <= set(verdicts)
