"""The labels that series carry in tests."""

from __future__ import annotations

from collections.abc import Mapping

from ...exporters.names import LABELS, Family
from ...slo.plan import Selection

_USUAL: Mapping[str, str] = {
    "job": "inferslo", "instance": "10.0.0.1:9400", "engine": "10.0.0.1:8000", "source": "engine",
    "model_name": "a-model", "app": "an-app", "tenant": "a-tenant", "sla_class": "default",
    "gpu": "0", "uuid": "GPU-0", "scope": "10.0.0.1:8000", "gateway": "10.0.0.2:4000",
    "from_model": "a-model", "to_model": "a-smaller-model", "reason": "timeout", "level": "1",
    "engine_type": "vllm", "version": "1", "python_version": "3",
}  # fmt: skip
_TARGET = ("job", "instance")


def labels_of(family: Family, selection: Selection, **own: str) -> dict[str, str]:
    """Those of one series of a family that the selection takes. own: go before all others, where
    the family has them or they are the targets'."""
    wanted = [*family.labels, *_TARGET, *(name for name in selection.per if name not in LABELS)]
    labels = {name: _usual(name) for name in wanted}
    given = _chosen(selection) | own
    return labels | {n: v for n, v in given.items() if n in family.labels or n not in LABELS}


def recorded(service: str, slo: str, selection: Selection) -> dict[str, str]:
    """Those of a series that the rules record."""
    kept = {name: _chosen(selection).get(name, _usual(name)) for name in selection.per}
    return {"service": service, "slo": slo, **kept}


def _usual(name: str) -> str:
    """A label of ours that is not set is empty; one of the user's targets has some value."""
    return _USUAL.get(name, "" if name in LABELS else f"a-{name}")


def _chosen(selection: Selection) -> dict[str, str]:
    chosen = {name: values[0] for name, values in selection.match}
    if selection.sla_class is not None:
        chosen["sla_class"] = selection.sla_class
    if selection.tenant is not None:
        chosen["tenant"] = selection.tenant
    if selection.prompts:
        chosen["prompt_class"] = selection.prompts[0].label
    return chosen
