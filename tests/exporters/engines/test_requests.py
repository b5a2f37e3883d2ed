"""Outcomes of requests: each counted once, none invented, none backwards."""

from __future__ import annotations

import pytest
from vllm_pages import (
    CAPTURES,
    LABELS,
    Values,
    capture,
    gaps,
    observe,
    page,
    read,
    traffic_page,
    values,
)

from inferslo.exporters.engines.excess import Excess, Restart
from inferslo.exporters.engines.traffic import INFERENCE_HANDLERS
from inferslo.exporters.exposition import Page, parse


def outcome(found: Values, name: str, source: str = "derived") -> float:
    value = found["requests_total", "m", name, source]
    assert isinstance(value, float)
    return value


def aborted(*pages: Page, count_first: bool = True) -> float:
    return outcome(read(*pages, count_first=count_first), "aborted")


def settled(*pages: Page) -> list[Page]:
    """The last of them so often that it is the base of aborted requests."""
    return [*pages, *[pages[-1]] * 150]


def test_recorded_load_of_which_50_clients_left() -> None:
    """Of the 50, two had left only when their answer was complete."""
    found = read(capture("vllm-0.32.0__load-50-client-aborts-of-120.prom"))
    assert found["requests_total", "tiny", "aborted", "derived"] == 48
    assert found["requests_total", "tiny", "success", "engine"] == 60
    assert found["requests_total", "tiny", "invalid", "engine"] == 15
    assert found["requests_total", "tiny", "error", "derived"] == 0


def test_success_is_every_reason_but_abort_and_error() -> None:
    reasons = {"stop": 1, "length": 2, "repetition": 4, "abort": 8, "error": 16}
    found = read(
        page(
            *(
                f'vllm:request_success_total{{{LABELS},finished_reason="{reason}"}} {count}'
                for reason, count in reasons.items()
            )
        )
    )
    assert outcome(found, "success", "engine") == 7


def test_timeouts_and_empty_answers_are_gaps_with_a_remedy() -> None:
    observation = observe(traffic_page(ok=3, stop=3))
    assert "gateway" in gaps(observation)["requests_timeout"].remedy
    assert "gateway" in gaps(observation)["requests_empty"].remedy
    published = {
        point.labels[2] for point in observation.points if "outcome" in point.family.labels
    }
    assert published == {"success", "error", "invalid", "aborted", "rejected"}


# --- errors


def test_errors_are_http_5xx_without_what_the_queue_limit_refused() -> None:
    found = read(traffic_page(ok=10, stop=10, failed=7, rejected=5))
    assert outcome(found, "error") == 2
    assert outcome(found, "rejected", "engine") == 5


def test_a_failure_seen_by_http_and_by_reason_counts_once() -> None:
    assert outcome(read(traffic_page(failed=3, error=3)), "error") == 3


def test_a_stream_that_fails_half_way_is_an_error_though_http_says_2xx() -> None:
    found = read(traffic_page(ok=3, error=3))
    assert outcome(found, "error") == 3
    assert outcome(found, "aborted") == 0


def test_a_rejection_counted_before_its_response_does_not_pull_errors_back() -> None:
    pages = [traffic_page(failed=f, rejected=r) for f, r in ((9, 4), (9, 4), (9, 6), (11, 6))]
    assert [outcome(read(*pages[:i]), "error") for i in (1, 2, 3, 4)] == [5, 5, 5, 5]


def test_without_http_counts_errors_are_those_of_the_engine() -> None:
    found = read(traffic_page(http=False, error=2))
    assert outcome(found, "error", "engine") == 2


def test_without_http_counts_nothing_is_called_invalid() -> None:
    found = read(traffic_page(http=False))
    assert ("requests_total", "m", "invalid", "engine") not in found


@pytest.mark.parametrize(
    "handler", ["/v1/models", "/tokenize", "none", "/v1/responses/{response_id}"]
)
def test_handlers_that_make_no_engine_request_are_left_out(handler: str) -> None:
    assert handler not in INFERENCE_HANDLERS
    found = read(
        traffic_page(ok=1, stop=1),
        page(
            f'vllm:request_success_total{{{LABELS},finished_reason="stop"}} 1',
            f"vllm:num_requests_running{{{LABELS}}} 0",
            *(f'http_requests_total{{handler="{handler}",method="GET",status="{s}"}} 50'
              for s in ("2xx", "4xx", "5xx")),
        ),
    )  # fmt: skip
    assert outcome(found, "aborted") == 0
    assert outcome(found, "error") == 0
    assert outcome(found, "invalid", "engine") == 0


# --- aborted, by HTTP


def test_aborted_is_answered_and_not_finished() -> None:
    assert aborted(traffic_page(ok=108, stop=60)) == 48


def test_a_response_still_being_sent_does_not_hide_an_abort_for_long() -> None:
    pages = [traffic_page(ok=ok, stop=stop) for ok, stop in ((10, 8), (10, 9), (11, 9), (11, 9))]
    assert [aborted(*pages[:i]) for i in (1, 2, 3, 4)] == [2, 2, 2, 2]


def test_a_response_counted_a_moment_before_its_finish_is_no_abort() -> None:
    pages = [traffic_page(ok=ok, stop=stop) for ok, stop in ((10, 10), (12, 10), (12, 12))]
    assert [aborted(*pages[:i]) for i in (1, 2, 3)] == [0, 0, 0]


def test_an_abort_counts_once_two_pages_have_shown_it() -> None:
    pages = [traffic_page(ok=ok, stop=10) for ok in (10, 12, 12)]
    assert [aborted(*pages[:i]) for i in (1, 2, 3)] == [0, 0, 2]


def test_what_the_engine_aborted_itself_is_aborted() -> None:
    assert aborted(traffic_page(ok=10, stop=7, abort=3)) == 3


def test_choices_beyond_the_first_are_no_requests() -> None:
    assert aborted(traffic_page(ok=10, stop=16, extra_choices=8)) == 2


def test_the_engines_restart_keeps_the_count_and_goes_on() -> None:
    pages = [
        traffic_page(ok=10, stop=5),
        traffic_page(ok=10, stop=5),
        traffic_page(ok=1, stop=1, started=1.8e9),
        traffic_page(ok=4, stop=1, started=1.8e9),
        traffic_page(ok=4, stop=1, started=1.8e9),
    ]
    assert [aborted(*pages[:i]) for i in range(1, 6)] == [5, 5, 5, 5, 8]


def test_statistics_rebuilt_in_place_are_not_taken_for_aborts() -> None:
    """Elastic scale-up zeroes vLLM's own counters while those of HTTP go on."""
    rebuilt = [traffic_page(ok=103, stop=0), traffic_page(ok=104, stop=1)]
    pages = [traffic_page(ok=100, stop=95), *settled(*rebuilt)]
    assert aborted(*pages) == 5
    assert aborted(*pages, *[traffic_page(ok=107, stop=2)] * 2) == 7


def test_a_sidecar_that_starts_late_does_not_repeat_history() -> None:
    pages = settled(traffic_page(ok=49, stop=40), traffic_page(ok=50, stop=40))
    assert aborted(*pages, count_first=False) == 0
    assert aborted(*pages, *[traffic_page(ok=53, stop=40)] * 2, count_first=False) == 3


@pytest.mark.parametrize("given_up", [0, 7])
def test_slow_readers_at_the_start_of_the_sidecar_gave_nothing_up(given_up: int) -> None:
    """Five requests are finished and still being read, over several pages."""
    pages = [
        traffic_page(ok=given_up + ok, stop=stop)
        for ok, stop in ((5, 10), (5, 10), (10, 10), (10, 10), (10, 10))
    ]
    slow = traffic_page(ok=given_up + 30, stop=35)
    read_up = traffic_page(ok=given_up + 35, stop=35)
    pages += [*[slow] * 20, read_up, read_up]
    for seen in (4, 5, len(pages)):
        observation = observe(*pages[:seen], count_first=False)
        assert ("requests_total", "m", "aborted", "derived") not in values(observation)
        assert gaps(observation)["requests_aborted"].remedy.startswith("wait")
    assert aborted(*pages, *[read_up] * 150, count_first=False) == 0


def test_nobody_reads_at_an_engine_that_has_answered_nobody() -> None:
    pages = [traffic_page(), traffic_page(ok=5, stop=2), traffic_page(ok=5, stop=2)]
    assert aborted(*pages, count_first=False) == 3


def test_an_engine_of_several_that_leaves_the_page_is_not_taken_for_aborts() -> None:
    def both(*finished: int, ok: int) -> Page:
        return page(
            *(f'vllm:request_success_total{{engine="{engine}",model_name="m",'
              f'finished_reason="stop"}} {count}' for engine, count in enumerate(finished)),
            f'http_requests_total{{handler="/v1/completions",method="POST",status="2xx"}} {ok}',
        )  # fmt: skip

    one = both(60, ok=165)
    assert aborted(both(60, 100, ok=165), *settled(one)) == 5
    assert aborted(both(60, 100, ok=165), *settled(one), *[both(60, ok=167)] * 2) == 7


def test_before_the_first_request_aborted_is_unknown_and_then_complete() -> None:
    unused = page(
        "# TYPE http_requests_total counter",
        f'vllm:request_success_total{{{LABELS},finished_reason="stop"}} 0',
        f"vllm:num_requests_running{{{LABELS}}} 0",
    )
    first = observe(unused, count_first=False)
    assert "no request yet" in gaps(first)["requests_aborted"].reason
    assert "no request yet" in gaps(first)["requests_error"].reason
    used = traffic_page(ok=5, stop=2)
    assert aborted(unused, unused, used, used, count_first=False) == 3


def test_failures_answered_5xx_hide_no_abort() -> None:
    assert aborted(traffic_page(ok=10, stop=8, failed=3, error=3)) == 2


@pytest.mark.parametrize("rejected", [0, 5, 9])
def test_every_response_is_a_success_an_error_an_abort_or_refused(rejected: int) -> None:
    """Whether streams or answers failed or were refused is a guess; the sum is none."""
    found = read(traffic_page(ok=20, stop=6, failed=7, rejected=rejected, error=3))
    derived = outcome(found, "error") + outcome(found, "aborted")
    engine = outcome(found, "success", "engine") + outcome(found, "rejected", "engine")
    assert derived + engine == 20 + 7


def test_a_stream_that_the_queue_limit_refused_is_rejected_though_http_says_2xx() -> None:
    """As a real vLLM 0.32 counted 120 streams and then 120 answers, of which it refused 80 each."""
    streams = read(traffic_page(ok=120, stop=40, rejected=80))
    assert outcome(streams, "aborted") == 0
    assert outcome(streams, "error") == 0
    both = read(traffic_page(ok=160, stop=80, rejected=160, failed=80))
    assert outcome(both, "aborted") == 0
    assert outcome(both, "error") == 0


def test_lists_of_prompts_are_noticed_behind_earlier_aborts() -> None:
    before = traffic_page(ok=50, stop=40)
    after = traffic_page(ok=54, stop=52)
    observation = observe(before, before, after, after)
    assert "several engine requests" in gaps(observation)["requests_aborted"].reason


def test_a_slow_reader_is_no_list_of_prompts_for_good() -> None:
    slow = traffic_page(ok=9, stop=10)
    assert "requests_aborted" in gaps(observe(slow, slow))
    assert aborted(slow, slow, traffic_page(ok=10, stop=10)) == 0


def test_lists_of_prompts_are_noticed_and_nothing_is_published() -> None:
    several = traffic_page(ok=4, stop=12)
    assert ("requests_total", "m", "aborted", "derived") in read(several)
    observation = observe(several, several)
    assert "several engine requests" in gaps(observation)["requests_aborted"].reason
    assert not any(point.labels[2:3] == ("aborted",) for point in observation.points)


def test_more_finished_than_answered_under_load_is_no_list_of_prompts() -> None:
    busy = traffic_page(ok=4, stop=6, running=3)
    assert aborted(busy, busy) == 0


def test_without_finish_reasons_aborted_is_a_gap() -> None:
    observation = observe(page(f"vllm:num_requests_running{{{LABELS}}} 0"))
    assert "request_success_total" in gaps(observation)["requests_aborted"].reason


def test_the_rust_front_end_counts_aborts_itself() -> None:
    found = read(capture("vllm-made__rust-frontend.prom"))
    assert outcome(found, "aborted", "engine") == 7
    assert outcome(found, "success", "engine") == 40
    assert ("requests_total", "m", "aborted", "derived") not in found


# --- aborted, by first token (no HTTP counts)


def by_first_token(
    first: float, stop: float, running: float, waiting: float = 0, preempted: float = 0
) -> Page:
    return page(
        f"ray_vllm_time_to_first_token_seconds_count{{{LABELS}}} {first}",
        f'ray_vllm_request_success_total{{{LABELS},finished_reason="stop"}} {stop}',
        f"ray_vllm_num_requests_running{{{LABELS}}} {running}",
        f"ray_vllm_num_requests_waiting{{{LABELS}}} {waiting}",
        f"ray_vllm_num_preemptions_total{{{LABELS}}} {preempted}",
    )


def test_without_http_counts_those_past_their_first_token_are_told() -> None:
    assert aborted(by_first_token(first=30, stop=20, running=6)) == 4


def test_a_preempted_request_waits_and_is_not_given_up() -> None:
    assert aborted(by_first_token(first=30, stop=20, running=6, waiting=9, preempted=4)) == 0


def test_waiting_requests_that_were_never_preempted_had_no_first_token() -> None:
    assert aborted(by_first_token(first=30, stop=20, running=6, waiting=9)) == 4


def test_http_counts_on_rays_page_are_not_vllms() -> None:
    found = read(
        page(
            f'ray_vllm_request_success_total{{{LABELS},finished_reason="stop"}} 1',
            'http_requests_total{handler="/v1/completions",method="POST",status="5xx"} 9',
        )
    )
    assert not any(key[2:3] == ("error",) for key in found)


# --- the counter of differences


def test_an_excess_never_goes_backwards() -> None:
    excess = Excess(count_first=True)
    seen = [excess.update(value) for value in (3, -2, 4, 4, 1, 9, 9)]
    assert seen == sorted(seen)
    assert seen[-1] == 9


def test_a_dip_taken_as_the_base_would_count_twice() -> None:
    excess = Excess(count_first=False, settle=4)
    seen = [excess.update(value) for value in (47, 50, 47, 47, 50, 50, 51, 51)]
    assert seen == [0, 0, 0, 0, 0, 0, 0, 1]


def test_a_level_difference_is_a_base_at_once() -> None:
    excess = Excess(count_first=False, settle=4)
    seen = [excess.update(value, level=value == 0) for value in (0, 2, 2)]
    assert seen == [0, 0, 2]


def test_an_excess_is_carried_over_restarts_of_both_kinds() -> None:
    excess = Excess(count_first=True)
    excess.update(5)
    assert excess.update(2, Restart.PROCESS) == 5
    assert excess.update(2) == 7
    assert excess.update(900, Restart.STATISTICS) == 7
    assert excess.update(900) == 7
    assert [excess.update(901), excess.update(901)] == [7, 8]


def test_several_api_servers_that_start_again_before_any_request_are_no_other_method() -> None:
    """They declare no HTTP counter then; aborts go on being found by HTTP, over the restart too."""
    fresh = (CAPTURES / "vllm-0.32.0__two-api-servers-fresh.prom").read_bytes()
    finished = b'vllm:request_success_total{engine="0",finished_reason="length",model_name="tiny"} '

    def after(requests: int, responses: int) -> Page:
        http = b'http_requests_total{handler="/v1/completions",method="POST",status="2xx"} %d.0\n'
        text = fresh.replace(finished + b"0.0", finished + b"%d.0" % requests)
        return parse(text + b"# TYPE http_requests_total counter\n" + http % responses)

    assert b"http_requests_total" not in fresh
    pages = [parse(fresh), after(10, 12), after(10, 12)]

    found = [observe(*(pages * 2)[:count], count_first=False) for count in (1, 3, 4, 6)]

    aborted = [values(o).get(("requests_total", "tiny", "aborted", "derived")) for o in found]
    assert aborted == [None, 2, None, 4]
    assert gaps(found[0])["requests_aborted"].reason.endswith("answered no request yet")
