"""What is published of a judgement: every family, with its labels, absent where it is not known."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from decimal import Decimal

import pytest
from judges import ANY, STEP, TURNS, judge, page, play, turns
from plans import objective
from promtool import promtool

from inferslo.exporters import names
from inferslo.exporters.names import FAMILIES, Feed
from inferslo.exporters.reading import Point
from inferslo.sidecar.board import Board
from inferslo.sidecar.judge.gauges import group_text, points
from inferslo.sidecar.judge.judge import Judge, Judgement
from inferslo.sidecar.publisher import Publisher
from inferslo.slo.plan import Tier, When

AVAILABILITY = objective("availability", selection=ANY)
SLO = {family for family in FAMILIES.values() if family.feed is Feed.JUDGE}
UNKNOWN = {
    names.SLO_GOOD, names.SLO_BURN_RATE, names.SLO_BUDGET_REMAINING, names.SLO_INCIDENT,
}  # fmt: skip


def published(one: Judge, judgement: Judgement) -> list[Point]:
    return list(points(one.plan, judgement))


def burning() -> tuple[Judge, Judgement]:
    one = judge(objective("availability", selection=ANY, min_coverage=Decimal(0)))
    return one, play(one, (page(0, 10 * at) for at in range(30)))


def test_every_family_of_the_judge_is_published_once_all_is_known() -> None:
    one, last = burning()
    found = {p.family: p for p in published(one, last) if p.family is not names.SLO_ALERTS}
    assert found.keys() | {names.SLO_ALERTS} == SLO
    labels = ("checkout-assistant", "availability", "")
    told = {family: point.value for family, point in found.items() if point.labels == labels}
    assert told[names.SLO_OBJECTIVE] == 0.99
    assert told[names.SLO_GOOD] == 0
    assert told[names.SLO_BURN_RATE] == pytest.approx(100)
    assert told[names.SLO_STATE] == 0
    assert told[names.SLO_INCIDENT] == 1
    assert found[names.SLO_JUDGED_TIMESTAMP] == Point(
        names.SLO_JUDGED_TIMESTAMP, ("checkout-assistant",), 29 * STEP
    )


def test_what_is_not_known_is_absent_and_not_0() -> None:
    one = judge(AVAILABILITY)
    found = {point.family for point in published(one, one.step([], 0))}
    assert found == SLO - UNKNOWN


def test_alerts_are_counted_by_tier_and_severity_0_where_none_fires() -> None:
    one, last = burning()
    counts = {p.labels[1:]: p.value for p in published(one, last) if p.family is names.SLO_ALERTS}
    assert counts["1", "page"] == 1
    assert counts["3", "page"] == 0
    assert {tier for tier, _ in counts} == {"1", "2", "3"}


def test_a_tier_that_only_one_objective_has_is_counted_too() -> None:
    own = (Tier(4, "t", "r", "m", frozenset({When.INCIDENT})),)
    one = judge(objective("availability", selection=ANY, response=own))
    last = play(one, (page(0, 10 * at) for at in range(30)))
    counts = {p.labels[1:]: p.value for p in published(one, last) if p.family is names.SLO_ALERTS}
    assert counts["4", "page"] == 1


@pytest.mark.parametrize("tenants", [("a", "b"), ("a,b=c", "a\\,b=c", "a\\"), ('"', "a\nb")])
def test_each_group_has_series_of_its_own_whatever_its_labels_are(tenants: tuple[str]) -> None:
    one = judge(objective("agent_turn_success", **TURNS))
    last = play(one, (turns(**dict.fromkeys(tenants, (10.0 * at, 0))) for at in range(5)))
    series = [(p.family.name, p.labels) for p in published(one, last)]
    assert len(series) == len(set(series))
    assert sum(p.family is names.SLO_GOOD for p in published(one, last)) == len(tenants)


def test_two_labels_cannot_be_taken_for_one() -> None:
    """tenant "a,x=b" is not tenant "a" with x "b"."""
    [verdict] = judge(AVAILABILITY).step([], 0).verdicts
    pairs = (("a,team=b", ""), ("a", "b"), ("a\\", "b"), ("a\\,team=b", ""))
    groups = [tuple({"tenant": t, **({"team": u} if u else {})}.items()) for t, u in pairs]
    assert len({group_text(replace(verdict, group=group)) for group in groups}) == 4


@pytest.mark.promtool
def test_the_page_is_as_promtool_wants_it() -> None:
    one, last = burning()
    board = Board()
    publisher = Publisher(lambda: [*board.points(), *points(one.plan, last)], lambda: 0)
    page, _ = publisher.page("text/plain", compress=False)
    assert b"inferslo_slo_incident{" in page
    ran = subprocess.run([promtool(), "check", "metrics"], input=page, capture_output=True)
    lines = [line for line in (ran.stdout + ran.stderr).decode().splitlines() if "slo_" in line]
    assert (ran.returncode, lines) == (0, [])
