"""What is counted, asked of the real PromQL engine."""

from decimal import Decimal
from pathlib import Path

import pytest
from plans import LONG, MATCH, composite, objective, plan
from promtool import MODEL, TARGET, Said, alive, prove

from inferslo.rules.sli import slis
from inferslo.slo.plan import Budgeting, Evaluation, PromptRange, Query, Selection

BAD, TOTAL = "inferslo:sli_bad:rate", "inferslo:sli_total:rate"
RATIO = f"sum({BAD}) / sum({TOTAL})"
STATE = "max(inferslo:slo_state:enum)"


def requests(outcome: str) -> str:
    return f'inferslo_requests_total{{{MODEL},outcome="{outcome}",source="engine"}}'


def turns(outcome: str) -> str:
    posted = f'{TARGET},app="shop",model_name="",tenant="",sla_class=""'
    return f'inferslo_agent_turns_total{{{posted},outcome="{outcome}"}}'


def histogram(family: str, part: str, le: str = "", labels: str = MODEL) -> str:
    bound = f',le="{le}"' if le else ""
    return f'inferslo_{family}_seconds_{part}{{{labels},source="engine"{bound}}}'


def test_ratios_are_weighted_by_events_and_no_mean_of_ratios(tmp_path: Path) -> None:
    """Sloth #332: an hour at 100 a minute, all well, then an hour at 1 a minute, all bad."""
    prove(
        tmp_path,
        plan(objective("availability")),
        {
            **alive(120),
            requests("success"): "0+50x120 6000x120",
            requests("error"): "0x120 0+0.5x120",
        },
        Said("2h", f"sum(sum_over_time({BAD}[2h])) / sum(sum_over_time({TOTAL}[2h]))", 0.0095),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("threshold", "le"),
    [
        ("1", "1"), ("1", "1.0"), ("1", "1e+00"), ("2.5", "2.5"), ("0.001", "1e-03"),
        ("1000000", "1e+06"), ("1000000", "1000000.0"), ("10", "10"),
    ],
)  # fmt: skip
def test_a_bucket_is_found_in_every_spelling_of_its_bound(
    tmp_path: Path, threshold: str, le: str
) -> None:
    """Pyrra #1611: Prometheus 2 keeps the page's text, Prometheus 3 writes 1.0."""
    near = ["11", "0.1", "1.01", "25", "100000.0"]
    prove(
        tmp_path,
        plan(objective("ttft", threshold=Decimal(threshold))),
        {
            **alive(20),
            histogram("ttft", "bucket", le): "0+95x40",
            **{histogram("ttft", "bucket", other): "0+7x40" for other in near},
            histogram("ttft", "bucket", "+Inf"): "0+100x40",
            histogram("ttft", "count"): "0+100x40",
        },
        Said("15m", RATIO, 0.05),
        Said("15m", "max(inferslo:sli_clamped:bool)", 0),
    )


def test_a_threshold_that_is_no_bucket_is_a_missing_signal_and_nothing_is_good(
    tmp_path: Path,
) -> None:
    prove(
        tmp_path,
        plan(objective("ttft", threshold=Decimal(3))),
        {
            **alive(30),
            histogram("ttft", "bucket", "2.5"): "0+95x60",
            histogram("ttft", "count"): "0+100x60",
        },
        Said("15m", f"sum({TOTAL})", None),
        Said("15m", f"sum({BAD})", None),
        Said("15m", STATE, 3),
        Said("29m", 'count(ALERTS{alertname="InfersloSignalMissing",alertstate="firing"})', 1),
    )


def test_bad_events_that_never_happened_are_none(tmp_path: Path) -> None:
    """Pyrra #1259: only the series of what went well exists."""
    prove(
        tmp_path,
        plan(objective("availability")),
        {**alive(20), requests("success"): "0+50x40"},
        Said("15m", f"sum({BAD})", 0),
        Said("15m", STATE, 0),
    )


def test_two_requests_a_minute_that_all_fail_are_a_total_outage(tmp_path: Path) -> None:
    """No clamp_min(total, 1) that makes 3 % of it."""
    prove(
        tmp_path,
        plan(objective("availability")),
        {**alive(20), requests("success"): "0x40", requests("error"): "0+1x40"},
        Said("15m", RATIO, 1),
    )


def test_a_restart_is_no_burst_of_events(tmp_path: Path) -> None:
    prove(
        tmp_path,
        plan(objective("availability")),
        {**alive(30), requests("success"): "1000+15x30 0+15x30", requests("error"): "90x30 0x30"},
        Said("16m", f"sum({BAD})", 0),
        Said("16m", f"sum({TOTAL}) <= bool 0.5", 1),
        Said("25m", f"sum({TOTAL})", 0.5),
    )


def test_a_counter_that_is_born_with_events_in_it_counts_them(tmp_path: Path) -> None:
    prove(
        tmp_path,
        plan(objective("agent_turn_success")),
        {**alive(40), turns("success"): "0+15x80", turns("timeout"): "_x30 60x50"},
        Said("19m", f"sum({BAD}) * 300", 60),
        Said("30m", f"sum(sum_over_time({BAD}[30m])) * 30 > bool 59", 1),
        Said("30m", f"sum(sum_over_time({BAD}[30m])) * 30 < bool 67", 1),
        Said("30m", f"sum({BAD})", 0),
    )


def test_counters_that_come_back_with_their_sidecar_are_not_newly_born(tmp_path: Path) -> None:
    prove(
        tmp_path,
        plan(objective("agent_turn_success")),
        {
            f"inferslo_build_info{{{TARGET}}}": "1x20 stale _x19 1x40",
            turns("success"): "0+15x20 stale _x19 600+15x40",
            turns("timeout"): "5000x20 stale _x19 5000x40",
        },
        Said("22m", f"sum({BAD})", 0),
        Said("24m", f"sum({BAD})", 0),
        Said("28m", f"sum({BAD})", 0),
    )


def test_the_outcomes_of_an_engine_come_with_its_first_request(tmp_path: Path) -> None:
    """One that appears later, as after a gap, has a past that is nobody's news."""
    prove(
        tmp_path,
        plan(objective("availability")),
        {**alive(40), requests("success"): "0+15x80", requests("aborted"): "_x30 60+1x50"},
        Said("19m", f"sum({BAD}) * 300 < bool 12", 1),
        Said("30m", f"sum({BAD}) * 300", 10),
    )


def test_users_who_gave_up_make_latency_worse(tmp_path: Path) -> None:
    """vLLM has no word of them in its histograms."""
    quick = {
        histogram("ttft", "bucket", "2.5"): "0+30x40",
        histogram("ttft", "count"): "0+30x40",
    }
    series = {**alive(20), **quick, requests("aborted"): "0+10x40"}
    prove(tmp_path, plan(objective("ttft")), series, Said("15m", RATIO, 0.25))
    prove(tmp_path, plan(objective("ttft", bad_outcomes=())), series, Said("15m", RATIO, 0))


@pytest.mark.parametrize("last", ["requests", "ttft", "e2e", "turns"])
def test_bad_events_are_never_without_those_that_they_are_of(last: str, tmp_path: Path) -> None:
    """Families that go, one after the other: rates outlive a series by a window."""

    def until_gone(family: str, each: int) -> str:
        return f"0+{each}x{40 if family == last else 20} stale _x40"

    prove(
        tmp_path,
        plan(
            objective("availability"), objective("ttft"), objective("agent_turn_success"),
            objective("e2e", threshold=Decimal(10), budgeting=Budgeting.TIMESLICES),
        ),
        {
            **alive(60),
            requests("timeout"): until_gone("requests", 10),
            requests("success"): until_gone("requests", 10),
            turns("timeout"): until_gone("turns", 10),
            **{
                histogram(family, part, le): until_gone(family, each)
                for family in ("ttft", "e2e")
                for part, le, each in (("bucket", "2.5", 5), ("bucket", "10", 5), ("count", "", 9))
            },
        },
        *(Said(f"{at}m", f"count(({BAD} > 0) unless {TOTAL})", None) for at in range(5, 30)),
        Said("9m", f"count({BAD} > 0 and {TOTAL})", 4),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("series", "state"),
    [
        ({requests("success"): "0+1x40"}, 0),
        ({requests("success"): "0x40"}, 1),
        ({}, 3),
        ({f'inferslo_engine_up{{{TARGET},engine="pod-1:8000"}}': "0x40"}, 2),
    ],
    ids=["ok", "no traffic", "signal missing", "engine down"],
)
def test_no_traffic_no_data_and_no_signal_are_told_apart(
    tmp_path: Path, series: dict[str, str], state: int
) -> None:
    prove(tmp_path, plan(objective("availability")), alive(20) | series, Said("15m", STATE, state))


def test_nothing_at_all_is_no_data(tmp_path: Path) -> None:
    prove(
        tmp_path,
        plan(objective("ttft"), objective("agent_turn_success")),
        {"other": "1x40"},
        Said("15m", "min(inferslo:slo_state:enum)", 2),
        Said("15m", f"sum({TOTAL})", None),
    )


def test_another_models_requests_are_not_the_services(tmp_path: Path) -> None:
    other = requests("error").replace("qwen3-27b", "qwen3-8b")
    prove(
        tmp_path,
        plan(objective("availability")),
        {**alive(20), requests("success"): "0+15x40", other: "0+15x40"},
        Said("15m", RATIO, 0),
    )


def test_class_and_prompt_lengths_are_the_probes(tmp_path: Path) -> None:
    long_s = Selection(match=MATCH.match, sla_class="S", prompts=(LONG, PromptRange(100, 8000)))

    def of(sla: str, prompts: str, part: str, le: str = "") -> str:
        return histogram(
            "class_ttft", part, le, f'{MODEL},sla_class="{sla}",prompt_class="{prompts}"'
        )

    prove(
        tmp_path,
        plan(objective("ttft", selection=long_s, bad_outcomes=())),
        {
            **alive(20),
            of("S", "gt_8000", "bucket", "2.5"): "0+5x40",
            of("S", "gt_8000", "count"): "0+10x40",
            of("S", "gt_100_le_8000", "bucket", "2.5"): "0+10x40",
            of("S", "gt_100_le_8000", "count"): "0+10x40",
            of("S", "le_100", "count"): "0+100x40",
            of("A", "gt_8000", "count"): "0+100x40",
        },
        Said("15m", RATIO, 0.25),
    )


def test_a_class_without_a_request_is_no_traffic_where_the_probe_knows_others(
    tmp_path: Path,
) -> None:
    of_s = plan(objective("goodput", selection=Selection(match=MATCH.match, sla_class="S")))
    of_a = f'inferslo_class_goodput_total{{{MODEL},sla_class="A",prompt_class="",result="good"}}'
    prove(tmp_path, of_s, {**alive(20), of_a: "0+1x40"}, Said("15m", STATE, 1))
    prove(tmp_path, of_s, alive(20), Said("15m", STATE, 3))


def test_each_value_of_a_per_label_has_its_own(tmp_path: Path) -> None:
    grouped = Selection(match=MATCH.match, per=("instance",))
    other = {name: requests(name).replace("pod-1", "pod-2") for name in ("success", "error")}
    prove(
        tmp_path,
        plan(objective("availability", selection=grouped)),
        {
            **alive(20),
            requests("success"): "0+10x40",
            other["success"]: "0+5x40",
            other["error"]: "0+5x40",
        },
        Said("15m", f'sum({BAD}{{instance="pod-1:9400"}})', 0),
        Said("15m", f'sum({BAD}{{instance="pod-2:9400"}} / {TOTAL})', 0.5),
        Said("15m", "count(inferslo:incident:bool == 1)", 1),
        Said("15m", 'count(inferslo:incident:bool{instance="pod-2:9400"} == 1)', 1),
    )


EVENT = f'{TARGET},app="shop",model_name="",tenant="",sla_class=""'


@pytest.mark.parametrize(
    ("signal", "family", "label", "good", "bad"),
    [
        ("agent_turn_success", "agent_turns_total", "outcome", "success", "format_error"),
        ("session_completion", "sessions_total", "state", "completed", "escalated"),
        ("session_interruption", "sessions_total", "state", "completed", "interrupted"),
    ],
)
def test_what_the_application_posts(
    tmp_path: Path, signal: str, family: str, label: str, good: str, bad: str
) -> None:
    prove(
        tmp_path,
        plan(objective(signal)),
        {
            **alive(20),
            f'inferslo_{family}{{{EVENT},{label}="{good}"}}': "0+9x40",
            f'inferslo_{family}{{{EVENT},{label}="{bad}"}}': "0+1x40",
            f'inferslo_{family}{{{EVENT},{label}="started"}}': "0+10x40",
        },
        Said("15m", RATIO, 0.1 if family == "sessions_total" else 0.55),
    )


def check(name: str, result: str) -> str:
    return f'inferslo_quality_checks_total{{{EVENT},check="{name}",result="{result}"}}'


def test_a_check_is_one_and_context_retention_is_one_of_them(tmp_path: Path) -> None:
    series = {
        **alive(20),
        check("context_retention", "passed"): "0+9x40",
        check("context_retention", "failed"): "0+1x40",
        check("negation", "failed"): "0+9x40",
    }
    prove(tmp_path, plan(objective("context_retention")), series, Said("15m", RATIO, 0.1))
    only = objective("check", checks=(("negation", Decimal(1)),))
    prove(tmp_path, plan(only), series, Said("15m", RATIO, 1))


def test_a_composite_is_a_mean_of_ratios_by_weight_and_unknown_without_a_part(
    tmp_path: Path,
) -> None:
    negation = {
        check("negation", "passed"): "0+5x140",
        check("negation", "failed"): "0+5x140",
    }
    vague = {
        check("vague_request", "passed"): "0+90x140",
        check("vague_request", "failed"): "0x140",
    }
    burn = "max(inferslo:burn_rate:ratio)"
    both = {**alive(70), **negation, **vague}
    prove(tmp_path, plan(composite()), both, Said("65m", burn, 2), Said("65m", STATE, 0))
    prove(tmp_path, plan(composite()), {**alive(70), **negation}, Said("65m", burn, None))


def test_fallbacks_are_of_what_the_gateway_answered(tmp_path: Path) -> None:
    gateway = f'{TARGET},gateway="g"'
    fell = 'from_model="a",to_model="b",reason="Timeout",outcome="succeeded"'
    prove(
        tmp_path,
        plan(objective("fallback_rate")),
        {
            **alive(20),
            f'inferslo_gateway_requests_total{{{gateway},model_name="b",status="200"}}': "0+20x40",
            f"inferslo_gateway_fallbacks_total{{{gateway},{fell}}}": "0+5x40",
            requests("success"): "0+1000x40",
        },
        Said("15m", RATIO, 0.25),
    )


def test_fallbacks_while_the_engine_is_dead_are_all_there_is(tmp_path: Path) -> None:
    fell = f'inferslo_fallbacks_total{{{EVENT},from_model="a",to_model="b",reason="x",level="1"}}'
    series = {**alive(20), requests("success"): "1000x40", fell: "0+5x40"}
    prove(tmp_path, plan(objective("fallback_rate")), series, Said("15m", RATIO, 1))


def test_ones_own_query_is_clamped_and_the_wrong_data_flagged(tmp_path: Path) -> None:
    """llm-d-router #2330: rejects that the total never saw."""
    own = Query(bad="rate(bad_total[$window])", total="rate(all_total[$window])")
    prove(
        tmp_path,
        plan(objective("promql", query=own)),
        {"bad_total": "0+20x40", "all_total": "0+10x40"},
        Said("15m", RATIO, 1),
        Said("15m", "max(inferslo:sli_clamped:bool)", 1),
    )


def test_a_comment_in_ones_own_query_ends_with_it(tmp_path: Path) -> None:
    own = Query(bad="rate(bad_total[$window]) # of us", total="rate(all_total[$window])\n# all")
    prove(
        tmp_path,
        plan(objective("promql", query=own)),
        {"bad_total": "0+1x40", "all_total": "0+10x40"},
        Said("15m", RATIO, 0.1),
    )


def test_slices_of_events_are_bad_or_not(tmp_path: Path) -> None:
    sliced = objective("availability", budgeting=Budgeting.TIMESLICES, slice_target=Decimal("0.9"))
    prove(
        tmp_path,
        plan(sliced),
        {
            **alive(60),
            requests("success"): "0+19x40 760+17x40 1440x40",
            requests("error"): "0+1x40 40+3x40 160x40",
        },
        Said("15m", f"sum({BAD})", 0),
        Said("15m", f"sum({TOTAL})", 1),
        Said("38m", f"sum({BAD})", 1),
        Said("55m", f"sum({TOTAL})", 0),
        Said("55m", STATE, 1),
    )


def test_the_base_window_stands_in_ones_own_query() -> None:
    own = objective("promql", query=Query(bad="rate(a[$window])", total="rate(b[$window])"))
    (sli,) = slis(own, Evaluation(base=120))
    assert "rate(a[2m])" in sli.bad
    assert "rate(b[2m])" in sli.total


@pytest.mark.parametrize("signal", ["ttft", "promql"])
def test_a_plan_that_lacks_what_the_signal_needs_is_refused(signal: str) -> None:
    with pytest.raises(ValueError, match=f"a plan without the (threshold|query) of {signal}"):
        slis(objective(signal, threshold=None, query=None), Evaluation())


def test_counters_that_were_away_while_their_sidecar_answered_are_not_born_anew(
    tmp_path: Path,
) -> None:
    """A page that lacked them for a while shows what was counted in all their lives."""
    prove(
        tmp_path,
        plan(objective("agent_turn_success")),
        {
            **alive(200),
            turns("success"): "5000+10x100 stale _x19 6200+10x79",
            turns("timeout"): "5000x100 stale _x19 5000x79",
        },
        *(Said(at, f"sum({BAD})", 0) for at in ("61m", "63m", "66m", "70m")),
        Said("63m", "max(inferslo:incident:bool)", 0),
    )


def test_counters_of_a_sidecar_that_began_anew_are_born_anew(tmp_path: Path) -> None:
    prove(
        tmp_path,
        plan(objective("agent_turn_success")),
        {
            **alive(200),
            turns("success"): "0+10x199",
            turns("timeout"): "50x100 stale _x19 6x79",
        },
        Said("61m", f"sum({BAD})", 6 / 300),
    )
