"""LiteLLM's pages: recorded from a real 1.108.7, and small ones of our own for other cases.

The pages of the outage are cut to the families that are read, and are of one process: all well;
primary killed, and its deployment cooling down; primary back.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from inferslo.exporters.exposition import parse
from inferslo.exporters.gateways.litellm import MAX_MODELS, MAX_REASONS, LiteLlm, is_litellm
from inferslo.exporters.names import (
    GATEWAY_COOLDOWNS,
    GATEWAY_DEPLOYMENT_STATE,
    GATEWAY_FALLBACKS,
    GATEWAY_IN_FLIGHT,
    GATEWAY_REJECTED,
    GATEWAY_REQUESTS,
    GATEWAY_TIMEOUTS,
    GATEWAY_UPSTREAM_ATTEMPTS,
    GATEWAY_UPSTREAM_FAILURES,
    Family,
)
from inferslo.exporters.reading import Histogram, Observation

ROOT = Path(__file__).parents[3]
CAPTURES = ROOT / "tests" / "captures"
THIRD_PARTY = ROOT.parent / "shared" / "captures" / "third-party"
FALLBACKS = "litellm_deployment_successful_fallbacks_total"
REQUESTS = "litellm_proxy_total_requests_metric_total"
FAILED = "litellm_proxy_failed_requests_metric_total"
ATTEMPTS = "litellm_deployment_success_responses_total"
STATE = "litellm_deployment_state"
IN_FLIGHT = "litellm_in_flight_requests"

Published = dict[tuple[str, ...], float]


def published(observation: Observation, family: Family) -> Published:
    """By the labels after `gateway`."""
    return {
        point.labels[1:]: point.value
        for point in observation.points
        if point.family is family and not isinstance(point.value, Histogram)
    }


def gaps(observation: Observation) -> dict[str, str]:
    return {gap.signal: f"{gap.reason}: {gap.remedy}" for gap in observation.gaps}


def observe(gateway: LiteLlm, *lines: str, start: float | None = 1000.0) -> Observation:
    process = () if start is None else (f"process_start_time_seconds {start}",)
    return gateway.observe(parse("".join(f"{line}\n" for line in (*process, *lines)).encode()))


def recorded(gateway: LiteLlm, name: str) -> Observation:
    return gateway.observe(parse((CAPTURES / f"litellm-1.108.7__{name}.prom").read_bytes()))


def test_fallbacks_of_a_recorded_page() -> None:
    seen = recorded(LiteLlm("proxy"), "3-fallbacks")
    assert published(seen, GATEWAY_FALLBACKS) == {
        ("primary", "backup", "InternalServerError", "succeeded"): 3
    }
    assert published(seen, GATEWAY_REQUESTS) == {("backup", "200"): 3}
    assert published(seen, GATEWAY_UPSTREAM_ATTEMPTS) == {("primary",): 3, ("backup",): 3}
    assert published(seen, GATEWAY_UPSTREAM_FAILURES) == {("primary", "InternalServerError"): 3}
    assert published(seen, GATEWAY_DEPLOYMENT_STATE) == {("primary",): 1, ("backup",): 0}
    assert published(seen, GATEWAY_IN_FLIGHT) == {(): 1}
    assert {point.labels[0] for point in seen.points} == {"proxy"}


def test_before_the_first_request_all_but_the_requests_in_flight_is_unknown() -> None:
    seen = recorded(LiteLlm("proxy"), "fresh")
    assert [point.family for point in seen.points] == [GATEWAY_IN_FLIGHT]
    assert "only after the first fallback that worked" in gaps(seen)["gateway_fallbacks_succeeded"]
    assert "only after the first cooldown" in gaps(seen)["gateway_cooldowns"]


def test_an_outage_and_its_end() -> None:
    proxy = LiteLlm("proxy")
    pages = ("outage-1-all-well", "outage-2-primary-down", "outage-3-primary-back")
    well, down, back = [recorded(proxy, page) for page in pages]
    assert published(well, GATEWAY_COOLDOWNS) == {}
    assert published(down, GATEWAY_COOLDOWNS) == {("primary", "500"): 1}
    assert published(down, GATEWAY_FALLBACKS) == {
        ("primary", "backup", "InternalServerError", "succeeded"): 3,
        ("primary", "backup", "RouterRateLimitError", "succeeded"): 1,
    }
    # LiteLLM counts a failure of backup here, which answered all that it was asked.
    assert published(down, GATEWAY_UPSTREAM_FAILURES) == {("primary", "InternalServerError"): 3}
    assert published(down, GATEWAY_UPSTREAM_ATTEMPTS) == {("primary",): 6, ("backup",): 4}
    assert published(back, GATEWAY_REJECTED) == {
        ("primary", "RouterRateLimitError"): 2,
        ("patient", "RateLimitError"): 2,
    }
    assert published(back, GATEWAY_TIMEOUTS) == {("hasty",): 2}
    states = [published(page, GATEWAY_DEPLOYMENT_STATE)["primary",] for page in (well, down, back)]
    assert states == [0, 2, 0]


def test_a_stale_state_is_not_believed_on_the_first_page() -> None:
    seen = recorded(LiteLlm("proxy"), "outage-3-primary-back")
    assert ("primary",) not in published(seen, GATEWAY_DEPLOYMENT_STATE)
    assert "several states" in gaps(seen)["gateway_deployment_state"]


def test_the_worst_deployment_of_a_model_is_its_state() -> None:
    seen = observe(
        LiteLlm("proxy"),
        f'{ATTEMPTS}{{model_id="1",requested_model="chat"}} 1',
        f'{ATTEMPTS}{{model_id="2",requested_model="chat"}} 1',
        f'{STATE}{{litellm_model_name="tiny",model_id="1"}} 0',
        f'{STATE}{{litellm_model_name="tiny",model_id="2"}} 1',
    )
    assert published(seen, GATEWAY_DEPLOYMENT_STATE) == {("chat",): 1}


def test_keys_users_teams_and_addresses_are_summed_away() -> None:
    seen = observe(
        LiteLlm("proxy"),
        *(
            f'{REQUESTS}{{hashed_api_key="{key}",user="{key}",team="t{key}",client_ip="10.0.0.{key}",'
            f'requested_model="chat",route="/v1/chat/completions",status_code="200"}} {key}'
            for key in range(1, 5)
        ),
    )
    assert published(seen, GATEWAY_REQUESTS) == {("chat", "200"): 1 + 2 + 3 + 4}


def test_scrapes_without_a_key_are_no_requests() -> None:
    """1.72 and 1.108 count them, with the status None."""
    seen = observe(
        LiteLlm("proxy"),
        f'{REQUESTS}{{requested_model="",route="/metrics/",status_code="None"}} 7',
        f'{REQUESTS}{{requested_model="chat",route="/v1/completions",status_code="None"}} 1',
    )
    assert published(seen, GATEWAY_REQUESTS) == {("chat", "unknown"): 1}


def test_only_scrapes_on_the_page_are_no_traffic_yet() -> None:
    line = f'{REQUESTS}{{requested_model="",route="/metrics/",status_code="None"}} 7'
    seen = observe(LiteLlm("proxy"), line)
    assert published(seen, GATEWAY_REQUESTS) == {}
    assert "only after the first request" in gaps(seen)["gateway_requests"]


def test_what_was_turned_away_before_routing_is_no_upstream_failure() -> None:
    seen = observe(
        LiteLlm("proxy"),
        'litellm_deployment_failure_responses_total{model_id="",requested_model="chat",'
        'exception_class="BudgetExceededError",exception_status="429"} 5',
        'litellm_deployment_failure_responses_total{model_id="1",requested_model="chat",'
        'exception_class="Openai.APIConnectionError",exception_status="500"} 2',
    )
    assert published(seen, GATEWAY_UPSTREAM_FAILURES) == {("chat", "APIConnectionError"): 2}
    assert published(seen, GATEWAY_UPSTREAM_ATTEMPTS) == {("chat",): 2}


@pytest.mark.parametrize(
    ("class_", "status", "reason"),
    [
        ("Openai.RateLimitError", "429", "RateLimitError"),
        ("HTTPException", "429", "HTTPException"),
        ("None", "429", "429"),
        ("", "429", "429"),
    ],
)
def test_a_reason_is_the_class_of_the_exception_or_else_its_status(
    class_: str, status: str, reason: str
) -> None:
    labels = f'requested_model="chat",exception_class="{class_}",exception_status="{status}"'
    seen = observe(LiteLlm("proxy"), f"{FAILED}{{{labels}}} 1")
    assert published(seen, GATEWAY_REJECTED) == {("chat", reason): 1}


def test_failures_of_other_kinds_are_neither_rejects_nor_timeouts() -> None:
    labels = 'requested_model="chat",exception_class="InternalServerError",exception_status="500"'
    seen = observe(LiteLlm("proxy"), f"{FAILED}{{{labels}}} 1")
    assert published(seen, GATEWAY_REJECTED) == {}
    assert published(seen, GATEWAY_TIMEOUTS) == {}


@pytest.mark.parametrize("value", ["NaN", "+Inf", "1e308", "-3"])
def test_a_counter_that_is_no_number_is_a_gap_and_goes_on_where_it_was(value: str) -> None:
    proxy = LiteLlm("proxy")
    requests = f'{REQUESTS}{{requested_model="m",status_code="200"}}'
    attempts = f'{ATTEMPTS}{{model_id="1",requested_model="m"}}'
    observe(proxy, f"{requests} 40", f"{attempts} 7")
    damaged = observe(proxy, f"{requests} {value}", f"{attempts} 8", f"{IN_FLIGHT} {value}",
                      f'{STATE}{{model_id="1"}} {value}')  # fmt: skip
    assert published(damaged, GATEWAY_REQUESTS) == {}
    assert "is not a number" in gaps(damaged)["gateway_requests"]
    assert "is not a number" in gaps(damaged)["gateway_requests_in_flight"]
    assert published(damaged, GATEWAY_DEPLOYMENT_STATE) == {}
    assert published(damaged, GATEWAY_UPSTREAM_ATTEMPTS) == {("m",): 8}
    after = observe(proxy, f"{requests} 41", f"{attempts} 8")
    assert published(after, GATEWAY_REQUESTS) == {("m", "200"): 41}


def test_deployments_that_left_the_page_are_forgotten() -> None:
    """Seen from outside only in the memory it takes: hence the number of objects held."""
    proxy = LiteLlm("proxy")
    for page in range(20):
        names = [f"{page}-{n}" for n in range(50)]
        observe(
            proxy,
            *(f'{STATE}{{litellm_model_name="m",model_id="{name}"}} 0' for name in names),
            *(f'{ATTEMPTS}{{requested_model="m",model_id="{name}"}} 1' for name in names),
        )
    assert len(proxy._model_of) == 50
    assert len(proxy._states._values) == 50


def test_labels_that_were_configured_away_leave_the_sums() -> None:
    seen = observe(LiteLlm("proxy"), f"{ATTEMPTS} 9", f"{FALLBACKS} 2")
    assert published(seen, GATEWAY_UPSTREAM_ATTEMPTS) == {("",): 9}
    assert published(seen, GATEWAY_FALLBACKS) == {("", "", "unknown", "succeeded"): 2}


def test_a_series_that_litellm_drops_does_not_lower_the_sum() -> None:
    proxy = LiteLlm("proxy")

    def line(key: str, count: int) -> str:
        return f'{REQUESTS}{{hashed_api_key="{key}",requested_model="m",status_code="200"}} {count}'

    observe(proxy, line("a", 40), line("b", 60))
    assert published(observe(proxy, line("b", 61)), GATEWAY_REQUESTS) == {("m", "200"): 101}


def test_a_restart_starts_the_sums_again() -> None:
    proxy = LiteLlm("proxy")
    line = f'{REQUESTS}{{requested_model="m",status_code="200"}}'
    observe(proxy, f"{line} 40", start=1000)
    assert published(observe(proxy, f"{line} 2", start=2000), GATEWAY_REQUESTS) == {("m", "200"): 2}


def test_a_page_without_a_start_time_stands_alone() -> None:
    proxy = LiteLlm("proxy")
    line = f'{REQUESTS}{{requested_model="m",status_code="200"}}'
    observe(proxy, f"{line} 40", start=None)
    assert published(observe(proxy, f"{line} 2", start=None), GATEWAY_REQUESTS) == {("m", "200"): 2}


def test_workers_that_answer_in_turn_are_found_out_and_nothing_is_published() -> None:
    proxy = LiteLlm("proxy")
    line = f'{REQUESTS}{{requested_model="m",status_code="200"}}'
    observe(proxy, f"{line} 40", start=1000.1)
    observe(proxy, f"{line} 3", start=1000.2)
    seen = observe(proxy, f"{line} 41", start=1000.1)
    assert seen.points == ()
    assert "PROMETHEUS_MULTIPROC_DIR" in gaps(seen)["gateway_requests"]
    assert observe(proxy, f"{line} 41", start=1000.1).points == ()


def test_a_proxy_restarted_with_one_worker_is_believed_again() -> None:
    proxy = LiteLlm("proxy")
    line = f'{REQUESTS}{{requested_model="m",status_code="200"}} 1'
    for start in (1000.1, 1000.2, 1000.1):
        observe(proxy, line, start=start)
    assert published(observe(proxy, line, start=2000), GATEWAY_REQUESTS) == {("m", "200"): 1}


def test_model_names_are_bounded() -> None:
    """In older versions a client makes a series of any model name it asks for."""
    names = range(MAX_MODELS + 50)
    lines = (f'{REQUESTS}{{requested_model="m{n}",status_code="404"}} 1' for n in names)
    requests = published(observe(LiteLlm("proxy"), *lines), GATEWAY_REQUESTS)
    assert len(requests) == MAX_MODELS + 1
    assert requests["other", "404"] == 50


@pytest.mark.parametrize(
    ("page", "known"),
    [(b"litellm_x 1\n", True), (b"# TYPE litellm_x counter\n", True), (b"xlitellm_ 1\n", False)],
)
def test_a_page_is_known_as_litellms_by_any_name_on_it(page: bytes, known: bool) -> None:
    assert is_litellm(parse(page)) is known


def test_models_of_deployments_and_reasons_are_bounded_too() -> None:
    numbers = range(MAX_MODELS + 50)
    proxy = LiteLlm("proxy")
    states = (f'{STATE}{{litellm_model_name="m{n}",model_id="{n}"}} 0' for n in numbers)
    assert len(published(observe(proxy, *states), GATEWAY_DEPLOYMENT_STATE)) == MAX_MODELS + 1
    failures = (
        f'{FAILED}{{requested_model="m0",exception_class="E{n}",exception_status="429"}} 1'
        for n in numbers
    )
    rejected = published(observe(proxy, *failures), GATEWAY_REJECTED)
    assert len(rejected) == MAX_REASONS + 1
    assert rejected["m0", "other"] == 50


def test_a_name_too_long_for_a_label_is_other() -> None:
    line = f'{REQUESTS}{{requested_model="{"m" * 257}",status_code="200"}} 1'
    assert published(observe(LiteLlm("proxy"), line), GATEWAY_REQUESTS) == {("other", "200"): 1}


def test_metrics_behind_a_licence_are_said_to_be_so() -> None:
    page = b"# TYPE litellm_not_a_premium_user_metric_total counter\n"
    seen = LiteLlm("proxy").observe(parse(page))
    assert seen.points == ()
    assert "licence holders only: update LiteLLM" in gaps(seen)["gateway_fallbacks_succeeded"]


def test_a_counter_that_the_page_does_not_know_is_said_to_be_missing() -> None:
    seen = observe(LiteLlm("proxy"), "litellm_in_flight_requests 1")
    assert "is not on the page" in gaps(seen)["gateway_cooldowns"]


def test_litellm_1_75_has_no_requests_in_flight() -> None:
    seen = observe(LiteLlm("proxy"), f'{REQUESTS}{{requested_model="m",status_code="200"}} 1')
    assert published(seen, GATEWAY_IN_FLIGHT) == {}
    assert "gateway_requests_in_flight" in gaps(seen)


@pytest.mark.skipif(not THIRD_PARTY.exists(), reason="the recorded pages of others are not here")
def test_the_recorded_page_of_a_1_95_counts_its_failures() -> None:
    # The page is cut in the middle of a line, which the parser refuses: that line is left out.
    whole = (THIRD_PARTY / "litellm__1.95-2026-08__1.prom").read_bytes().rpartition(b"\n")[0]
    seen = LiteLlm("proxy").observe(parse(whole + b"\n"))
    assert published(seen, GATEWAY_REQUESTS)["mock-fail", "500"] == 2
