"""The arithmetic of detection, held against histories played step by step."""

import math
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from inferslo.slo.budget import Component, Count, Counts, holds
from inferslo.slo.detection import reachable, seconds_to_alert, unreachable_at
from inferslo.slo.plan import Burn, Floor, Outage, Severity

NO_FLOOR = Floor(Decimal(0), Decimal(0))
HOUR = 3600


def burn(factor: str, budget: str, long: int = HOUR, short: int = HOUR // 12) -> Burn:
    threshold = Decimal(factor) * Decimal(budget)
    return Burn("b", long, short, Decimal(factor), threshold, Severity.PAGE, NO_FLOOR)


def played(condition: Burn | Outage, bad_ratio: float, base: int, step: int) -> float:
    """Seconds until `holds` says so, judged every `step` seconds on a recorded pair whose ratio
    ramps up to `bad_ratio` within `base` seconds, as a rate over the base window does."""
    longest = condition.window if isinstance(condition, Outage) else condition.long
    history = [Count(float(-at), 0, 1) for at in range(0, longest + step, step)]
    for at in range(step, longest + base + 2 * step, step):
        ramp = min(1.0, at / base) if base else 1.0
        history.append(Count(float(at), bad_ratio * ramp, 1))
        if holds(condition, [Component(Counts(history))], at):
            return at
    return math.inf


@pytest.mark.parametrize(
    ("factor", "limit"), [("14.4", "0.930555"), ("6", "0.833333"), ("3", "0.666666")]
)
def test_the_objectives_at_which_a_factor_is_unreachable(factor: str, limit: str) -> None:
    assert str(unreachable_at(Decimal(factor))).startswith(limit)


@given(
    st.decimals(Decimal(1), Decimal(50), places=2),
    st.decimals(Decimal("0.01"), Decimal("0.9"), places=2),
)
def test_what_is_reachable_is_what_a_total_outage_sets_off(
    factor: Decimal, budget: Decimal
) -> None:
    assume(factor * budget != 1)  # would need every single event of the window to be bad
    outcome = played(burn(str(factor), str(budget)), 1.0, base=0, step=60)
    assert reachable(factor, budget) == (outcome < math.inf)


def test_everything_must_be_bad_is_not_reachable() -> None:
    assert not reachable(Decimal(2), Decimal("0.5"))


@given(
    st.decimals(Decimal("0.01"), Decimal("0.99"), places=2),
    st.floats(0.02, 1.0),
    st.sampled_from([0, 300]),
)
def test_seconds_to_alert_are_those_of_the_history_played(
    threshold: Decimal, bad_ratio: float, base: int
) -> None:
    assume(abs(bad_ratio - float(threshold)) > 0.01)
    condition = burn("1", str(threshold))
    step = 30
    computed = seconds_to_alert(condition, bad_ratio, base)
    found = played(condition, bad_ratio, base, step)
    if math.isinf(computed):
        assert found == math.inf
    else:
        assert abs(found - computed) <= 2 * step


def test_textbook_minutes_of_a_total_outage() -> None:
    """Workbook ch. 5: 14.4 x 1 h x budget; 43 minutes at 95 %."""
    assert seconds_to_alert(burn("14.4", "0.001"), 1.0) == pytest.approx(51.84)
    assert seconds_to_alert(burn("14.4", "0.05"), 1.0) == pytest.approx(2592)
    assert seconds_to_alert(burn("14.4", "0.05"), 0.5) == math.inf


def test_the_base_window_blunts_the_step() -> None:
    assert seconds_to_alert(burn("14.4", "0.001"), 1.0, base=300) == pytest.approx(176.4, abs=0.1)


def test_an_outage_over_the_base_window_is_there_within_it() -> None:
    outage = Outage(Decimal("0.5"), 300, NO_FLOOR)
    assert seconds_to_alert(outage, 1.0, base=300) == 150
    assert seconds_to_alert(outage, 0.5, base=300) == 300
    assert seconds_to_alert(outage, 0.49, base=300) == math.inf
