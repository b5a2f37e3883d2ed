"""The command line: exit codes, one line for each mistake, help with examples."""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Protocol

import pytest
from librarytexts import LIBRARY_TEXT
from metrics_server import serving
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from inferslo.exporters.reading import ErrorKind, FatalSourceError
from inferslo.sidecar.cli import app, main
from inferslo.sidecar.errors import StartError
from inferslo.sidecar.explain import as_explained_text
from inferslo.sidecar.interpret import interpret_page
from inferslo.sidecar.settings.load import CONFIG_FLAG, CONFIG_VARIABLE
from inferslo.sidecar.settings.model import FIELDS, Settings, flag, variable

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "tests" / "captures"
VLLM = CAPTURES / "vllm-0.32.0__mid-overload.prom"
LITELLM = CAPTURES / "litellm-1.108.7__3-fallbacks.prom"
EXECUTABLE = Path(sys.executable).with_name("inferslo")
COMMANDS = (
    "sidecar", "up", "read", "init", "catalogue", "import", "check", "alerts", "silence add",
    "silence list", "silence expire", "config show", "version",
)  # fmt: skip


def inferslo(*arguments: str | Path, stdin: bytes = b"", **environment: str) -> Outcome:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("INFERSLO_")}
    done = subprocess.run(
        [EXECUTABLE, *arguments],
        input=stdin,
        capture_output=True,
        env=clean | environment,
        check=False,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


class Outcome:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err
        self.lines = err.splitlines()


def failed(outcome: Outcome, code: int, *messages: str) -> None:
    """One line for each message, and nothing else: no traceback, no usage text."""
    assert outcome.lines == [f"inferslo: error: {message}" for message in messages]
    assert (outcome.code, outcome.out) == (code, "")


class Call(Protocol):
    def __call__(self, *arguments: str | Path, stdin: bytes = b"") -> Outcome: ...


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """As `inferslo`, inside this process: a process costs a second."""
    for name in [name for name in os.environ if name.startswith("INFERSLO_")]:
        monkeypatch.delenv(name)

    def run(*arguments: str | Path, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return run


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    """The base URL of a server that answers as a vLLM of version 0.32.0 does."""
    with serving({"/metrics": VLLM.read_bytes(), "/version": b'{"version": "0.32.0"}'}) as url:
        yield url


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings that a fake process (it returns 0 at once) was run with."""
    runs: list[Settings] = []
    fake_process(monkeypatch, lambda settings, *_: runs.append(settings) or 0)
    for name in [name for name in os.environ if name.startswith("INFERSLO_")]:
        monkeypatch.delenv(name)
    return runs


def fake_process(monkeypatch: pytest.MonkeyPatch, run: Callable[..., int]) -> None:
    module = ModuleType("fake of inferslo.sidecar.process")
    module.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "inferslo.sidecar.process", module)


def test_a_bare_call_shows_the_help_and_is_wrong_usage() -> None:
    outcome = inferslo()

    assert (outcome.code, outcome.out) == (2, "")
    assert "inferslo up" in outcome.err


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_has_an_example_and_exit_codes(command: str) -> None:
    result = CliRunner().invoke(app, [*command.split(), "--help"])

    assert result.exit_code == 0
    assert re.search(rf"Examples?:\n +inferslo {command}", result.output)
    assert command == "version" or "Exit codes:" in result.output


@pytest.mark.parametrize("command", ["sidecar", "up", "config show"])
def test_every_setting_is_a_flag_of(command: str) -> None:
    help = CliRunner().invoke(app, [*command.split(), "--help"]).output

    for name in FIELDS:
        assert f"  {flag(name)} " in help
    assert f"  {CONFIG_FLAG} " in help


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "no such command 'nope'; see inferslo --help"),
        (["config"], "missing command; see inferslo config --help"),
        (["read"], "missing argument 'URL|FILE|-'; see inferslo read --help"),
        (["read", "a", "b"], "got unexpected extra argument(s) (b); see inferslo read --help"),
        (["version", "--zzz"], "no such option: --zzz; see inferslo version --help"),
        (["up", "--listen"], "option '--listen' requires an argument; see inferslo --help"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(arguments: list[str], message: str, call: Call) -> None:
    failed(call(*arguments), 2, message)


def choices() -> Iterator[tuple[list[str], str, list[str]]]:
    """Command, option and words of every option that takes one of several words."""
    for command in [*COMMANDS, "build", "verify"]:
        help = CliRunner().invoke(app, [*command.split(), "--help"]).output
        for option, words in re.findall(
            r"^ +(--[a-z-]+) +<?([a-z]+(?:\|[a-z]+){2,})\b", help, re.MULTILINE
        ):
            yield command.split(), option, words.split("|")


OTHERS = {"init": ["--kind", "chat", "--on-call", "x"], "build": ["x.yaml", "--out", "x"]}


@pytest.mark.parametrize(("command", "option", "words"), [*choices()], ids=str)
def test_a_word_that_is_none_names_the_nearest_and_all(
    command: list[str],
    option: str,
    words: list[str],
    call: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    slip = f"{words[-1][:-1]}x"

    outcome = call(*command, *OTHERS.get(command[0], []), option, slip)

    assert outcome.code == 2
    [line] = outcome.lines
    assert line.startswith("inferslo: error: ")
    assert option.strip("-") in line
    assert slip in line
    assert f": did you mean {words[-1]}? There are {', '.join(words)}" in line
    assert not LIBRARY_TEXT.search(line)


def test_the_options_that_take_one_of_several_words_are_found() -> None:
    assert {option for _, option, _ in choices()} == {
        "--format", "--gpu", "--log-format", "--log-level", "--strictness",
    }  # fmt: skip


def test_version() -> None:
    expected = CliRunner().invoke(app, ["version"]).output

    assert re.fullmatch(r"inferslo \d+\.\d+\.\d+ \(Python 3\.\d+\.\d+\)\n", expected)
    assert inferslo("--version").out == expected


def test_python_m_is_the_same_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "inferslo.sidecar", "nope"], capture_output=True, check=False
    )

    assert done.returncode == 2
    assert done.stderr == b"inferslo: error: no such command 'nope'; see inferslo --help\n"


def test_wrong_settings_are_a_line_each_and_exit_2() -> None:
    failed(
        inferslo("sidecar", "--engine", "localhost:8000", INFERSLO_GPU="maybe"),
        2,
        '--engine: "localhost:8000" has no scheme: write "http://localhost:8000"',
        'INFERSLO_GPU: "maybe" is none: there are auto, on, off',
    )


@pytest.mark.parametrize("command", ["up", "config show"])
def test_wrong_settings_stop_every_command_that_has_them(command: str, call: Call) -> None:
    failed(
        call(*command.split(), "--listen", "x"),
        2,
        '--listen: "x" is not an address: write HOST:PORT, as in 127.0.0.1:9400',
    )


def test_an_absent_config_file_is_exit_2(call: Call) -> None:
    failed(
        call("sidecar", "--config", "/nowhere.yaml"),
        2,
        "/nowhere.yaml cannot be read: No such file or directory",
    )


def test_the_sidecar_runs_with_the_settings_of_all_origins(
    ran: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INFERSLO_POLL_INTERVAL", "1s")

    assert main(["sidecar", "--engine", "a=http://x", "--engine", "http://y:1"]) == 0

    [settings] = ran
    assert [engine.name for engine in settings.engines] == ["a", "y:1"]
    assert settings.poll_interval == 1


@pytest.mark.parametrize(
    ("outcome", "code", "message"),
    [
        (StartError("127.0.0.1:9400 is in use"), 2, "127.0.0.1:9400 is in use"),
        (FatalSourceError(ErrorKind.DRIVER, "the GPU is lost"), 3, "the GPU is lost"),
    ],
)
def test_what_ends_the_process_is_one_line_and_an_exit_code(
    outcome: Exception,
    code: int,
    message: str,
    ran: list[Settings],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_: Settings) -> int:
        raise outcome

    fake_process(monkeypatch, fail)

    assert main(["sidecar"]) == code
    assert capsys.readouterr().err == f"inferslo: error: {message}\n"


def test_a_port_in_use_is_one_line_and_exit_2(tmp_path: Path) -> None:
    with serving({}) as url:
        address = url.removeprefix("http://")
        journal = tmp_path / "events.db"
        outcome = inferslo("sidecar", "--listen", address, "--events-journal", journal)

    assert (outcome.code, outcome.out, len(outcome.lines)) == (2, "", 1)
    assert outcome.err.startswith(f"inferslo: error: cannot listen on {address}: Address already")


def test_the_exit_code_is_that_of_the_process(
    ran: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_process(monkeypatch, lambda _: 3)

    assert main(["sidecar"]) == 3


def test_ctrl_c_while_modules_are_imported_is_exit_130_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "inferslo.sidecar.cli", Interrupted("cli"))

    assert importlib.import_module("inferslo.sidecar.__main__").main() == 130


def test_ctrl_c_is_exit_130_without_a_traceback(
    ran: list[Settings], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_: Settings) -> int:
        raise KeyboardInterrupt

    fake_process(monkeypatch, interrupt)

    assert main(["sidecar"]) == 130
    assert capsys.readouterr().err == ""


def test_config_show_can_be_loaded_again(tmp_path: Path) -> None:
    shown = inferslo("config", "show", "--engine", "a=http://x", "--poll-interval", "1s")
    file = tmp_path / "c.yaml"
    file.write_text(shown.out)

    again = inferslo("config", "show", "--json", INFERSLO_CONFIG=str(file))

    assert (shown.code, shown.err, again.code, again.err) == (0, "", 0, "")
    document = json.loads(again.out)
    assert document["settings"]["engines"] == [{"name": "a", "url": "http://x"}]
    assert document["settings"]["poll_interval"] == 1
    assert document["origins"]["poll_interval"] == f"{file}:8:1"


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_errors_are_coloured_on_a_terminal_unless_that_is_unwanted(
    no_color: str, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("NO_COLOR", no_color)

    main(["nope"])

    assert ("\x1b" in terminal.getvalue()) == coloured


def test_errors_are_not_coloured_elsewhere(call: Call) -> None:
    assert "\x1b" not in call("nope").err


def test_what_the_sidecar_does_not_need_is_not_imported() -> None:
    program = (
        "import sys, inferslo.sidecar.cli as cli; cli.main(['config', 'show']);"
        "print([m for m in ('rich', 'pandas', 'grafanalib', 'vllm', 'httpx') if m in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert done.stdout.decode().splitlines()[-1] == "[]"


def test_read_prints_what_would_be_published_as_prometheus_text(engine: str) -> None:
    outcome = inferslo("read", engine)

    assert (outcome.code, outcome.err) == (0, "")
    families = {family.name: family for family in text_string_to_metric_families(outcome.out)}
    [info] = families["inferslo_engine_info"].samples
    assert info.labels["engine"] == engine.removeprefix("http://")
    assert info.labels["version"] == "0.32.0"
    assert families["inferslo_ttft_seconds"].type == "histogram"


def test_read_takes_a_file_and_standard_input(call: Call) -> None:
    from_file = call("read", VLLM)
    from_stdin = call("read", "-", stdin=VLLM.read_bytes())

    assert from_file.code == from_stdin.code == 0
    assert from_file.out.replace(VLLM.name, "stdin") == from_stdin.out


HOSTILE = b'vllm:num_requests_running{model_name="\x1b[31m\xc2\x9b\xe2\x80\xae\r"} 1\n'


def test_a_terminal_gets_no_escapes_of_an_engine(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_terminal() -> bool:
        return True

    monkeypatch.setattr(sys.stdout, "isatty", is_terminal)

    for flags in ([], ["--explain"]):
        out = call("read", "-", *flags, stdin=HOSTILE).out

        assert r'model_name="\x1b[31m\x9b\u202e\r"' in out
        assert out.replace("\n", "").isprintable()


def test_a_script_gets_the_page_as_it_is(call: Call) -> None:
    assert 'model_name="\x1b[31m\x9b\u202e\r"' in call("read", "-", stdin=HOSTILE).out


def test_an_explanation_stays_a_comment() -> None:
    read = replace(interpret_page("stdin", HOSTILE), name="a\n\x1b")

    assert r"# a\n\x1b is vllm" in as_explained_text(read).split("\n")


def test_what_never_ends_is_not_read_for_ever(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inferslo.sidecar.interpret.MAX_FILE_BYTES", 1000)
    endless = VLLM.read_bytes()

    failed(
        call("read", "-", stdin=endless),
        2,
        "stdin is larger than 1000 bytes: is it a metrics page?",
    )


def test_read_takes_a_litellm_page(call: Call) -> None:
    outcome = call("read", LITELLM)

    assert outcome.code == 0
    assert "inferslo_gateway_fallbacks_total{" in outcome.out


def test_explain_names_the_source_series_and_what_is_missing(engine: str, call: Call) -> None:
    plain = call("read", engine).out
    outcome = call("read", engine, "--explain")

    assert outcome.code == 0
    assert outcome.out.startswith(plain), "it adds to the page"
    added = outcome.out.removeprefix(plain).splitlines()
    assert all(line.startswith("#") for line in added), "the page is still one of metrics"
    assert f"# {engine.removeprefix('http://')} is vllm 0.32.0" in added
    text = "\n".join(added)
    for pattern in (
        r"^# inferslo_ttft_seconds +1 +vllm:time_to_first_token_seconds$",
        r'^# inferslo_requests_total\{outcome="invalid",source="engine"\} +1 +http_\S+ 4xx$',
        r"^# requests_timeout +\S.* {2}\S",
    ):
        assert re.search(pattern, text, re.MULTILINE), pattern


def test_read_json_holds_every_point_with_its_origin(call: Call) -> None:
    document = json.loads(call("read", VLLM, "--json").out)

    assert document["type"] == "vllm"
    [ttft] = [p for p in document["points"] if p["name"] == "inferslo_ttft_seconds"]
    assert ttft["origin"] == "vllm:time_to_first_token_seconds"
    assert ttft["value"]["bounds"][-1] == "+Inf"
    assert len(ttft["value"]["counts"]) == len(ttft["value"]["bounds"])
    assert {gap["signal"] for gap in document["missing"]} >= {"requests_timeout"}


def test_read_into_a_closed_pipe_ends_quietly() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{EXECUTABLE} read {VLLM} | head -1; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        check=True,
    )

    assert done.stderr == b""
    assert done.stdout.decode().splitlines()[-1] in ("0", "1")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<!DOCTYPE html><html></html>", "line 1 of the page: "),
        (b"a 1\nb\n", "line 2 of the page: "),
        (b"sglang:num_running_reqs 1\n", "stdin is the page of SGLang"),
        (b"mine 1\n", "stdin is the page of no engine that inferslo knows: no series begins with"),
        (b"", "stdin is the page of no engine that inferslo knows"),
    ],
)
def test_read_of_another_page_says_what_it_is(content: bytes, message: str, call: Call) -> None:
    outcome = call("read", "-", stdin=content)

    assert (outcome.code, outcome.out) == (1, "")
    assert len(outcome.lines) == 1
    assert outcome.err.startswith(f"inferslo: error: {message}")


def test_read_of_what_cannot_be_read(call: Call) -> None:
    with serving({}) as empty:
        failed(call("read", empty), 1, f"{empty}/metrics answered HTTP 404: is the address right?")
    failed(
        call("read", empty),
        1,
        f"{empty.removeprefix('http://')}: Connection refused: is the server running there?",
    )
    failed(
        call("read", "localhost:8000"),
        2,
        "localhost:8000 cannot be read: No such file or directory; a URL begins with http://",
    )
    failed(call("read", "ftp://x"), 2, 'URL: "ftp://x": only http and https are read, not ftp')
    failed(
        call("read", "https://x", "--token-file", "/nowhere", "--ca-file", VLLM),
        2,
        "--token-file: /nowhere cannot be read: No such file or directory",
        f"--ca-file: {VLLM} holds no certificate in PEM form",
    )


def test_cli_page_names_every_command_and_its_own_flags() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    settings = {flag(name) for name in FIELDS}

    for command in COMMANDS:
        assert f"## inferslo {command}\n" in page
        help = CliRunner().invoke(app, [*command.split(), "--help"]).output
        for own in set(re.findall(r"^  (--[\w-]+)", help, re.MULTILINE)) - settings:
            assert f"`{own}" in page, own


def test_configuration_page_names_every_setting_in_all_its_forms() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")

    for name in FIELDS:
        assert f"`{name}`" in page
        assert f"`{flag(name)} " in page
        assert f"`{variable(name)}`" in page
    assert CONFIG_FLAG in page
    assert CONFIG_VARIABLE in page
