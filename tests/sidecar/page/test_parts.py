"""What the page says, of judgements that were played."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from plans import RESPONSE, objective
from stage import ANY, Played, Stage, small_plan

from inferslo.sidecar.page.assets import assets
from inferslo.sidecar.page.document import SECTIONS, page
from inferslo.sidecar.page.objectives import promise
from inferslo.slo.plan import Plan, Query

Make = Callable[..., Stage]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Stage] = []

    def make(judged: Plan | None = None, **options: Any) -> Stage:
        made.append(Stage(tmp_path, judged, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def known(plan: Plan) -> Plan:
    """Budgets are claimed from the first hour on."""
    few = Decimal("0.0001")
    return replace(plan, objectives=tuple(replace(o, min_coverage=few) for o in plan.objectives))


def text(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def part(stage: Stage, name: str) -> str:
    return text(stage.parts()[name].html)


def test_all_well(make: Make) -> None:
    stage = make(known(small_plan()))
    stage.play(130)
    assert part(stage, "headline") == "All 4 objectives are met."
    assert "Nobody is told" in part(stage, "alerts")
    assert part(stage, "objectives").count("OK") == 4
    assert part(stage, "objectives").count("100 %") >= 4
    assert part(stage, "tiers").count("not told") == 3


def test_a_budget_is_not_claimed_before_enough_is_known(make: Make) -> None:
    stage = make(small_plan())
    stage.play(130)
    assert part(stage, "headline") == ("All 4 objectives are met now; 4 budgets are not yet known.")
    assert part(stage, "objectives").count("not claimed under 1 % of the period is known") == 4


def test_what_burns_although_nobody_is_told_yet_is_said(make: Make) -> None:
    stage = make(known(small_plan()))
    stage.play(400)
    stage.play(14, slow=0.35)
    assert part(stage, "headline") == (
        "All 4 objectives are met, but the budget of first-token burns too fast."
    )


def test_an_incident_tells_tier_1_with_reason_actions_and_runbook(make: Make) -> None:
    stage = make(small_plan())
    stage.play(130)
    stage.play(20, slow=0.6, waiting=80)
    headline, alerts = part(stage, "headline"), part(stage, "alerts")
    assert headline.startswith("Tier 1 is told: first-token: the answer takes long to begin")
    assert "Page checkout-assistant/first-token" in alerts
    assert "Users feel: The answer takes long to begin." in alerts
    assert "Do first See what else fires" in alerts
    assert "Tier 1, operations, is paged since" in alerts
    assert 'href="/runbooks/InfersloTTFTBurn"' in stage.parts()["alerts"].html
    assert "Incident first-token" in part(stage, "objectives")
    assert "What to do first stands with its alert." in part(stage, "objectives")
    assert "paged: First-token" in part(stage, "tiers")


def test_an_incident_that_lasts_tells_tier_2_too(make: Make) -> None:
    stage = make(small_plan())
    stage.play(130)
    stage.play(80, slow=0.6)
    assert part(stage, "headline").startswith("Tiers 1 and 2 are told: ")
    assert "Tier 2, engineering, is paged since" in part(stage, "alerts")


def test_the_gravest_stands_first_not_the_oldest(make: Make) -> None:
    stage = make(small_plan())
    stage.play(130)
    stage.play(40, slow=0.6)
    stage.play(20, slow=0.6, bad=0.99)
    html = page(stage.facts(), assets())
    assert "Tiers 1 and 2 are told: answered: requests fail" in part(stage, "headline")
    assert "<title>PAGE answered · " in html
    alerts = part(stage, "alerts")
    assert alerts.index("checkout-assistant/answered") < alerts.index("checkout-assistant/first")


SAID = "Searches find what is there."


@pytest.mark.parametrize("signal", ["availability", "promql"])
def test_a_description_stands_with_its_objective_and_its_alert(make: Make, signal: str) -> None:
    errors = 'sum(rate(inferslo_requests_total{outcome="error"}[$window]))'
    query = Query(bad=errors, total="sum(rate(inferslo_requests_total[$window]))")
    own: dict[str, Any] = {"query": query} if signal == "promql" else {}
    searches = objective(signal, name="searches", selection=ANY, description=SAID, **own)
    stage = make(small_plan(objectives=(searches,)))
    stage.play(130)
    stage.play(20, bad=0.6)
    assert f"searches {SAID} " in part(stage, "objectives")
    assert SAID in part(stage, "alerts")
    feels = SAID.rstrip(".").lower() if signal == "promql" else "requests fail"
    assert f"searches: {feels}" in part(stage, "headline")


def test_without_a_description_nothing_stands_in_its_place(make: Make) -> None:
    stage = make(small_plan())
    stage.play(130)
    stage.play(20, bad=0.6)
    assert '<span class="small"></span>' not in stage.html()
    assert '<p class="small"></p>' not in stage.html()


def test_a_spent_budget_is_a_ticket_for_tier_3_and_pages_nobody(make: Make) -> None:
    stage = make(known(small_plan()))
    stage.play(130, bad=0.006)
    headline = part(stage, "headline")
    assert headline.startswith("Nobody is paged. Ticket for answered: requests fail")
    assert "Tier 3, product, has a ticket since" in part(stage, "alerts")
    assert "Burns slowly answered" in part(stage, "objectives")
    assert "overspent" in part(stage, "objectives")


def test_a_budget_that_is_spent_shows_when_nothing_burns(make: Make) -> None:
    stage = make(known(small_plan()))
    stage.play(10)
    assert stage.judging is not None
    judged = stage.judging.latest
    assert judged is not None
    answered, *others = judged.verdicts
    spent = replace(answered, spent=replace(answered.spent, remaining=-0.5))
    stage.judging.latest = replace(judged, verdicts=[spent, *others])
    assert "Budget spent answered" in part(stage, "objectives")
    assert "Freeze risky changes" in part(stage, "objectives")
    assert part(stage, "headline") == "Nobody is told. OK: 3, Budget spent: 1 of 4 objectives."


def test_alerts_of_one_thing_at_several_tiers_are_one(make: Make) -> None:
    stage = make(small_plan())
    stage.play(130)
    stage.play(80, slow=0.6)
    html = stage.parts()["alerts"].html
    assert html.count("checkout-assistant/first-token") == 1
    assert html.count("is paged since") == 4  # two objectives, two tiers


def test_no_traffic_and_no_data_are_not_good(make: Make) -> None:
    stage = make(small_plan())
    stage.play(130)
    stage.play(30, requests=0, turns=0)
    assert part(stage, "headline") == "Nobody is told. No traffic: 4 of 4 objectives."
    assert part(stage, "objectives").count("Nothing, unless clients should be here now.") == 4
    stage.play(12, up=False, turns=0)
    assert "No data" in part(stage, "objectives")
    assert part(stage, "headline").startswith("Tier 1 is told: engine: nobody is served")
    assert "down" in part(stage, "machines")
    assert "nobody listens at 127.0.0.1:8000" in part(stage, "machines")


def test_traffic_that_is_expected_and_lacks_is_work(make: Make) -> None:
    expected = objective("availability", name="answered", selection=ANY, expect_traffic=True)
    stage = make(small_plan(objectives=(expected,)))
    stage.play(30, requests=0)
    assert "See whether clients reach the gateway" in part(stage, "objectives")


def test_before_the_first_judgement(make: Make) -> None:
    stage = make(small_plan())
    assert part(stage, "headline") == ("Nothing judged yet: the first judgement comes within 30 s.")
    assert "objectives" not in stage.parts()


def test_a_judge_that_fails_or_stands_still_says_of_when_it_is(make: Make) -> None:
    stage = make(small_plan())
    stage.play(5)
    assert stage.judging is not None
    stage.judging.fault = "OperationalError: disk is full"
    assert part(stage, "headline") == (
        "Judging fails: OperationalError: disk is full."
        " What is said of objectives is of 12:02:30 UTC."
    )
    assert part(stage, "alerts").endswith("Whether anybody should be told is not known.")
    stage.judging.fault = ""
    stage.at += 92
    assert "the judge stands still" in part(stage, "headline")
    assert part(stage, "alerts").endswith("Whether anybody should be told is not known.")


def test_a_history_that_is_not_kept_is_said_beside_how_all_stands(make: Make) -> None:
    stage = make(known(small_plan()))
    stage.play(131)  # the file is tried again at the next step but one
    assert stage.history is not None
    stage.history._db.execute("PRAGMA query_only = ON")
    stage.play(1)
    headline = part(stage, "headline")
    assert headline.startswith("All 4 objectives are met. ")
    assert "slo.db cannot be written" in headline
    assert "Nobody is told" in part(stage, "alerts")


def test_without_an_slo_file_the_rest_stands_and_says_how_to_be_judged(make: Make) -> None:
    stage = make(None)
    stage.play(10)
    parts = stage.parts()
    assert part(stage, "headline") == "Not judged: no SLO file is given."
    assert "inferslo init" in part(stage, "judged")
    assert not parts["alerts"].html
    assert "Running 24" in part(stage, "machines")
    assert "Agent turns 540" in part(stage, "business")
    assert "class_ttft qwen-0 no probe in the engine add the probe" in part(stage, "missing")
    assert "gateway none is configured --litellm" in part(stage, "missing")


def test_the_numbers_of_engines_and_gpus(make: Make) -> None:
    stage = make(None)
    stage.play(130, waiting=60)
    machines = part(stage, "machines")
    for said in (
        "Engine qwen-0 engine type vllm, version 0.32.0",
        "Waiting in the queue 60",
        "Requests 10/s",
        "Time to first token 400 ms",
        "KV cache in use 99 %, high",
        "KV fragmentation, at most 6 %",
        "GPU 0 (GPU-1f2e)",
        "Memory full 91.4 %",
        "Slowed by heat no",
    ):
        assert said in machines.replace(" now ", " "), said


def test_an_engine_that_is_dead_stays_with_since_when_and_why(make: Make) -> None:
    stage = make(small_plan())
    stage.play(10)
    stage.play(20, up=False)
    assert "Engines: qwen-0 down since 12:05:00 UTC" in part(stage, "about")
    assert "Engine qwen-0 down since 12:05:00 UTC : nobody listens at 127.0.0.1:8000" in part(
        stage, "machines"
    )
    stage.play(1)
    assert "Engines: qwen-0 Owner" in part(stage, "about")
    assert "down" not in part(stage, "machines")


def test_an_engine_that_never_answered_is_there(make: Make) -> None:
    stage = make(small_plan())
    assert "Engines: qwen-0 starting , never read yet" in part(stage, "about")
    assert "Engine qwen-0 starting , never read yet" in part(stage, "machines")


def test_business_counts_the_last_hour_only(make: Make) -> None:
    stage = make(None)
    stage.play(200, turns=1000)
    stage.play(120, turns=60, lost=0.5, fallbacks=2)
    business = part(stage, "business")
    assert "Events of the last hour." in business
    assert "Agent turns 7,140 50 % timeout 3,570" in business
    assert "Fallbacks 238 – timeout (level 2) 238" in business
    assert "Context retention" in business


def test_changes_are_told_newest_first_and_incidents_outlive_the_process(
    make: Make, tmp_path: Path
) -> None:
    stage = make(small_plan())
    stage.play(130)
    stage.play(20, slow=0.6)
    stage.play(140)
    changes = part(stage, "changes")
    assert changes.index("over (was: paged)") < changes.index("Incident (was: OK)")
    assert "Tier 1 (operations), InfersloTTFTBurn of first-token" in changes
    stage.close()
    later = make(small_plan(), at=stage.at)
    remembered = part(later, "changes")
    assert "Objective first-token: Incident" in remembered
    assert "Objective first-token: over" in remembered


def test_an_objective_split_by_label_has_a_row_each_up_to_a_bound(make: Make) -> None:
    split = replace(ANY, per=("tenant",))
    turns = objective("agent_turn_success", "98", name="turns", selection=split)
    stage = make(small_plan(objectives=(turns,)))
    stage.play(5)
    assert stage.judging is not None
    judged = stage.judging.latest
    assert judged is not None
    [verdict] = judged.verdicts
    many = [replace(verdict, group=(("tenant", f"t{n}"),)) for n in range(100)]
    stage.judging.latest = replace(judged, verdicts=many)
    html = stage.parts()["objectives"].html
    assert html.count("<tr") == 61
    assert "And 40 more" in html


PROMISES = {
    "ttft": "Time to first token within 2.5s for 99 % of requests, over 30d",
    "itl": "Inter-token latency within 100ms for 99 % of tokens, over 30d",
    "availability": "Answered requests: 99 %, over 30d",
    "tail_ratio": "P95/P50 of end-to-end latency at most 3 for 99 % of the time, over 30d",
}


@pytest.mark.parametrize("signal", PROMISES)
def test_a_promise_in_words(signal: str) -> None:
    assert promise(objective(signal)) == PROMISES[signal]


HOSTILE = "<script>alert(1)</script>\"><img src=x onerror='alert(1)'>"


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id" and value]


def elements(html: str) -> _Elements:
    found = _Elements()
    found.feed(html)
    return found


def hostile(make: Make) -> Stage:
    teams = tuple(replace(tier, team=HOSTILE) for tier in RESPONSE)
    objectives = tuple(
        replace(o, response=teams, description=HOSTILE) for o in small_plan().objectives
    )
    plan = small_plan(
        service=HOSTILE, owner=HOSTILE, response=teams, objectives=objectives,
        dashboard_url="javascript:alert(1)", runbook_url="javascript:alert('{alert}')",
    )  # fmt: skip
    stage = make(plan, engine=HOSTILE, model=HOSTILE)
    stage.play(130)
    stage.play(20, slow=0.6, bad=0.2)
    return stage


def test_hostile_names_are_text(make: Make) -> None:
    found = elements(page(hostile(make).facts(), assets(), Played(HOSTILE)))
    scripts = [attributes for tag, attributes in found.tags if tag == "script"]
    assert scripts == [{"src": "/page/page.js", "defer": None}]
    assert not [tag for tag, _ in found.tags if tag == "img"]
    for tag, attributes in found.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag
        assert not (attributes.get("href") or "").startswith("javascript:")
    assert len(found.ids) == len(set(found.ids))


@pytest.mark.parametrize("judged", [True, False])
def test_the_page_has_landmarks_headings_and_unique_ids(make: Make, judged: bool) -> None:
    stage = make(small_plan() if judged else None)
    stage.play(130)
    stage.play(20, slow=0.6)
    found = elements(page(stage.facts(), assets()))
    tags = [tag for tag, _ in found.tags]
    assert [tags.count(tag) for tag in ("h1", "header", "main", "footer", "nav")] == [1] * 5
    assert len(found.ids) == len(set(found.ids))
    named = {a["aria-labelledby"] for tag, a in found.tags if tag == "section"}
    shown = {name for name, part in stage.parts().items() if part.html and name in SECTIONS}
    assert {f"{name}-h" for name in shown} <= named & set(found.ids)
    assert ("html", {"lang": "en"}) in found.tags


def test_a_runbook_of_the_user_is_linked_as_it_is(make: Make) -> None:
    stage = make(small_plan(runbook_url="https://wiki.example/{alert}"))
    stage.play(130)
    stage.play(20, slow=0.6)
    assert 'href="https://wiki.example/InfersloTTFTBurn"' in stage.parts()["alerts"].html


def test_what_a_demo_can_break_stands_after_the_alerts(make: Make) -> None:
    html = page(make(small_plan()).facts(), assets(), Played("all of it"))
    sections = re.findall(r'<section id="(\w+)"', html)
    assert sections == [SECTIONS[0], "demo", *SECTIONS[1:]]


def test_what_is_simulated_is_said_loudly(make: Make) -> None:
    stage = make(None)
    html = page(stage.facts(), assets(), Played("the engine is played"))
    assert "SIMULATED the engine is played" in text(html)
    assert "<title>not judged · SIMULATED inferslo sidecar</title>" in html
    assert "SIMULATED" not in page(stage.facts(), assets())
