"""The first three things to do, by signal. The runbooks say more."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..slo.signals import Needs, Signal

# A symptom is worth less than what names its cause: first to it, in whichever alert it stands.
_CAUSES = (
    "See what else fires (inferslo alerts service={service}, or the sidecar's page): what names a"
    " cause comes first."
)
_ENGINE = (
    _CAUSES,
    "Compare clients, gateway and engine for the same minutes: where are requests lost?",
    "Look at queue, KV cache and preemptions; do not restart first, it hides the cause.",
)
_LATENCY = (
    _CAUSES,
    "Compare the gateway's latency with the engine's: pool exhausted, or engine slow?",
    "Look at queue wait, KV cache and prompt lengths; shed load before you restart anything.",
)
_STABILITY = (
    "See which engine or GPU differs from the others.",
    "Compare the last day with the week before: gradual, or since a rollout?",
    "Plan the change for working hours; nobody needs waking.",
)
_STABILITY_NOW = (
    *_STABILITY[:2],
    "Send no more to the one that differs, and restart it when it has nothing to do.",
)
_BUSINESS = (
    _CAUSES,
    "Tell outcomes apart by model and application: one of them, or all?",
    "See when it began and what was rolled out then: prompt, model, client or tool.",
)
_FALLBACKS = (
    "See which model is fallen back from, and the reason that the label names.",
    "See whether that model's engine and gateway answer, and how fast.",
    "Make sure that the weaker path has room for the load it now carries.",
)
_QUERY = (
    _CAUSES,
    "Run the objective's query and see which series went bad.",
    "See what changed when it began.",
)
REVIEW = (
    "Freeze risky changes to the service until there is budget again.",
    "Read what burned it: few long outages, or a steady loss?",
    "Decide whether to mend the service or to change the promise.",
)
NO_DATA = (
    "Send a request through the gateway by hand: are users served?",
    "See whether Prometheus scrapes the sidecar, and ask its /v1/status what it can read.",
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


def burning(signal: Signal, service: str, *, paged: bool = False) -> tuple[str, ...]:
    """What to do first when an objective of the service burns. paged: somebody was woken."""
    actions = _of(signal)
    if paged and actions is _STABILITY:
        actions = _STABILITY_NOW
    return tuple(action.format(service=service) for action in actions)


def _of(signal: Signal) -> tuple[str, ...]:
    if signal.name == "availability":
        return _ENGINE
    if signal.name.startswith("fallback"):
        return _FALLBACKS
    quiet = not signal.pages and signal.needs is not Needs.EVENTS
    return _STABILITY if quiet else _BY_NEEDS[signal.needs]
