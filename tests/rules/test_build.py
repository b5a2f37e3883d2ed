"""`inferslo build`: what it writes, what it leaves alone, and what --check finds."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from plans import chat_plan, objective, plan
from promtool import promtool

from inferslo.rules.build import Built, build, drift, is_made
from inferslo.rules.formats import resource_name
from inferslo.rules.model import Format
from inferslo.sidecar.cli import main
from inferslo.slo.errors import SpecError
from inferslo.slo.plan import Plan

SLO = """\
service: shop
objectives:
  - {name: answered, signal: availability, objective: 99.5}
"""
RECEIVERS = """\
response:
  - {tier: 1, team: operations, receiver: hook}
receivers:
  hook: {webhook: {url: "http://hook.example/"}}
"""


@pytest.fixture
def slo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = Path("slo.yaml")
    file.write_text(SLO + RECEIVERS, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def built() -> Built:
    return build([chat_plan()])


def test_everything_is_made_of_one_file(built: Built) -> None:
    made = set(built.files)
    assert made >= {"rules.yaml", "rules.test.yaml", "alertmanager.yaml", "routing.test.yaml"}
    assert "runbooks/InfersloTTFTBurn.md" in made
    assert built.notes == (NO_RUNBOOKS,)


def test_every_alert_has_its_runbook(built: Built) -> None:
    groups = yaml.safe_load(built.files["rules.yaml"])["groups"]
    alerts = {rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule}
    assert alerts <= {Path(path).stem for path in built.files if path.startswith("runbooks/")}


def test_every_file_says_that_it_was_made_and_is_what_it_was_without_that(built: Built) -> None:
    assert all(is_made(text) for text in built.files.values())
    assert not is_made("route: {}\n")
    for path, text in built.files.items():
        if path.endswith(".yaml"):
            assert yaml.safe_load(text)


def test_the_same_plan_is_the_same_bytes(built: Built) -> None:
    assert build([chat_plan()]) == built


def test_another_format_stands_beside_the_plain_rules() -> None:
    files = build([plan(objective("ttft"))], Format.OPERATOR).files
    assert yaml.safe_load(files["prometheusrule.yaml"])["kind"] == "PrometheusRule"
    assert "groups" in yaml.safe_load(files["rules.yaml"])


def test_without_receivers_there_is_no_tree_and_the_user_is_told() -> None:
    made = build([plan(objective("ttft"), receivers=())])
    assert "alertmanager.yaml" not in made.files
    assert made.notes[0] == NO_RUNBOOKS
    assert "receivers" in made.notes[1]


def test_alerts_that_link_to_their_runbooks_are_built_without_a_word() -> None:
    assert build([chat_plan(runbook_url="https://h/{alert}")]).notes == ()


def test_several_services_are_built_together() -> None:
    files = build([plan(objective("ttft")), plan(objective("e2e"), service="other")]).files
    names = [group["name"] for group in yaml.safe_load(files["rules.yaml"])["groups"]]
    assert len(names) == len(set(names))
    assert {"rules.checkout-assistant.test.yaml", "rules.other.test.yaml"} <= set(files)


def test_one_service_in_two_files_is_refused() -> None:
    with pytest.raises(SpecError, match="service checkout-assistant is in more than one file"):
        build([plan(objective("ttft")), plan(objective("e2e"))])


def test_drift_is_what_is_missing_what_differs_and_what_is_no_longer_made() -> None:
    made = build([plan(objective("ttft"), receivers=())])
    found = dict(made.files)
    del found["rules.test.yaml"]
    found["rules.yaml"] += "# edited\n"
    found["runbooks/Old.md"] = made.files["runbooks/InfersloTTFTBurn.md"]
    found["runbooks/ours.md"] = "# Our own notes\n"
    assert drift(made, found) == {
        "rules.yaml": "differs",
        "rules.test.yaml": "missing",
        "runbooks/Old.md": "no longer made",
    }


def test_build_and_check(slo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", str(slo), "--out", "made"]) == 0
    assert "wrote made/rules.yaml" in capsys.readouterr().out
    count = sum(path.is_file() for path in Path("made").rglob("*"))
    for arguments in ([], ["--check"]):
        assert main(["build", str(slo), "--out", "made", *arguments]) == 0
        assert capsys.readouterr().out == f"unchanged: {count} files\n"


def test_many_files_are_counted_and_named_on_demand(
    slo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", str(slo), "--out", "made"]) == 0
    *named, counted = capsys.readouterr().out.splitlines()
    assert named == [
        f"wrote made/{name}"
        for name in ("rules.yaml", "alertmanager.yaml", "rules.test.yaml", "routing.test.yaml")
    ]
    assert re.fullmatch(r"wrote \d\d runbooks in made \(--verbose lists them\)", counted)

    assert main(["build", str(slo), "--out", "again", "-v"]) == 0
    written = {line.removeprefix("wrote ") for line in capsys.readouterr().out.splitlines()}
    assert written == {str(path) for path in Path("again").rglob("*") if path.is_file()}


def test_only_what_changes_is_told(slo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", str(slo), "--out", "made"]) == 0
    count = sum(path.is_file() for path in Path("made").rglob("*"))
    old, gone, changed = (
        Path("made/runbooks") / f"{name}.md"
        for name in ("Old", "InfersloOOMKill", "InfersloNoData")
    )
    gone.rename(old)
    changed.write_text(f"{changed.read_text(encoding='utf-8')}mine\n", encoding="utf-8")
    capsys.readouterr()

    assert main(["build", str(slo), "--out", "made", "--check"]) == 1
    assert sorted(capsys.readouterr().out.splitlines()) == [
        f"{changed}: differs",
        f"{gone}: missing",
        f"{old}: no longer made",
        f"unchanged: {count - 2} files",
    ]
    assert main(["build", str(slo), "--out", "made"]) == 0
    assert sorted(capsys.readouterr().out.splitlines()) == [
        f"changed {changed}",
        f"removed {old}",
        f"unchanged: {count - 2} files",
        f"wrote {gone}",
    ]


def test_notes_come_last(slo: Path) -> None:
    slo.write_text(SLO, encoding="utf-8")  # without receivers
    done = subprocess.run(
        [Path(sys.executable).with_name("inferslo"), "build", slo, "--out", "made"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True,
    )  # fmt: skip
    *_, told, note, last = done.stdout.splitlines()
    assert told.startswith("wrote ")
    assert note.startswith("note: ")
    assert last.startswith("note: alertmanager.yaml needs `receivers`")


def test_check_names_what_is_out_of_date_and_writes_nothing(
    slo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", str(slo), "--out", "made"]) == 0
    slo.write_text(slo.read_text(encoding="utf-8").replace("99.5", "99"), encoding="utf-8")
    before = Path("made/rules.yaml").read_bytes()
    capsys.readouterr()
    assert main(["build", str(slo), "--out", "made", "--check"]) == 1
    assert "made/rules.yaml: differs" in capsys.readouterr().out.splitlines()
    assert Path("made/rules.yaml").read_bytes() == before


def test_what_is_no_longer_made_is_removed_and_what_others_wrote_is_not(slo: Path) -> None:
    assert main(["build", str(slo), "--out", "made"]) == 0
    own = (Path("made/notes.yaml"), Path("made/runbooks/ours.md"))
    for file in own:
        file.write_text("mine: yes\n", encoding="utf-8")
    slo.write_text(SLO, encoding="utf-8")  # without receivers
    assert main(["build", str(slo), "--out", "made"]) == 0
    assert not Path("made/alertmanager.yaml").exists()
    assert all(file.exists() for file in own)


def test_a_file_of_somebody_elses_is_never_written_over(
    slo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("made").mkdir()
    Path("made/alertmanager.yaml").write_text("route: {receiver: mine}\n", encoding="utf-8")
    assert main(["build", str(slo), "--out", "made"]) == 2
    assert "made/alertmanager.yaml was not made by inferslo build" in capsys.readouterr().err
    assert [file.name for file in Path("made").iterdir()] == ["alertmanager.yaml"]


def test_problems_of_all_files_are_told_at_once(
    slo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("one.yaml").write_text("service: one\n", encoding="utf-8")
    Path("two.yaml").write_text("service: two\nobjectifs: []\n", encoding="utf-8")
    assert main(["build", str(slo), "one.yaml", "two.yaml", "--out", "made"]) == 2
    err = capsys.readouterr().err
    assert "one.yaml:" in err
    assert "two.yaml:" in err
    assert not Path("made").exists()


def test_a_folder_that_cannot_be_is_told(slo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("made").write_text("a file\n", encoding="utf-8")
    assert main(["build", str(slo), "--out", "made"]) == 2
    assert "made is a file, and a folder is written: name another" in capsys.readouterr().err
    assert main(["build", str(slo), "--out", "made/rules"]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_an_unknown_format_is_wrong_usage(slo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", str(slo), "--out", "made", "--format", "nagios"]) == 2
    assert "nagios" in capsys.readouterr().err


NO_RUNBOOKS = (
    "checkout-assistant: its alerts link to no runbook: put runbooks/ where people read it, and"
    " write runbook_url: https://…/{alert}.md"
)


def two(**words: str) -> list[Plan]:
    return [
        replace(plan(objective("availability")), service=service, **words)
        for service in ("one", "two")
    ]


def test_each_service_has_runbooks_of_its_own() -> None:
    """One page for both would hold the thresholds, commands and teams of one."""
    built = build(two(runbook_url="https://h/{alert}"))
    assert "runbooks/one/InfersloAvailabilityBurn.md" in built.files
    assert "runbooks/two/InfersloAvailabilityBurn.md" in built.files
    assert any("runbook_url does not tell which" in note for note in built.notes)
    told = build(two(runbook_url="https://h/{service}/{alert}"))
    assert "https://h/one/InfersloAvailabilityBurn" in told.files["rules.yaml"]
    assert not any("runbook_url" in note for note in told.notes)


def test_services_that_kubernetes_calls_alike_are_refused() -> None:
    alike = [replace(plan(objective("availability")), service=name) for name in ("Shop", "shop")]
    with pytest.raises(SpecError, match="Shop and shop would be one PrometheusRule"):
        build(alike, Format.OPERATOR)
    assert resource_name("a_-.b_") == "inferslo-a.b"


def test_a_build_that_is_interrupted_leaves_whole_files_and_nothing_else(
    slo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["build", str(slo), "--out", "out"]) == 0
    before = Path("out/rules.yaml").read_bytes()
    slo.write_text(slo.read_text().replace("99.5", "99.9"))

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert main(["build", str(slo), "--out", "out"]) == 2
    assert Path("out/rules.yaml").read_bytes() == before
    assert not [path for path in Path("out").rglob("*") if path.name.endswith(".tmp")]


def test_a_rebuilt_file_keeps_its_permissions(slo: Path) -> None:
    assert main(["build", str(slo), "--out", "out"]) == 0
    Path("out/rules.yaml").chmod(0o640)
    slo.write_text(slo.read_text().replace("99.5", "99.9"))
    assert main(["build", str(slo), "--out", "out"]) == 0
    assert Path("out/rules.yaml").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "folder"])
def test_nothing_is_written_through_a_link_or_into_a_pipe(
    slo: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    Path("out").mkdir()
    target, other = Path("out/rules.yaml"), Path("other.yaml")
    if kind == "pipe":
        os.mkfifo(target)
    elif kind == "folder":
        target.mkdir()
    else:
        target.symlink_to(other.absolute())
    if kind == "link":
        other.write_text("# Made by `inferslo build`\n")
    assert main(["build", str(slo), "--out", "out"]) == 2
    assert "out/rules.yaml is no plain file" in capsys.readouterr().err
    assert [path.name for path in Path("out").iterdir()] == ["rules.yaml"]
    assert not other.exists() or other.read_text() == "# Made by `inferslo build`\n"


def test_the_users_own_words_cannot_break_what_is_made(slo: Path) -> None:
    """Labels in capitals, words of our templates as values, Go's templates in texts."""
    slo.write_text(
        SLO.replace("99.5}", '99.5, description: "{{ end }}"}')
        + RECEIVERS
        + "match: {CLUSTER: a, model_name: [\"it's `x`\", 'a|b']}\n"
        "canary: {label: TRACK, canary: BASELINE x, baseline: CANARY}\n"
        'dashboard_url: "https://g.example/{{service}}"\n'
    )
    assert main(["build", str(slo), "--out", "out"]) == 0
    done = subprocess.run(
        [promtool(), "check", "rules", "out/rules.yaml"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    rules = Path("out/rules.yaml").read_text()
    assert 'TRACK="BASELINE x"' in rules
    assert 'TRACK="CANARY"' in rules
    page = Path("out/runbooks/InfersloAvailabilityBurn.md").read_text()
    assert r"it\x27s \x60x\x60" in page
    assert "it's" not in page


def test_receivers_that_the_tree_needs_itself_cannot_act(
    slo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("unclaimed", "watchdog"):
        renamed = RECEIVERS.replace("  hook:", f"  {name}:").replace(": hook}", f": {name}}}")
        slo.write_text(SLO + renamed)
        assert main(["build", str(slo), "--out", "out"]) == 2
        assert f"receiver {name} of shop cannot act on alerts" in capsys.readouterr().err
