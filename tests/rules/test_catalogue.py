"""Every ready SLO file compiles into what promtool and amtool accept, and what is committed of one
of them is what comes out today."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from inferslo.rules.build import build, drift
from inferslo.rules.verify import Ran, run_tool, verify
from inferslo.slo.catalogue import names
from inferslo.slo.load import load
from inferslo.slo.plan import Plan, Receiver

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "rules" / "generated"
CATALOGUE = ROOT / "slo" / "catalogue"


def with_receivers(plan: Plan) -> Plan:
    """The files leave to their users whom to tell."""
    named = sorted({name for tier in plan.response for name in (tier.receiver, tier.tickets)})
    url = (("url", "http://hook.example/"),)
    return replace(plan, receivers=tuple(Receiver(name, "webhook", url) for name in named))


def written(name: str, folder: Path) -> Path:
    for path, text in build([with_receivers(load(CATALOGUE / f"{name}.yaml"))]).files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


def without_tests(command: Sequence[str]) -> Ran:
    """Leaves out the tests of the rules, which take a minute for each file."""
    return Ran(0, "") if command[:3] == ["promtool", "test", "rules"] else run_tool(command)


@pytest.mark.parametrize("name", names())
def test_promtool_and_amtool_accept_every_file_and_every_alert_reaches_its_receiver(
    tmp_path: Path, name: str
) -> None:
    assert verify(written(name, tmp_path), without_tests) == []


@pytest.mark.e2e
@pytest.mark.timeout(1800)  # a minute of promtool each, as many at once as there are cores
def test_every_file_passes_its_own_tests(tmp_path: Path) -> None:
    def findings(name: str) -> list[str]:
        return [finding.text for finding in verify(written(name, tmp_path / name))]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(names(), pool.map(findings, names()), strict=True))
    assert {name: each for name, each in found.items() if each} == {}


def test_what_is_committed_is_what_is_made() -> None:
    """If not: `make rules`, and review the difference."""
    found = {
        path.relative_to(GENERATED).as_posix(): path.read_text(encoding="utf-8")
        for path in GENERATED.rglob("*.*")
    }
    assert drift(build([load(CATALOGUE / "chat.yaml")]), found) == {}
