"""The simulator beside a real run: vLLM 0.32 with 16 seats, about 240 streams at once.

Two recorded pages of one process: after a run with clients that left, and in the middle of an
overload. What happened between them is the real overload. The simulated engine is told what the
real one was: seats, length of its prompts and answers, and time of a step; the rest must follow.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from inferslo.exporters.engines.series import VllmPage
from inferslo.exporters.exposition import parse
from inferslo.exporters.names import Outcome
from inferslo.exporters.reading import Histogram
from inferslo.sidecar.demo.buckets import LATENCIES
from inferslo.sidecar.demo.engine import Engine, EngineConfig
from inferslo.sidecar.demo.request import Request

CAPTURES = Path(__file__).parents[2] / "captures"
LEFT = VllmPage(parse((CAPTURES / "vllm-0.32.0__load-50-client-aborts-of-120.prom").read_bytes()))
OVERLOAD = VllmPage(parse((CAPTURES / "vllm-0.32.0__mid-overload.prom").read_bytes()))
NAMES = {
    "ttft": "time_to_first_token_seconds", "itl": "inter_token_latency_seconds",
    "tpot": "request_time_per_output_token_seconds", "e2e": "e2e_request_latency_seconds",
    "queue": "request_queue_time_seconds", "decode": "request_decode_time_seconds",
}  # fmt: skip
# Measured on the real engine: 33 s of gaps between 3,094 tokens, and 0.2 s that the API server,
# busy with 240 streams on two cores, took of each of the first requests.
STEP, FRONT_END = 0.0108, 0.006
REAL = EngineConfig(
    model_name="tiny", max_num_seqs=16, max_model_len=2048, kv_blocks=8192, block_size=128,
    prefix_hit=0.0, error_share=0.0, frontend=FRONT_END, step=STEP, step_per_request=0.0,
    step_per_prompt_token=1e-5, step_per_kv_token=0.0, jitter=0.3,
)  # fmt: skip


def histogram(page: VllmPage, key: str) -> Histogram:
    _, by_model = page.histograms(NAMES[key])
    return by_model["tiny"]


def gained(key: str) -> Histogram:
    before, after = histogram(LEFT, key), histogram(OVERLOAD, key)
    counts = tuple(a - b for b, a in zip(before.counts, after.counts, strict=True))
    return Histogram(after.bounds, counts, after.sum - before.sum)


def quantile(histogram: Histogram, share: float) -> float:
    """Upper bound of the bucket that the quantile is in."""
    wanted = share * histogram.count
    return next(b for b, n in zip(histogram.bounds, histogram.counts, strict=True) if n >= wanted)


@pytest.fixture(scope="module")
def overload() -> Engine:
    """As many finished as had in the real run. 1, 16, 64 and 128 tokens were asked for, in equal
    parts but for what the histogram of finished answers says."""
    engine, random = Engine(REAL, Random(3)), Random(4)
    waited_or_ran = int(gained("e2e").count) + 16 + 111
    for _ in range(waited_or_ran):
        output = random.choice([1, 16, 64, 128])
        engine.submit(Request(57, output, 0.0))
    while len(engine.done) < gained("e2e").count:
        engine.advance(engine.now + 0.01)
    return engine


def simulated(engine: Engine, key: str) -> Histogram:
    return engine.counts.page.histogram(key, LATENCIES[key])


def test_seats_are_full_and_all_others_wait_as_they_did(overload: Engine) -> None:
    real_waiting = OVERLOAD.find("num_requests_waiting").total()
    assert overload.state.running == OVERLOAD.find("num_requests_running").total() == 16
    assert overload.state.in_flight - 16 == pytest.approx(real_waiting, rel=0.05)


@pytest.mark.parametrize("key", ["ttft", "e2e", "queue", "decode", "tpot", "itl"])
def test_means_are_within_a_factor_of_the_real_ones(overload: Engine, key: str) -> None:
    real, ours = gained(key), simulated(overload, key)
    ratio = (ours.sum / ours.count) / (real.sum / real.count)
    assert 0.6 < ratio < 1.6


@pytest.mark.parametrize("key", ["ttft", "e2e", "queue"])
def test_waiting_spreads_as_wide_as_it_did(overload: Engine, key: str) -> None:
    """Median and P90 no more than one or two buckets from where they really were."""
    real, ours = gained(key), simulated(overload, key)
    bounds = real.bounds
    for share in (0.5, 0.9):
        apart = bounds.index(quantile(real, share)) - bounds.index(quantile(ours, share))
        assert abs(apart) <= 2


def test_first_tokens_run_ahead_of_finished_requests_by_those_that_run(overload: Engine) -> None:
    for found in (gained, lambda key: simulated(overload, key)):
        ahead = found("ttft").count - found("e2e").count
        assert 10 <= ahead <= 16


def test_clients_that_left_are_missing_where_they_were_missing() -> None:
    """120 streams of which 15 were refused and 48 left: HTTP and TTFT saw 105, the rest 57."""
    engine, random = Engine(REAL, Random(5)), Random(6)
    requests = [Request(57, random.choice([16, 64, 128]), 0.0) for _ in range(105)]
    for request in requests:
        engine.submit(request)
    leaving = set(random.sample(range(105), 48))
    while engine.state.in_flight:
        engine.advance(engine.now + 0.02)
        for index in list(leaving):
            if engine.generated(requests[index]) >= 2:
                engine.abandon(requests[index])
                leaving.discard(index)
    page = engine.counts.page
    real = {key: histogram(LEFT, key).count - 3 for key in ("ttft", "e2e", "tpot")}
    assert real == {"ttft": 105, "e2e": 57, "tpot": 57}
    assert {key: simulated(engine, key).count for key in real} == real
    assert page["http_2xx"] == 105
    assert page["finished_abort"] == LEFT.find("request_success_total").by(
        lambda sample: sample.labels["finished_reason"]
    )["abort"][0] == 0  # fmt: skip
    assert engine.counts.probe["requests", "", "", Outcome.ABORTED] == 48


def test_nobody_was_preempted_with_as_large_a_cache(overload: Engine) -> None:
    real = OVERLOAD.find("num_preemptions_total").total()
    assert overload.counts.page["preemptions"] == real == 0
    assert overload.state.kv_usage == pytest.approx(
        OVERLOAD.find("kv_cache_usage_perc").total(), rel=0.5
    )
