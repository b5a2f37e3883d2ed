"""The judge by itself: what it says when little is known, of groups, of clocks and restarts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest
from judges import ANY, DAY, STEP, TURNS, judge, page, play, turns
from plans import MATCH, objective

from inferslo.exporters import names
from inferslo.exporters.reading import Point
from inferslo.sidecar.judge.firing import Firing
from inferslo.sidecar.judge.gauges import points as gauges
from inferslo.sidecar.judge.history import History
from inferslo.sidecar.judge.judge import Judgement
from inferslo.sidecar.judge.verdict import Verdict
from inferslo.slo.budget import State
from inferslo.slo.plan import Query, Selection


def only(judgement: Judgement) -> Verdict:
    [verdict] = judgement.verdicts
    return verdict


def told(judgement: Judgement) -> set[tuple[str, str, str]]:
    return {(a.alert.alert, a.labels["slo"], a.labels["tier"]) for a in judgement.alerts}


def test_nothing_is_good_before_anything_is_known() -> None:
    first = only(judge(objective("availability", selection=ANY)).step([], 0))
    assert first.state is State.NO_DATA
    assert (first.ratio, first.burn_rate, first.incident) == (None, None, None)
    assert first.spent.remaining is None


def test_no_traffic_no_data_and_a_missing_signal_are_three_states() -> None:
    one = judge(objective("availability", selection=ANY))
    states = [only(one.step(page(100), at * STEP)).state for at in range(3)]
    assert states[-1] is State.NO_TRAFFIC
    without = [p for p in page(100) if p.family is not names.REQUESTS]
    later = [only(one.step(without, at * STEP)).state for at in range(3, 15)]
    assert later[-1] is State.SIGNAL_MISSING
    assert only(one.step([], 15 * STEP)).state is State.NO_DATA


def test_an_outage_pages_tier_one_within_five_minutes_and_resolves() -> None:
    one = judge(objective("availability", selection=ANY))
    for at in range(20):
        assert not told(one.step(page(good=10 * at), at * STEP))
    paged = [told(one.step(page(200, 10 * at), (20 + at) * STEP)) for at in range(10)]
    assert ("InfersloAvailabilityBurn", "availability", "1") in paged[-1]
    last = play(one, (page(200 + 100 * at, 100) for at in range(300)), begin=30)
    assert ("InfersloAvailabilityBurn", "availability", "1") not in told(last)


def test_one_failure_at_night_calls_nobody() -> None:
    one = judge(objective("availability", "99.9", selection=ANY, min_coverage=Decimal(0)))
    for at in range(40):
        last = one.step(page(1 if at < 20 else 2, float(at > 20)), at * STEP)
        assert not told(last), at


def test_each_tenant_has_a_budget_of_its_own() -> None:
    one = judge(objective("agent_turn_success", **TURNS))
    last = play(one, (turns(acme=(10 * at, 0), bad=(0, 10 * at)) for at in range(25)))
    ratios = {dict(verdict.group)["tenant"]: verdict.ratio for verdict in last.verdicts}
    assert ratios == {"acme": 0, "bad": 1}
    paged = {a.labels["tenant"] for a in last.alerts if a.labels["severity"] == "page"}
    assert paged == {"bad"}
    published = {p.labels[2]: p.value for p in gauges(one.plan, last) if p.family is names.SLO_GOOD}
    assert published == {"tenant=acme": 1, "tenant=bad": 0}


def test_a_tenant_that_left_is_still_judged_by_its_history() -> None:
    one = judge(objective("agent_turn_success", **TURNS))
    for at in range(25):
        one.step(turns(gone=(0, 10 * at)), at * STEP)
    later = only(one.step(turns(), 40 * STEP))
    assert dict(later.group) == {"tenant": "gone"}
    assert later.ratio is None
    assert later.burn_rate is not None


def test_groups_are_bounded() -> None:
    one = judge(objective("agent_turn_success", **TURNS))
    many = {f"t{n}": (1.0, 0.0) for n in range(300)}
    last = play(one, (turns(**many) for _ in range(3)))
    assert len(last.verdicts) == 200


def test_all_engines_down_mutes_latency_and_is_itself_a_page() -> None:
    one = judge(objective("availability", selection=ANY), objective("ttft", selection=ANY))
    for at in range(20):
        one.step(page(10 * at), at * STEP)
    last = play(one, (page(0, up=False) for _ in range(40)), begin=20)
    assert ("InfersloEngineDown", "engine", "1") in told(last)
    assert not any(alert in ("InfersloTTFTBurn", "InfersloNoData") for alert, _, _ in told(last))


ENGINE_DOWN = ("InfersloEngineDown", "engine", "1")
OF_M = Selection(match=(("model_name", ("m",)),))
DEAD = 20  # the step from which the engine does not answer


@pytest.mark.parametrize("selection", [ANY, OF_M])
@pytest.mark.parametrize("hours", [1, 2, 20])
def test_an_engine_that_stays_away_stays_a_page(selection: Selection, hours: int) -> None:
    """What it was called, and so whose it is, is not forgotten meanwhile."""
    one = judge(objective("availability", selection=selection), selection=selection)
    play(one, (page(10 * at) for at in range(DEAD)))
    for at in range(hours * 3600 // STEP):
        judgement = one.step(page(0, up=False), (DEAD + at) * STEP)
        assert (ENGINE_DOWN in told(judgement)) is (at * STEP >= 60), at * STEP


@pytest.mark.parametrize("selection", [ANY, OF_M])
@pytest.mark.parametrize("away", [60, 7200])
def test_a_sidecar_that_restarts_beside_a_dead_engine_pages(
    tmp_path: Path, selection: Selection, away: int
) -> None:
    slo = objective("availability", selection=selection)
    with closing(History(tmp_path / "slo.db", 31 * DAY)) as history:
        first = judge(slo, history=history, selection=selection)
        play(first, (page(10 * at) for at in range(DEAD)))
    with closing(History(tmp_path / "slo.db", 31 * DAY)) as history:
        again = judge(slo, history=history, selection=selection)
        pages = (page(0, up=False) for _ in range(3 * 3600 // STEP))
        last = play(again, pages, begin=DEAD + away // STEP)
        assert ENGINE_DOWN in told(last)


@pytest.mark.parametrize(("restarts", "severity"), [(False, "page"), (True, "ticket")])
def test_half_of_the_engines_that_stay_away(tmp_path: Path, restarts: bool, severity: str) -> None:
    """After a restart one that was away before is as one that was just added (docs/judge.md)."""
    slo = objective("availability", selection=OF_M)

    def pages(count: int, *, up: bool) -> Iterator[list[Point]]:
        for at in range(count):
            other = [Point(names.ENGINE_UP, ("other",), float(up))]
            if up:
                other.append(Point(names.ENGINE_INFO, ("other", "vllm", "1", "m"), 1.0))
            yield [*page(10 * at), *other]

    with closing(History(tmp_path / "slo.db", 31 * DAY)) as history:
        one = judge(slo, history=history, selection=OF_M)
        last = play(one, pages(DEAD, up=True))
        if restarts:
            one = judge(slo, history=history, selection=OF_M)
        last = play(one, pages(40, up=False), begin=DEAD)
    assert {a.labels["severity"] for a in last.alerts if a.labels["slo"] == "engine"} == {severity}


def test_an_engine_that_was_never_read_is_not_known_to_be_the_services() -> None:
    """Nor is it to Prometheus; with no model to choose by, it is."""
    for selection, pages in ((OF_M, False), (ANY, True)):
        one = judge(objective("availability", selection=selection), selection=selection)
        last = play(one, (page(0, up=False) for _ in range(20)))
        assert (ENGINE_DOWN in told(last)) is pages


def test_a_query_that_cannot_be_evaluated_here_is_said_and_the_others_are_judged() -> None:
    odd = Query(bad="holt_winters(x[5m], 0.1, 0.1)", total="x")
    one = judge(
        objective("availability", selection=ANY), objective("promql", query=odd, selection=ANY)
    )
    last = one.step(page(1), 0)
    assert [verdict.objective.name for verdict in last.verdicts] == ["availability"]
    assert "holt_winters" in last.unjudged["promql"]


def test_labels_of_scraped_targets_mean_nothing_here() -> None:
    """Nor do those that only what is judged has, as slo and tier."""
    match = (("namespace", ("prod",)), ("tier", ("backend",)), ("model_name", ("m",)))
    selection = Selection(match, per=("namespace", "slo"))
    one = judge(objective("availability", selection=selection), selection=Selection(match))
    last = only(play(one, (page(10 * at) for at in range(4))))
    assert (last.group, last.ratio) == ((), 0)


def test_another_model_of_the_engine_is_not_the_services() -> None:
    one = judge(objective("availability", selection=MATCH), selection=MATCH)
    last = only(play(one, (page(10 * at) for at in range(4))))
    assert last.ratio is None


def test_budgets_outlive_a_restart_and_tell_how_much_they_cover(tmp_path: Path) -> None:
    history = History(tmp_path / "slo.db", 31 * DAY)
    slo = objective("availability", selection=ANY, min_coverage=Decimal(0))
    first = judge(slo, history=history)
    before = only(play(first, (page(90 * at, 10 * at) for at in range(100)))).spent
    history.close()
    history = History(tmp_path / "slo.db", 31 * DAY)
    after = only(judge(slo, history=history).step(page(0), 200 * STEP)).spent
    history.close()
    assert before.remaining is not None
    assert after.remaining == pytest.approx(before.remaining)
    assert after.coverage == pytest.approx(before.coverage)
    assert after.failures == before.failures > 900


def test_a_clock_that_is_set_back_costs_what_lies_ahead_and_no_more() -> None:
    one = judge(objective("availability", selection=ANY, min_coverage=Decimal(0)))
    for at in range(100):
        one.step(page(90 * at, 10 * at), at * STEP)
    back = only(one.step(page(9000, 1000), 50 * STEP))
    assert back.spent.failures == pytest.approx(50 * 10, rel=0.1)
    last = only(play(one, (page(9000 + 90 * at, 1000) for at in range(9)), begin=51))
    assert last.ratio == 0


def test_a_clock_that_jumps_ahead_is_a_gap() -> None:
    one = judge(objective("availability", selection=ANY, min_coverage=Decimal(0)))
    for at in range(100):
        one.step(page(90 * at, 10 * at), at * STEP)
    ahead = only(one.step(page(9000, 1000), 10 * DAY))
    assert ahead.ratio is None
    assert ahead.spent.coverage == pytest.approx(99 * STEP / (30 * DAY), rel=0.1)


def test_firing_tells_when_it_began() -> None:
    one = judge(objective("availability", selection=ANY))
    begun: dict[str, Firing] = {}
    for at in range(40):
        for firing in one.step(page(0, 10 * at), at * STEP).alerts:
            if firing.labels["tier"] == "1" and firing.labels["severity"] == "page":
                begun.setdefault(firing.alert.alert, firing)
                assert firing.since == begun[firing.alert.alert].since
    assert begun
