"""The simulated page is vLLM's page: compared with one that was recorded."""

from __future__ import annotations

from pathlib import Path
from random import Random

from inferslo.exporters.engines.vllm import Vllm
from inferslo.exporters.exposition import Page, parse
from inferslo.sidecar.demo.engine import Engine, EngineConfig, EngineState
from inferslo.sidecar.demo.page import EnginePage
from inferslo.sidecar.demo.request import Request
from inferslo.sidecar.demo.tally import Tally

CAPTURES = Path(__file__).parents[2] / "captures"
RECORDED = parse((CAPTURES / "vllm-0.32.0__mid-overload.prom").read_bytes())
TINY = EngineConfig(model_name="tiny", max_model_len=2048, kv_blocks=8192, block_size=128)


def series(page: Page) -> set[tuple[str, frozenset[tuple[str, str]]]]:
    return {
        (name, frozenset(sample.labels.items()))
        for name in page.names
        for sample in page.samples(name)
    }


def served(requests: int = 3, config: EngineConfig = TINY) -> Engine:
    engine = Engine(config, Random(1), 1000.0)
    for _ in range(requests):
        engine.submit(Request(prompt=100, output=20, arrived=1000.0))
    engine.advance(1100.0)
    return engine


def page_of(engine: Engine) -> Page:
    page = EnginePage(engine.config)
    return parse(page.text(engine.counts.page, engine.state, engine.started))


def test_every_series_of_the_recorded_page_is_there_and_no_other() -> None:
    engine = served()
    engine.counts.page["http_4xx"] = 1.0
    assert series(page_of(engine)) == series(RECORDED)


def test_types_and_help_are_those_of_the_recorded_page() -> None:
    def about(page: Page) -> dict[str, tuple[str, str]]:
        return {name: (each.type, each.help) for name, each in page.families.items()}

    assert about(page_of(served())) == about(RECORDED)


def test_before_the_first_request_no_response_is_counted() -> None:
    page = parse(EnginePage(TINY).text(Tally(), EngineState(), 1000.0))
    assert not page.samples("http_requests_total")
    assert page.declared("http_requests_total")


def test_the_sidecar_misses_nothing_that_it_finds_on_the_recorded_page() -> None:
    def gaps(page: Page) -> set[str]:
        return {gap.signal for gap in Vllm("a", count_first=True).observe(page, "").gaps}

    assert gaps(page_of(served())) == gaps(RECORDED)


def test_a_longer_model_has_more_buckets_of_lengths() -> None:
    page = page_of(served(config=EngineConfig(max_model_len=32768)))
    bounds = [s.labels["le"] for s in page.samples("vllm:request_prompt_tokens_bucket")]
    assert bounds[-2:] == ["20000.0", "+Inf"]
