"""Budgets of calendar periods, what is recorded of an objective and with which labels."""

from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from plans import DAY, chat_plan, composite, objective, plan
from promtool import Said, ask

from inferslo.rules import causes, naming, recording
from inferslo.rules.compile import compile_rules
from inferslo.rules.model import Recording
from inferslo.slo.plan import Budgeting, Calendar, Objective, Window

ONE = '{service="checkout-assistant",slo="availability"}'
BAD, TOTAL = f"{naming.BAD.name}{ONE}", f"{naming.TOTAL.name}{ONE}"
OBJECTIVE = f"{naming.OBJECTIVE.name}{ONE}"
DAY_OF_5M = 288


def budget_of(one: Objective) -> tuple[str, str]:
    """Expressions without labels: what is left of the budget, and its coverage."""
    left, covered = recording.budget(plan(one), one)
    assert left.record == naming.BUDGET_REMAINING.name
    assert covered.record == naming.BUDGET_COVERAGE.name
    return f"sum({left.expr})", f"sum({covered.expr})"


def days(begin: int, bad: int, after: int) -> dict[str, str]:
    """From day `begin` on 2 % of events are bad for some days, then none. Time begins on Thursday,
    1 January 1970."""
    none, first, second = (count * DAY_OF_5M for count in (begin, bad, after))
    missing = f"_x{none} " if none else ""
    return {
        BAD: f"{missing}0.02x{first - 1} 0x{second}",
        TOTAL: f"{missing}1x{first + second}",
        OBJECTIVE: f"0.99x{none + first + second}",
    }


@pytest.mark.parametrize(
    ("calendar", "begin"), [(Calendar.WEEK, 4), (Calendar.MONTH, 31)], ids=["week", "month"]
)
def test_a_calendar_budget_begins_anew(tmp_path: Path, calendar: Calendar, begin: int) -> None:
    one = objective("availability", window=Window(30 * DAY, calendar), min_coverage=Decimal(0))
    left, covered = budget_of(one)
    ask(
        tmp_path,
        days(begin - 2, 2, 2),
        Said(f"{begin * 24 - 1}h", left, -1),
        Said(f"{begin * 24 + 12}h", left, 1),
        Said(f"{begin * 24 + 12}h", f"{covered} > bool 0.99", 1),
        step="5m",
    )


def test_a_calendar_period_of_which_half_was_not_seen_claims_no_budget(tmp_path: Path) -> None:
    one = objective(
        "availability", window=Window(7 * DAY, Calendar.WEEK), min_coverage=Decimal("0.6")
    )
    left, covered = budget_of(one)
    late = {BAD: f"_x{5 * DAY_OF_5M} 0x{DAY_OF_5M}", TOTAL: f"_x{5 * DAY_OF_5M} 1x{DAY_OF_5M}"}
    ask(
        tmp_path,
        late | {OBJECTIVE: f"0.99x{6 * DAY_OF_5M}"},
        Said(f"{6 * 24}h", left, None),
        Said(f"{6 * 24}h", f"round({covered}, 0.01)", 0.5),
        step="5m",
    )


def test_a_rolling_budget_is_weighted_by_events(tmp_path: Path) -> None:
    """A busy day without a fault outweighs a quiet one of nothing else."""
    one = objective("availability", window=Window(2 * DAY), min_coverage=Decimal("0.001"))
    left, _ = budget_of(one)
    ask(
        tmp_path,
        {BAD: "0x288 0.1x288", TOTAL: "99.9x288 0.1x288", OBJECTIVE: "0.99x576"},
        Said("47h55m", f"round({left}, 0.01)", 0.9),
        step="5m",
    )


def test_a_composites_budget_is_by_weight(tmp_path: Path) -> None:
    one = composite(name="availability", window=Window(DAY), min_coverage=Decimal("0.001"))
    left, covered = budget_of(one)

    def part(series: naming.Series, name: str) -> str:
        return f'{series.name}{ONE[:-1]},component="{name}"}}'

    series = {
        part(naming.BAD, "negation"): "0.5x300",
        part(naming.TOTAL, "negation"): "1x300",
        part(naming.BAD, "vague_request"): "0x300",
        part(naming.TOTAL, "vague_request"): "9x300",
    }
    ask(tmp_path, series, Said("24h", left, -1), Said("24h", f"{covered} > bool 0", 1), step="5m")


def test_no_objective_needs_more_than_twelve_series() -> None:
    file = chat_plan()
    recorded = [r for g in compile_rules(file) for r in g.rules if isinstance(r, Recording)]
    counts = Counter(rule.labels["slo"] for rule in recorded)
    assert set(counts) == {one.name for one in file.objectives} | {causes.SLO}
    assert counts[causes.SLO] == 1
    assert max(counts.values()) <= 12


def test_recorded_series_have_the_names_and_labels_of_naming() -> None:
    known = {series.name: series for series in naming.SERIES}
    for group in compile_rules(chat_plan()):
        for rule in group.rules:
            if isinstance(rule, Recording):
                extra = set(rule.labels) - {"service", "slo"}
                allowed = {label.partition(" ")[0] for label in known[rule.record].labels}
                assert extra <= allowed, rule


def test_the_constant_objective_says_what_it_is_of() -> None:
    one = objective(
        "availability",
        "99.9",
        window=Window(30 * DAY, Calendar.MONTH),
        budgeting=Budgeting.TIMESLICES,
        slice_target=Decimal("0.99"),
    )
    constant = next(r for r in recording.base(plan(one), one) if r.record == naming.OBJECTIVE.name)
    assert constant.expr == "vector(0.999)"
    assert constant.labels == {
        "service": "checkout-assistant",
        "slo": "availability",
        "budgeting": "timeslices",
        "signal": "availability",
        "period": "month",
    }


def test_budgets_are_exact_numbers() -> None:
    """Sloth writes 0.0009999999999999432."""
    one = objective("availability", "99.9")
    left, _ = recording.budget(plan(one), one)
    assert " / 0.001 and " in left.expr
