"""What is generated: it passes for every signal and kind of objective, and it is whole."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from plans import DAY, MATCH, burns, chat_plan, composite, objective, plan

from inferslo.rules.compile import compile_rules
from inferslo.rules.formats import write
from inferslo.rules.model import Alert, Format, Group
from inferslo.rules.testing import UntestedError, cases_of, rule_tests, untested
from inferslo.rules.testing.case import note_of
from inferslo.rules.testing.world import worlds
from inferslo.rules.verify import run_tool
from inferslo.rules.warnings import catalogue
from inferslo.slo.plan import (
    Budgeting,
    Calendar,
    Evaluation,
    Floor,
    Objective,
    Outage,
    Plan,
    Query,
    Selection,
    Severity,
    Window,
)
from inferslo.slo.signals import SIGNALS

OFF = tuple((warning.name, None) for warning in catalogue())


def small(*objectives: Objective, **overrides: object) -> Plan:
    """Without early warnings, which promtool would evaluate for every case."""
    return plan(*objectives, **{"warnings": OFF, **overrides})


def sliced(signal: str) -> Objective:
    """Events counted in slices, with the floors that those have."""
    slow, page = Floor(Decimal(12), Decimal(48)), Floor(Decimal(12), Decimal(24))
    conditions = burns(Decimal("0.01"))
    return objective(
        signal,
        budgeting=Budgeting.TIMESLICES,
        slice_target=Decimal("0.95"),
        outage=Outage(Decimal("0.5"), 600, Floor(Decimal(12), Decimal(12))),
        burns=tuple(
            replace(burn, floor=page if burn.severity is Severity.PAGE else slow)
            for burn in conditions
        ),
    )


QUERY = Query(bad="sum(rate(x_bad[$window]))", total="sum(rate(x_all[$window]))")
TONE = (("tone", Decimal(1)),)
PLANS = {
    "engine": small(
        *(objective(name, "95") for name in ("availability", "ttft", "tpot", "queue", "tpot_cv")),
        objective("goodput", selection=replace(MATCH, sla_class="S")),
    ),
    "resources": small(
        *(objective(name, "95") for name in ("itl", "e2e", "gpu_utilization_cv")),
        *(objective(name, "95") for name in ("kv_fragmentation", "memory_growth")),
    ),
    "business": small(
        *(objective(name, "95") for name in ("context_retention", "session_completion")),
        *(objective(name, "98") for name in ("agent_turn_success", "fallback_rate")),
        objective("check", "95", name="tone", checks=TONE),
        composite(),
    ),
    "values": small(
        objective("tail_ratio", "95"),
        objective("fallback_count"),
        objective("session_interruption", "99.9"),
        objective("promql", query=QUERY),
    ),
    "slices, months and groups": small(
        sliced("availability"),
        objective("ttft", expect_traffic=True, window=Window(30 * DAY, Calendar.MONTH)),
        objective("e2e", selection=replace(MATCH, per=("namespace",))),
    ),
    "seconds": small(
        objective("availability"),
        objective("ttft", "95"),
        selection=Selection(),
        evaluation=Evaluation(scrape_interval=5, interval=5, base=30),
    ),
}


@pytest.mark.parametrize("kind", PLANS)
def test_the_rules_pass_their_tests(tmp_path: Path, kind: str) -> None:
    made = PLANS[kind]
    groups = compile_rules(made)
    rules = write({made.service: groups}, Format.PROMETHEUS)
    (tmp_path / "rules.yaml").write_text(rules, encoding="utf-8")
    tests = tmp_path / "rules.test.yaml"
    tests.write_text(rule_tests(made, groups), encoding="utf-8")
    ran = run_tool(["promtool", "test", "rules", str(tests)])
    assert (ran.code, "SUCCESS" in ran.output) == (0, True), ran.output


def test_every_signal_is_in_a_plan_that_passes() -> None:
    tested = {each.signal.name for made in PLANS.values() for each in made.objectives}
    assert tested == set(SIGNALS)


def test_every_alert_is_made_to_fire() -> None:
    made = chat_plan()
    groups = compile_rules(made)
    assert untested(groups, cases_of(made, groups)) == []


def test_an_alert_that_nothing_makes_fire_stops_the_generator() -> None:
    made = small(objective("availability"))
    labels = {"service": made.service, "slo": "availability", "tier": "1", "severity": "page"}
    stray = Group("stray", 30, (Alert("InfersloStray", "vector(0) > 1", labels, {}),))
    with pytest.raises(UntestedError, match="InfersloStray"):
        rule_tests(made, [*compile_rules(made), stray])


def test_the_same_plan_makes_the_same_bytes() -> None:
    made = chat_plan()
    assert rule_tests(made, compile_rules(made)) == rule_tests(made, compile_rules(made))


def test_every_check_says_what_it_is_about() -> None:
    made = chat_plan()
    tests = yaml.safe_load(rule_tests(made, compile_rules(made)))["tests"]
    notes = [note_of(check["expr"]) for each in tests for check in each["promql_expr_test"]]
    assert len(notes) > 300
    assert all(notes)
    about = {note.about for note in notes if note}
    assert {each.name for each in made.objectives} <= about


def test_no_alert_is_tested_without_its_labels() -> None:
    """A wrong tier or team is as bad as no alert."""
    made = small(objective("availability"))
    text = rule_tests(made, compile_rules(made))
    assert 'slo="availability",team="engineering",tier="2",urgency="always"' in text


def test_a_file_that_minds_one_failure_is_not_asked_to_be_quiet_about_it() -> None:
    strict = Outage(Decimal("0.5"), 300, Floor(Decimal(1), Decimal(1)))
    for outage, quiet in ((strict, False), (objective("ttft").outage, True)):
        made = small(objective("availability", outage=outage))
        text = rule_tests(made, compile_rules(made))
        assert ("one failed request" in text) is quiet


def test_objectives_that_read_the_same_series_fail_in_worlds_of_their_own() -> None:
    tight = objective("ttft", name="tight", threshold=Decimal("0.5"))
    loose = objective("ttft", "90", name="loose")
    split = worlds(small(tight, objective("availability"), loose))
    assert [[each.name for each in world.objectives] for world in split] == [
        ["tight", "availability"],
        ["loose"],
    ]
