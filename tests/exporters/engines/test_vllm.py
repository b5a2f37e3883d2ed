"""vLLM's pages, in engine-neutral terms: one value per fact."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import pytest
from vllm_pages import (
    CAPTURES,
    ENGINE,
    LABELS,
    capture,
    gaps,
    observe,
    page,
    read,
    third_party,
    values,
)

from inferslo.exporters.engines import detect
from inferslo.exporters.engines.vllm import Vllm
from inferslo.exporters.exposition import Page, parse
from inferslo.exporters.reading import ErrorKind, Histogram, SourceError
from inferslo.sidecar.publisher import render

INF = math.inf
SIGNALS = {
    "ttft", "itl", "tpot", "e2e", "queue", "prefill", "decode", "tpot_moments", "itl_moments",
    "requests_success", "requests_error", "requests_aborted", "requests_rejected",
    "requests_timeout", "requests_empty", "kv_usage", "kv_capacity", "kv_tail_waste",
    "preemptions", "prefix_cache", "tokens", "running", "waiting",
}  # fmt: skip
VLLM_CAPTURES = sorted(path.name for path in CAPTURES.glob("vllm-*.prom"))


@pytest.mark.parametrize("name", VLLM_CAPTURES)
def test_what_is_published_of_a_page(name: str, golden: Callable[[str, str], None]) -> None:
    observation = Vllm(ENGINE).observe(capture(name), "0.32.0")
    golden(name, render(observation.points).decode())


@pytest.mark.parametrize("name", VLLM_CAPTURES)
def test_every_signal_is_available_or_has_a_reason_and_a_remedy(name: str) -> None:
    observation = observe(capture(name))
    available = {
        point.labels[1]: (point.labels[2], point.value)
        for point in observation.points
        if point.family.name == "inferslo_signal_available"
    }
    missing = gaps(observation)
    assert available.keys() == SIGNALS
    assert {signal for signal, (_, value) in available.items() if value == 0} == missing.keys()
    assert all((source == "") == (value == 0) for source, value in available.values())
    assert all(gap.reason and gap.remedy for gap in missing.values())


@pytest.mark.parametrize("name", VLLM_CAPTURES)
def test_a_page_is_recognised_as_vllms(name: str) -> None:
    assert detect(capture(name)) == "vllm"


@pytest.mark.parametrize("name", VLLM_CAPTURES)
def test_every_value_says_where_it_came_from(name: str) -> None:
    identity = ("engine_info", "engine_stats_enabled", "signal_available")
    for point in observe(capture(name)).points:
        assert point.origin or point.family.name.endswith(identity), point


# --- several series of one thing


def test_data_parallel_engines_add_up_and_kv_use_is_mean_and_max() -> None:
    found = read(capture("vllm-made__dp2.prom"))
    assert found["requests_running", "m"] == 21
    assert found["requests_waiting", "m"] == 3
    assert found["generation_tokens_total", "m"] == 384
    assert found["requests_total", "m", "success", "engine"] == 150
    assert found["kv_cache_usage_ratio", "m"] == 0.375
    assert found["kv_cache_usage_max_ratio", "m"] == 0.5
    assert found["kv_cache_capacity_tokens", "m"] == 32000
    assert found["ttft_seconds", "m", "engine"] == Histogram((0.25, 1, INF), (80, 140, 155), 70)


def test_one_sleeping_engine_of_two_is_not_awake() -> None:
    assert read(capture("vllm-made__dp2.prom"))["engine_awake", "m"] == 0


def test_engines_with_other_buckets_are_not_mixed() -> None:
    lines = [
        f'vllm:e2e_request_latency_seconds_{kind}{{engine="{engine}",model_name="m"{le}}} 1'
        for engine, bound in (("0", "1.0"), ("1", "2.0"))
        for kind, le in (("bucket", f',le="{bound}"'), ("bucket", ',le="+Inf"'), ("sum", ""))
    ]
    observation = observe(page(*lines))
    assert "other buckets" in gaps(observation)["e2e"].reason
    assert not any(point.family.name == "inferslo_e2e_seconds" for point in observation.points)


def test_models_of_one_page_are_kept_apart() -> None:
    found = read(capture("vllm-made__two-models.prom"))
    assert found["requests_running", "a"] == 1
    assert found["requests_running", "b"] == 2
    assert found["requests_total", "b", "success", "engine"] == 20


def test_http_counters_and_cache_config_are_of_no_one_of_several_models() -> None:
    observation = observe(capture("vllm-made__two-models.prom"))
    for signal in ("requests_error", "requests_aborted", "kv_capacity", "kv_tail_waste"):
        assert "several models" in gaps(observation)[signal].reason


def test_several_api_servers_share_one_page_without_a_start_time() -> None:
    """Recorded after 960 requests. Clients dropped 379, 15 of them answered already."""
    found = read(capture("vllm-0.32.0__two-api-servers.prom"))
    assert ("engine_start_time_seconds",) not in found
    assert found["requests_total", "tiny", "success", "engine"] == 736
    assert found["requests_total", "tiny", "aborted", "derived"] == 379 - 15


# --- names over the versions


def test_of_two_names_of_one_thing_only_the_first_counts() -> None:
    found = read(capture("vllm-made__old-and-new-names.prom"))
    assert found["kv_cache_usage_ratio", "m"] == 0.5
    assert found["prefix_cache_queries_tokens_total", "m"] == 100
    assert found["prefix_cache_hits_tokens_total", "m"] == 40
    assert found["itl_seconds", "m", "engine"] == Histogram((0.01, 0.025, INF), (4, 9, 10), 0.2)


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("vllm:gpu_cache_usage_perc", "kv_cache_usage_ratio"),
        ("vllm:gpu_prefix_cache_hits_total", "prefix_cache_hits_tokens_total"),
        ("vllm:gpu_prefix_cache_queries_total", "prefix_cache_queries_tokens_total"),
    ],
)
def test_an_old_name_alone_serves(name: str, published: str) -> None:
    assert read(page(f"{name}{{{LABELS}}} 0.5"))[published, "m"] == 0.5


def test_a_name_that_is_only_declared_does_not_hide_the_other() -> None:
    found = read(
        page(
            "# TYPE vllm:kv_cache_usage_perc gauge",
            f"vllm:gpu_cache_usage_perc{{{LABELS}}} 0.25",
        )
    )
    assert found["kv_cache_usage_ratio", "m"] == 0.25


def test_copies_under_another_prefix_are_left_out() -> None:
    found = read(capture("vllm-made__kserve-duplicates.prom"))
    assert found["requests_running", "m"] == 4
    assert found["prompt_tokens_total", "m"] == 70
    assert found["e2e_seconds", "m", "engine"] == Histogram((1, 10, INF), (3, 5, 6), 22)


@pytest.mark.parametrize("prefix", ["vllm:", "kserve_vllm:", "ray_vllm_", "ray_vllm:"])
def test_each_prefix_serves_alone(prefix: str) -> None:
    assert read(page(f"{prefix}num_requests_running{{{LABELS}}} 4"))["requests_running", "m"] == 4


def test_under_ray_the_name_decides_and_the_type_does_not() -> None:
    found = read(capture("vllm-made__ray.prom"))
    assert found["prompt_tokens_total", "m"] == 1500
    assert found["generation_tokens_total", "m"] == 500  # exposed without _total
    assert found["requests_running", "m"] == 3
    assert found["kv_cache_usage_max_ratio", "m"] == 0.75
    assert found["ttft_seconds", "m", "engine"] == Histogram((0.25, 1, INF), (25, 35, 40), 14)


def test_under_ray_the_start_time_is_not_the_engines() -> None:
    assert ("engine_start_time_seconds",) not in read(capture("vllm-made__ray.prom"))


def test_v0_is_read_as_far_as_its_names_agree() -> None:
    found = read(capture("vllm-made__v0.prom"))
    assert found["itl_seconds", "m", "engine"] == Histogram(
        (0.01, 0.025, INF), (500, 590, 594), 3.1
    )
    assert found["requests_total", "m", "success", "engine"] == 6
    assert found["kv_cache_capacity_tokens", "m"] == 4574 * 16


# --- what is not there


def test_a_family_without_samples_is_unknown_and_never_zero() -> None:
    observation = observe(capture("vllm-made__empty-families.prom"))
    published = {point.family.name for point in observation.points}
    assert published == {
        "inferslo_engine_info", "inferslo_engine_resets_total", "inferslo_engine_stats_enabled",
        "inferslo_signal_available",
    }  # fmt: skip
    assert gaps(observation)["running"].reason == (
        "vllm:num_requests_running is declared but has no sample"
    )


def test_disabled_statistics_are_recognised_and_said() -> None:
    observation = observe(capture("vllm-0.32.0__disable-log-stats.prom"))
    gap = gaps(observation)["ttft"]
    assert "--disable-log-stats" in gap.reason
    assert gap.remedy == "start vLLM without --disable-log-stats"
    found = read(capture("vllm-0.32.0__disable-log-stats.prom"))
    assert found["engine_stats_enabled",] == 0
    assert found["requests_total", "", "error", "derived"] == 0
    assert found["requests_total", "", "invalid", "engine"] == 1  # it asked for another model
    assert ("requests_total", "", "success", "engine") not in found


def test_a_missing_version_of_vllm_is_named() -> None:
    observation = observe(capture("vllm-made__old-and-new-names.prom"))
    assert gaps(observation)["tpot"].remedy == "use vLLM 0.11 or newer"
    assert "0.32" in gaps(observation)["requests_rejected"].remedy


# --- histograms


def test_bounds_are_sorted_numbers_and_come_from_the_page() -> None:
    found = read(
        page(
            f'vllm:request_queue_time_seconds_bucket{{{LABELS},le="+Inf"}} 9',
            f'vllm:request_queue_time_seconds_bucket{{{LABELS},le="10"}} 8',
            f'vllm:request_queue_time_seconds_bucket{{{LABELS},le="0.05"}} 2',
            f"vllm:request_queue_time_seconds_sum{{{LABELS}}} -1.5",
        )
    )
    assert found["queue_seconds", "m", "engine"] == Histogram((0.05, 10, INF), (2, 8, 9), -1.5)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (['_bucket{model_name="m",le="1.0"} 1', '_sum{model_name="m"} 1'], 'no bucket le="+Inf"'),
        (['_bucket{model_name="m",le="+Inf"} 1'], "no _sum"),
        (['_bucket{model_name="m",le="+Inf"} NaN', '_sum{model_name="m"} 1'], "not a number"),
        (['_bucket{model_name="m",le="one"} 1', '_sum{model_name="m"} 1'], "without a number"),
    ],
)
def test_a_histogram_from_which_nothing_follows_is_a_gap(lines: list[str], reason: str) -> None:
    observation = observe(
        page(*(f"vllm:request_time_per_output_token_seconds{line}" for line in lines))
    )
    assert reason in gaps(observation)["tpot"].reason
    assert reason in gaps(observation)["tpot_moments"].reason


@pytest.mark.parametrize("value", ["NaN", "1e308"])
@pytest.mark.parametrize("name", ["vllm-0.32.0__3-requests.prom", "vllm-made__dp2.prom"])
def test_whatever_series_is_no_number_it_costs_no_more_than_what_is_made_from_it(
    name: str, value: str
) -> None:
    whole = (CAPTURES / name).read_text()
    good = observe(parse(whole.encode()))
    for series in parse(whole.encode()).names:
        damaged = re.sub(rf"(?m)^({re.escape(series)}(?:{{.*}})?) \S+$", rf"\1 {value}", whole)
        assert damaged != whole
        observation = observe(parse(damaged.encode()), parse(damaged.encode()))
        for point in observation.points:
            parts = point.value
            numbers = (*parts.counts, parts.sum) if isinstance(parts, Histogram) else (parts,)
            assert all(map(math.isfinite, numbers)), (series, point)
        assert len(gaps(observation)) <= len(gaps(good)) + 5, series


@pytest.mark.parametrize(
    ("line", "signal"),
    [
        ('vllm:admission_rejections_total{model_name="m"} NaN', "requests_rejected"),
        (f'vllm:request_success_total{{{LABELS},finished_reason="stop"}} NaN', "requests_success"),
        (f'vllm:request_success_total{{{LABELS},finished_reason="stop"}} NaN', "requests_aborted"),
        (f"vllm:request_params_n_sum{{{LABELS}}} NaN", "requests_aborted"),
        ('http_requests_total{handler="/v1/completions",status="5xx"} NaN', "requests_error"),
        (f"vllm:kv_cache_usage_perc{{{LABELS}}} NaN", "kv_usage"),
        (f"vllm:time_to_first_token_seconds_sum{{{LABELS}}} NaN", "ttft"),
    ],
)
def test_what_is_no_number_is_a_gap(line: str, signal: str) -> None:
    rest = [
        f"vllm:num_requests_running{{{LABELS}}} 0",
        f'vllm:request_success_total{{{LABELS},finished_reason="length"}} 1',
        f'vllm:time_to_first_token_seconds_bucket{{{LABELS},le="+Inf"}} 1',
        'http_requests_total{handler="/v1/completions",status="2xx"} 1',
    ]
    observation = observe(page(*rest, line))
    assert "not a number" in gaps(observation)[signal].reason
    assert "running" not in gaps(observation)


@pytest.mark.parametrize("bound", ["NaN", "1e300"])
def test_a_bound_that_cannot_be_squared_is_a_gap(bound: str) -> None:
    name = "vllm:inter_token_latency_seconds"
    lines = [f'{name}_bucket{{{LABELS},le="{le}"}} 3' for le in ("0.1", bound, "+Inf")]
    observation = observe(page(*lines, f"{name}_sum{{{LABELS}}} 1"))
    assert "without a number" in gaps(observation)["itl"].reason


def test_a_gauge_that_is_not_a_number_is_a_gap() -> None:
    observation = observe(page(f"vllm:num_requests_running{{{LABELS}}} NaN"))
    assert "not a number" in gaps(observation)["running"].reason


# --- what would be too much to publish


@pytest.mark.parametrize("models", [[f"m{n}" for n in range(101)], ["m" * 257]])
def test_a_page_of_too_many_or_too_long_model_names_is_refused(models: list[str]) -> None:
    with pytest.raises(SourceError, match="name each engine's own page") as raised:
        observe(page(*(f'vllm:prompt_tokens_total{{model_name="{name}"}} 1' for name in models)))
    assert raised.value.kind is ErrorKind.TOO_LARGE


def test_a_hundred_models_are_read() -> None:
    lines = (f'vllm:prompt_tokens_total{{model_name="m{n}"}} 1' for n in range(100))
    assert read(page(*lines))["prompt_tokens_total", "m99"] == 1


def test_a_histogram_of_too_many_buckets_is_a_gap() -> None:
    name = "vllm:e2e_request_latency_seconds"
    lines = [f'{name}_bucket{{{LABELS},le="{le}"}} 1' for le in (*range(200), "+Inf")]
    observation = observe(page(*lines, f"{name}_sum{{{LABELS}}} 1"))
    assert "more than 200 buckets" in gaps(observation)["e2e"].reason


@pytest.mark.parametrize("counts", [(9, 2, 3), (-9, -2, -1), (-1, 2, 3)])
def test_a_histogram_that_cannot_be_is_a_gap(counts: tuple[int, ...]) -> None:
    name = "vllm:inter_token_latency_seconds"
    buckets = zip(("0.1", "1", "+Inf"), counts, strict=True)
    lines = [f'{name}_bucket{{{LABELS},le="{le}"}} {count}' for le, count in buckets]
    observation = observe(page(*lines, f"{name}_sum{{{LABELS}}} 1"))
    assert name in gaps(observation)["itl"].reason
    assert "itl_moments" in gaps(observation)
    assert not any(point.family.name.startswith("inferslo_itl") for point in observation.points)


@pytest.mark.parametrize(
    ("line", "signal"),
    [
        (f"vllm:num_requests_running{{{LABELS}}} -3", "running"),
        (f"vllm:num_requests_waiting{{{LABELS}}} -1", "waiting"),
        (f"vllm:generation_tokens_total{{{LABELS}}} -1", "tokens"),
        (f'vllm:request_success_total{{{LABELS},finished_reason="stop"}} -7', "requests_success"),
        (f"vllm:kv_cache_usage_perc{{{LABELS}}} -1", "kv_usage"),
        (f"vllm:kv_cache_usage_perc{{{LABELS}}} 7", "kv_usage"),
    ],
)
def test_a_value_that_cannot_be_is_a_gap_and_not_passed_on(line: str, signal: str) -> None:
    observation = observe(page(line))
    gap = gaps(observation)[signal]
    assert "below zero" in gap.reason or "above 1" in gap.reason
    assert not any(value == float(line.split()[-1]) for value in values(observation).values())


# --- restarts


def itl_page(count: float, start: float | None = 1.79e9) -> list[str]:
    name = "vllm:inter_token_latency_seconds"
    lines = [
        f'{name}_bucket{{{LABELS},le="0.01"}} {count}',
        f'{name}_bucket{{{LABELS},le="+Inf"}} {count}',
        f"{name}_sum{{{LABELS}}} {count * 0.005}",
        f"vllm:generation_tokens_total{{{LABELS}}} {count}",
    ]
    return lines + ([f"process_start_time_seconds {start}"] if start else [])


def test_counters_that_fall_are_a_restart_and_are_passed_on_as_they_are() -> None:
    found = read(page(*itl_page(100, None)), page(*itl_page(7, None)))
    assert found["engine_resets_total",] == 1
    assert found["generation_tokens_total", "m"] == 7


def test_a_new_start_time_is_a_restart_even_if_no_counter_fell() -> None:
    found = read(page(*itl_page(100)), page(*itl_page(100, 1.79e9 + 60)))
    assert found["engine_resets_total",] == 1
    assert found["itl_moment_n_total", "m", "derived"] == 200


def test_counters_that_grow_or_stand_still_are_no_restart() -> None:
    found = read(page(*itl_page(100)), page(*itl_page(100)), page(*itl_page(130)))
    assert found["engine_resets_total",] == 0


def test_derived_moments_go_on_over_a_restart() -> None:
    pages = [page(*itl_page(count, None)) for count in (100, 7, 9)]
    assert read(*pages)["itl_moment_n_total", "m", "derived"] == 109


def test_a_sidecar_that_starts_late_counts_moments_from_then() -> None:
    pages = [page(*itl_page(count)) for count in (100, 130)]
    assert read(*pages[:1], count_first=False)["itl_moment_n_total", "m", "derived"] == 0
    assert read(*pages, count_first=False)["itl_moment_n_total", "m", "derived"] == 30


@pytest.mark.parametrize("handler", ["/health", "/v1/completions"])
@pytest.mark.parametrize("odd", [99, None])
def test_an_http_counter_that_falls_or_is_missing_once_is_no_restart_of_a_process_that_lives(
    handler: str, odd: int | None
) -> None:
    pages = []
    for health in (100, 100, odd, 100, 100):
        counts = {"/v1/completions": 1500, "/health": 100} | {handler: health}
        http = [
            f'http_requests_total{{handler="{name}",method="POST",status="2xx"}} {count}'
            for name, count in counts.items()
            if count is not None
        ]
        finished = f'vllm:request_success_total{{{LABELS},finished_reason="stop"}} 50'
        pages.append(page(*itl_page(700), finished, *http))
    found = read(*pages, count_first=False)
    assert found["engine_resets_total",] == 0
    assert found["itl_moment_n_total", "m", "derived"] == 0
    assert found.get(("requests_total", "m", "aborted", "derived"), 0.0) == 0


def test_statistics_that_fall_while_the_start_time_stays_were_rebuilt_in_place() -> None:
    found = read(page(*itl_page(100)), page(*itl_page(7)))
    assert found["engine_resets_total",] == 1
    assert found["itl_moment_n_total", "m", "derived"] == 107


def test_without_a_start_time_only_inference_handlers_tell_a_restart() -> None:
    for handler, resets in (("/health", 0), ("/v1/completions", 1)):
        http = f'http_requests_total{{handler="{handler}",method="POST",status="2xx"}}'
        pages = [page(*itl_page(100, None), f"{http} {count}") for count in (9, 3)]
        assert read(*pages)["engine_resets_total",] == resets


def test_an_engine_that_leaves_the_page_is_no_restart_of_the_others() -> None:
    """Of the 30 observations left, none is new; the other engine's 100 are not given up."""
    lines = {
        engine: [line.replace('engine="0"', f'engine="{engine}"') for line in itl_page(count, None)]
        for engine, count in (("0", 30), ("1", 100))
    }
    pages = [page(*lines["0"], *lines["1"]), page(*lines["0"])]
    found = read(*pages)
    assert found["engine_resets_total",] == 1
    assert found["itl_moment_n_total", "m", "derived"] == 130
    assert read(*pages, page(*itl_page(33, None)))["itl_moment_n_total", "m", "derived"] == 133


# --- several engines behind one address

DERIVED = ("itl_moments", "tpot_moments", "requests_error", "requests_aborted")


def replica(start: float, count: float) -> Page:
    """A page on which all that moments and requests are made from stands at `count`."""
    http = f'http_requests_total{{handler="/v1/completions",method="POST",status="2xx"}} {count}'
    tpot = [line.replace("inter_token_latency", "request_time_per_output_token")
            for line in itl_page(count, None)[:3]]  # fmt: skip
    reason = f'vllm:request_success_total{{{LABELS},finished_reason="stop"}} {count}'
    return page(*itl_page(count, start), *tpot, http, reason)


def test_engines_that_answer_in_turn_are_no_restarts_and_add_nothing_up() -> None:
    pages = [replica(1e9, 1000), replica(2e9, 5), replica(1e9, 1001), replica(2e9, 6)]
    for seen in (pages[:3], pages):
        observation = observe(*seen, count_first=False)
        found = values(observation)
        assert found["engine_resets_total",] == 1  # the first new start time looks like one
        assert not any(key[-1] == "derived" for key in found if "available" not in key[0])
        for signal in DERIVED:
            assert "several engines" in gaps(observation)[signal].reason
            assert gaps(observation)[signal].remedy == "name each replica by its own address"
            assert found["signal_available", signal, ""] == 0


def test_an_engine_that_answers_for_good_is_still_one_of_several() -> None:
    pages = [replica(start, 10) for start in (1e9, 2e9, 1e9, 1e9, 1e9)]
    assert "several engines" in gaps(observe(*pages))["itl_moments"].reason


def test_with_a_new_start_counting_begins_anew_without_history() -> None:
    pages = [*(replica(start, 10) for start in (1e9, 2e9, 1e9)), replica(3e9, 40), replica(3e9, 42)]
    found = read(*pages)
    assert found["itl_moment_n_total", "m", "derived"] == 2
    assert found["engine_resets_total",] == 1


def test_a_start_time_that_is_no_number_is_none() -> None:
    found = read(*(replica(math.nan, 10) for _ in range(3)))
    assert found["engine_resets_total",] == 0
    assert ("engine_start_time_seconds",) not in found


# --- recorded by others


def test_three_scrapes_of_one_server_move_on() -> None:
    names = [f"vllm__0.11-2025-11-03-seq__{i}.prom" for i in (1, 2, 3)]
    pages = [parse(third_party(name)) for name in names]
    model = "Qwen/Qwen2.5-3B-Instruct"
    for i, success in ((1, 19), (2, 20), (3, 21)):
        found = read(*pages[:i])
        assert found["requests_total", model, "success", "engine"] == success
        assert found["requests_total", model, "aborted", "derived"] == 0
        assert found["engine_resets_total",] == 0
        assert found["tpot_moment_n_total", model, "derived"] == success


def test_others_decode_pod_has_no_aborts() -> None:
    found = read(parse(third_party("vllm__2026-07-kserve-pd-decode__1.prom")))
    assert found["requests_total", "TinyLlama", "success", "engine"] == 11208
    assert found["requests_total", "TinyLlama", "aborted", "derived"] == 0


def test_others_data_parallel_page() -> None:
    found = read(parse(third_party("vllm__0.30-dp2-shape__1.prom")))
    model = "llama-3.1-8b-instruct"
    assert found["requests_running", model] == 21
    assert found["kv_cache_usage_ratio", model] == 0.375
    assert found["requests_total", model, "success", "engine"] == 150


def test_others_page_under_ray() -> None:
    page = parse(third_party("vllm__ray-2.32-2024-12__1.prom"))
    assert detect(page) == "vllm"
    found = read(page)
    model = "neuralmagic/Meta-Llama-3.1-70B-Instruct-FP8"
    assert found["generation_tokens_total", model] == 300
    assert found["preemptions_total", "facebook/opt-125m"] == 0


@pytest.mark.parametrize(
    "name",
    [
        "vllm__0.5.4-2024-08__1.prom",
        "vllm__0.11-2025-11-06__3.prom",
        "vllm__functionary-empty-2024-10__1.prom",
    ],
)
def test_others_old_and_empty_pages_are_read(name: str) -> None:
    page = parse(third_party(name))
    assert detect(page) == "vllm"
    assert {gap.signal for gap in observe(page).gaps} <= SIGNALS
