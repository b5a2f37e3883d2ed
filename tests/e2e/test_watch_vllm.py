"""A sidecar watches a real vLLM, and a real Prometheus the sidecar: one story, told once.

The story is a chain of fixtures, each leaving a Moment: load, overload, a killed engine, and its
restart with two API servers. Tests look at the moments, so their order does not matter.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import httpx
import pytest
from e2e import load
from e2e.load import Call, Log
from e2e.processes import Server, free_port, wait_until
from e2e.prometheus import Prometheus, prometheus
from e2e.sidecar import Page, read, sidecar, wait_for_polls
from e2e.vllm import MAX_MODEL_LEN, MAX_NUM_SEQS, vllm_server

from inferslo.exporters import names
from inferslo.exporters.names import Family, Feed, Kind, Moments, Outcome

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SHORT = [Call(max_tokens=16)] * 24
ONE_TOKEN = [Call(max_tokens=1)] * 2
LONG = [Call(max_tokens=256)] * 8
ENDLESS = MAX_MODEL_LEN - 1000
LEAVERS = [Call(max_tokens=ENDLESS, leave_after_chunks=chunks) for chunks in (1, 2, 5, 20, 50, 100)]
TOO_LONG = [Call(prompt="the fox " * MAX_MODEL_LEN)] * 4
LOAD = [*SHORT, *ONE_TOKEN, *LONG, *LEAVERS, *TOO_LONG]
QUEUED = [
    Call(max_tokens=64, leave_after_seconds=None if number % 8 else 0.5) for number in range(100)
]

HISTOGRAMS: Mapping[Family, str] = {
    names.TTFT: "vllm:time_to_first_token_seconds",
    names.ITL: "vllm:inter_token_latency_seconds",
    names.TPOT: "vllm:request_time_per_output_token_seconds",
    names.E2E: "vllm:e2e_request_latency_seconds",
    names.QUEUE: "vllm:request_queue_time_seconds",
    names.PREFILL: "vllm:request_prefill_time_seconds",
    names.DECODE: "vllm:request_decode_time_seconds",
}
SAME_VALUE: Mapping[Family, str] = {
    names.PROMPT_TOKENS: "vllm:prompt_tokens_total",
    names.GENERATION_TOKENS: "vllm:generation_tokens_total",
    names.PREEMPTIONS: "vllm:num_preemptions_total",
    names.PREFIX_CACHE_QUERIES: "vllm:prefix_cache_queries_total",
    names.PREFIX_CACHE_HITS: "vllm:prefix_cache_hits_total",
    names.REQUESTS_RUNNING: "vllm:num_requests_running",
    names.REQUESTS_WAITING: "vllm:num_requests_waiting",
}


@dataclass(frozen=True, slots=True)
class House:
    engine: Server
    sidecar: Server
    prometheus: Prometheus
    model: Path
    scratch: Path
    port: int


@dataclass(frozen=True, slots=True)
class Moment:
    """What the pages said once all was quiet, at a Unix time by which Prometheus knew it too.

    log: of the load that ended just before, if any; began: when that load did.
    """

    engine: Page
    sidecar: Page
    log: Log
    began: float
    time: float


NOTHING = Page({})


@pytest.fixture(scope="module")
def house(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    scratch = tmp_path_factory.mktemp("house")
    port = free_port()
    engine = vllm_server(model, scratch, port)
    flags = ("--gpu", "off", "--events-label-values-max", "1")
    watcher = sidecar(scratch, engine.url, flags=flags)
    with engine, watcher, prometheus(scratch, {"sidecar": watcher.netloc}) as database:
        wait_for_polls(watcher.url, engine.netloc)
        yield House(engine, watcher, database, model, scratch, port)


@pytest.fixture(scope="module")
def loaded(house: House) -> Moment:
    return _after_load(house, LOAD, at_once=8)


@pytest.fixture(scope="module")
def overloaded(house: House, loaded: Moment) -> Moment:
    """The batch is full, and others wait, until Prometheus has seen it; then the batch leaves."""
    seen = Event()
    crowd = [*[Call(max_tokens=ENDLESS, leave_when=seen)] * MAX_NUM_SEQS, *QUEUED]
    gauges = (names.REQUESTS_RUNNING, names.REQUESTS_WAITING, names.KV_USAGE)
    shown = " and ".join(f"{gauge.name} > 0" for gauge in gauges)
    with ThreadPoolExecutor() as pool:
        moment = pool.submit(_after_load, house, crowd, at_once=len(crowd))
        try:
            wait_until(shown, lambda: house.prometheus.query(shown), 60)
        finally:
            seen.set()
        return moment.result()


@pytest.fixture(scope="module")
def killed(house: House, overloaded: Moment) -> Moment:
    began = time.time()
    house.engine.kill()
    wait_until("the read to be refused", lambda: _refused(house), 20)
    for app in ("shop", "desk"):  # one more than --events-label-values-max
        event = {"type": "agent_turn", "outcome": "success", "app": app}
        httpx.post(f"{house.sidecar.url}/v1/events", json=event).raise_for_status()
    return _moment(house, NOTHING, Log(()), began)


@pytest.fixture(scope="module")
def restarted(house: House, killed: Moment) -> Iterator[Moment]:
    flags = ("--api-server-count", "2")
    with vllm_server(house.model, house.scratch, house.port, *flags):
        wait_until("engine_up 1", lambda: _engine_up(house) == 1, 20)
        wait_for_polls(house.sidecar.url, house.engine.netloc)
        yield _after_load(house, LOAD, at_once=8)


def _engine_up(house: House) -> float:
    return read(house.sidecar.url).value(names.ENGINE_UP.name, engine=house.engine.netloc)


def _refused(house: House) -> bool:
    return bool(read(house.sidecar.url).series(names.SOURCE_ERRORS.name, kind="refused"))


def _after_load(house: House, calls: list[Call], at_once: int) -> Moment:
    began = time.time()
    log = load.run(house.engine.url, calls, at_once)
    assert not log.failed
    wait_until("the engine to be idle", lambda: _idle(read(house.engine.url)), 30)
    wait_for_polls(house.sidecar.url, house.engine.netloc)
    return _moment(house, read(house.engine.url), log, began)


def _idle(engine: Page) -> bool:
    queues = (names.REQUESTS_RUNNING, names.REQUESTS_WAITING)
    return all(engine.value(SAME_VALUE[queue]) == 0 for queue in queues)


def _moment(house: House, engine: Page, log: Log, began: float) -> Moment:
    at = house.prometheus.wait_for_scrape("sidecar")
    return Moment(engine, read(house.sidecar.url), log, began, at)


def _requests(page: Page, outcome: Outcome) -> float:
    return page.value(names.REQUESTS.name, outcome=outcome)


@pytest.mark.parametrize("phase", ["loaded", "overloaded", "restarted"])
@pytest.mark.parametrize("family", HISTOGRAMS, ids=lambda family: family.name)
def test_histograms_are_the_engines_own(
    family: Family, phase: str, request: pytest.FixtureRequest
) -> None:
    moment: Moment = request.getfixturevalue(phase)
    own = HISTOGRAMS[family]
    assert moment.sidecar.buckets(family.name) == moment.engine.buckets(own)
    assert moment.sidecar.value(f"{family.name}_sum") == moment.engine.value(f"{own}_sum")
    assert moment.sidecar.value(f"{family.name}_count") == moment.engine.value(f"{own}_count") > 0


@pytest.mark.parametrize("phase", ["loaded", "overloaded", "restarted"])
@pytest.mark.parametrize("family", SAME_VALUE, ids=lambda family: family.name)
def test_counters_and_gauges_are_the_engines_own(
    family: Family, phase: str, request: pytest.FixtureRequest
) -> None:
    moment: Moment = request.getfixturevalue(phase)
    assert moment.sidecar.value(family.name) == moment.engine.value(SAME_VALUE[family])


def test_latency_counts_agree_with_the_clients_log(loaded: Moment) -> None:
    begun = sum(1 for result in loaded.log.results if result.chunks)
    assert loaded.sidecar.value(f"{names.TTFT.name}_count") == begun
    succeeded = _requests(loaded.sidecar, Outcome.SUCCESS)
    assert loaded.sidecar.value(f"{names.E2E.name}_count") == succeeded


def test_tokens_cover_what_clients_received(loaded: Moment) -> None:
    received = sum(result.completion_tokens for result in loaded.log.finished)
    assert received == 24 * 16 + 2 * 1 + 8 * 256
    assert loaded.sidecar.value(names.GENERATION_TOKENS.name) > received


def test_invalid_requests_are_those_that_the_client_saw_refused(loaded: Moment) -> None:
    assert _requests(loaded.sidecar, Outcome.INVALID) == len(loaded.log.invalid) == len(TOO_LONG)


def test_clients_that_left_are_counted(loaded: Moment) -> None:
    succeeded = _requests(loaded.sidecar, Outcome.SUCCESS)
    aborted = _requests(loaded.sidecar, Outcome.ABORTED)
    assert len(loaded.log.gone) == len(LEAVERS)
    _assert_they_add_up(loaded.log, succeeded, aborted)


def test_clients_that_left_the_queue_are_counted(loaded: Moment, overloaded: Moment) -> None:
    succeeded, aborted = (
        _requests(overloaded.sidecar, outcome) - _requests(loaded.sidecar, outcome)
        for outcome in (Outcome.SUCCESS, Outcome.ABORTED)
    )
    assert any(not result.chunks for result in overloaded.log.gone)
    _assert_they_add_up(overloaded.log, succeeded, aborted)


def _assert_they_add_up(log: Log, succeeded: float, aborted: float) -> None:
    """Whoever left counts as a success only if the engine had sent the last byte by then."""
    late = succeeded - len(log.finished)
    assert late >= 0
    assert aborted > 0
    assert aborted + late == len(log.gone)


@pytest.mark.parametrize("phase", ["loaded", "overloaded"])
@pytest.mark.parametrize(
    ("moments", "histogram"),
    [(names.TPOT_MOMENTS, names.TPOT), (names.ITL_MOMENTS, names.ITL)],
    ids=["tpot", "itl"],
)
def test_moments_keep_to_what_the_histogram_allows(
    moments: Moments, histogram: Family, phase: str, request: pytest.FixtureRequest
) -> None:
    moment: Moment = request.getfixturevalue(phase)
    own = HISTOGRAMS[histogram]
    n, total, squares, lower, upper = (
        moment.sidecar.value(family.name, source="derived")
        for family in (moments.n, moments.sum, moments.squares, moments.lower, moments.upper)
    )
    assert n == moment.engine.value(f"{own}_count")
    assert total == pytest.approx(moment.engine.value(f"{own}_sum"))
    assert total**2 / n <= lower * (1 + 1e-9)
    assert lower <= squares <= upper


def _greatest(house: House, family: Family, moment: Moment) -> float:
    span = int(moment.time - moment.began) + 1
    (found,) = house.prometheus.query(f"max_over_time({family.name}[{span}s])", moment.time)
    return found.value


def test_overload_shows_in_the_queues(house: House, overloaded: Moment) -> None:
    assert 0 < _greatest(house, names.REQUESTS_RUNNING, overloaded) <= MAX_NUM_SEQS
    assert 0 < _greatest(house, names.REQUESTS_WAITING, overloaded) <= len(QUEUED)


def test_kv_usage_is_a_ratio_above_zero_in_overload(house: House, overloaded: Moment) -> None:
    usage = _greatest(house, names.KV_USAGE, overloaded)
    assert 0 < usage <= _greatest(house, names.KV_USAGE_MAX, overloaded) <= 1


def test_kv_capacity_is_what_the_engine_says(overloaded: Moment) -> None:
    ((config, _),) = overloaded.engine.series("vllm:cache_config_info").items()
    said = dict(config)
    page = overloaded.sidecar
    assert page.value(names.KV_CAPACITY.name) == float(said["kv_cache_size_tokens"])
    assert page.value(names.KV_BLOCKS.name) == float(said["num_gpu_blocks"])
    assert page.value(names.KV_BLOCK_SIZE.name) == float(said["block_size"])


def test_a_killed_engine_is_down_and_why(house: House, killed: Moment) -> None:
    assert killed.sidecar.value(names.ENGINE_UP.name) == 0
    errors = killed.sidecar.series(names.SOURCE_ERRORS.name, source=house.engine.netloc)
    kinds = {dict(labels)["kind"] for labels in errors}
    # truncated: killed in mid-answer; timeout: its page was slow in the overload before
    assert {"refused"} <= kinds <= {"refused", "truncated", "timeout"}


def test_nothing_that_a_killed_engine_said_is_still_published(house: House, killed: Moment) -> None:
    engine_families = {f.name for f in names.FAMILIES.values() if f.feed is Feed.ENGINE}
    assert killed.sidecar.families() & engine_families == {names.ENGINE_UP.name}
    assert house.prometheus.query(names.REQUESTS_RUNNING.name, killed.time) == []
    (up,) = house.prometheus.query(names.ENGINE_UP.name, killed.time)
    assert up.value == 0


def test_a_killed_engine_leaves_the_rest_alone(house: House, killed: Moment) -> None:
    page = killed.sidecar
    assert page.value(names.SOURCE_UP.name, source="host") == 1
    assert page.value(names.HOST_TCP_SEGMENTS.name) > 0
    assert page.value(names.AGENT_TURNS.name, outcome="success") == 2
    assert httpx.get(f"{house.sidecar.url}/healthz").status_code == 200
    assert httpx.get(f"{house.sidecar.url}/readyz").status_code == 200


def test_a_restart_is_counted_once(restarted: Moment) -> None:
    assert restarted.sidecar.value(names.ENGINE_UP.name) == 1
    assert restarted.sidecar.value(names.ENGINE_RESETS.name) == 1


def test_counts_after_a_restart_are_of_the_new_engine(
    restarted: Moment, overloaded: Moment
) -> None:
    succeeded = _requests(restarted.sidecar, Outcome.SUCCESS)
    aborted = _requests(restarted.sidecar, Outcome.ABORTED)
    before = _requests(overloaded.sidecar, Outcome.ABORTED)
    _assert_they_add_up(restarted.log, succeeded, aborted - before)


def test_what_the_sidecar_adds_up_never_goes_backwards(house: House, restarted: Moment) -> None:
    added_up = [f'{names.REQUESTS.name}{{source="derived"}}', names.ENGINE_RESETS.name]
    for moments in (names.TPOT_MOMENTS, names.ITL_MOMENTS):
        added_up += [f.name for f in (moments.n, moments.sum, moments.squares)]
    for series in added_up:
        found = house.prometheus.query(f"resets({series}[30m])", restarted.time)
        assert [sample.value for sample in found] == [0] * len(found) != [], series


SCRAPED = [f for f in names.FAMILIES.values() if f.feed in (Feed.ENGINE, Feed.HOST, Feed.SIDECAR)]

ADDED = {"job", "instance", "le"}


def _not_here() -> dict[Family, str]:
    """Families that this set-up cannot feed, and why."""
    group = Path("/proc/self/cgroup").read_text().rpartition("0::/")[2].strip()
    limit = Path("/sys/fs/cgroup", group, "memory.max")
    if not limit.exists():
        containers = [f for f in SCRAPED if f.name.startswith("inferslo_container_")]
        return dict.fromkeys(containers, f"no {limit}: memory is in cgroup v1, or has no container")
    if limit.read_text().strip() == "max":
        return {names.CONTAINER_MEMORY_LIMIT: f"{limit} sets none"}
    return {}


@pytest.mark.parametrize("family", SCRAPED, ids=lambda family: family.name)
def test_prometheus_answers_for_every_family(
    house: House, restarted: Moment, family: Family
) -> None:
    series = _exposed(family)[0]
    found = house.prometheus.query(f"present_over_time({series}[30m])", restarted.time)
    reason = _not_here().get(family)
    assert bool(found) == (reason is None), reason
    # Prometheus drops a label that is empty.
    assert all(set(sample.labels) <= {*family.labels, *ADDED} for sample in found)


@pytest.mark.parametrize("phase", ["overloaded", "killed", "restarted"])
def test_every_series_has_the_labels_of_the_contract(
    phase: str, request: pytest.FixtureRequest
) -> None:
    moment: Moment = request.getfixturevalue(phase)
    published = {
        (name, frozenset(label for label, _ in labels) - {"le"})
        for name, labels in moment.sidecar.samples
        if name.startswith(names.PREFIX)
    }
    assert published <= {
        (exposed, frozenset(family.labels))
        for family in names.FAMILIES.values()
        for exposed in _exposed(family)
    }


def _exposed(family: Family) -> list[str]:
    if family.kind is not Kind.HISTOGRAM:
        return [family.name]
    return [family.name + suffix for suffix in ("_bucket", "_sum", "_count")]


def test_sigterm_ends_a_sidecar_cleanly(house: House, tmp_path: Path) -> None:
    with sidecar(tmp_path, house.engine.url) as second:
        assert second.stop() == 0
    assert "Traceback" not in second.log.read_text()
