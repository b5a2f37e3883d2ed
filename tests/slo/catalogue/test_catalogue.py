"""The ready files are right, and every number in them says where it comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from vllm_pages import CAPTURES

from inferslo.rules import warnings
from inferslo.sidecar.commands.bounds import page_of_capture
from inferslo.slo.buckets import Kind, check
from inferslo.slo.catalogue import OURS, NoSuchEntryError, entry, names, sources
from inferslo.slo.load import load_text
from inferslo.slo.signals import SIGNALS
from inferslo.slo.yamlfile import parse

NUMBERLESS = {"name", "description", "signal", "class", "check", "header", "urgency", "budgeting"}
# Bounds that vLLM 0.32 does not have by itself: (file, objective). `inferslo init` moves them.
OFF_BOUND = {
    ("batch", "queue-wait"),
    ("batch", "first-token"),
    ("batch", "writing-speed"),
    ("batch", "whole-answer"),
    ("chat", "first-token"),
    ("chat", "first-token-lag"),
    ("code-completion", "writing-speed"),
    ("customer-service", "first-response"),
    ("rag-long-documents", "writing-speed"),
}
NEEDS_PROBE = {
    ("rag-long-documents", "first-token"),
    ("rag-long-documents", "first-token-long"),
    ("rag-long-documents", "whole-answer"),
    ("rag-long-documents", "whole-answer-long"),
    ("strict", "goodput-s"),
    ("strict", "goodput-a"),
    ("strict", "goodput-b"),
    ("strict", "kv-fragmentation"),
}


def written_numbers(name: str) -> set[tuple[str, str]]:
    """(objective or class, key) of each value in the file that may hold a number."""
    values = parse(entry(name).text.encode(), name, "").values

    def below(of: str, part: dict[str, Any]) -> Iterator[tuple[str, str]]:
        for key, value in part.items():
            if isinstance(value, dict):
                yield from below(of, value)
            elif key not in NUMBERLESS:
                yield of, key

    parts = {o["name"]: o for o in values["objectives"]}
    parts |= {k: v for k, v in values.get("classes", {}).items() if isinstance(v, dict)}
    return {number for of, part in parts.items() for number in below(of, part)}


def test_every_kind_of_service_that_was_asked_for_is_there() -> None:
    assert names() == (
        "agents", "batch", "chat", "code-completion", "content-generation", "customer-service",
        "rag-long-documents", "strict",
    )  # fmt: skip


@pytest.mark.parametrize("name", names())
def test_a_file_is_a_right_slo_file(name: str) -> None:
    assert load_text(entry(name).text, name).objectives


@pytest.mark.parametrize("name", names())
def test_every_number_has_a_source(name: str) -> None:
    numbers = entry(name).numbers
    assert {(number.of, number.key) for number in numbers} == written_numbers(name)
    assert {number.source for number in numbers} <= {OURS, *sources()}


@pytest.mark.parametrize("name", names())
def test_a_description_stays_true_when_numbers_change(name: str) -> None:
    texts = [objective.description for objective in load_text(entry(name).text).objectives]
    assert all(texts)
    assert not any(re.search(r"\d", text) for text in texts)


def test_every_threshold_of_the_articles_has_its_place() -> None:
    seeds = {key: source for key, source in sources().items() if source.article}
    used = {number.source for name in names() for number in entry(name).numbers}

    assert list(seeds) == [f"T{number}" for number in range(1, 45)]
    for key, source in seeds.items():
        is_placed = key in used or source.signal or source.warning
        assert bool(is_placed) != bool(source.no_slo), key


def test_what_is_the_default_of_a_signal_has_its_value() -> None:
    defaults = {s.signal: s.value for s in sources().values() if s.signal}
    assert set(defaults) == {
        "tail_ratio", "gpu_utilization_cv", "kv_fragmentation", "fallback_count",
    }  # fmt: skip
    for signal, value in defaults.items():
        assert str(SIGNALS[signal].default) == value, signal


def test_early_warnings_and_sources_name_each_other() -> None:
    by_warning = {w.name: w.source for w in warnings.catalogue() if w.source in sources()}
    named = {source.warning: key for key, source in sources().items() if source.warning}

    assert named.items() <= by_warning.items()
    assert set(by_warning.values()) == set(named.values())


def test_no_published_source_is_named_in_vain() -> None:
    used = {number.source for name in names() for number in entry(name).numbers}
    assert {key for key, source in sources().items() if not source.article} <= used


def test_what_vllm_cannot_answer_by_itself_is_known() -> None:
    page = page_of_capture(CAPTURES / "vllm-0.32.0__mid-overload.prom")
    found = {
        (name, problem.objective): problem.kind
        for name in names()
        for problem in check(load_text(entry(name).text), page)
    }
    assert {key for key, kind in found.items() if kind is Kind.BOUND} == OFF_BOUND
    assert {key for key, kind in found.items() if kind is Kind.MISSING} == NEEDS_PROBE


def test_an_unknown_name_is_told_the_nearest() -> None:
    with pytest.raises(NoSuchEntryError, match="no chatt: did you mean chat"):
        entry("chatt")


def test_the_table_of_sources_is_no_entry() -> None:
    with pytest.raises(NoSuchEntryError):
        entry("sources")
