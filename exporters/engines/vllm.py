"""vLLM 0.8.5 to 0.33 (older ones as far as their names agree), in engine-neutral terms.

Names changed over the versions, and two live at once in some: the first that has samples wins.
Bounds of histograms are read from the page. LoRA requests are counted under the base model's
name by vLLM itself. What follows from what: docs/engines/vllm.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..exposition import Page
from ..names import (
    DECODE,
    E2E,
    ENGINE_AWAKE,
    ENGINE_INFO,
    ENGINE_RESETS,
    ENGINE_START_TIME,
    ENGINE_STATS_ENABLED,
    GENERATION_TOKENS,
    ITL,
    ITL_MOMENTS,
    PREEMPTIONS,
    PREFILL,
    PREFIX_CACHE_HITS,
    PREFIX_CACHE_QUERIES,
    PROMPT_TOKENS,
    QUEUE,
    REQUESTS_RUNNING,
    REQUESTS_WAITING,
    TPOT,
    TPOT_MOMENTS,
    TTFT,
    Family,
    Moments,
    Origin,
)
from ..reading import Gap, Histogram, Observation
from . import kv
from .draft import Draft
from .excess import SEVERAL_ENGINES, Restart
from .moments import MomentCounter
from .requests import Requests
from .restarts import Restarts, engine_start_time
from .series import Found, UnusableError, VllmPage, model_of, refuse_excess


@dataclass(frozen=True, slots=True)
class Latency:
    """A histogram that is passed on as it is. names: first present wins."""

    signal: str
    family: Family
    names: tuple[str, ...]
    remedy: str
    moments: Moments | None = None


@dataclass(frozen=True, slots=True)
class Amount:
    """Counters or queue lengths that add up over engines; a signal is there if all of them are."""

    signal: str
    families: tuple[tuple[Family, tuple[str, ...]], ...]


_OLD = "use vLLM 0.8.5 or newer"

LATENCIES = (
    Latency("ttft", TTFT, ("time_to_first_token_seconds",), _OLD),
    Latency(
        "itl", ITL, ("inter_token_latency_seconds", "time_per_output_token_seconds"), _OLD,
        ITL_MOMENTS,
    ),
    Latency(
        "tpot", TPOT, ("request_time_per_output_token_seconds",), "use vLLM 0.11 or newer",
        TPOT_MOMENTS,
    ),
    Latency("e2e", E2E, ("e2e_request_latency_seconds",), _OLD),
    Latency("queue", QUEUE, ("request_queue_time_seconds",), _OLD),
    Latency("prefill", PREFILL, ("request_prefill_time_seconds",), _OLD),
    Latency("decode", DECODE, ("request_decode_time_seconds",), _OLD),
)  # fmt: skip

AMOUNTS = (
    Amount(
        "tokens",
        (
            (PROMPT_TOKENS, ("prompt_tokens_total",)),
            (GENERATION_TOKENS, ("generation_tokens_total",)),
        ),
    ),
    Amount("running", ((REQUESTS_RUNNING, ("num_requests_running",)),)),
    Amount("waiting", ((REQUESTS_WAITING, ("num_requests_waiting",)),)),
    Amount("preemptions", ((PREEMPTIONS, ("num_preemptions_total",)),)),
    Amount(
        "prefix_cache",
        (
            (
                PREFIX_CACHE_QUERIES,
                ("prefix_cache_queries_total", "gpu_prefix_cache_queries_total"),
            ),
            (PREFIX_CACHE_HITS, ("prefix_cache_hits_total", "gpu_prefix_cache_hits_total")),
        ),
    ),
)

# A model is on the page if one of these names it; they exist in every version, from the start.
_TELL_MODELS = ("num_requests_running", "prompt_tokens_total", "request_success_total")


class Vllm:
    """Reads pages of one engine, in order.

    name: the label `engine`. kv_cache_groups: where vLLM does not tell it. count_first: derived
    counters include what the engine did before the first page (for a one-off read).
    """

    def __init__(
        self, name: str, *, kv_cache_groups: int | None = None, count_first: bool = True
    ) -> None:
        self._name = name
        self._kv_cache_groups = kv_cache_groups
        self._restarts = Restarts()
        self._begin_counting(count_first=count_first)

    def observe(self, page: Page, version: str) -> Observation:
        """version: as the engine tells it, empty if it does not.

        Raises SourceError for a page of which too many series would be published.
        """
        refuse_excess(page)
        view = VllmPage(page)
        draft = Draft(self._name)
        restart = self._restarts.seen(view)
        if restart is Restart.SEVERAL:
            self._begin_counting(count_first=False)
        models = _models(view)
        self._identity(view, models, version, draft)
        for latency in LATENCIES:
            self._latency(view, latency, restart, draft)
        for amount in AMOUNTS:
            _amount(view, amount, draft)
        self._requests.observe(view, models, restart, draft)
        kv.observe(view, models, self._kv_cache_groups, draft)
        return draft.observation({"engine_type": "vllm", "version": version})

    def _begin_counting(self, *, count_first: bool) -> None:
        """Forgets the derived counters and what they are made from."""
        self._count_first = count_first
        self._requests = Requests(count_first=count_first)
        self._moments: dict[tuple[str, str], MomentCounter] = {}

    def _identity(self, view: VllmPage, models: Sequence[str], version: str, draft: Draft) -> None:
        for model in models or [""]:
            draft.add(ENGINE_INFO, 1.0, "vllm", version, model)
        if (started := engine_start_time(view)) is not None:
            draft.add(ENGINE_START_TIME, started, origin="process_start_time_seconds")
        draft.add(ENGINE_RESETS, float(self._restarts.total), origin="counters that fell")
        draft.add(ENGINE_STATS_ENABLED, float(view.has_statistics))
        for model, awake in _awake(view).items():
            draft.add(ENGINE_AWAKE, awake, model, origin="engine_sleep_state awake")

    def _latency(self, view: VllmPage, latency: Latency, restart: Restart, draft: Draft) -> None:
        gap: Gap | None = None
        try:
            origin, by_model = view.histograms(*latency.names)
            if not by_model:
                names = [f"{name}{suffix}" for name in latency.names for suffix in ("", "_bucket")]
                gap = view.gap(latency.signal, names, latency.remedy)
        except UnusableError as unusable:
            gap = Gap(latency.signal, str(unusable), "see what vLLM's page says of it")
        if gap is not None:
            draft.missing(gap)
            if latency.moments:
                draft.missing(Gap(f"{latency.signal}_moments", gap.reason, gap.remedy))
            return
        for model, histogram in by_model.items():
            draft.add(latency.family, histogram, model, Origin.ENGINE, origin=origin)
            if latency.moments and restart is not Restart.SEVERAL:
                self._add_moments(latency.moments, model, histogram, origin, restart, draft)
        draft.available(latency.signal, Origin.ENGINE)
        if latency.moments and restart is Restart.SEVERAL:
            draft.missing(Gap(f"{latency.signal}_moments", *SEVERAL_ENGINES))
        elif latency.moments:
            draft.available(f"{latency.signal}_moments", Origin.DERIVED)

    def _add_moments(
        self,
        families: Moments,
        model: str,
        histogram: Histogram,
        origin: str,
        restart: Restart,
        draft: Draft,
    ) -> None:
        key = families.n.name, model
        counter = self._moments.get(key)
        if counter is None:
            counter = self._moments[key] = MomentCounter(count_first=self._count_first)
        found = counter.update(histogram, restart)
        for family, value in (
            (families.n, found.n),
            (families.sum, found.sum),
            (families.squares, found.estimate),
            (families.lower, found.lower),
            (families.upper, found.upper),
        ):
            draft.add(family, value, model, Origin.DERIVED, origin=f"{origin} buckets and sum")


def _models(view: VllmPage) -> list[str]:
    samples = (sample for name in _TELL_MODELS for sample in view.find(name).samples)
    return sorted({model_of(sample) for sample in samples})


def _awake(view: VllmPage) -> dict[str, float]:
    """By model: 0 if one of its data-parallel engines sleeps. Empty if the page does not tell."""
    found = view.find("engine_sleep_state")
    awake = [sample for sample in found.samples if sample.labels.get("sleep_state") == "awake"]
    try:
        return {model: min(1.0, *told) for model, told in Found(found.name, awake).values().items()}
    except UnusableError:
        return {}


def _amount(view: VllmPage, amount: Amount, draft: Draft) -> None:
    gap: Gap | None = None
    for family, names in amount.families:
        found = view.find(*names)
        if not found.samples:
            gap = view.gap(amount.signal, names, _OLD)
            continue
        try:
            for model, value in found.sums().items():
                draft.add(family, value, model, origin=found.origin)
        except UnusableError as unusable:
            gap = Gap(amount.signal, str(unusable), "see what vLLM's page says of it")
    if gap is not None:
        draft.missing(gap)
    else:
        draft.available(amount.signal, Origin.ENGINE)
