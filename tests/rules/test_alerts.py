"""Who is called, when, and when nobody is: asked of the real PromQL engine."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from plans import DAY, MATCH, OUTAGE, burns, chat_plan, objective, plan
from promtool import MODEL, TARGET, Said, alive, firing, prove

from inferslo.rules.alerts import patient, urgent
from inferslo.rules.compile import compile_rules
from inferslo.rules.conditions import Conditions
from inferslo.rules.model import Alert
from inferslo.slo.plan import Calendar, Outage, Query, Tier, Urgency, When, Window

AVAILABILITY, TTFT = "InfersloAvailabilityBurn", "InfersloTTFTBurn"
SHARE = "{{ $value | humanizePercentage }}"
PER = {"selection": replace(MATCH, per=("tenant",))}
CHECKS = {"checks": (("negation", Decimal(1)),)}
ENGINE_UP = f'inferslo_engine_up{{{TARGET},engine="pod-1:8000"}}'


def requests(outcome: str) -> str:
    return f'inferslo_requests_total{{{MODEL},outcome="{outcome}",source="engine"}}'


def failing(percent: int, steps: int, of: int = 100) -> dict[str, str]:
    """An hour of clean traffic, `of` requests in 30 s, then so many percent fail."""
    bad = of * percent // 100
    return {
        requests("success"): f"0+{of}x120 {of * 120 + of - bad}+{of - bad}x{steps}",
        requests("error"): f"0x120 {bad}+{bad}x{steps}",
    }


@pytest.mark.parametrize("percent", ["99.9", "99", "95", "90", "70"])
def test_a_total_outage_pages_within_five_minutes_at_every_objective(
    tmp_path: Path, percent: str
) -> None:
    prove(
        tmp_path,
        plan(objective("availability", percent)),
        {**alive(90), **failing(100, 60)},
        Said("60m", firing(AVAILABILITY, 1), None),
        Said("65m", firing(AVAILABILITY, 1, "page"), 1),
    )


def test_a_page_is_one_alert_without_a_label_of_its_windows(tmp_path: Path) -> None:
    """slok-operator #24: short and long series that never match, and labels that change."""
    whole = 'job="",service="checkout-assistant",slo="availability",tier="1",team="operations"'
    prove(
        tmp_path,
        plan(objective("availability")),
        {**alive(120), **failing(50, 120)},
        Said("100m", f'count(ALERTS{{{whole},severity="page"}})', 1),
        Said("100m", 'count(ALERTS{alertname="InfersloAvailabilityBurn",window!=""})', None),
    )


def test_recovery_resolves_the_page(tmp_path: Path) -> None:
    prove(
        tmp_path,
        plan(objective("availability")),
        {
            **alive(120),
            requests("success"): "0+100x120 12000x20 12000+100x100",
            requests("error"): "0x120 0+100x20 2000x100",
        },
        Said("70m", firing(AVAILABILITY, 1), 1),
        Said("76m", "sum(inferslo:sli_bad:rate)", 0),
        Said("104m", firing(AVAILABILITY, 1), None),
    )


def test_one_failure_at_night_calls_nobody(tmp_path: Path) -> None:
    """One request in an hour, and it fails: no page, no ticket."""
    prove(
        tmp_path,
        plan(objective("availability", "99.9")),
        {**alive(300), requests("success"): "10x600", requests("error"): "0x200 1x400"},
        *(Said(f"{at}m", firing(AVAILABILITY), None) for at in (101, 103, 106, 120, 200, 290)),
    )


def test_five_of_a_hundred_failing_is_a_page_at_99_9_and_none_at_90(tmp_path: Path) -> None:
    series = {**alive(180), **failing(5, 240)}
    prove(
        tmp_path,
        plan(objective("availability", "99.9")),
        series,
        Said("90m", firing(AVAILABILITY, 1, "page"), 1),
        Said("90m", firing(AVAILABILITY, 2, "page"), 1),
    )
    prove(
        tmp_path,
        plan(objective("availability", "90")),
        series,
        Said("170m", firing(AVAILABILITY), None),
    )


def test_what_burns_slowly_is_a_ticket(tmp_path: Path) -> None:
    """4 % of errors at 99 %: four times too fast."""
    day = 2880
    prove(
        tmp_path,
        plan(objective("availability", "99")),
        {
            **alive(1500),
            requests("success"): f"0+96x{day}",
            requests("error"): f"0+4x{day}",
        },
        Said("23h", firing(AVAILABILITY, 2, "ticket"), 1),
        Said("23h", firing(AVAILABILITY, severity="page"), None),
    )


def test_tier_two_is_called_when_it_goes_on_for_half_an_hour(tmp_path: Path) -> None:
    """60 % at 70 %: only the outage holds, no burn does, and the incident goes on."""
    prove(
        tmp_path,
        plan(objective("availability", "70", outage=half_and_more("0.55"))),
        {**alive(180), **failing(60, 240)},
        Said("70m", firing(AVAILABILITY, 1), 1),
        Said("85m", firing(AVAILABILITY, 2, "page"), None),
        Said("97m", firing(AVAILABILITY, 2, "page"), 1),
    )


def half_and_more(ratio: str) -> Outage:
    outage = objective("availability").outage
    assert outage is not None
    return replace(outage, ratio=Decimal(ratio))


def test_an_exhausted_budget_and_a_third_incident_are_tier_three(tmp_path: Path) -> None:
    """Three outages of ten minutes within five hours, of a period of which little was seen."""
    wave = [(100, 0), (20, 100)] * 3 + [(100, 0)]
    good_text, bad_text, good, failed = [], [], 0, 0
    for steps, percent in wave:
        good_text.append(f"{good}+{100 - percent}x{steps - 1}")
        bad_text.append(f"{failed}+{percent}x{steps - 1}")
        good, failed = good + (100 - percent) * steps, failed + percent * steps
    prove(
        tmp_path,
        plan(objective("availability", min_coverage=Decimal(0))),
        {
            **alive(300),
            requests("success"): " ".join(good_text),
            requests("error"): " ".join(bad_text),
        },
        Said("49m", firing("InfersloBudgetExhausted"), None),
        Said("100m", firing("InfersloBudgetExhausted", 3, "ticket"), 1),
        Said("120m", firing("InfersloIncidentRepeats"), None),
        Said("182m", firing("InfersloIncidentRepeats", 3, "ticket"), 1),
    )


def test_no_budget_is_claimed_below_its_coverage(tmp_path: Path) -> None:
    prove(
        tmp_path,
        plan(objective("availability")),
        {**alive(120), **failing(100, 120)},
        Said("100m", firing("InfersloBudgetExhausted"), None),
        Said("100m", "sum(inferslo:budget_remaining:ratio)", None),
        Said("100m", "sum(inferslo:budget_coverage:ratio) < bool 0.01", 1),
    )


@pytest.mark.parametrize("window", [Window(30 * DAY), Window(30 * DAY, Calendar.MONTH)])
def test_a_budget_that_a_failure_or_two_have_spent_is_chance(
    tmp_path: Path, window: Window
) -> None:
    """Two of forty requests, the first of the period; later ten, which are no chance."""
    prove(
        tmp_path,
        plan(objective("availability", min_coverage=Decimal(0), window=window)),
        {
            **alive(180),
            requests("success"): "0x9 0+1x170",
            requests("error"): "0x29 2x90 12x60",
        },
        Said("40m", "sum(inferslo:budget_remaining:ratio) < bool 0", 1),
        Said("50m", firing("InfersloBudgetExhausted"), None),
        Said("85m", firing("InfersloBudgetExhausted", 3, "ticket"), 1),
    )


def test_a_storm_of_fallbacks_is_tier_one_at_once_and_tier_two_after_half_an_hour(
    tmp_path: Path,
) -> None:
    event = f'{TARGET},app="shop",model_name="",tenant="",sla_class=""'
    storm = f'inferslo_fallbacks_total{{{event},from_model="a",to_model="b",reason="x",level="1"}}'
    prove(
        tmp_path,
        plan(objective("fallback_count")),
        {**alive(120), storm: "_x120 55x120"},
        Said("59m", firing("InfersloFallbackStorm"), None),
        Said("62m", firing("InfersloFallbackStorm", 1, "page"), 1),
        Said("88m", firing("InfersloFallbackStorm", 2, "page"), None),
        Said("92m", firing("InfersloFallbackStorm", 2, "page"), 1),
    )


def test_fallbacks_fourteen_times_too_many_are_tier_two_at_once(tmp_path: Path) -> None:
    event = f'{TARGET},app="shop",model_name="",tenant="",sla_class=""'
    storm = f'inferslo_fallbacks_total{{{event},from_model="a",to_model="b",reason="x",level="1"}}'
    prove(
        tmp_path,
        plan(objective("fallback_count")),
        {**alive(120), storm: "_x120 75x120"},
        Said("62m", firing("InfersloFallbackStorm", 1, "page"), 1),
        Said("62m", firing("InfersloFallbackStorm", 2, "page"), 1),
    )


def slow_then_dead() -> dict[str, str]:
    """Every answer late for an hour; then the engine is gone."""
    ttft = f'inferslo_ttft_seconds_{{}}{{{{{MODEL},source="engine"{{}}}}}}'
    return {
        **alive(90),
        ttft.format("bucket", ',le="2.5"'): "0x120 stale",
        ttft.format("count", ""): "0+100x120 stale",
        requests("success"): "0+100x120 stale",
        ENGINE_UP: "1x120 0x60",
        f'inferslo_engine_info{{{MODEL},engine_type="vllm",version="0.32"}}': "1x120 stale",
        f"up{{{TARGET}}}": "1x180",
    }


def test_a_dead_engine_mutes_its_symptoms_and_pages_itself(tmp_path: Path) -> None:
    prove(
        tmp_path,
        plan(objective("ttft")),
        slow_then_dead(),
        Said("59m", firing(TTFT, 1), 1),
        Said("61m30s", firing(TTFT), None),
        Said("80m", firing("InfersloEngineDown", 1, "page"), 1),
        Said("80m", "max(inferslo:slo_state:enum)", 2),
        Said("80m", firing("InfersloNoData"), None),
    )


def test_without_traffic_only_who_expects_it_is_told(tmp_path: Path) -> None:
    idle = {**alive(90), requests("success"): "5x180"}
    silent = plan(objective("availability"))
    expected = plan(objective("availability", expect_traffic=True))
    anything = 'count(ALERTS{alertname!="InfersloWatchdog"})'
    prove(tmp_path, silent, idle, Said("80m", anything, None))
    prove(tmp_path, expected, idle, Said("80m", firing("InfersloNoTraffic", 2, "ticket"), 1))


def test_silence_of_everything_is_a_ticket_and_the_watchdog_goes_on(tmp_path: Path) -> None:
    prove(
        tmp_path,
        plan(objective("agent_turn_success")),
        {"other": "1x120"},
        Said("10m", firing("InfersloNoData"), None),
        Said("30m", firing("InfersloNoData", 2, "ticket"), 1),
        Said("30m", firing("InfersloWatchdog"), 1),
    )


def alerts_of(**overrides: Any) -> list[Alert]:
    one = objective("ttft", **overrides)
    file = plan(one)
    return [told.alert for told in (*urgent(file, one), *patient(file, one))]


def test_every_alert_says_whose_it_is_and_what_to_do() -> None:
    alerts = [
        rule
        for group in compile_rules(chat_plan(dashboard_url="https://grafana.example/d/1"))
        for rule in group.rules
        if isinstance(rule, Alert)
    ]
    labels = {"service", "slo", "tier", "team", "severity", "urgency"}
    notes = {"summary", "impact", "actions", "runbook_url", "dashboard_url"}
    assert alerts
    for alert in alerts:
        assert set(alert.labels) == labels, alert
        assert all(alert.labels.values()), alert
        assert set(alert.annotations) == notes, alert
        assert all(alert.annotations.values()), alert
        assert "{{" not in "".join(alert.labels.values())


def test_no_two_alerts_are_the_same_to_alertmanager() -> None:
    seen = [
        (rule.alert, *sorted(rule.labels.items()))
        for group in compile_rules(chat_plan())
        for rule in group.rules
        if isinstance(rule, Alert) and group.name.endswith(("-alerts", "-tickets"))
    ]
    assert len(seen) == len(set(seen))


def test_an_objectives_own_response_and_urgency_stand_in_its_labels() -> None:
    own = (Tier(1, "night-shift", "x", "y", frozenset({When.INCIDENT})),)
    alerts = alerts_of(response=own, urgency=Urgency.OFFICE_HOURS)
    assert {alert.labels["team"] for alert in alerts} == {"night-shift"}
    assert {alert.labels["urgency"] for alert in alerts} == {"office-hours"}
    assert not any(alert.alert == "InfersloBudgetExhausted" for alert in alerts)


def test_an_objective_that_never_pages_only_tickets() -> None:
    one = objective("tpot_cv")
    file = plan(one)
    alerts = [told.alert for told in (*urgent(file, one), *patient(file, one))]
    assert {alert.labels["severity"] for alert in alerts} == {"ticket"}
    assert not any(alert.alert == "InfersloIncidentRepeats" for alert in alerts)


def page_of(signal: str, **overrides: Any) -> dict[str, str]:
    one = objective(signal, **overrides)
    return dict(next(urgent(plan(one), one)).alert.annotations)


@pytest.mark.parametrize(
    ("signal", "overrides", "summary"),
    [
        ("ttft", {}, f"ttft: {SHARE} of requests over 2.5s (time to first token), "),
        ("itl", {}, f"itl: {SHARE} of tokens over 100ms (inter-token latency), "),
        ("availability", {}, f"availability: {SHARE} of requests failed, "),
        ("availability", PER, f"availability tenant={{{{ $labels.tenant }}}}: {SHARE} of requests"),
        ("check", CHECKS, f"check: {SHARE} of checks failed (negation), "),
        ("fallback_count", {}, "fallback-count: fallbacks in an hour above 50, "),
    ],
)
def test_a_summary_says_how_much_of_what_is_wrong(
    signal: str, overrides: dict[str, Any], summary: str
) -> None:
    page = page_of(signal, **overrides)
    assert page["summary"].startswith(f"checkout-assistant/{summary}")
    assert page["summary"].endswith("objective 99 % over 30d")


def test_the_next_tier_is_told_why_it_is_called() -> None:
    one = objective("ttft")
    [second] = [told.alert for told in urgent(plan(one), one) if told.tier and told.tier.tier == 2]
    assert second.annotations["summary"].endswith("; it burns fast or has lasted 30m")


def test_what_users_feel_and_what_the_file_says_of_it_are_told() -> None:
    page = page_of("ttft", description="Answers begin\nsoon.")
    assert page["impact"] == "The answer takes long to begin."
    assert page["description"] == "Answers begin soon."


def test_only_its_description_can_say_what_a_query_of_ones_own_is_about() -> None:
    own = {"query": Query(value="1 - avg(up)"), "threshold": Decimal("0.1")}
    page = page_of("promql", **own, description="Share of engines that do not answer {{ here }}.")
    assert " above 0.1, " in page["summary"]
    assert "of the time share of engines that do not answer " in page["summary"]
    assert page["impact"].startswith("Share of engines that do not answer ")
    assert "{{ here" not in page["summary"] + page["impact"]
    for silent in ("", "x" * 99):
        assert "your own query above 0.1" in page_of("promql", **own, description=silent)["summary"]


def test_who_is_woken_is_not_told_that_nobody_needs_waking() -> None:
    one = objective("memory_growth", outage=OUTAGE, burns=burns(Decimal("0.01"), pages=True))
    page, *_ = (told.alert for told in urgent(plan(one), one))
    ticket, *_ = (
        told.alert for told in patient(plan(one), one) if "MemoryGrowthBurn" in told.alert.alert
    )
    assert "nobody needs waking" not in page.annotations["actions"]
    assert "nobody needs waking" in ticket.annotations["actions"]


def test_a_spent_budget_does_not_say_that_users_feel_it_now() -> None:
    one = objective("ttft")
    impacts = {
        told.alert.alert: told.alert.annotations["impact"] for told in patient(plan(one), one)
    }
    for name in ("InfersloBudgetExhausted", "InfersloIncidentRepeats"):
        assert impacts[name] == "Now or earlier: the answer takes long to begin."


@pytest.mark.parametrize("signal", ["availability", "ttft", "goodput", "check", "promql"])
def test_a_symptom_leads_to_what_names_its_cause(signal: str) -> None:
    first, *_ = page_of(signal)["actions"].splitlines()
    assert "inferslo alerts service=checkout-assistant" in first


def test_a_page_shows_an_outage_of_minutes_in_its_full_size(tmp_path: Path) -> None:
    one = objective("availability")
    shown = f"sum({Conditions(plan(one), one).now()})"
    prove(
        tmp_path,
        plan(one),
        {**alive(150), **failing(100, 20)},
        Said("65m30s", firing(AVAILABILITY, 1, "page"), 1),
        Said("65m30s", shown, 1),
        Said("65m30s", "sum(inferslo:burn_rate:ratio) * 0.01 < bool 0.1", 1),
    )
