"""Sloth: `version: prometheus/v1`, and the Kubernetes object PrometheusServiceLevel.

github.com/slok/sloth, pkg/prometheus/api/v1 and pkg/kubernetes/api/sloth/v1: the object has the
same keys in camel case. Queries hold `{{.window}}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .draft import Draft, clean, percent, split, team
from .queries import per_second, per_window, ratio
from .reading import Node

_LABELS = "alerts carry the labels of inferslo and no others"
_ALERT_NAME = "alerts are named after what they are about; their label slo tells them apart"
_ANNOTATIONS = "inferslo writes the annotations; the file's runbook_url is for links"
_OBJECTIVE = "no objective between 0 and 100, both excluded: there would be no budget to judge by"
_PLUGIN = "plugins of Sloth cannot be run here: write the queries that it makes"
_TEMPLATE = "only {{.window}} can be filled in"
_RAW = (
    "a ratio tells no number of events: every evaluation weighs the same, and no event floor keeps"
    " one failed request in a quiet hour from paging: give queries of bad and total events"
)
_TICKETS = "tickets cannot be switched off: route them where nobody minds"


def read_sloth(roots: Sequence[Node]) -> list[Draft]:
    """One draft for each service."""
    drafts: dict[str, Draft] = {}
    for root in roots:
        spec = _specification(root)
        service = spec.text("service")
        if not service:
            root.lose_all("the document", "service is missing")
            continue
        draft = drafts.setdefault(service, Draft(clean(service)))
        if draft.service != service:
            spec.change("service", f"is called {draft.service} here")
        _read_labels(spec.child("labels"), draft)
        _lose_plugins(spec)
        for slo in spec.children("slos"):
            _read_slo(slo, draft)
    return list(drafts.values())


def _specification(root: Node) -> Node:
    if root.text("kind") != "PrometheusServiceLevel":
        return root
    root.change("metadata", "belongs to the Kubernetes object, not to the SLOs")
    return root.child("spec")


def _read_labels(labels: Node, draft: Draft) -> None:
    """The owner, if they name one; the others are left out."""
    owner = team(labels)
    if owner and draft.owner not in ("", owner):
        for key in ("owner", "team"):
            labels.lose(key, f"the service has one owner, {draft.owner}")
    draft.owner = draft.owner or owner
    for key in labels.fields():
        if key not in ("owner", "team"):
            labels.lose(key, _LABELS)


def _lose_plugins(node: Node) -> None:
    for key in ("slo_plugins", "sloPlugins", "plugins"):
        node.lose(key, _PLUGIN)


def _read_slo(slo: Node, draft: Draft) -> None:
    name = slo.text("name")
    objective = percent(slo.text("objective"))
    if objective is None:
        return slo.lose_all(f"slo {name}", _OBJECTIVE)
    queries = _queries(slo.child("sli"))
    if isinstance(queries, str):
        return slo.lose_all(f"slo {name}", queries)
    values: dict[str, Any] = {"name": draft.unique(name, slo), "objective": objective}
    if description := slo.text("description"):
        values["description"] = description
    values |= queries
    slo.lose("labels", _LABELS)
    _lose_plugins(slo)
    if _is_without_pages(slo.child("alerting")):
        values["pages"] = False
    draft.objectives.append(values)
    return None


def _queries(sli: Node) -> dict[str, Any] | str:
    """The keys promql and per; or why there are none."""
    if sli.child("plugin").fields():
        return _PLUGIN
    events, raw = sli.child("events"), sli.child("raw")
    bad = per_window(_either(events, "error_query", "errorQuery"))
    total = per_window(_either(events, "total_query", "totalQuery"))
    bad_ratio = per_window(_either(raw, "error_ratio_query", "errorRatioQuery"))
    if bad is None or total is None or bad_ratio is None:
        return _TEMPLATE
    if bad_ratio:
        sli.change("raw", _RAW)
        per = split(sli, "raw", bad_ratio)
        bad, total = ratio(bad_ratio)
    elif bad and total:
        (bad, total), remark = per_second(bad, total)
        sli.change("events", remark)
        per = split(sli, "events", bad, total)
    else:
        return "it has no queries: error_query and total_query"
    return {"promql": {"bad": bad, "total": total}, **per}


def _either(node: Node, *keys: str) -> str:
    return next(filter(None, map(node.text, keys)), "")


def _is_without_pages(alerting: Node) -> bool:
    """Whether its pages are switched off. What it says of names and labels is left out."""
    alerting.lose("name", _ALERT_NAME)
    for node in (alerting, *(alerting.child(key) for key in _PAGE + _TICKET)):
        node.lose("labels", _LABELS)
        node.lose("annotations", _ANNOTATIONS)
    for key in _TICKET:
        if alerting.child(key).flag("disable"):
            alerting.child(key).lose("disable", _TICKETS)
    return any(alerting.child(key).flag("disable") for key in _PAGE)


_PAGE, _TICKET = ("page_alert", "pageAlert"), ("ticket_alert", "ticketAlert")
