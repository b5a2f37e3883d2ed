"""Runbooks: a page for every alert, and nothing in them that does not exist."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from plans import MATCH, RESPONSE, chat_plan, objective, plan
from typer.main import get_command

from inferslo.exporters.names import FAMILIES, PREFIX, Kind
from inferslo.rules import naming, runbooks, warnings
from inferslo.rules.compile import compile_rules
from inferslo.rules.model import Alert
from inferslo.sidecar.cli import app
from inferslo.slo.load import load
from inferslo.slo.plan import Canary, Plan, When
from inferslo.slo.signals import SIGNALS

ROOT = Path(__file__).parents[2]
VLLM = sorted((ROOT / ".parts" / "vllm" / "lib").glob("python3*/site-packages/vllm"))
SECTIONS = (
    "## What users feel",
    "## First three checks",
    "## Do not",
    "## Escalate",
)
EVERYTHING = plan(
    *(objective(name, name=name.replace("_", "-"), expect_traffic=True) for name in SIGNALS),
    canary=Canary("track", "new", "old"),
    prompt_classes=chat_plan().prompt_classes,
)
PAGES = runbooks.pages(EVERYTHING)
TOPICS = Path(runbooks.__file__).parent / "pages"


def compiled(plan: Plan) -> set[str]:
    rules = [rule for group in compile_rules(plan) for rule in group.rules]
    return {f"{rule.alert}.md" for rule in rules if isinstance(rule, Alert)}


def test_every_alert_of_a_file_has_a_page() -> None:
    ready = [
        load(path) for path in (ROOT / "slo" / "catalogue").glob("*.yaml") if path.stem != "sources"
    ]
    assert ready
    for of in (chat_plan(), plan(objective("ttft")), *ready):
        assert compiled(of) <= runbooks.pages(of).keys()


def test_there_is_a_page_for_whatever_alert_there_is_and_none_else() -> None:
    names = {alert.name for alert in naming.ALERTS}
    names |= {warning.alert for warning in warnings.catalogue()}
    assert PAGES.keys() == {f"{name}.md" for name in names}


def test_a_warning_that_is_off_has_no_page() -> None:
    off = plan(objective("ttft"), warnings=(("gpu_hot", None),))
    assert "InfersloGPUHot.md" not in runbooks.pages(off)


def test_every_text_is_used_and_every_page_has_its_sections() -> None:
    texts = {path.stem: path.read_text(encoding="utf-8") for path in TOPICS.glob("*.md")}
    for topic, text in texts.items():
        lines = (
            text.replace("{match}", '{model_name="qwen3-27b"}').replace("{after}", "30m").rstrip()
        )
        assert any(lines in page for page in PAGES.values()), topic
    for name, page in PAGES.items():
        assert page.startswith(f"# {name.removesuffix('.md')}\n")
        assert [section for section in SECTIONS if f"\n{section}\n" not in page] == [], name
        assert "{{" not in page, name


def test_the_three_checks_go_from_the_outside_in() -> None:
    for path in TOPICS.glob("*.md"):
        _, _, checks = path.read_text(encoding="utf-8").partition("## First three checks")
        first, second, third = re.findall(r"^\d\. (\w+):", checks, re.MULTILINE)[:3]
        assert (first, second, third) == ("Client", "Gateway", "Engine"), path.name


def test_a_page_is_at_most_a_screenful_and_a_half() -> None:
    assert {name for name, page in PAGES.items() if len(page.splitlines()) > 75} == set()


def test_every_metric_in_them_is_published() -> None:
    parts = ("_sum", "_count", "_bucket")
    histograms = {family.name for family in FAMILIES.values() if family.kind is Kind.HISTOGRAM}
    known = set(FAMILIES) | {name + part for name in histograms for part in parts}
    named = {found for page in PAGES.values() for found in re.findall(rf"\b{PREFIX}\w+", page)}
    assert named
    assert named - known == set()
    recorded = {found for page in PAGES.values() for found in re.findall(r"inferslo:[\w:]+", page)}
    assert recorded <= {series.name for series in naming.SERIES}


def test_every_alert_in_them_exists() -> None:
    named = {found for page in PAGES.values() for found in re.findall(r"\bInferslo\w+", page)}
    assert {f"{name}.md" for name in named} <= PAGES.keys()


def test_every_command_of_ours_in_them_exists() -> None:
    commands: Mapping[str, object] = getattr(get_command(app), "commands")  # noqa: B009 - click's
    called = {found for page in PAGES.values() for found in re.findall(r"`inferslo (\w+)", page)}
    assert {"read", "check"} <= called
    assert called <= commands.keys()


@pytest.mark.e2e  # reads the real vLLM's source
def test_every_flag_of_the_engine_in_them_is_vllms() -> None:
    assert VLLM, "no vLLM under .parts: make parts"
    sources = [
        VLLM[0] / "engine" / "arg_utils.py",
        VLLM[0] / "entrypoints" / "launchers" / "cli_args.py",
    ]
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    flags = {
        flag
        for path in TOPICS.glob("*.md")
        for flag in re.findall(r"`--([a-z][a-z-]+)[ `]", path.read_text(encoding="utf-8"))
    }
    assert {"max-num-seqs", "kv-cache-dtype"} <= flags
    named = {flag for flag in flags if f'"--{flag}"' in text or flag.replace("-", "_") in text}
    assert flags - named == set()


def test_numbers_and_names_are_those_of_the_file() -> None:
    hotter = plan(objective("ttft"), warnings=(("gpu_hot", Decimal(85)),))
    page = runbooks.pages(hotter)["InfersloGPUHot.md"]
    assert "Threshold 85 °C (default 78, source: T37)" in page
    assert 'inferslo_requests_waiting{model_name="qwen3-27b"}' in PAGES["InfersloQueueBurn.md"]
    assert "tier 2 engineering" in page
    assert (
        "`first-token`: 99 %, threshold 2.5 seconds."
        in runbooks.pages(chat_plan())["InfersloTTFTBurn.md"]
    )


def test_who_is_told_and_when_is_what_the_file_says() -> None:
    alone = replace(RESPONSE[1], when=frozenset({When.SLOW_BURN}), after=None)
    response = (RESPONSE[0], replace(RESPONSE[1], after=7200), RESPONSE[2])
    for tiers, told in (
        (response, "tier 2 engineering, when fast burn or slow burn or an incident of 2h"),
        ((RESPONSE[0], alone), "tier 2 engineering, when slow burn"),
    ):
        page = runbooks.pages(plan(objective("ttft"), response=tiers))["InfersloTTFTBurn.md"]
        assert told in page
        assert "30m" not in page
        assert f"To tier 2 after {'2h' if tiers is response else 'half an hour'}" in page


def test_no_template_of_alertmanager_is_left_in_them() -> None:
    assert [name for name, page in PAGES.items() if "{{" in page] == []


def test_no_match_leaves_no_braces() -> None:
    everywhere = plan(objective("ttft"), selection=type(MATCH)())
    assert "'inferslo_requests_waiting'" in runbooks.pages(everywhere)["InfersloQueueGrowing.md"]
