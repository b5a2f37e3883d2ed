from typing import Any

from inferslo.sidecar.events.journal import Series
from inferslo.sidecar.events.model import Event, parse
from inferslo.sidecar.events.tally import Limits, Tally

OVERFLOW = "inferslo_events_label_overflow_total"
REGENERATIONS = "inferslo_regenerations_total"
TURNS = "inferslo_agent_turns_total"


def regenerate(app: str) -> Event:
    return parse({"type": "regenerate", "app": app})


def turn(outcome: str, **common: Any) -> Event:
    return parse({"type": "agent_turn", "outcome": outcome, **common})


def counted(
    *events: Event, of: dict[Series, int] | None = None, label_values: int = 100, series: int = 1000
) -> dict[Series, int]:
    """All totals after the events, begun from the totals `of` an earlier run."""
    tally = Tally(of or {}, Limits(label_values, series))
    for event in events:
        tally.count(event)
    return (of or {}) | tally.take_changed()


def family(totals: dict[Series, int], name: str) -> dict[tuple[str, ...], int]:
    return {labels: value for (family, labels), value in totals.items() if family == name}


def test_only_what_changed_is_given_and_only_once() -> None:
    tally = Tally({(REGENERATIONS, ("a", "", "", "")): 7}, Limits(100, 1000))
    assert tally.take_changed() == {}
    tally.count(regenerate("b"))
    tally.count(regenerate("b"))
    assert tally.take_changed() == {(REGENERATIONS, ("b", "", "", "")): 2}
    assert tally.take_changed() == {}
    tally.count(regenerate("a"))
    assert tally.take_changed() == {(REGENERATIONS, ("a", "", "", "")): 8}


def test_the_other_outcomes_of_a_new_series_start_at_zero() -> None:
    turns = family(counted(turn("timeout", app="shop")), TURNS)
    assert {labels[-1]: value for labels, value in turns.items()} == {
        "success": 0,
        "timeout": 1,
        "format_error": 0,
        "tool_error": 0,
        "aborted": 0,
        "error": 0,
    }


def test_a_label_value_over_the_limit_is_counted_as_other() -> None:
    apps = ("a", "b", "c", "a", "d", "other")
    totals = counted(*map(regenerate, apps), label_values=2)
    assert family(totals, REGENERATIONS) == {
        ("a", "", "", ""): 2,
        ("b", "", "", ""): 1,
        ("other", "", "", ""): 3,
    }
    assert family(totals, OVERFLOW) == {("app",): 2}


def test_values_of_one_label_are_bounded_over_all_families() -> None:
    totals = counted(regenerate("a"), turn("success", app="b"), label_values=1)
    assert family(totals, TURNS)[("other", "", "", "", "success")] == 1


def test_admitted_values_keep_their_place_over_a_restart() -> None:
    before = counted(regenerate("a"), regenerate("b"), label_values=2)
    after = counted(regenerate("c"), regenerate("b"), of=before, label_values=2)
    assert family(after, REGENERATIONS) == {
        ("a", "", "", ""): 1,
        ("b", "", "", ""): 2,
        ("other", "", "", ""): 1,
    }


def test_a_lowered_limit_takes_no_series_away() -> None:
    before = counted(*map(regenerate, "abcd"))
    after = counted(regenerate("d"), regenerate("e"), of=before, label_values=1)
    assert family(after, REGENERATIONS) == {
        ("a", "", "", ""): 1,
        ("b", "", "", ""): 1,
        ("c", "", "", ""): 1,
        ("d", "", "", ""): 2,
        ("other", "", "", ""): 1,
    }


def test_a_family_over_its_series_keeps_outcomes_apart_and_leaves_other_families_theirs() -> None:
    turns = [turn("timeout", app=f"app{n}", tenant=f"tenant{n}") for n in range(5)]
    totals = counted(*turns, regenerate("app9"), series=12)
    assert {labels: value for labels, value in family(totals, TURNS).items() if value} == {
        ("app0", "", "tenant0", "", "timeout"): 1,
        ("app1", "", "tenant1", "", "timeout"): 1,
        ("other", "", "other", "", "timeout"): 3,
    }
    assert family(totals, OVERFLOW) == {("app",): 3, ("tenant",): 3}
    assert family(totals, REGENERATIONS) == {("app9", "", "", ""): 1}
