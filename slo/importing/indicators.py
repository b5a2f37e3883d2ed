"""OpenSLO's indicators: queries of a ratio or of a value, as the key `promql` of an objective."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from .draft import number, split
from .queries import any_window, has_range, per_second, per_window, rate_of_counter, ratio
from .reading import Node

_SPEAK_PROMQL = ("prometheus", "mimir", "thanos", "cortex", "victoriametrics")
_GOOD_WHILE = {"lte": ">", "lt": ">=", "gte": "<", "gt": "<="}  # op → when it is bad
_METHODS = ("", "Occurrences", "Timeslices", "RatioTimeslices")
_SLICE = "slices are as long as the base window of the file, 5m: see `evaluation`"


class UnreadableError(Exception):
    """Why an objective cannot be imported."""


def indicator_keys(
    spec: Node, objective: Node, method: str, sources: Mapping[str, Node]
) -> dict[str, Any]:
    """promql, threshold, budgeting and slice_target of an objective. spec: of an SLI; method: the
    budgetingMethod; sources: the DataSources by name. Raises UnreadableError."""
    if method not in _METHODS:
        raise UnreadableError(f'budgetingMethod "{method}" is none of OpenSLO v1')
    if objective.text("timeSliceWindow") not in ("", "5", "5m"):
        objective.lose("timeSliceWindow", _SLICE)
    if spec.child("thresholdMetric").fields():
        return _value(spec.child("thresholdMetric"), objective, sources)
    metric = spec.child("ratioMetric")
    objective.change("op", "a ratio needs none: it is good events of all")
    slices = _slices(objective) if method == "Timeslices" else {}
    return _ratio(metric, sources, method) | slices


def _slices(objective: Node) -> dict[str, Any]:
    target = number(objective.text("timeSliceTarget"))
    if target is not None and 1 < target <= 100:
        ratio = f"{target.scaleb(-2).normalize():f}"
        raise UnreadableError(f"timeSliceTarget is a ratio: for {target} % write {ratio}")
    if target is None or not 0 < target <= 1:
        raise UnreadableError("timeSliceTarget is no ratio above 0: when is a slice good?")
    return {"budgeting": "timeslices", "slice_target": target.scaleb(2)}


def _ratio(metric: Node, sources: Mapping[str, Node], method: str) -> dict[str, Any]:
    """The keys promql and per."""
    if metric.child("raw").fields():
        is_success = metric.text("rawType") == "success"
        query = _query(metric.child("raw"), sources)
        metric.change("raw", "a ratio tells no number of events: event floors do not hold")
        per = split(metric, "raw", query)
        bad, total = ratio(f"1 - ({query})" if is_success else query)
    else:
        kind = "bad" if metric.child("bad").fields() else "good"
        counter = metric.flag("counter")
        part, total = (_events(metric.child(key), counter, sources) for key in (kind, "total"))
        (part, total), remark = per_second(part, total)
        metric.change("total", remark)
        per = split(metric, "total", part, total)
        bad = part if kind == "bad" else f"({total}) - ({part})"
        if method == "RatioTimeslices":
            bad, total = ratio(f"({bad}) / ({total} > 0)")
    return {"promql": {"bad": bad, "total": total}, **per}


def _events(metric: Node, counter: bool | None, sources: Mapping[str, Node]) -> str:
    query = _query(metric, sources)
    if has_range(query) or counter is False:
        return any_window(query)
    rate = rate_of_counter(query) if counter else None
    if rate is None:
        raise UnreadableError(
            "no rate stands in the query and it is no plain counter: write"
            " sum(rate(NAME[5m])), or `counter: true` and a selector"
        )
    return rate


def _value(metric: Node, objective: Node, sources: Mapping[str, Node]) -> dict[str, Any]:
    query, op = _query(metric, sources), objective.text("op")
    limit = number(objective.text("value"))
    if op not in _GOOD_WHILE or limit is None:
        raise UnreadableError("op and value are missing: what is a good value?")
    objective.lose("timeSliceTarget", "a slice has one value, which is good or bad")
    if op == "lte" and limit > 0:
        return {"promql": {"value": query}, "threshold": limit}
    comparison = f"({query}) {_GOOD_WHILE[op]} bool {limit:f}"
    return {"promql": {"value": comparison}, "threshold": Decimal("0.5")}


def _query(metric: Node, sources: Mapping[str, Node]) -> str:
    source = metric.child("metricSource")
    spec, reference = source.child("spec"), source.text("metricSourceRef")
    kind = source.text("type")
    if reference in sources:
        kind = kind or sources[reference].child("spec").text("type")
    if kind.lower() not in _SPEAK_PROMQL:
        what = kind or f"the data source {reference or 'without a name'}, of unknown type,"
        raise UnreadableError(f"{what} is not asked in PromQL")
    spec.text("queryType")
    query = per_window(spec.text("query") or spec.text("promql"))
    if not query:
        raise UnreadableError("there is no PromQL under metricSource.spec.query")
    return query
