"""`inferslo check`: what it prints, where, and with which exit code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from metrics_server import serving
from slofiles import EXAMPLE

from inferslo.sidecar.cli import main

CAPTURE = Path(__file__).parents[2] / "captures" / "vllm-0.32.0__mid-overload.prom"
GOOD = "service: s\nobjectives:\n- {name: a, signal: ttft, threshold: 2.5s, objective: 99}\n"
OFF_BOUND = GOOD.replace("2.5s", "2s")
NOT_KNOWN = (
    "fine, 3 objectives; not asked, as an engine does not know: even (GPU); turns (business events)"
)
NOT_ASKED = "; no engine was asked whether it can answer them: add --engine URL"
UNKNOWN_LABEL = (
    "note: match: the sidecar puts no label {} on its series: Prometheus has to (labels of the"
    " target, relabelling)"
)


@pytest.fixture
def slo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("slo.yaml")
    path.write_text(GOOD, encoding="utf-8")
    return path


def test_a_file_that_is_fine(slo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(slo)]) == 0

    assert capsys.readouterr() == (f"slo.yaml: fine, 1 objective{NOT_ASKED}\n", "")


def test_faults_are_printed_as_a_linter_prints_them(
    slo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.yaml").write_text("service: s\nobjectifs: []\n", encoding="utf-8")

    assert main(["check", str(slo), "bad.yaml"]) == 1

    out, err = capsys.readouterr()
    assert out.splitlines() == [
        f"slo.yaml: fine, 1 objective{NOT_ASKED}",
        "bad.yaml:1:1: objectives: this key is missing",
        "bad.yaml:2:1: objectifs: there is no such key: did you mean objectives?",
    ]
    assert err == ""


def test_a_file_that_is_not_there_is_wrong_usage(
    slo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(slo), "none.yaml"]) == 2

    out, err = capsys.readouterr()
    assert out == f"slo.yaml: fine, 1 objective{NOT_ASKED}\n"
    assert err == "inferslo: error: none.yaml cannot be read: No such file or directory\n"


def test_every_file_is_told_of_and_the_worst_decides(
    slo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.yaml").write_text("service: s\n", encoding="utf-8")
    files = ["none.yaml", str(slo), "slo.yml", "bad.yaml"]

    assert main(["check", *files]) == 2
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        f"slo.yaml: fine, 1 objective{NOT_ASKED}",
        "bad.yaml:1:1: objectives: this key is missing",
    ]
    assert [line.split()[2] for line in err.splitlines()] == ["none.yaml", "slo.yml"]

    assert main(["check", *files, "--json"]) == 2
    found = {each["file"]: each["problems"] for each in json.loads(capsys.readouterr().out)}
    assert list(found) == files
    assert found["slo.yaml"] == []
    assert found["none.yaml"] == [
        {"line": None, "column": None, "message": "cannot be read: No such file or directory"}
    ]


@pytest.mark.parametrize(
    "command",
    [
        ["check"],
        ["build", "--out", "made"],
        ["import"],
        ["read"],
        ["check", "slo.yaml", "--capture"],
        ["config", "show", "--config"],
        ["config", "show", "--engine-token-file"],
        ["init", "--kind", "chat", "--strictness", "normal", "--on-call", "x", "--out", "new.yaml",
         "--capture"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_name_that_is_nearly_right_is_told_by_every_command_that_reads_a_file(
    command: list[str], slo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("pages").mkdir()
    Path("pages/vllm.yaml").touch()

    assert main([*command, "pages/vllm.yml"]) == 2

    assert capsys.readouterr().err.endswith(
        "pages/vllm.yml cannot be read: No such file or directory; there is pages/vllm.yaml\n"
    )
    assert slo.exists()


def test_an_early_warning_that_there_is_not_is_told(
    slo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slo.write_text(f"{GOOD}warnings: {{kv_ful: off}}\n", encoding="utf-8")

    assert main(["check", str(slo)]) == 1

    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("slo.yaml:4:1: warnings: there is no kv_ful: did you mean ")


def test_a_receiver_that_the_tree_needs_for_itself_is_told(
    slo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = "response:\n- {tier: 1, team: ops, receiver: watchdog}\n"
    own += "receivers:\n  watchdog: {webhook: {url: http://h/}}\n"
    slo.write_text(GOOD + own, encoding="utf-8")

    assert main(["check", str(slo)]) == 1

    assert capsys.readouterr().out.startswith(
        "slo.yaml:4:1: receiver watchdog of s cannot act on alerts: it is that of the dead man's"
    )


def test_explain_prints_the_plan(slo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slo.write_text(EXAMPLE, encoding="utf-8")

    assert main(["check", str(slo), "--explain"]) == 0

    out = capsys.readouterr().out
    assert out.startswith("service checkout-assistant, owned by checkout-team\n")
    assert "minutes from the start of a total outage to each alert" in out


def test_json_is_for_scripts(slo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slo.write_text("service: 5\n", encoding="utf-8")
    Path("empty.yaml").touch()
    Path("example.yaml").write_text(EXAMPLE, encoding="utf-8")

    assert main(["check", str(slo), "empty.yaml", "example.yaml", "--json"]) == 1

    wrong, empty, example = json.loads(capsys.readouterr().out)
    assert wrong["file"] == "slo.yaml"
    assert wrong["problems"] == [
        {"line": 1, "column": 1, "message": 'service: 5 is no text here: write it in quotes, "5"'},
        {"line": 1, "column": 1, "message": "objectives: this key is missing"},
    ]
    assert [(p["line"], p["column"]) for p in empty["problems"]] == [(None, None)]
    assert empty["problems"][0]["message"].startswith("the file is empty")
    assert (example["problems"], len(example["notes"])) == ([], 8)


def test_a_threshold_that_is_no_bound_of_a_captured_engine_is_told_at_its_place(
    slo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(slo), "--capture", str(CAPTURE)]) == 0
    slo.write_text(OFF_BOUND, encoding="utf-8")
    capsys.readouterr()

    assert main(["check", str(slo), "--capture", str(CAPTURE)]) == 1

    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("slo.yaml:3:27: a: ")
    assert "2s is not a bucket bound of vLLM: use 1s or 2.5s" in line


def test_a_live_engine_is_asked(slo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slo.write_text(OFF_BOUND, encoding="utf-8")
    with serving({"/metrics": CAPTURE.read_bytes()}) as url:
        assert main(["check", str(slo), "--engine", url]) == 1

    assert "2s is not a bucket bound of vLLM" in capsys.readouterr().out


def test_fine_says_what_the_engine_was_not_asked(
    slo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = "- {name: turns, signal: agent_turn_success, objective: 98}\n"
    more += "- {name: even, signal: gpu_utilization_cv, threshold: 0.3, objective: 95}\n"
    for objectives, says in (
        (GOOD, "fine, 1 objective"),
        (
            GOOD + more,
            NOT_KNOWN,
        ),
    ):
        slo.write_text(objectives, encoding="utf-8")
        assert main(["check", str(slo), "--capture", str(CAPTURE)]) == 0
        assert capsys.readouterr().out == f"slo.yaml: {says}\n"


@pytest.mark.parametrize(
    ("match", "line"),
    [
        ("{model_name: tiny}", "slo.yaml: fine, 1 objective"),
        ("{model_name: [other, tiny]}", "slo.yaml: fine, 1 objective"),  # other is elsewhere
        (
            "{model_name: tyni}",
            "slo.yaml:4:9: vLLM serves no model_name tyni: it serves tiny",
        ),
        ("{job: inferslo}", "slo.yaml: fine, 1 objective"),
        (
            "{modle_name: tiny}",
            UNKNOWN_LABEL.format("modle_name") + ", or did you mean model_name?",
        ),
        ("{namespace: prod}", UNKNOWN_LABEL.format("namespace")),
    ],
)
def test_a_match_that_finds_nothing_is_told(
    match: str, line: str, slo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slo.write_text(f"{GOOD}match: {match}\n", encoding="utf-8")

    code = main(["check", str(slo), "--capture", str(CAPTURE)])

    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == line
    assert code == int("serves no" in line)


def test_an_engine_that_cannot_be_read_is_told_before_any_file(
    slo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(slo), "--engine", "http://127.0.0.1:1"]) == 1
    assert main(["check", str(slo), "--capture", "none.prom"]) == 2
    assert main(["check", str(slo), "--engine", "localhost:8000"]) == 2
    assert main(["check", str(slo), "--engine", "http://x", "--capture", "y"]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    refused, absent, no_url, twice = err.splitlines()
    assert "refused" in refused
    assert "none.prom cannot be read: No such file or directory" in absent
    assert '--engine: "localhost:8000" has no scheme: write "http://localhost:8000"' in no_url
    assert "--engine and --capture say the same thing twice: give one" in twice


def test_the_command_line_loads_nothing_of_slos_until_it_is_asked() -> None:
    """The sidecar's memory is shared with an engine."""
    code = (
        "import sys, inferslo.sidecar.cli;"
        "print([m for m in sys.modules if m.startswith('inferslo.slo.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    loaded = set(json.loads(done.stdout.replace("'", '"')))
    assert loaded == {
        f"inferslo.slo.{module}" for module in ("errors", "files", "yamlfaults", "yamlfile")
    }
