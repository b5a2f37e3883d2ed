"""`inferslo up`: which servers are found, and what is said of them. Real servers, real sockets."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from metrics_server import serving

from inferslo.exporters.http import HttpFetcher
from inferslo.sidecar import up
from inferslo.sidecar.discovery import USUAL_PORTS, Answer, NothingFoundError, discover
from inferslo.sidecar.errors import StartError
from inferslo.sidecar.settings.model import Settings
from inferslo.sidecar.settings.targets import Engine, Target

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "tests" / "captures"
VLLM = (CAPTURES / "vllm-0.32.0__mid-overload.prom").read_bytes()
LITELLM = (CAPTURES / "litellm-1.108.7__3-fallbacks.prom").read_bytes()
DEADLINE = 0.5


@pytest.fixture
def servers() -> Iterator[dict[str, str]]:
    """Base URLs of a vLLM, a LiteLLM, an SGLang, a web page, a server without /metrics, and one
    that accepts and says nothing."""
    with ExitStack() as stack:
        pages = {
            "vllm": {"/metrics": VLLM, "/version": b'{"version": "0.32.0"}'},
            "litellm": {"/metrics": LITELLM},
            "sglang": {"/metrics": b"sglang:num_running_reqs 1\n"},
            "html": {"/metrics": b"<!DOCTYPE html><html></html>"},
            "bare": {},
        }
        urls = {name: stack.enter_context(serving(page)) for name, page in pages.items()}
        mute = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        yield urls | {"mute": f"http://127.0.0.1:{mute.getsockname()[1]}"}


def port(url: str) -> int:
    return int(url.rpartition(":")[2])


def find(*urls: str) -> list[Answer]:
    return discover(map(port, urls), lambda: HttpFetcher(deadline=DEADLINE))


def test_an_engine_is_found_with_its_type_and_version(servers: dict[str, str]) -> None:
    assert find(servers["vllm"]) == [Answer(servers["vllm"], "vllm", "0.32.0")]


def test_a_gateway_is_found_as_one(servers: dict[str, str]) -> None:
    assert find(servers["litellm"]) == [Answer(servers["litellm"], "litellm")]


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("sglang", "SGLang"),
        ("html", "line 1 of the page"),
        ("bare", "HTTP 404"),
        ("mute", "did not answer in full within 0.5 s"),
    ],
)
def test_what_answers_and_is_not_known_is_told_with_the_reason(
    name: str, detail: str, servers: dict[str, str]
) -> None:
    [answer] = find(servers[name])

    assert (answer.url, answer.type) == (servers[name], "")
    assert detail in answer.detail


def test_a_silent_port_is_left_out_and_the_order_is_that_of_the_ports(
    servers: dict[str, str],
) -> None:
    with serving({}) as closed:
        pass

    found = find(servers["litellm"], closed, servers["mute"], servers["vllm"])

    assert [a.url for a in found] == [servers["litellm"], servers["mute"], servers["vllm"]]


def test_up_watches_what_it_found_and_says_so(
    servers: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    given = Settings(poll_interval=1.0, listen=":9500")

    settings = up.settle(given, [port(servers[n]) for n in ("vllm", "litellm", "sglang")])

    assert settings.engines == (Engine(url=servers["vllm"]),)
    assert settings.litellm == (Target(url=servers["litellm"]),)
    assert (settings.poll_interval, settings.listen) == (1.0, ":9500")
    out = capsys.readouterr().out.splitlines()
    assert out[0] == f"{servers['vllm']}  vllm 0.32.0"
    assert out[1] == f"{servers['litellm']}  litellm"
    assert out[2].startswith(f"{servers['sglang']}  not watched: ")
    assert len(out) == 3, "where it serves is said when it does"


def test_up_prints_no_escapes_and_no_forged_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(*_: object) -> list[Answer]:
        return [Answer("http://a:1", "vllm", "0\x1b[31m\nhttp://b:1  vllm")]

    monkeypatch.setattr(up, "discover", found)

    up.settle(Settings(), [1])

    assert capsys.readouterr().out == r"http://a:1  vllm 0\x1b[31m\nhttp://b:1  vllm" + "\n"


@pytest.mark.parametrize(
    ("host", "base"),
    [
        ("127.0.0.1", "http://127.0.0.1:9400"),
        ("::1", "http://[::1]:9400"),
        ("::", "http://127.0.0.1:9400"),
        ("0.0.0.0", "http://127.0.0.1:9400"),
    ],
)
def test_up_names_an_address_that_a_client_can_use(
    host: str, base: str, capsys: pytest.CaptureFixture[str]
) -> None:
    up.say_next(host, 9400)

    assert f"  curl {base}/v1/status\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("on_path", "typed", "said"),
    [
        (True, ".venv/bin/inferslo", "inferslo"),
        (False, ".venv/bin/inferslo", ".venv/bin/inferslo"),
        (False, "/my tools/bin/inferslo", "'/my tools/bin/inferslo'"),
        (False, "/x/inferslo/sidecar/__main__.py", f"{sys.executable} -m inferslo.sidecar"),
    ],
)
def test_up_names_itself_as_the_user_can_type_it(
    on_path: bool, typed: str, said: str,
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    installed = tmp_path / "inferslo"
    installed.touch(mode=0o755 if on_path else 0o644)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [typed, "up"])
    up.say_next("127.0.0.1", 9400)
    assert f"\n  {said} status --sidecar http://127.0.0.1:9400\n" in capsys.readouterr().out
    monkeypatch.setattr(up, "discover", lambda *_: [])
    with pytest.raises(NothingFoundError) as nothing:
        up.settle(Settings(), [1])
    assert f" {said} up --demo" in str(nothing.value)


@pytest.mark.parametrize(
    "given",
    [
        Settings(engines=(Engine(url="http://x:1"),)),
        Settings(litellm=(Target(url="http://x:1"),)),
    ],
)
def test_up_does_not_search_if_it_is_told_where(
    given: Settings, servers: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert up.settle(given, [port(servers["vllm"])]) == given
    assert "vllm" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("field", "flag"), [("engine_token_file", "--engine"), ("litellm_token_file", "--litellm")]
)
def test_up_gives_no_token_to_a_server_that_the_user_did_not_name(
    field: str, flag: str, servers: dict[str, str], tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("secret")

    with pytest.raises(StartError) as caught:
        up.settle(Settings.model_validate({field: token}), [port(servers["vllm"])])

    assert str(caught.value).endswith(f"name its server, {flag} http://HOST:PORT")


def test_up_says_what_to_do_if_it_found_nothing(
    servers: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(NothingFoundError) as caught:
        up.settle(Settings(), [port(servers["bare"])])

    assert "not watched: " in capsys.readouterr().out
    for text in (f"ports {port(servers['bare'])}", "vllm serve", "--engine http://"):
        assert text in str(caught.value)


def test_up_shows_that_it_waits(
    servers: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(up, "_PATIENCE", 0.05)
    monkeypatch.setattr(up, "_DEADLINE", DEADLINE)

    with pytest.raises(NothingFoundError):
        up.settle(Settings(), [port(servers["mute"])])
    assert capsys.readouterr().err == "Still waiting for an answer …\n"


def test_the_docs_name_the_ports() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")

    *most, last = map(str, USUAL_PORTS)
    assert f"ports {', '.join(most)} and {last} of" in " ".join(page.split())
