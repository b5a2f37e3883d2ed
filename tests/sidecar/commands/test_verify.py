"""`inferslo verify` as a user runs it: exit codes, and what goes where."""

import json
from pathlib import Path

import pytest

from inferslo.rules.verify import Announce, Finding, VerifyError
from inferslo.sidecar.cli import main

FINDING = Finding(
    "rules.test.yaml", "turns", "case “outage”, after 9m: tier 1 is paged", "1", "nothing", "why"
)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    """What a stand-in for the verifier finds; the real one has its own tests."""
    findings: list[Finding] = []

    def verify(directory: Path, announce: Announce) -> list[Finding]:
        announce(f"promtool check rules {directory}")
        return findings

    monkeypatch.setattr("inferslo.rules.verify.verify", verify)
    return findings


@pytest.fixture(autouse=True)
def _where_routing_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    Path("out/alertmanager.yaml").touch()


def test_all_holds(found: list[Finding], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "out"]) == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("all holds\n", "promtool check rules out …\n")


@pytest.mark.usefixtures("found")
def test_routing_that_was_not_made_is_not_said_to_hold(capsys: pytest.CaptureFixture[str]) -> None:
    Path("out/alertmanager.yaml").unlink()
    assert main(["verify", "out"]) == 0
    assert capsys.readouterr().out == (
        "all holds\n"
        "not verified: who is told, as there is no alertmanager.yaml; name `receivers` in the SLO"
        " file and build again\n"
    )


def test_a_finding_is_explained(found: list[Finding], capsys: pytest.CaptureFixture[str]) -> None:
    found.append(FINDING)
    assert main(["verify", "out"]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "rules.test.yaml: turns: case “outage”, after 9m: tier 1 is paged"
    assert printed[1:] == ["  expected: 1", "  got:      nothing", "  likely:   why", "1 finding"]


def test_json_is_all_that_is_on_stdout(
    found: list[Finding], capsys: pytest.CaptureFixture[str]
) -> None:
    found.append(FINDING)
    assert main(["verify", "out", "--json"]) == 1
    [printed] = json.loads(capsys.readouterr().out)
    assert printed == FINDING.as_dict()


def test_a_folder_without_rules_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(tmp_path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        f"inferslo: error: {tmp_path} has no rules.yaml: name a folder that"
        " `inferslo build FILE --out` wrote\n"
    )


def test_a_missing_tool_is_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def verify(directory: Path, announce: Announce) -> list[Finding]:
        raise VerifyError("promtool is not installed")

    monkeypatch.setattr("inferslo.rules.verify.verify", verify)
    assert main(["verify", "out"]) == 2
    assert capsys.readouterr().err == "inferslo: error: promtool is not installed\n"
