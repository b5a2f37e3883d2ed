"""`verify`: real promtool and amtool on folders that are whole, and on folders that are not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from plans import RECEIVERS, objective, plan

from inferslo.rules.build import build
from inferslo.rules.verify import Finding, Ran, VerifyError, explain, run_tool, verify
from inferslo.rules.warnings import catalogue

QUICK = plan(
    objective("agent_turn_success", name="turns"),
    warnings=tuple((warning.name, None) for warning in catalogue()),
    receivers=RECEIVERS,
)


EDITED = (
    "this is not what inferslo build wrote: it was edited by hand, or is of another build than its"
    " tests"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path, text in build([QUICK]).files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    return tmp_path


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def without_tests(command: Sequence[str]) -> Ran:
    """A stand-in for promtool's slow part: its tests all pass."""
    return Ran(0, "") if command[:3] == ["promtool", "test", "rules"] else run_tool(command)


def test_what_was_built_holds_and_each_step_is_told(folder: Path) -> None:
    steps: list[str] = []
    assert verify(folder, announce=steps.append) == []
    assert [step.split()[:2] for step in steps] == [
        ["promtool", "check"], ["promtool", "test"], ["amtool", "check-config"],
        ["amtool", "config"],
    ]  # fmt: skip


def test_a_rule_that_was_changed_is_told_with_the_slo_the_reason_and_what_to_do(
    folder: Path,
) -> None:
    edit(folder / "rules.yaml", "budget_remaining:ratio{", "budget_left:ratio{")
    edited, finding = verify(folder)
    assert (edited.file, edited.problem) == ("rules.yaml", EDITED)
    assert finding == Finding(
        file="rules.test.yaml",
        about="turns",
        problem="case “budget”, after 12m15s: tier 3 is told of no budget",
        expected="1",
        got="nothing",
        likely="the alert does not read the recorded budget",
        do=finding.do,
    )
    assert "inferslo build" in finding.do
    assert finding.text.splitlines()[0] == f"rules.test.yaml: turns: {finding.problem}"
    assert "  got:      nothing" in finding.text


def test_rules_that_do_not_parse_are_told_once(folder: Path) -> None:
    edit(folder / "rules.yaml", "<= 0", "<= (")
    [_, finding] = verify(folder)
    assert finding.file == "rules.yaml"
    assert "could not parse expression" in finding.problem


def test_a_folder_without_tests_proves_nothing(folder: Path) -> None:
    (folder / "rules.test.yaml").unlink()
    [finding] = verify(folder)
    assert "nothing proves that the alerts fire" in finding.problem


def test_a_tree_that_alertmanager_refuses(folder: Path) -> None:
    edit(folder / "alertmanager.yaml", "receiver: ops-pager", "receiver: ops-page")
    [edited, finding] = verify(folder, without_tests)
    assert (edited.file, edited.problem) == ("alertmanager.yaml", EDITED)
    assert finding.file == "alertmanager.yaml"
    assert finding.problem == (
        'amtool refuses the file: undefined receiver "ops-page/office-hours" used in route'
    )


def test_an_alert_that_reaches_somebody_else(folder: Path) -> None:
    edit(folder / "routing.test.yaml", "slo-review", "eng-oncall")
    findings = verify(folder, without_tests)
    told = {(finding.expected, finding.got) for finding in findings}
    assert told == {("eng-oncall/office-hours", "slo-review/office-hours")}
    assert {finding.about for finding in findings} == {"turns"}


def test_no_routing_tests_is_told_and_no_tree_is_not(folder: Path) -> None:
    (folder / "routing.test.yaml").unlink()
    [finding] = verify(folder, without_tests)
    assert "nothing proves who is told" in finding.problem
    (folder / "alertmanager.yaml").unlink()
    assert verify(folder, without_tests) == []


@pytest.mark.parametrize("name", ["rules.yaml", "alertmanager.yaml"])
def test_what_was_edited_by_hand_is_told_though_all_tests_pass(folder: Path, name: str) -> None:
    with (folder / name).open("a", encoding="utf-8") as file:
        file.write("# a remark\n")
    [finding] = verify(folder, without_tests)
    assert (finding.file, finding.problem) == (name, EDITED)
    assert finding.do.startswith("change the SLO file in its place, and build the folder anew")


def test_rules_of_somebody_else_are_refused_before_any_tool_runs(folder: Path) -> None:
    (folder / "rules.yaml").write_text("groups: []\n", encoding="utf-8")
    with pytest.raises(VerifyError, match=r"rules\.yaml was not made by inferslo build"):
        verify(folder, lambda _: pytest.fail("a tool ran"))


def test_a_folder_that_build_did_not_write(tmp_path: Path) -> None:
    with pytest.raises(VerifyError, match=r"has no rules\.yaml: name a folder"):
        verify(tmp_path)


def test_a_missing_tool_says_how_to_install_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(VerifyError, match=r"promtool is not installed.*apt-get install prometheus"):
        verify(folder)


def test_a_test_of_somebodys_own_is_told_as_promtool_has_it() -> None:
    output = (
        'Unit Testing:  own.test.yaml\n  FAILED:\n    expr: "up == 1", time: 5m,\n'
        "        exp: {} 1E+00\n        got: nil\n"
    )
    [finding] = explain("own.test.yaml", output)
    assert (finding.problem, finding.expected, finding.got) == ("up == 1 at 5m", "1", "nothing")


def test_a_rule_that_cannot_be_evaluated_is_told_once() -> None:
    line = "    rule: inferslo:sli_bad:rate, time: {}, err: vector contains metrics with the same\n"
    output = "  FAILED:\n" + line.format("30s") + line.format("1m0s")
    [finding] = explain("rules.test.yaml", output)
    assert finding.about == "inferslo:sli_bad:rate"
    assert "vector contains metrics with the same" in finding.problem


def test_what_is_not_understood_is_handed_on() -> None:
    [finding] = explain("rules.test.yaml", "Unit Testing:  x\n  FAILED:\nsomething new\n")
    assert finding.problem == "promtool: something new"
