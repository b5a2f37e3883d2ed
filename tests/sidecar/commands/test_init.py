"""`inferslo init`: three answers and an engine become a file that passes `inferslo check`."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from metrics_server import serving
from vllm_pages import CAPTURES

from inferslo.sidecar.cli import main
from inferslo.sidecar.commands import first_file

VLLM = CAPTURES / "vllm-0.32.0__mid-overload.prom"
LITELLM = CAPTURES / "litellm-1.108.7__3-fallbacks.prom"
PAGES = {"/metrics": VLLM.read_bytes(), "/version": b'{"version": "0.32.0"}'}
ANSWERS = ["--kind", "chat", "--strictness", "normal", "--on-call", "platform", "--gpu"]


class Terminal(io.StringIO):
    """A stand-in for somebody at a terminal, who types what it holds."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _away_from_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO())


def init(*arguments: str | Path) -> int:
    return main(["init", *map(str, arguments)])


def answers(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("".join(f"{line}\n" for line in lines)))


def test_flags_answer_all_questions(capsys: pytest.CaptureFixture[str]) -> None:
    assert init(*ANSWERS, "--capture", VLLM) == 0
    out = capsys.readouterr().out
    assert out.startswith("Wrote slo.yaml: 8 objectives, and 1 as comments")
    check = next(line for line in out.splitlines() if "--capture" in line)
    assert main(check.split()[1:]) == 0
    assert 'match: {model_name: ["tiny"]}' in Path("slo.yaml").read_text(encoding="utf-8")


def test_what_needs_a_gpu_waits_where_none_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = "  # Needs the GPU, which is not read here (docs/gpu.md):\n  # - name: even-gpus\n"

    def text(*flags: str) -> str:
        assert init(*ANSWERS[:6], "--capture", VLLM, "--force", *flags) == 0
        return Path("slo.yaml").read_text(encoding="utf-8")

    for is_here in (False, True):
        monkeypatch.setattr(first_file, "driver_is_here", lambda is_here=is_here: is_here)
        assert (waits in text()) is not is_here
        assert waits in text("--no-gpu")
        assert waits not in text("--gpu")


def test_a_live_engine_is_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(PAGES) as url:
        assert init(*ANSWERS, "--engine", url, "--out", "live.yaml", "--service", "web") == 0
        assert main(["check", "live.yaml", "--engine", url]) == 0
    assert f"inferslo check live.yaml --engine {url}" in capsys.readouterr().out
    text = Path("live.yaml").read_text(encoding="utf-8")
    assert "service: web\n" in text
    assert "threshold: 2.5s # T1 says 2s, no bound of vLLM 0.32.0\n" in text


def test_the_only_engine_of_this_machine_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(PAGES) as url:
        monkeypatch.setattr(first_file, "USUAL_PORTS", {int(url.rpartition(":")[2]): "vLLM"})
        assert init(*ANSWERS) == 0
    assert Path("slo.yaml").exists()


def test_of_two_engines_none_is_chosen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(PAGES) as one, serving(PAGES) as two:
        ports = {int(url.rpartition(":")[2]): "vLLM" for url in (one, two)}
        monkeypatch.setattr(first_file, "USUAL_PORTS", ports)
        assert init(*ANSWERS) == 2
    assert f"there are 2 engines here: give --engine, {one} or {two}" in capsys.readouterr().err


def test_without_an_engine_it_says_what_to_give(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(first_file, "USUAL_PORTS", {1: "nobody"})
    assert init(*ANSWERS) == 1
    assert "say --engine http://HOST:PORT, or --capture FILE" in capsys.readouterr().err
    assert not Path("slo.yaml").exists()


def test_somebody_at_a_terminal_is_asked_until_the_answer_is_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers(
        monkeypatch, "chatty", "", "chat", "strictly", "strict", "night owls", "\x1b", "night-owls"
    )
    assert init("--capture", VLLM, "--gpu") == 0
    text = Path("slo.yaml").read_text(encoding="utf-8")
    assert "owner: night-owls\n" in text
    assert "objective: 99.97 # T42" in text
    out = capsys.readouterr().out
    assert out.count("What kind of service is it?") == 1
    assert [line.lstrip("> ")[:49] for line in out.splitlines() if line.startswith("> ")] == [
        "the catalogue has no chatty: did you mean chat?",
        "An answer is needed; Ctrl-C leaves.",
        "How strict is it to be?",
        '"strictly" is no strictness: did you mean strict?',
        "Who is on call? (name of the team)",
        'on-call team: "night owls" is not a name: at most',
        r'on-call team: "\x1b" is not a name: at most 63 le',
        "Wrote slo.yaml: 8 objectives, and 1 as comments, ",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kind", "chta"], "the catalogue has no chta"),
        (["--strictness", "hard"], '"hard" is no strictness'),
        (["--on-call", "a b"], 'on-call team: "a b" is not a name'),
        (["--service", "a b"], 'service: "a b" is not a name'),
        (["--out", "no/such/folder.yaml"], "there is no folder no/such/"),
        (["--out", "taken.yaml"], "taken.yaml is there"),
        (["--capture", "none.prom"], "none.prom cannot be read"),
        (["--engine", "localhost"], "has no scheme"),
    ],
)
def test_nobody_answers_in_vain(
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is wrong without any answer is told before the first question."""
    Path("taken.yaml").touch()
    answers(monkeypatch, "chat", "strict", "night-owls")
    page = [] if arguments[0] in ("--capture", "--engine") else ["--capture", str(VLLM)]

    assert init(*arguments, *page) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


@pytest.mark.parametrize("there", [False, True])
def test_a_folder_takes_slo_yaml(there: bool) -> None:
    if there:
        Path("new").mkdir()
    out = "new" if there else "new/deep/"

    assert init(*ANSWERS, "--capture", VLLM, "--out", out) == 0

    assert (Path(out) / "slo.yaml").is_file()


def test_only_what_no_flag_says_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers(monkeypatch, "platform")
    assert init("--capture", VLLM, *ANSWERS[:4]) == 0
    assert "What kind" not in capsys.readouterr().out


def test_without_a_terminal_it_says_which_flags(capsys: pytest.CaptureFixture[str]) -> None:
    assert init("--kind", "chat") == 2
    assert capsys.readouterr().err == (
        "inferslo: error: nobody can be asked, this is no terminal: give --strictness, --on-call\n"
    )


def test_a_question_can_be_left_with_end_of_input(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        init("--capture", VLLM)


def test_a_file_is_never_overwritten_unless_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path("slo.yaml").write_text("mine", encoding="utf-8")
    assert init(*ANSWERS, "--capture", VLLM) == 2
    assert "slo.yaml is there" in capsys.readouterr().err
    assert Path("slo.yaml").read_text(encoding="utf-8") == "mine"

    assert init(*ANSWERS, "--capture", VLLM, "--force") == 0
    assert "service: chat" in Path("slo.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kind", "chta", *ANSWERS[2:]], "the catalogue has no chta: did you mean chat?"),
        (
            [*ANSWERS, "--strictness", "hard"],
            '"hard" is no strictness: there are relaxed, normal, strict',
        ),
        ([*ANSWERS, "--on-call", "a b"], 'on-call team: "a b" is not a name'),
        ([*ANSWERS, "--engine", "http://127.0.0.1:1"], "say the same thing twice"),
        (
            [*ANSWERS, "--out", "no/such/folder.yaml"],
            "cannot be written: there is no folder no/such/",
        ),
    ],
)
def test_a_mistake_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(*arguments, "--capture", VLLM) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert message in line
    assert not Path("slo.yaml").exists()


def test_a_gateway_is_no_engine(capsys: pytest.CaptureFixture[str]) -> None:
    assert init(*ANSWERS, "--capture", LITELLM) == 2
    assert "a gateway: name the engine behind it" in capsys.readouterr().err
