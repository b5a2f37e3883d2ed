"""What an SLO file means once every default is filled in."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slofiles import EXAMPLE, FULL, QUERIES

from inferslo.rules import causes, warnings
from inferslo.slo.load import load_text
from inferslo.slo.plan import (
    Budgeting,
    Calendar,
    Canary,
    ClassTarget,
    Evaluation,
    Objective,
    OfficeHours,
    Plan,
    PromptRange,
    Query,
    Receiver,
    Severity,
    Urgency,
    When,
    Window,
)
from inferslo.slo.resolve import RESERVED
from inferslo.slo.resolve.prompts import partition, rest, within
from inferslo.slo.signals import Shape

DAY = 86400
SHORT, LONG = PromptRange(upto=8000), PromptRange(above=8000)


def plan_of(*objectives: str, rest: str = "") -> Plan:
    lines = "".join(f"- {{{objective}}}\n" for objective in objectives)
    return load_text(f"service: s\nobjectives:\n{lines}{rest}")


def objective_of(written: str, rest: str = "") -> Objective:
    return plan_of(f"name: a, objective: 99, {written}", rest=rest).objectives[0]


def test_the_example_of_the_docs_is_a_plan() -> None:
    plan = load_text(EXAMPLE)

    assert (plan.service, plan.owner) == ("checkout-assistant", "checkout-team")
    assert plan.selection.match == (("model_name", ("qwen3-27b",)),)
    assert plan.classes == (
        ClassTarget("S", ttft=Decimal("0.8"), e2e=Decimal("1.2")),
        ClassTarget("A", ttft=Decimal(2), e2e=Decimal(15)),
        ClassTarget("B", ttft=Decimal(15), urgency=Urgency.OFFICE_HOURS),
    )
    assert plan.class_header == "x-sla-class"
    assert plan.prompt_classes == (SHORT, LONG)
    assert plan.receivers == ()
    by_name = {objective.name: objective for objective in plan.objectives}
    assert by_name["answered"].budget == Decimal("0.005")
    assert by_name["first-token"].selection.prompts == (SHORT,)
    assert by_name["first-token-long"].selection.prompts == (LONG,)
    assert by_name["goodput-s"].selection.sla_class == "S"
    assert by_name["understood"].checks == (
        ("negation", Decimal("0.4")),
        ("vague_request", Decimal("0.6")),
    )
    assert all(o.selection.match == plan.selection.match for o in plan.objectives)


def test_a_file_of_every_key_is_a_plan() -> None:
    plan = load_text(FULL)

    a, _, _, d, e, f = plan.objectives
    assert plan.evaluation == Evaluation(scrape_interval=10, interval=15, base=120)
    assert plan.office_hours == OfficeHours("monday:saturday", "08:00", "17:30", "Europe/Berlin")
    assert plan.canary == Canary("revision", "b", "a")
    assert plan.warnings == (
        ("fragmentation", Decimal("0.15")),
        ("kv_full", None),
        ("queue_wait", Decimal("0.3")),
    )
    assert (plan.runbook_url, plan.dashboard_url) == ("https://h/{alert}", "https://h/d")
    assert plan.selection.match == (("job", ("j",)), ("model_name", ("a", "b")))
    assert a.window == Window(7 * DAY)
    assert f.window == Window(7 * DAY, Calendar.WEEK)
    assert (a.slice_target, a.min_coverage, a.expect_traffic) == (
        Decimal("0.95"), Decimal("0.1"), True,
    )  # fmt: skip
    assert a.urgency is Urgency.ALWAYS
    assert [tier.receiver for tier in a.response] == ["r"]
    assert (a.outage and a.outage.ratio, f.outage) == (Decimal("0.6"), None)
    assert d.query == Query(bad="x", total="y")
    assert (e.query, e.signal.shape, e.threshold) == (
        Query(value="x"), Shape.VALUE, Decimal("0.15"),
    )  # fmt: skip
    assert f.over == 600
    assert plan.receivers == (
        Receiver(
            "m", "email",
            (
                ("auth_password_file", "/f"), ("auth_username", "u"), ("from", "c@d"),
                ("require_tls", False),
                ("smarthost", "h:25"), ("to", "a@b"),
            ),
        ),
        Receiver("p", "pagerduty", (("routing_key_file", "/f"),)),
        Receiver("r", "slack", (("api_url_file", "/f"), ("channel", "#c"))),
        Receiver("w", "webhook", (("url", "https://h/x"),)),
    )  # fmt: skip


def test_queries_of_ones_own_are_events_or_a_value() -> None:
    events, value = load_text(QUERIES).objectives

    assert (events.signal.shape, events.budgeting) == (Shape.EVENTS, Budgeting.OCCURRENCES)
    assert events.query == Query(
        bad='sum(rate(bookings_total{result="failed"}[$window]))',
        total="sum(rate(bookings_total[$window]))",
    )
    assert (value.signal.shape, value.budgeting) == (Shape.VALUE, Budgeting.TIMESLICES)
    assert (value.threshold, value.over) == (Decimal(100), None)


def test_equal_files_make_equal_plans() -> None:
    one = plan_of(
        "name: a, objective: 99.5, signal: ttft, threshold: 800ms, per: [b, a]",
        rest="match: {x: [b, a], job: j}\n",
    )
    other = plan_of(
        'name: a, threshold: 0.80s, signal: ttft, objective: "99.50 %", per: [a, b]',
        rest="match: {job: [j], x: [a, b, a]}\n",
    )

    assert one == other
    assert repr(one) == repr(other)


@pytest.mark.parametrize("written", ["99.9", '"99.9 %"', "99.90"])
def test_a_budget_is_exact(written: str) -> None:
    [objective] = plan_of(f"name: a, signal: goodput, class: S, objective: {written}",
                          rest="classes: {S: {ttft: 1s}}\n").objectives  # fmt: skip

    assert (str(objective.objective), str(objective.budget)) == ("0.999", "0.001")


def test_defaults_of_an_objective() -> None:
    objective = objective_of("signal: availability")

    assert objective.window == Window(30 * DAY)
    assert objective.budgeting is Budgeting.OCCURRENCES
    assert objective.urgency is Urgency.ALWAYS
    assert objective.bad_outcomes == ("error", "timeout", "aborted", "rejected", "empty")
    assert (objective.min_coverage, objective.expect_traffic) == (Decimal("0.5"), False)
    assert [burn.name for burn in objective.burns] == ["fast", "medium", "slow", "creeping"]
    assert objective.outage is not None


def test_requests_that_gave_up_are_late_unless_the_file_says_otherwise() -> None:
    written = "signal: ttft, threshold: 2s"

    assert objective_of(written).bad_outcomes == ("aborted", "timeout")
    assert objective_of(f"{written}, bad_outcomes: []").bad_outcomes == ()
    assert objective_of(f"{written}, bad_outcomes: [timeout]").bad_outcomes == ("timeout",)


@pytest.mark.parametrize(
    ("signal", "threshold", "over", "pages"),
    [
        ("tail_ratio", "3", 300, False),
        ("tpot_cv", "0.5", 300, False),
        ("memory_growth", "0.02", 3600, False),
        ("fallback_count", "50", 3600, True),
    ],
)
def test_a_value_is_budgeted_by_time(signal: str, threshold: str, over: int, pages: bool) -> None:
    objective = objective_of(f"signal: {signal}")

    assert objective.budgeting is Budgeting.TIMESLICES
    assert (objective.threshold, objective.over) == (Decimal(threshold), over)
    assert (objective.outage is not None) is pages
    assert any(burn.severity is Severity.PAGE for burn in objective.burns) is pages


def test_whether_it_pages_may_be_said() -> None:
    assert objective_of("signal: tail_ratio, pages: true").outage is not None
    quiet = objective_of("signal: availability, pages: false")
    assert quiet.outage is None
    assert {burn.severity for burn in quiet.burns} == {Severity.TICKET}


def test_an_objective_of_a_class_takes_its_target_and_urgency() -> None:
    classes = "classes: {B: {ttft: 15s, urgency: office-hours}}\n"

    taken = objective_of("signal: ttft, class: B", classes)
    assert (taken.threshold, taken.urgency) == (Decimal(15), Urgency.OFFICE_HOURS)
    own = objective_of("signal: ttft, class: B, threshold: 9s, urgency: always", classes)
    assert (own.threshold, own.urgency) == (Decimal(9), Urgency.ALWAYS)
    assert objective_of("signal: availability, class: default", classes).urgency is Urgency.ALWAYS


def test_objectives_without_a_range_speak_of_the_lengths_that_are_left() -> None:
    plan = plan_of(
        "name: rest, objective: 99, signal: ttft, threshold: 2s",
        "name: middle, objective: 99, signal: ttft, threshold: 5s, prompt_tokens: 2000..8000",
        "name: long, objective: 99, signal: ttft, threshold: 9s, prompt_tokens: '> 8000'",
        "name: other-signal, objective: 99, signal: e2e, threshold: 9s",
        "name: other-class, objective: 99, signal: ttft, class: S, threshold: 9s",
        "name: wide, objective: 99, signal: tpot, threshold: 1s, prompt_tokens: '> 2000'",
        rest="classes: {S: {ttft: 1s}}\n",
    )

    parts = (PromptRange(None, 2000), PromptRange(2000, 8000), PromptRange(8000, None))
    assert plan.prompt_classes == parts
    assert {o.name: o.selection.prompts for o in plan.objectives} == {
        "rest": parts[:1],
        "middle": parts[1:2],
        "long": parts[2:],
        "other-signal": (),
        "other-class": (),
        "wide": parts[1:],
    }


bounds = st.integers(1, 50)
ranges = st.one_of(
    bounds.map(lambda b: PromptRange(above=b)),
    bounds.map(lambda b: PromptRange(upto=b)),
    st.tuples(bounds, bounds).filter(lambda t: t[0] < t[1]).map(lambda t: PromptRange(*t)),
)


def holds(range_: PromptRange, length: int) -> bool:
    return (range_.above or 0) < length and (range_.upto is None or length <= range_.upto)


@given(st.lists(ranges, min_size=1, max_size=5), st.integers(1, 60))
def test_every_length_is_in_one_part_and_is_either_claimed_or_left(
    claimed: list[PromptRange], length: int
) -> None:
    parts = partition(claimed)

    assert sum(holds(part, length) for part in parts) == 1
    for range_ in claimed:
        assert any(holds(p, length) for p in within(parts, range_)) == holds(range_, length)
    left = rest(parts, claimed) or ()
    is_claimed = any(holds(range_, length) for range_ in claimed)
    assert any(holds(part, length) for part in left) is not is_claimed


def test_where_nothing_is_claimed_all_lengths_are_meant() -> None:
    assert partition([]) == ()
    assert rest((), []) == ()


def test_the_tiers_have_their_reasons() -> None:
    names = ("operations", "engineering", "product")
    lines = "".join(f"- {{tier: {n}, team: {t}, receiver: r{n}}}\n" for n, t in enumerate(names, 1))

    first, second, third = plan_of(
        "name: a, objective: 99, signal: availability", rest=f"response:\n{lines}"
    ).response

    assert (first.when, first.after) == (frozenset({When.INCIDENT}), None)
    assert second.when == {When.FAST_BURN, When.SLOW_BURN}
    assert second.after == 1800
    assert third.when == {When.BUDGET_EXHAUSTED, When.REPEATED}
    assert (third.times, third.within) == (3, 7 * DAY)
    assert [tier.tickets for tier in (first, second, third)] == ["r1", "r2", "r3"]


def test_a_reason_that_is_written_stands_alone() -> None:
    lines = (
        "- {tier: 2, team: t, receiver: b, when: [slow burn]}\n"
        "- {tier: 1, team: t, receiver: a, tickets: c}\n"
        "- {tier: 3, team: t, receiver: c, when: budget exhausted}\n"
    )

    first, second, third = plan_of(
        "name: a, objective: 99, signal: availability", rest=f"response:\n{lines}"
    ).response

    assert (first.tier, first.tickets) == (1, "c")
    assert (second.when, second.after) == (frozenset({When.SLOW_BURN}), None)
    assert third.when == {When.BUDGET_EXHAUSTED}


def test_without_a_response_the_owner_acts_and_is_told_so() -> None:
    plan = plan_of("name: a, objective: 99, signal: availability", rest="owner: me\n")

    assert [(t.team, t.receiver) for t in plan.response] == [
        ("me", "tier-1"),
        ("me", "tier-2"),
        ("me", "tier-3"),
    ]
    assert any("nobody is named in `response`" in note for note in plan.notes)


def test_a_trigger_that_no_tier_acts_on_is_noted() -> None:
    plan = plan_of(
        "name: a, objective: 99, signal: availability",
        rest="response: [{tier: 1, team: t, receiver: r}]\n",
    )

    assert "response: no tier acts on: slow burn" in plan.notes
    assert "response: no tier acts on: budget exhausted" in plan.notes


def test_what_an_objective_needs_beyond_a_scrape_is_noted() -> None:
    notes = load_text(EXAMPLE).notes

    assert "first-token: needs the in-engine probe" in notes
    assert "goodput-s: needs the in-engine probe" in notes
    assert "turns: needs business events or a gateway" in notes
    assert not any(note.startswith("answered:") for note in notes)


def test_the_reserved_names_are_those_of_alerts_without_an_objective() -> None:
    assert set(RESERVED) == {causes.SLO, warnings.SLO, "watchdog"}


def test_own_burns_replace_the_defaults_of_file_and_objective() -> None:
    burn = "{name: %s, long: 2h, short: 10m, budget: 4, severity: page, min_bad: 7, min_total: 9}"
    plan = plan_of(
        "name: a, objective: 99, signal: availability",
        f"name: b, objective: 99, signal: availability, alerting: {{burns: [{burn % 'own'}]}}",
        rest=f"alerting: {{burns: [{burn % 'shared'}]}}\n",
    )

    [[shared], [own]] = [objective.burns for objective in plan.objectives]
    assert (shared.name, own.name) == ("shared", "own")
    assert (own.long, own.short, own.factor) == (7200, 600, Decimal("14.4"))
    assert own.threshold == Decimal("0.144")
    assert (own.floor.bad, own.floor.total) == (7, 9)
