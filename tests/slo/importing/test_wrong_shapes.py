"""Whatever stands where something else is expected, an import tells it and never breaks."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from inferslo.slo.errors import SpecError
from inferslo.slo.importing import import_slos

QUERY = {"metricSource": {"type": "Prometheus", "spec": {"query": "sum(rate(x[5m]))"}}}
OPENSLO = {
    "apiVersion": "openslo/v1",
    "kind": "SLO",
    "metadata": {"name": "a", "displayName": "A", "labels": {"team": "t"}},
    "spec": {
        "service": "s",
        "budgetingMethod": "Timeslices",
        "indicator": {"spec": {"ratioMetric": {"counter": True, "good": QUERY, "total": QUERY}}},
        "timeWindow": [
            {"duration": "1M", "calendar": {"startTime": "2024-01-01 00:00:00", "timeZone": "UTC"}}
        ],
        "objectives": [{"target": 0.99, "timeSliceTarget": 0.9, "timeSliceWindow": "5m"}],
    },
}
SLOTH = {
    "version": "prometheus/v1",
    "service": "s",
    "labels": {"owner": "o", "tier": "2"},
    "slos": [
        {
            "name": "a",
            "objective": 99,
            "sli": {
                "events": {"error_query": "sum(rate(x[5m]))", "total_query": "sum(rate(y[5m]))"}
            },
            "alerting": {"name": "A", "page_alert": {"disable": True}},
        }
    ],
}
WRONG = (None, "", "text", -1, True, [], ["text"], [{"a": 1}], {}, {"a": {"b": 1}}, [[1]])


def places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else []
    items = enumerate(value) if isinstance(value, list) else items
    for key, item in items:
        yield (*at, key)
        yield from places(item, (*at, key))


@pytest.mark.parametrize("document", [SLOTH, OPENSLO], ids=["sloth", "openslo"])
def test_a_wrong_value_anywhere_is_never_a_traceback(document: dict[str, Any]) -> None:
    imports = 0
    for at in places(document):
        for wrong in WRONG:
            broken = copy.deepcopy(document)
            parent: Any = broken
            for key in at[:-1]:
                parent = parent[key]
            parent[at[-1]] = copy.deepcopy(wrong)
            try:
                imported = import_slos([("x.yaml", json.dumps(broken).encode())])
            except SpecError:
                continue
            imports += 1
            assert imported.files or imported.remarks, (at, wrong)
    assert imports > 100


@pytest.mark.parametrize("document", [SLOTH, OPENSLO], ids=["sloth", "openslo"])
def test_a_key_of_nobody_anywhere_is_told(document: dict[str, Any]) -> None:
    for at in [(), *places(document)]:
        broken = copy.deepcopy(document)
        parent: Any = broken
        for key in at:
            parent = parent[key]
        if not isinstance(parent, dict):
            continue
        parent["shiny"] = "new"
        imported = import_slos([("x.yaml", json.dumps(broken).encode())])
        told = [remark.what for remark in imported.remarks]
        above = {".".join(str(key) for key in at[:end] if isinstance(key, str)) for end in range(9)}
        assert any("shiny" in what or what.replace("[0]", "") in above for what in told), at


def test_a_file_of_nothing_but_separators_is_read_at_once() -> None:
    """Each was once read with all the lines before it, which took hours."""
    with pytest.raises(SpecError, match="the file is empty"):
        import_slos([("slo.yaml", b"---\n" * 60_000)])


def test_services_that_would_be_one_file_are_told_apart_by_their_user() -> None:
    documents = [json.dumps({**SLOTH, "service": name}) for name in ("a b", "a-b")]
    with pytest.raises(SpecError, match="2 services would be called a-b: rename one"):
        import_slos([("slo.yaml", "\n---\n".join(documents).encode())])


def test_a_second_document_keeps_the_lines_of_its_file() -> None:
    bad = b"version: prometheus/v1\n\n---\n\n# text\nversion: [\n"
    with pytest.raises(SpecError, match=r"slo\.yaml:7:1: "):
        import_slos([("slo.yaml", bad)])
