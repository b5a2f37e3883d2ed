"""The first three things to do, by signal. The runbooks say more."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..slo.signals import Needs, Signal

_ENGINE = (
    "See whether an alert of a cause or an early warning of the service fires: begin there.",
    "Compare clients, gateway and engine for the same minutes: where are requests lost?",
    "Look at queue, KV cache and preemptions; do not restart first, it hides the cause.",
)
_LATENCY = (
    "See whether an alert of a cause or an early warning of the service fires: begin there.",
    "Compare the gateway's latency with the engine's: pool exhausted, or engine slow?",
    "Look at queue wait, KV cache and prompt lengths; shed load before you restart anything.",
)
_STABILITY = (
    "See which engine or GPU differs from the others.",
    "Compare the last day with the week before: gradual, or since a rollout?",
    "Plan the change for working hours; nobody needs waking.",
)
_BUSINESS = (
    "See when it began and what was rolled out then: prompt, model, client or tool.",
    "Tell outcomes apart by model and application: one of them, or all?",
    "See whether the engine's own objectives burn too: then begin there.",
)
_FALLBACKS = (
    "See which model is fallen back from, and the reason that the label names.",
    "See whether that model's engine and gateway answer, and how fast.",
    "Make sure that the weaker path has room for the load it now carries.",
)
_QUERY = (
    "Run the objective's query and see which series went bad.",
    "See what changed when it began.",
    "See whether the engine's own objectives burn too.",
)
REVIEW = (
    "Freeze risky changes to the service until there is budget again.",
    "Read what burned it: few long outages, or a steady loss?",
    "Decide whether to mend the service or to change the promise.",
)
NO_DATA = (
    "See whether Prometheus scrapes the sidecar: its targets page, job and address.",
    "Ask the sidecar's /v1/status what it can read.",
    "Check the labels in the SLO file's match against those of the series.",
)
SIGNAL_MISSING = (
    "Ask the sidecar's /v1/status: it says why the signal is missing and how to get it.",
    "See whether the engine was upgraded: metrics are renamed between versions.",
    "See that the threshold is a bucket bound: inferslo check FILE --engine URL.",
)
NO_TRAFFIC = (
    "See whether clients reach the gateway: DNS, certificates, load balancer.",
    "See whether the gateway still routes to this service.",
    "Send one request by hand.",
)

_BY_NEEDS: Mapping[Needs, tuple[str, ...]] = MappingProxyType(
    {
        Needs.SCRAPE: _LATENCY,
        Needs.PROBE: _ENGINE,
        Needs.GPU: _STABILITY,
        Needs.EVENTS: _BUSINESS,
        Needs.PROMETHEUS: _QUERY,
    }
)


def burning(signal: Signal) -> tuple[str, ...]:
    """What to do first when the objective burns."""
    if signal.name == "availability":
        return _ENGINE
    if signal.name.startswith("fallback"):
        return _FALLBACKS
    quiet = not signal.pages and signal.needs is not Needs.EVENTS
    return _STABILITY if quiet else _BY_NEEDS[signal.needs]
