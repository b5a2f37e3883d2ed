"""Engines that are gone, and one that makes no token: judged by a real promtool."""

from __future__ import annotations

from pathlib import Path

from plans import objective, plan
from promcases import Case, promtool

from inferslo.rules import causes
from inferslo.rules.model import Alert, Group, Recording
from inferslo.rules.naming import ENGINES_DOWN
from inferslo.slo.plan import Plan, Selection

PLAN = plan(objective("ttft"))
DOWN, STALLED = "InfersloEngineDown", "InfersloEngineStalled"
UP = 'up{job="sidecar",instance="a:9464"}'
STOPPED = {
    "REQUESTS_RUNNING": "4x60", "GENERATION_TOKENS": "0+600x20 12000x40",
    "PROMPT_TOKENS": "0+600x20 12000x40",
}  # fmt: skip


def fleet(**values: str) -> dict[str, str]:
    """Engines by port and the values of their engine_up; all have told what they are."""
    series = {}
    for port, value in values.items():
        labels = f'{{engine="e:{port[1:]}"}}'
        series[f"ENGINE_UP{labels}"] = value
        # A failed read carries no samples: the engine's name is gone with it.
        series[f"ENGINE_INFO{labels}"] = "1x9 stale"
    return series


def only(severity: str, tier: str = "1") -> list[Group]:
    """The alerts of one severity and tier: they share their names."""
    wanted = {"severity": severity, "tier": tier}
    return [
        Group(
            group.name,
            group.interval,
            tuple(
                rule
                for rule in group.rules
                if isinstance(rule, Recording) or wanted.items() <= rule.labels.items()
            ),
        )
        for group in causes.groups(PLAN)
    ]


def pages(of: Plan) -> list[tuple[str, int]]:
    """Tier and hold of the pages about engines that are down."""
    rules = [rule for group in causes.groups(of) for rule in group.rules]
    return [
        (rule.labels["tier"], rule.hold)
        for rule in rules
        if isinstance(rule, Alert) and (rule.alert, rule.labels["severity"]) == (DOWN, "page")
    ]


def case(name: str, at: str, alert: str | None, series: dict[str, str]) -> Case:
    return Case(name, series, at, [alert] if alert else [], beside=False)


def test_all_engines_down_is_a_page_within_two_minutes(tmp_path: Path) -> None:
    one = {**fleet(e1="1x9 0x60"), UP: "1x70"}
    gone = {**fleet(e1="1x9 stale"), UP: "1x9 0x120"}
    vanished = fleet(e1="1x9 stale")
    cases = [
        case("the sidecar says so", "11m", DOWN, one),
        case("not yet", "9m", None, one),
        case("hours later", "69m", DOWN, one),
        case("the sidecar is gone too", "12m", DOWN, gone),
        case("and hours later", "110m", DOWN, gone),
        case("nothing is to be scraped any more", "20m", DOWN, vanished),
        case("that was an hour ago", "72m", None, vanished),
        case("it is back", "20m", None, {**fleet(e1="1x9 0x5 1x30"), UP: "1x60"}),
        case("one failed read", "14m", None, {**fleet(e1="1x9 0x0 1x30"), UP: "1x60"}),
        case("there never was one", "20m", None, {UP: "0x60"}),
    ]
    assert promtool(tmp_path, only("page"), cases, every="1m") == ""


def test_half_of_them_is_a_page_and_fewer_is_a_ticket(tmp_path: Path) -> None:
    half = fleet(e1="1x9 0x60", e2="1x70")
    third = fleet(e1="1x9 0x60", e2="1x70", e3="1x70")
    scaled = fleet(e1="1x9 stale", e2="1x70", e3="1x70")
    page, ticket = tmp_path / "page", tmp_path / "ticket"
    page.mkdir()
    ticket.mkdir()
    of_pages = [
        case("half", "18m", DOWN, half),
        case("half, as in a restart", "14m", None, half),
        case("a third", "30m", None, third),
        case("scaled in", "30m", None, scaled),
    ]
    of_tickets = [
        case("half", "30m", None, half),
        case("a third", "23m", DOWN, third),
        case("a third, as in a restart", "19m", None, third),
        case("scaled in", "30m", None, scaled),
        case("all", "30m", None, fleet(e1="1x9 0x60")),
    ]
    assert promtool(page, only("page"), of_pages, every="1m") == ""
    assert promtool(ticket, only("ticket"), of_tickets, every="1m") == ""


def test_a_rolling_restart_and_a_new_engine_call_nobody(tmp_path: Path) -> None:
    rolling = fleet(e1="1x9 0x3 1x60", e2="1x13 0x3 1x60", e3="1x17 0x3 1x60", e4="1x21 0x3 1x60")
    pair = fleet(e1="1x9 0x3 1x60", e2="1x13 0x3 1x60")
    added = {**fleet(e1="1x70"), 'ENGINE_UP{engine="e:2"}': "_x9 0x9 1x60"}
    cases = [
        case(f"{name} at {minute}", f"{minute}m", None, series)
        for name, series in (("rolling", rolling), ("a pair", pair), ("added", added))
        for minute in range(10, 30, 2)
    ]
    anybody = plan(objective("ttft"), selection=Selection())
    assert promtool(tmp_path, causes.groups(anybody), cases, every="1m") == ""


def test_a_sidecar_that_is_silent_beside_others_is_a_ticket(tmp_path: Path) -> None:
    silent = 'ENGINE_UP{engine="f:8000",instance="b:9464"}'
    told = 'ENGINE_INFO{engine="f:8000",instance="b:9464"}'
    series = {
        **fleet(e1="1x150", e2="1x150"), silent: "1x9 stale", told: "1x9 stale",
        'up{job="sidecar",instance="b:9464"}': "1x9 0x150",
    }  # fmt: skip
    cases = [
        case("silent", "23m", DOWN, series),
        case("still, hours later", "110m", DOWN, series),
    ]
    assert promtool(tmp_path, only("ticket"), cases) == ""


def test_tier_2_hears_of_it_after_half_an_hour(tmp_path: Path) -> None:
    down = fleet(e1="1x9 0x60")
    cases = [case("early", "36m", None, down), case("late", "42m", DOWN, down)]
    assert promtool(tmp_path, only("page", "2"), cases) == ""


def test_who_is_called_is_said_by_the_response() -> None:
    nobody = plan(objective("ttft"), response=plan().response[2:])
    assert pages(PLAN) == [("1", 60), ("2", 1800)]
    assert pages(nobody) == [("3", 60)]


def test_an_engine_of_another_service_is_not_ours(tmp_path: Path) -> None:
    other = Case("another", fleet(e1="1x9 0x60"), "20m", model="another", beside=False)
    assert promtool(tmp_path, only("page"), [other]) == ""


def test_labels_of_targets_alone_tell_a_service_too(tmp_path: Path) -> None:
    by_job = plan(objective("ttft"), selection=Selection(match=(("job", ("sidecar",)),)))
    down = case("down", "12m", DOWN, fleet(e1="1x9 0x60"))
    assert promtool(tmp_path, causes.groups(by_job), [down]) == ""


def test_stalled_is_no_token_while_somebody_waits(tmp_path: Path) -> None:
    fails = {'REQUESTS{outcome="aborted"}': "0x20 0+1x40"}
    piles_up = {'HOST_SOCKETS{state="established"}': "4x20 4+2x40"}
    cases = [
        Case("clients give up", {**STOPPED, **fails}, "26m", [STALLED]),
        Case("connections pile up", {**STOPPED, **piles_up}, "26m", [STALLED]),
        Case("not yet: a long prompt", {**STOPPED, **fails}, "22m"),
        Case("it works", {**STOPPED, **fails, "GENERATION_TOKENS": "0+600x60"}, "26m"),
        Case("nothing runs", {**STOPPED, **fails, "REQUESTS_RUNNING": "0x60"}, "26m"),
        # vLLM's gauges stand still after the last abort: nobody waits.
        Case("gauges stand still", {**STOPPED, 'REQUESTS{outcome="aborted"}': "1x60"}, "26m"),
    ]
    assert promtool(tmp_path, only("page"), cases) == ""


def test_what_symptoms_are_muted_by_is_one_series() -> None:
    recorded = f'{ENGINES_DOWN.name}{{service="{PLAN.service}"}}'
    assert causes.all_down(PLAN) == f"{recorded} == 1"
