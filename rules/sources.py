"""Where the data of an objective come from: the family it reads, and what tells apart that there
is no traffic, that nothing answers, and that the source answers without the signal."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..exporters.names import (
    BUILD_INFO,
    CLASS_E2E,
    CLASS_GOODPUT,
    CLASS_ITL,
    CLASS_QUEUE,
    CLASS_REQUESTS,
    CLASS_TPOT,
    CLASS_TTFT,
    CONTAINER_MEMORY,
    E2E,
    ENGINE_UP,
    GPU_MEMORY_USED,
    GPU_UP,
    GPU_UTILIZATION_N,
    ITL,
    KV_TAIL_WASTE,
    QUEUE,
    REQUESTS,
    TPOT,
    TPOT_MOMENTS,
    TTFT,
    Family,
    Kind,
)
from ..slo.plan import Objective, Selection
from ..slo.signals import Needs, Shape
from .promql import le, of_service, select

# Signal → the family of a scrape, and the probe's by class.
_COUNTED: Mapping[str, tuple[Family, Family]] = MappingProxyType(
    {
        "availability": (REQUESTS, CLASS_REQUESTS),
        "ttft": (TTFT, CLASS_TTFT),
        "tpot": (TPOT, CLASS_TPOT),
        "itl": (ITL, CLASS_ITL),
        "e2e": (E2E, CLASS_E2E),
        "queue": (QUEUE, CLASS_QUEUE),
        "goodput": (CLASS_GOODPUT, CLASS_GOODPUT),
    }
)
_VALUED: Mapping[str, tuple[Family, ...]] = MappingProxyType(
    {
        "tail_ratio": (E2E,),
        "tpot_cv": (TPOT_MOMENTS.n,),
        "gpu_utilization_cv": (GPU_UTILIZATION_N,),
        "kv_fragmentation": (KV_TAIL_WASTE,),
        "memory_growth": (CONTAINER_MEMORY, GPU_MEMORY_USED),
    }
)


NOT_SELF = 'scope!="self"'  # the sidecar's own container is none of the service


def classed(selection: Selection) -> bool:
    """Whether only the probe, which tells classes and lengths apart, can say what is asked."""
    return selection.sla_class is not None or bool(selection.prompts)


def counted(objective: Objective) -> Family:
    """The family whose events an engine's objective counts."""
    scraped, probed = _COUNTED[objective.signal.name]
    return probed if classed(objective.selection) else scraped


def requests(selection: Selection) -> Family:
    return CLASS_REQUESTS if classed(selection) else REQUESTS


def bucket(objective: Objective) -> str:
    """The events that took no longer than the threshold."""
    if objective.threshold is None:
        raise ValueError(
            f"{objective.name}: a plan without the threshold of {objective.signal.name}"
        )
    family = counted(objective)
    return select(family, objective.selection, le(objective.threshold), part="_bucket")


def seen(objective: Objective) -> str | None:
    """The series without which the signal is missing. None where there are none before the first
    event, or where only the user's own query knows."""
    signal, selection = objective.signal, objective.selection
    if signal.needs in (Needs.EVENTS, Needs.PROMETHEUS):
        return None
    if signal.shape is Shape.VALUE:
        return " or ".join(_any(family, selection) for family in _VALUED[signal.name])
    family = counted(objective)
    if classed(selection):  # a class without a request yet has no series: any class will do
        return _any(family, Selection(selection.match))
    if signal.shape is Shape.LATENCY:
        return bucket(objective)
    return _any(family, selection)


def _any(family: Family, selection: Selection) -> str:
    part = "_count" if family.kind is Kind.HISTOGRAM else ""
    own = (NOT_SELF,) if family is CONTAINER_MEMORY else ()
    return of_service(select(family, selection, *own, part=part), family, selection)


def readable(objective: Objective) -> str | None:
    """The sources that answer. None where only the user's own query knows."""
    needs, selection = objective.signal.needs, objective.selection
    if needs is Needs.PROMETHEUS:
        return None
    if needs is Needs.EVENTS:  # the sidecar that would be told
        return select(BUILD_INFO, selection)
    family = GPU_UP if needs is Needs.GPU else ENGINE_UP
    return f"{of_service(select(family, selection), family, selection)} == 1"
