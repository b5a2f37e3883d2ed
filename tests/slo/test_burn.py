"""Which burn conditions an objective gets, whatever its budget and period."""

from decimal import Decimal
from itertools import cycle, islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferslo.slo.budget import Component, Count, Counts, holds
from inferslo.slo.burn import (
    BurnError,
    BurnRule,
    OutageRule,
    burns_for,
    default_rules,
    outage_for,
    spoilt_slices,
)
from inferslo.slo.plan import Budgeting, Burn, Evaluation, Floor, Outage, Severity, Window

DAY = 86400
MONTH = Window(30 * DAY)
OCCURRENCES, TIMESLICES = Budgeting.OCCURRENCES, Budgeting.TIMESLICES
PAGE, TICKET = Severity.PAGE, Severity.TICKET
EVALUATION = Evaluation()

budgets = st.decimals(Decimal("0.00001"), Decimal("0.95"), places=5)
evaluations = st.sampled_from(
    [EVALUATION, Evaluation(5, 15, 60), Evaluation(15, 60, 300), Evaluation(60, 300, 600)]
)


def burns(
    budget: str, window: Window = MONTH, *, pages: bool = True
) -> tuple[tuple[Burn, ...], tuple[str, ...]]:
    return burns_for(Decimal(budget), window, OCCURRENCES, EVALUATION, pages=pages)


def factors(window: Window) -> dict[str, str]:
    return {burn.name: str(burn.factor) for burn in burns("0.001", window)[0]}


def test_a_month_at_999_has_the_four_of_the_workbook_exactly() -> None:
    pages, tickets = Floor(Decimal(5), Decimal(10)), Floor(Decimal(5), Decimal(20))
    found, notes = burns("0.001")
    assert found == (
        Burn("fast", 3600, 300, Decimal("14.4"), Decimal("0.0144"), PAGE, pages),
        Burn("medium", 21600, 1800, Decimal(6), Decimal("0.006"), PAGE, pages),
        Burn("slow", DAY, 7200, Decimal(3), Decimal("0.003"), TICKET, tickets),
        Burn("creeping", 3 * DAY, 21600, Decimal(1), Decimal("0.001"), TICKET, tickets),
    )
    assert notes == ()


def test_numbers_are_written_without_trailing_zeros() -> None:
    texts = [str(number) for burn in burns("0.1")[0] for number in (burn.factor, burn.threshold)]
    assert texts == ["6", "0.6", "3", "0.3", "1", "0.1"]


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (90, {"fast": "43.2", "medium": "18", "slow": "9", "creeping": "3"}),
        (28, {"fast": "13.44", "medium": "5.6", "slow": "2.8", "creeping": "1"}),
        (7, {"fast": "13.44", "medium": "3.5", "slow": "1.4", "creeping": "1"}),
        (1, {"fast": "1.92", "medium": "1"}),
    ],
)
def test_factors_follow_from_the_period(days: int, expected: dict[str, str]) -> None:
    assert factors(Window(days * DAY)) == expected


def test_a_pace_that_the_budget_allows_tickets_and_says_so() -> None:
    found, notes = burns("0.001", Window(DAY))
    assert {burn.name: burn.severity for burn in found} == {"fast": PAGE, "medium": TICKET}
    assert (
        "burn medium: raised from 12.5 to 25 % of the budget in 6h, the even pace of a period of"
        " 1d; a ticket"
    ) in notes


def test_windows_that_do_not_fit_into_the_period_are_left_out_and_named() -> None:
    _, notes = burns("0.001", Window(DAY))
    assert (
        "burn slow left out: its 1d are not between the base window 5m and the period 1d" in notes
    )
    assert burns("0.001", Window(3600))[0] == ()


def test_short_windows_are_no_shorter_than_the_base_window() -> None:
    found, notes = burns_for(Decimal("0.001"), MONTH, OCCURRENCES, Evaluation(base=600), pages=True)
    assert [burn.short for burn in found] == [600, 1800, 7200, 21600]
    assert notes == ("burn fast: short window raised to the base window, 10m",)


def test_what_not_even_an_outage_could_set_off_is_left_out_and_named() -> None:
    found, notes = burns("0.1")
    assert [burn.name for burn in found] == ["medium", "slow", "creeping"]
    (note,) = notes
    assert note == (
        "burn fast left out: 14.4 times too fast is unreachable at or below 93.05… %, and even a"
        " total outage burns this budget only 10 times too fast; the outage alert pages instead"
    )


def test_an_objective_that_only_tickets_has_no_paging_burn() -> None:
    found, notes = burns("0.01", pages=False)
    assert [burn.name for burn in found] == ["slow", "creeping"]
    assert notes[0] == "burn fast left out: this objective only tickets"


def rule(**overrides: Any) -> BurnRule:
    fields = {"name": "own", "long": 7200, "short": 600, "share": Decimal("0.05"), "severity": PAGE}
    return BurnRule(**fields | overrides)


def test_a_rule_of_the_file_holds_as_written() -> None:
    own = rule(min_bad=Decimal(2), min_total=Decimal(7))
    found = burns_for(Decimal("0.01"), MONTH, OCCURRENCES, EVALUATION, pages=True, rules=[own])
    expected = Burn(
        "own", 7200, 600, Decimal(18), Decimal("0.18"), PAGE, Floor(Decimal(2), Decimal(7))
    )
    assert found == ((expected,), ())


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"short": 7200}, "burn own: its short window, 2h, is not shorter than its long one, 2h"),
        ({"share": Decimal(1)}, "burn own: the share of the budget spent within 2h is above 0 %"),
        ({"share": Decimal(0)}, "burn own: the share of the budget spent within 2h is above 0 %"),
        ({"long": 30 * DAY}, "burn own: its long window 30d does not fit into the period 30d"),
        ({"short": 60}, "burn own: its short window 1m is shorter than the base window 5m;"),
        (
            {"long": 7 * DAY},
            "burn own: 5 % of the budget in 7d is slower than the even pace of a period of 30d:",
        ),
    ],
)
def test_a_rule_of_the_file_that_cannot_work_is_refused(wrong: dict[str, Any], line: str) -> None:
    with pytest.raises(BurnError) as error:
        burns_for(
            Decimal("0.01"), MONTH, OCCURRENCES, EVALUATION, pages=True, rules=[rule(**wrong)]
        )
    assert str(error.value).startswith(line)


@given(budgets, st.integers(3600, 400 * DAY), st.sampled_from(Budgeting), evaluations)
def test_every_burn_can_hold_and_means_an_overspent_budget(
    budget: Decimal, period: int, budgeting: Budgeting, evaluation: Evaluation
) -> None:
    window = Window(period)
    found, notes = burns_for(budget, window, budgeting, evaluation, pages=True)
    for burn in found:
        assert burn.factor >= 1
        assert burn.threshold == burn.factor * budget < 1
        assert evaluation.base <= burn.short < burn.long < period
    named = {burn.name for burn in found} | {
        note.split()[1] for note in notes if "left out" in note
    }
    assert named == {each.name for each in default_rules(window)}


def test_a_refused_pace_comes_with_the_least_that_would_do() -> None:
    week = rule(long=7 * DAY)
    with pytest.raises(BurnError, match=r"write at least 23\.34 %$"):
        burns_for(Decimal("0.01"), MONTH, OCCURRENCES, EVALUATION, pages=True, rules=[week])
    enough = rule(long=7 * DAY, share=Decimal("0.2334"))
    found, _ = burns_for(
        Decimal("0.01"), MONTH, OCCURRENCES, EVALUATION, pages=True, rules=[enough]
    )
    assert found[0].factor > 1


def test_an_outage_is_half_of_all_over_the_base_window() -> None:
    assert outage_for(Decimal("0.05"), OCCURRENCES, EVALUATION) == Outage(
        Decimal("0.5"), 300, Floor(Decimal(3), Decimal(3))
    )


@given(budgets, st.sampled_from(Budgeting), evaluations)
def test_an_outage_can_hold_at_every_objective_and_never_within_budget(
    budget: Decimal, budgeting: Budgeting, evaluation: Evaluation
) -> None:
    outage = outage_for(budget, budgeting, evaluation)
    assert budget < outage.ratio < 1
    assert Decimal("0.5") <= outage.ratio
    bad = [Count(at, 1, 1) for at in range(0, outage.window + 1, evaluation.interval)]
    many = [Count(count.at, 100, 100) for count in bad]
    history = bad if budgeting is TIMESLICES else many
    assert holds(outage, [Component(Counts(history))], history[-1].at) is True


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        (OutageRule(ratio=Decimal("0.1")), "outage: a ratio of 10 % is not between the budget"),
        (OutageRule(ratio=Decimal(0)), "outage: a ratio of 0 % is not between the budget, 10 %"),
        (OutageRule(ratio=Decimal("1.1")), "outage: a ratio of 110 % is not between the budget"),
        (OutageRule(window=60), "outage: its window 1m is shorter than the base window 5m"),
        (
            OutageRule(window=300),
            "outage: at least 12 bad slices are asked for, so that one failure does not alert,",
        ),
    ],
)  # fmt: skip
def test_an_outage_that_cannot_work_is_refused(wrong: OutageRule, line: str) -> None:
    with pytest.raises(BurnError) as error:
        outage_for(Decimal("0.1"), TIMESLICES, EVALUATION, wrong)
    assert str(error.value).startswith(line)


def conditions(
    budget: Decimal, budgeting: Budgeting, evaluation: Evaluation
) -> list[Burn | Outage]:
    found, _ = burns_for(budget, MONTH, budgeting, evaluation, pages=True)
    return [*found, outage_for(budget, budgeting, evaluation)]


@given(budgets, evaluations, st.lists(st.integers(0, 3), min_size=1, max_size=20))
def test_one_failure_alerts_nobody_whatever_the_traffic(
    budget: Decimal, evaluation: Evaluation, traffic: list[int]
) -> None:
    """The one failure is spread over the evaluations whose base window sees it, as rate() does."""
    step, seen = evaluation.interval, spoilt_slices(evaluation)
    others = islice(cycle(traffic), 4 * seen)
    spread = 1 / (seen - 1)
    history = [
        Count(i * step, spread if i < seen else 0, other + (spread if i < seen else 0))
        for i, other in enumerate(others)
    ]
    for condition in conditions(budget, OCCURRENCES, evaluation):
        for count in history:
            assert not holds(condition, [Component(Counts(history))], count.at)


@given(budgets, evaluations, st.lists(st.booleans(), min_size=1, max_size=20))
def test_one_failure_alerts_nobody_though_it_spoils_every_slice_that_sees_it(
    budget: Decimal, evaluation: Evaluation, traffic: list[bool]
) -> None:
    """Slices without traffic are not there at all."""
    step, seen = evaluation.interval, spoilt_slices(evaluation)
    spoilt = [Count(i * step, 1, 1) for i in range(seen)]
    later = islice(cycle(traffic), 3 * seen)
    history = spoilt + [Count(i * step, 0, 1) for i, any_ in enumerate(later, seen) if any_]
    for condition in conditions(budget, TIMESLICES, evaluation):
        for count in history:
            assert not holds(condition, [Component(Counts(history))], count.at)


def test_a_window_with_too_few_slices_for_its_floor_is_left_out_and_named() -> None:
    slow = Evaluation(scrape_interval=60, interval=600, base=3000)
    found, notes = burns_for(Decimal("0.001"), MONTH, TIMESLICES, slow, pages=True)
    assert [burn.name for burn in found] == ["medium", "slow", "creeping"]
    assert notes[-1].startswith("burn fast left out: at least 7 bad slices are asked for")
