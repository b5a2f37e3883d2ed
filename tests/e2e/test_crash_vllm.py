"""A vLLM that publishes no statistics, and then dies of a request: a real crash, not a kill."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from e2e import load
from e2e.load import Call, Log
from e2e.processes import Server, free_port, wait_until
from e2e.sidecar import Page, read, sidecar, wait_for_polls
from e2e.vllm import vllm_server

from inferslo.exporters import names

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]


@dataclass(frozen=True, slots=True)
class Pair:
    engine: Server
    sidecar: Server


@pytest.fixture(scope="module")
def pair(fatal_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    scratch = tmp_path_factory.mktemp("crash")
    engine = vllm_server(fatal_model, scratch, free_port(), "--disable-log-stats")
    with engine, sidecar(scratch, engine.url) as watcher:
        wait_for_polls(watcher.url, engine.netloc, polls=2)
        yield Pair(engine, watcher)


@pytest.fixture(scope="module")
def healthy(pair: Pair) -> tuple[Page, dict]:
    """The sidecar's metrics and status before the crash."""
    return read(pair.sidecar.url), httpx.get(f"{pair.sidecar.url}/v1/status").json()


@pytest.fixture(scope="module")
def crashed(pair: Pair, healthy: object) -> tuple[Log, Page]:
    log = load.run(pair.engine.url, [Call()])
    wait_until("engine_up 0", lambda: read(pair.sidecar.url).value(names.ENGINE_UP.name) == 0, 30)
    return log, read(pair.sidecar.url)


def test_statistics_switched_off_are_recognised(healthy: tuple[Page, dict]) -> None:
    page, _ = healthy
    assert page.value(names.ENGINE_UP.name) == 1
    assert page.value(names.ENGINE_STATS_ENABLED.name) == 0
    assert page.value(names.SIGNAL_AVAILABLE.name, signal="ttft") == 0


def test_statistics_switched_off_are_absent_not_zero(healthy: tuple[Page, dict]) -> None:
    page, _ = healthy
    absent = {names.TTFT, names.E2E, names.GENERATION_TOKENS, names.REQUESTS_RUNNING}
    assert page.families().isdisjoint(family.name for family in absent)


def test_status_tells_how_to_switch_statistics_on(pair: Pair, healthy: tuple[Page, dict]) -> None:
    _, status = healthy
    (source,) = [each for each in status["sources"] if each["name"] == pair.engine.netloc]
    (gap,) = [each for each in source["missing"] if each["signal"] == "ttft"]
    assert "--disable-log-stats" in gap["reason"] + gap["remedy"]


def test_a_crashed_engine_is_down(pair: Pair, crashed: tuple[Log, Page]) -> None:
    """The port closes within milliseconds: what the page said of the failure is not seen."""
    log, page = crashed
    assert len(log.failed) == 1
    assert page.value(names.ENGINE_UP.name) == 0
    assert page.value(names.SOURCE_ERRORS.name, source=pair.engine.netloc) >= 1
    assert names.ENGINE_STATS_ENABLED.name not in page.families()
    wait_until("the engine's process to end", lambda: not pair.engine.running, 30)
