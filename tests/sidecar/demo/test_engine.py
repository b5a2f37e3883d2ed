"""The engine: what it serves it counts as vLLM does, and what it cannot serve shows."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from inferslo.exporters.names import Outcome
from inferslo.sidecar.demo.buckets import LATENCIES
from inferslo.sidecar.demo.engine import Engine, EngineConfig
from inferslo.sidecar.demo.faults import Effects
from inferslo.sidecar.demo.request import Request

STEADY = EngineConfig(error_share=0.0, jitter=0.0)
SMALL_KV = replace(STEADY, kv_blocks=200)


def engine_of(config: EngineConfig = STEADY) -> Engine:
    return Engine(config, Random(1))


def submit(engine: Engine, n: int, prompt: int = 100, output: int = 50) -> list[Request]:
    requests = [Request(prompt, output, engine.now) for _ in range(n)]
    for request in requests:
        engine.submit(request)
    return requests


def mean(engine: Engine, key: str) -> float:
    found = engine.counts.page.histogram(key, LATENCIES[key])
    return found.sum / found.count


def test_all_that_is_asked_for_is_served_and_counted_once() -> None:
    engine = engine_of()
    requests = submit(engine, 300)
    engine.advance(600)
    page = engine.counts.page
    assert {request.outcome for request in requests} == {Outcome.SUCCESS}
    assert len(engine.done) == 300
    assert (page["prompt_tokens"], page["generation_tokens"]) == (30_000, 15_000)
    assert page["http_2xx"] == page["finished_length"] == 300
    for key, each in (("ttft", 1), ("itl", 49), ("tpot", 1), ("e2e", 1), ("queue", 1)):
        assert page.histogram(key, LATENCIES[key]).count == 300 * each
    assert engine.state.in_flight == 0
    assert engine.state.kv_usage == 0


def test_times_add_up() -> None:
    engine = engine_of()
    submit(engine, 300)
    engine.advance(600)
    whole = mean(engine, "queue") + mean(engine, "prefill") + mean(engine, "decode")
    front_end = mean(engine, "e2e") - whole
    assert front_end == pytest.approx(STEADY.frontend * 301 / 2)
    assert mean(engine, "tpot") == pytest.approx(mean(engine, "itl"))


def test_time_may_be_moved_in_pieces_of_any_size() -> None:
    whole, pieces = engine_of(), engine_of()
    for engine in (whole, pieces):
        submit(engine, 40)
    whole.advance(20)
    for n in range(2000):
        pieces.advance((n + 1) / 100)
    assert pieces.counts.page["generation_tokens"] == whole.counts.page["generation_tokens"]
    assert mean(pieces, "e2e") == pytest.approx(mean(whole, "e2e"), rel=0.02)


def test_same_seed_same_counts() -> None:
    def counts() -> dict[object, float]:
        engine = engine_of(EngineConfig())
        submit(engine, 50)
        engine.advance(30)
        return dict(engine.counts.page)

    assert counts() == counts()


def test_who_gives_up_is_answered_and_in_no_histogram_of_requests() -> None:
    engine = engine_of()
    requests = submit(engine, 10, output=500)
    engine.advance(2)
    for request in requests[:4]:
        engine.abandon(request)
    engine.advance(60)
    page = engine.counts.page
    assert page["http_2xx"] == 10
    assert page["finished_length"] == 6
    assert page["finished_abort"] == 0
    assert page.histogram("ttft", LATENCIES["ttft"]).count == 10
    assert page.histogram("e2e", LATENCIES["e2e"]).count == 6
    assert engine.counts.probe["requests", "", "", Outcome.ABORTED] == 4
    assert engine.state.kv_usage == 0


def test_a_request_given_up_in_the_queue_has_no_first_token() -> None:
    engine = engine_of(replace(STEADY, max_num_seqs=1))
    first, second = submit(engine, 2)
    engine.advance(0.1)
    engine.abandon(second)
    engine.advance(10)
    assert (first.outcome, second.first_token) == (Outcome.SUCCESS, None)


def test_no_more_than_its_seats_run_and_the_rest_waits_in_order() -> None:
    engine = engine_of(replace(STEADY, max_num_seqs=4))
    requests = submit(engine, 10)
    engine.advance(0.3)
    assert (engine.state.running, engine.state.waiting) == (4, 6)
    engine.advance(60)
    scheduled = [request.scheduled for request in requests]
    assert scheduled == sorted(scheduled, key=lambda at: at or 0.0)


def test_a_short_kv_cache_preempts_and_still_serves_all() -> None:
    engine = engine_of(SMALL_KV)
    requests = submit(engine, 30, prompt=90, output=200)
    engine.advance(0.5)
    assert engine.state.kv_usage > 0.8
    engine.advance(120)
    page = engine.counts.page
    assert page["preemptions"] == sum(request.preemptions for request in requests) > 0
    assert page["generation_tokens"] == 30 * 200
    assert page.histogram("itl", LATENCIES["itl"]).count == 30 * 199
    assert {request.outcome for request in requests} == {Outcome.SUCCESS}
    assert engine.state.kv_usage == 0


def test_a_long_kv_cache_preempts_nobody() -> None:
    engine = engine_of()
    submit(engine, 30, prompt=90, output=200)
    engine.advance(120)
    assert engine.counts.page["preemptions"] == 0


def test_a_long_prompt_is_taken_in_parts_and_holds_up_those_who_decode() -> None:
    alone, beside = engine_of(), engine_of()
    for engine in (alone, beside):
        submit(engine, 1, output=100)
        engine.advance(0.5)
    submit(beside, 1, prompt=16_000, output=1)
    for engine in (alone, beside):
        engine.advance(20)
    assert mean(beside, "itl") > 1.2 * mean(alone, "itl")
    steps = beside.counts.page["step_tokens", 9]  # the bucket up to 2,048 tokens
    assert steps >= 4


def test_an_idle_engine_that_hangs_does_not_show_it_and_serves_late_what_came() -> None:
    engine = engine_of()
    engine.effects = Effects(hang=True)
    submit(engine, 2)
    engine.advance(30)
    assert engine.counts.page["generation_tokens"] == 0
    assert engine.state.waiting == 0  # as it last told
    engine.effects = Effects()
    engine.advance(60)
    assert len(engine.done) == 2
    assert mean(engine, "ttft") > 30


def test_a_busy_engine_that_hangs_makes_no_token_until_it_goes_on() -> None:
    engine = engine_of()
    [request] = submit(engine, 1, output=1000)
    engine.advance(1)
    so_far = engine.generated(request)
    engine.effects = Effects(hang=True)
    engine.advance(100)
    assert (engine.generated(request), engine.state.running) == (so_far, 1)
    engine.effects = Effects()
    engine.advance(200)
    assert engine.counts.page.histogram("itl", LATENCIES["itl"]).counts[-4] == 998  # one over 20 s
    assert request.outcome is Outcome.SUCCESS


def test_a_process_that_ends_loses_its_requests_and_its_counts() -> None:
    engine = engine_of()
    requests = submit(engine, 5, output=500)
    engine.advance(1.0)
    engine.stop()
    assert {request.outcome for request in requests} == {Outcome.ERROR}
    refused = submit(engine, 1)
    assert refused[0].outcome is Outcome.ERROR
    engine.advance(10)
    engine.start()
    assert engine.started == 10
    assert not engine.counts.page
    [request] = submit(engine, 1)
    engine.advance(20)
    assert request.outcome is Outcome.SUCCESS


def test_what_is_over_the_limit_of_the_queue_is_turned_away_at_once() -> None:
    engine = engine_of(replace(STEADY, max_num_seqs=1))
    engine.effects = Effects(queue_limit=3)
    requests = submit(engine, 10)
    assert [request.outcome for request in requests].count(Outcome.REJECTED) == 7
    assert engine.counts.page["rejected"] == engine.counts.page["http_5xx"] == 7


def test_failing_and_empty_answers_are_told_apart() -> None:
    engine = engine_of()
    engine.effects = Effects(error_share=0.5, empty_share=0.5)
    submit(engine, 400)
    engine.advance(100)
    probe, page = engine.counts.probe, engine.counts.page
    failed = probe["requests", "", "", Outcome.ERROR]
    empty = probe["requests", "", "", Outcome.EMPTY]
    assert failed == page["finished_error"] == page["http_5xx"]
    assert 150 < failed < 250
    assert 60 < empty < 140
    assert page["http_2xx"] == 400 - failed


def test_the_probe_takes_classes_apart() -> None:
    engine = engine_of()
    engine.submit(Request(100, 10, 0.0, "S", "le_8000"))
    engine.submit(Request(9000, 10, 0.0, "default", "gt_8000"))
    engine.advance(10)
    probe = engine.counts.probe
    assert probe["goodput", "S", "le_8000", "good"] == 1
    assert probe["requests", "default", "gt_8000", Outcome.SUCCESS] == 1
    assert sum(n for key, n in probe.items() if key[0] == ("itl", "S", "le_8000")) > 9


def test_leaked_blocks_come_back_with_a_new_process_only() -> None:
    engine = engine_of()
    engine.effects = Effects(kv_leak_per_hour=0.5)
    engine.advance(3600)
    assert engine.state.kv_usage == pytest.approx(0.5, rel=0.01)
    engine.effects = Effects()
    engine.advance(3700)
    assert engine.state.kv_usage == pytest.approx(0.5, rel=0.01)
    engine.stop()
    engine.start()
    assert engine.state.kv_usage == 0


def test_the_gauges_of_an_engine_that_hangs_stand_still() -> None:
    engine = engine_of()
    requests = submit(engine, 20)
    engine.advance(0.2)
    before = engine.state
    engine.effects = Effects(hang=True)
    engine.advance(10)
    for request in requests:
        engine.abandon(request)
    engine.advance(20)
    assert engine.state == before
    engine.effects = Effects()
    engine.advance(21)
    assert engine.state.in_flight == 0
