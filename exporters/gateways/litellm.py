"""LiteLLM proxy: fallbacks, cooldowns, failures, rejects and timeouts, as the gateway counts them.

Names since 1.60, tried with 1.108.7. What LiteLLM's figures tell, and what they do not, is in
docs/gateways/litellm.md. Keys, users, teams and addresses, which it puts into labels, are summed
away and never published again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from itertools import chain

from ..exposition import Page, Sample
from ..names import GATEWAY_DEPLOYMENT_STATE, GATEWAY_IN_FLIGHT
from ..reading import ErrorKind, Gap, Observation, Point, SourceError
from ..replicas import Replicas, start_time
from .continuity import BoundedValues, CounterSums, LatestChange
from .litellm_counters import ATTEMPTS, COUNTERS, Counter, Labels, reached_upstream

MAX_MODELS = 100
MAX_REASONS = 100  # and statuses
_BEYOND = 1e100  # what is less can be added up
_UNLICENSED = "litellm_not_a_premium_user_metric_total"
_STATE = "litellm_deployment_state"
_IN_FLIGHT = "litellm_in_flight_requests"

_Sums = defaultdict[Counter, CounterSums[tuple[str, ...]]]  # by the values of our labels


def is_litellm(page: Page) -> bool:
    """Whether anything on the page is LiteLLM's."""
    return page.has_prefix("litellm_")


class LiteLlm:
    """The adapter of one proxy."""

    def __init__(self, gateway: str) -> None:
        self._gateway = gateway
        # In older versions a client makes a series of any model name it asks for.
        self._model_names = BoundedValues(MAX_MODELS)
        self._reasons = BoundedValues(MAX_REASONS)
        self._model_of: dict[str, str] = {}  # by deployment of the page before
        self._workers = Replicas()
        self._sums = _no_sums()
        self._states: LatestChange[str] = LatestChange()

    def observe(self, page: Page) -> Observation:
        """Raises SourceError if nothing on the page is LiteLLM's."""
        if not is_litellm(page):
            raise SourceError(
                ErrorKind.UNKNOWN_ENGINE,
                "no litellm_ metric on the page: is this a LiteLLM proxy, and has it"
                " `callbacks: [prometheus]` under litellm_settings?",
            )
        if page.declared(_UNLICENSED):
            return _nothing("this LiteLLM has metrics for licence holders only", "update LiteLLM")
        self._follow_process(page)
        if self._workers.several:
            return _nothing(
                "several workers answer in turn, each with counts of its own",
                "set PROMETHEUS_MULTIPROC_DIR for the proxy, or run it with one worker",
            )
        points: list[Point] = []
        gaps = [_RETRIES]
        for part in (self._counters, self._deployments, self._in_flight):
            part(page, points, gaps)
        return Observation(tuple(points), tuple(gaps), _FACTS)

    def _follow_process(self, page: Page) -> None:
        """Starts afresh with a new process; a known one that comes back is one of several."""
        started = start_time(page)
        if started is None:  # under PROMETHEUS_MULTIPROC_DIR no page tells a restart
            self._sums, self._workers = _no_sums(), Replicas()
        elif self._workers.seen(started):
            self._sums, self._states = _no_sums(), LatestChange()

    def _counters(self, page: Page, points: list[Point], gaps: list[Gap]) -> None:
        for counter in COUNTERS:
            samples = [*filter(counter.counts, _samples(page, *counter.series))]
            if not all(0 <= sample.value < _BEYOND for sample in samples):  # nor if it is NaN
                gaps.append(_no_count(counter.signal, counter.series[0]))
                continue
            sums = self._sums[counter].add({
                _identity(sample): (self._values(counter, sample.labels), sample.value)
                for sample in samples
            })  # fmt: skip
            points += (
                Point(counter.family, (self._gateway, *values), value, " + ".join(counter.series))
                for values, value in sums.items()
            )
            if not sums:
                gaps.append(_missing(counter.signal, counter.series[0], counter.after, page))

    def _values(self, counter: Counter, labels: Labels) -> tuple[str, ...]:
        models = (self._model_names.bounded(labels.get(label, "")) for label in counter.models)
        return (*models, *map(self._reasons.bounded, counter.others(labels)))

    def _deployments(self, page: Page, points: list[Point], gaps: list[Gap]) -> None:
        model_of: dict[str, str] = {}
        for sample in filter(reached_upstream, _samples(page, *ATTEMPTS)):
            model_of[_deployment(sample)] = self._model_names.bounded(
                sample.labels.get("requested_model", "")
            )
        series: defaultdict[str, dict[Hashable, float]] = defaultdict(dict)
        states = filter(reached_upstream, page.samples(_STATE))
        for sample in (sample for sample in states if 0 <= sample.value < _BEYOND):
            name = _deployment(sample)
            if name not in model_of:
                model = sample.labels.get("litellm_model_name", "")
                model_of[name] = self._model_of.get(name) or self._model_names.bounded(model)
            series[name][_identity(sample)] = sample.value
        self._model_of = model_of
        latest = self._states.add(series)
        by_model: defaultdict[str, list[float | None]] = defaultdict(list)
        for name in series:
            by_model[model_of[name]].append(latest.get(name))
        for model, found in by_model.items():
            known = [state for state in found if state is not None]
            if len(known) == len(found):
                labels = (self._gateway, model)
                points.append(Point(GATEWAY_DEPLOYMENT_STATE, labels, max(known), _STATE))
            else:
                gaps.append(_ambiguous(model))
        if not series:
            gaps.append(_missing("gateway_deployment_state", _STATE, "call of an upstream", page))

    def _in_flight(self, page: Page, points: list[Point], gaps: list[Gap]) -> None:
        found = page.samples(_IN_FLIGHT)
        value = sum(sample.value for sample in found)
        if any(not 0 <= sample.value < _BEYOND for sample in found):
            gaps.append(_no_count("gateway_requests_in_flight", _IN_FLIGHT))
        elif found:
            points.append(Point(GATEWAY_IN_FLIGHT, (self._gateway,), value, _IN_FLIGHT))
        else:
            gaps.append(_missing("gateway_requests_in_flight", _IN_FLIGHT, "request", page))


def _no_sums() -> _Sums:
    return defaultdict(CounterSums)


def _samples(page: Page, *names: str) -> Iterator[Sample]:
    return chain.from_iterable(map(page.samples, names))


def _identity(sample: Sample) -> Hashable:
    return sample.name, frozenset(sample.labels.items())


def _deployment(sample: Sample) -> str:
    return sample.labels.get("model_id") or sample.labels.get("litellm_model_name", "")


def _missing(signal: str, series: str, after: str, page: Page) -> Gap:
    if page.declared(series):
        reason = f"LiteLLM shows {series} only after the first {after}"
        return Gap(signal, reason, "wait: until then it is unknown, not zero")
    reason = f"{series} is not on the page"
    return Gap(signal, reason, "update LiteLLM, or add it to its prometheus_metrics_config")


def _no_count(signal: str, series: str) -> Gap:
    return Gap(
        signal,
        f"{series} is not a number, below zero or beyond all measure",
        "see what LiteLLM's page says of it",
    )


def _ambiguous(model: str) -> Gap:
    return Gap(
        "gateway_deployment_state",
        f"LiteLLM shows several states for one deployment of {model}, all but one of them stale",
        "wait: the next change of state tells which one is right",
    )


def _nothing(reason: str, remedy: str) -> Observation:
    signals = (*(counter.signal for counter in COUNTERS), "gateway_deployment_state")
    return Observation((), tuple(Gap(signal, reason, remedy) for signal in signals), _FACTS)


_FACTS = {"gateway_type": "litellm"}
_RETRIES = Gap(
    "gateway_retries",
    "LiteLLM counts at most one failed attempt for a request, however often it retried",
    "count requests at the engines: inferslo_requests_total",
)
