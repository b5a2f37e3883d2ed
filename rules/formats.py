"""Groups of rules as different rulers read them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..slo.quantities import format_duration
from .model import Alert, Format, Group, Recording
from .yamltext import dump

# Where a format's file stands beside rules.yaml, which promtool tests.
FILES: Mapping[Format, str] = MappingProxyType(
    {
        Format.PROMETHEUS: "rules.yaml",
        Format.OPERATOR: "prometheusrule.yaml",
        Format.MIMIR: "rules.mimir.yaml",
        Format.VMALERT: "rules.vmalert.yaml",
    }
)


def write(compiled: Mapping[str, Sequence[Group]], format: Format, head: Sequence[str] = ()) -> str:
    """The rules of several services in one file. compiled: service → its groups."""
    if format is Format.OPERATOR:
        return dump(*(_resource(*each) for each in compiled.items()), head=head)
    if format is Format.MIMIR:  # mimirtool reads a namespace a document
        return dump(
            *({"namespace": f"inferslo-{service}"} | _groups(groups)
              for service, groups in compiled.items()),
            head=head,
        )  # fmt: skip
    # vmalert reads Prometheus' own format, and takes for PromQL what it has no type for.
    return dump(_groups([group for groups in compiled.values() for group in groups]), head=head)


def _groups(groups: Sequence[Group]) -> dict[str, Any]:
    return {"groups": [_group(group) for group in groups]}


def _resource(service: str, groups: Sequence[Group]) -> dict[str, Any]:
    """A PrometheusRule, monitoring.coreos.com/v1. Whether a Prometheus picks it up is up to its
    ruleSelector."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {
            "name": resource_name(service),
            "labels": {"app.kubernetes.io/managed-by": "inferslo"},
        },
        "spec": _groups(groups),
    }


def resource_name(service: str) -> str:
    """Of its PrometheusRule, as Kubernetes wants names (RFC 1123): a label between two dots neither
    begins nor ends with a hyphen."""
    labels = re.sub(r"[^a-z0-9.-]+", "-", f"inferslo-{service}".lower()).split(".")
    return ".".join(filter(None, (label.strip("-") for label in labels)))


def _group(group: Group) -> dict[str, Any]:
    return {
        "name": group.name,
        "interval": format_duration(group.interval),
        "rules": [_rule(rule) for rule in group.rules],
    }


def _rule(rule: Recording | Alert) -> dict[str, Any]:
    if isinstance(rule, Recording):
        return {"record": rule.record, "expr": rule.expr, "labels": dict(rule.labels)}
    hold = {"for": format_duration(rule.hold)} if rule.hold else {}
    return {
        "alert": rule.alert,
        "expr": rule.expr,
        **hold,
        "labels": {name: str(value) for name, value in rule.labels.items()},
        "annotations": dict(rule.annotations),
    }
