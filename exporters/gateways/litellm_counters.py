"""LiteLLM's counters, and which of ours each becomes: data for litellm.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..exposition import Sample
from ..names import (
    GATEWAY_COOLDOWNS,
    GATEWAY_FALLBACKS,
    GATEWAY_REJECTED,
    GATEWAY_REQUESTS,
    GATEWAY_TIMEOUTS,
    GATEWAY_UPSTREAM_ATTEMPTS,
    GATEWAY_UPSTREAM_FAILURES,
    Family,
)

_FAILURES = "litellm_deployment_failure_responses_total"
# Not litellm_deployment_total_requests_total: it has no label to leave out what called nobody.
ATTEMPTS = ("litellm_deployment_success_responses_total", _FAILURES)

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Counter:
    """How one of LiteLLM's counters becomes one of ours.

    series: of LiteLLM, added up. after: the event after which the first of them shows. models:
    its labels that name a model; they come first of our labels. others: the values of the rest.
    counts: which series belong.
    """

    signal: str
    family: Family
    series: tuple[str, ...]
    after: str
    models: tuple[str, ...] = ("requested_model",)
    others: Callable[[Labels], tuple[str, ...]] = lambda _labels: ()
    counts: Callable[[Sample], bool] = lambda _sample: True


def _given(value: str) -> bool:
    """LiteLLM writes Python's None, or nothing, for a label that it has no value for."""
    return value not in ("", "None")


def _reason(labels: Labels) -> str:
    """The exception's class without the provider before it ("Openai.Timeout"), or the status."""
    class_ = labels.get("exception_class", "").rpartition(".")[2]
    status = labels.get("exception_status", "")
    return class_ if _given(class_) else status if _given(status) else "unknown"


def _status(labels: Labels) -> str:
    status = labels.get("status_code", "")
    return status if _given(status) else "unknown"


def _from_client(sample: Sample) -> bool:
    """Not a scrape: one without a valid key is counted as a request to the route /metrics."""
    return not sample.labels.get("route", "").startswith("/metrics")


def reached_upstream(sample: Sample) -> bool:
    """LiteLLM counts as failures of an upstream also what never reached one.

    Turned away before a deployment was chosen: the model_id is empty (where that label is
    configured away, all count). All deployments cooling down: RouterRateLimitError, and after
    a fallback it stands against the innocent deployment that answered.
    """
    chosen = _given(sample.labels.get("model_id", "configured away"))
    return chosen and _reason(sample.labels) != "RouterRateLimitError"


COUNTERS: Sequence[Counter] = (
    Counter(
        "gateway_requests",
        GATEWAY_REQUESTS,
        ("litellm_proxy_total_requests_metric_total",),
        "request",
        others=lambda labels: (_status(labels),),
        counts=_from_client,
    ),
    Counter(
        "gateway_rejected",
        GATEWAY_REJECTED,
        ("litellm_proxy_failed_requests_metric_total",),
        "answer with HTTP 429",
        others=lambda labels: (_reason(labels),),
        counts=lambda sample: sample.labels.get("exception_status") == "429",
    ),
    Counter(
        "gateway_timeouts",
        GATEWAY_TIMEOUTS,
        ("litellm_proxy_failed_requests_metric_total",),
        "timeout",
        counts=lambda sample: _reason(sample.labels) == "Timeout",
    ),
    Counter(
        "gateway_fallbacks_succeeded",
        GATEWAY_FALLBACKS,
        ("litellm_deployment_successful_fallbacks_total",),
        "fallback that worked",
        models=("requested_model", "fallback_model"),
        others=lambda labels: (_reason(labels), "succeeded"),
    ),
    Counter(
        "gateway_fallbacks_failed",
        GATEWAY_FALLBACKS,
        ("litellm_deployment_failed_fallbacks_total",),
        "fallback that failed",
        models=("requested_model", "fallback_model"),
        others=lambda labels: (_reason(labels), "failed"),
    ),
    Counter(
        "gateway_cooldowns",
        GATEWAY_COOLDOWNS,
        ("litellm_deployment_cooled_down_total",),
        "cooldown",
        models=("litellm_model_name",),  # in this counter alone it is what clients ask for
        others=lambda labels: (_reason(labels),),
    ),
    Counter(
        "gateway_upstream_attempts",
        GATEWAY_UPSTREAM_ATTEMPTS,
        ATTEMPTS,
        "call of an upstream",
        counts=reached_upstream,
    ),
    Counter(
        "gateway_upstream_failures",
        GATEWAY_UPSTREAM_FAILURES,
        (_FAILURES,),
        "failed call of an upstream",
        others=lambda labels: (_reason(labels),),
        counts=reached_upstream,
    ),
)
