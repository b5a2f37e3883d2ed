"""`inferslo status` and `inferslo watch`: one screenful, for those who came by ssh."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from e2e.processes import free_port, wait_until
from fastapi.testclient import TestClient
from judges import ANY, STEP, TURNS, judge, page, turns
from metrics_server import serving
from plans import objective
from scripted import Scripted, running

from inferslo.exporters.reading import ErrorKind, Gap, Reading
from inferslo.sidecar.app import create_app
from inferslo.sidecar.board import Board
from inferslo.sidecar.cli import main
from inferslo.sidecar.judge.loop import Judging
from inferslo.sidecar.publisher import Publisher
from inferslo.slo.plan import Query

EXECUTABLE = Path(sys.executable).with_name("inferslo")
UNKNOWN = "whether anybody is called is not known"
AVAILABILITY = objective("availability", name="answered", selection=ANY, min_coverage=Decimal(0))
GATEWAY = Gap("gateway", "no gateway is configured", "--litellm URL")


def documents(judging: Judging | None) -> dict[str, Any]:
    """By path, as a sidecar with one engine that answers and one that does not gives them."""
    board = Board()
    for name in ("engine", "other"):
        board.add(Scripted(lambda: running(0.0), name))
    board.finish(Reading("engine", 100.0, 0.25, running(3.0)))
    board.finish(Reading("other", 100.0, 0.25, None, ErrorKind.REFUSED, "nobody listens"))
    publisher = Publisher(board.points, lambda: board.version)
    app = TestClient(create_app(board, publisher, judging=judging, not_watched=(GATEWAY,)))
    paths = ("/v1/status", *(("/v1/slo",) if judging else ()))
    return {path: app.get(path).json() for path in paths}


def judged(pages: Iterator[Any], *objectives: Any) -> Judging:
    judging = Judging(judge(*(objectives or (AVAILABILITY,))), wall=lambda: judged_at)
    judged_at = 0.0
    for n, points in enumerate(pages):
        judged_at = float(n * STEP)
        judging.step(points, n * STEP)
    return judging


def healthy() -> Judging:
    return judged(page(10 * n) for n in range(30))


def incident() -> Judging:
    return judged(page(0, 10 * n) for n in range(30))


@contextmanager
def a_sidecar(found: dict[str, Any]) -> Iterator[str]:
    with serving({path: json.dumps(document).encode() for path, document in found.items()}) as url:
        yield url


class Screen:
    """What one `inferslo status` prints, by default not on a terminal."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def of(self, judging: Judging | None, *flags: str) -> tuple[int, str]:
        return self.of_documents(documents(judging), *flags)

    def of_documents(self, found: dict[str, Any], *flags: str) -> tuple[int, str]:
        with a_sidecar(found) as url:
            code = main(["status", "--sidecar", url, *flags])
        out, err = self._capsys.readouterr()
        return code, (out or err).replace(url, "URL")

    def is_terminal(self, columns: int) -> None:
        self._monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        self._monkeypatch.setenv("COLUMNS", str(columns))
        self._monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture
def screen(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Screen:
    return Screen(capsys, monkeypatch)


def test_all_well(screen: Screen) -> None:
    code, text = screen.of(healthy())
    assert code == 0
    head, _, titles, row, *rest = text.splitlines()
    assert head.startswith("checkout-assistant  judged ")
    assert titles.split() == ["STATE", "GOOD", "5M", "OF", "BUDGET", "LEFT", "BURN", "1H"]
    assert row.split() == [
        "answered",
        "OK",
        "100",
        "%",
        "99",
        "%",
        "100",
        "%",
        "##########",
        "0.0x",
    ]
    assert "nobody is called" in rest
    assert "engine: up" in rest
    assert "other: down: nobody listens" in rest
    assert "gateway: not watched, no gateway is configured; --litellm URL" in rest


def test_an_incident_says_who_is_called_and_what_to_do(screen: Screen) -> None:
    code, text = screen.of(incident())
    assert code == 1
    lines = text.splitlines()
    row = next(line for line in lines if line.startswith("answered"))
    assert row.split()[1:4] == ["INCIDENT", "0", "%"]
    assert row.split()[-2:] == ["..........", "100x"]
    first = next(n for n, line in enumerate(lines) if line.startswith("tier 1 operations"))
    assert lines[first].endswith("of requests failed.") or "100%" in lines[first]
    assert all(line.startswith("  ") for line in lines[first + 1 : first + 6])
    assert "nobody is called" not in lines


def test_a_description_stands_with_its_alert(screen: Screen) -> None:
    searches = replace(AVAILABILITY, description="Searches find\nwhat is there.")
    _, text = screen.of(judged((page(0, 10 * n) for n in range(30)), searches))
    lines = text.splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("tier 1 operations"))
    assert lines[first + 1] == "  Searches find what is there."
    assert "Searches" not in screen.of(incident())[1]


def test_the_only_alert_with_steps_is_the_gravest_as_on_the_page(screen: Screen) -> None:
    found = documents(incident())
    [alert] = found["/v1/slo"]["alerts"][:1]
    other = json.loads(json.dumps(alert)) | {"alert": "InfersloITLBurn", "since": 0.0}
    other["labels"]["slo"] = "writing"
    other["annotations"]["summary"] = "writing is slow"
    found["/v1/slo"]["alerts"] = [alert, other, *found["/v1/slo"]["alerts"][1:]]
    _, text = screen.of_documents(found)
    told = [line for line in text.splitlines() if line.startswith("tier ")]
    assert "answered" in told[0]
    assert told[1].endswith("writing is slow")


def test_a_budget_of_which_too_little_is_known_is_not_claimed(screen: Screen) -> None:
    careful = objective("availability", selection=ANY)
    _, text = screen.of(judged((page(10 * n) for n in range(30)), careful))
    row = next(line for line in text.splitlines() if line.startswith("availability"))
    assert "(knows 0%)" in row
    assert "#" not in row


def test_a_budget_overspent_many_times_is_a_number_that_can_be_read(screen: Screen) -> None:
    found = documents(incident())
    [objective] = found["/v1/slo"]["objectives"]
    objective["budget"]["remaining"], objective["burn_rate"] = -108.3, 1083.4
    row = next(r for r in screen.of_documents(found)[1].splitlines() if r.startswith("answered"))
    assert "-10,830 %" in row
    assert row.endswith("1,083x")


def test_states_are_the_words_of_the_page_and_the_worst_stand_first(screen: Screen) -> None:
    def standing(judging: Judging, name: str) -> dict[str, Any]:
        [one] = documents(judging)["/v1/slo"]["objectives"]
        return one | {"name": name}

    found = documents(incident())
    found["/v1/slo"]["objectives"] = [
        standing(healthy(), "fine"),
        standing(judged(iter([page(1), page(1)])), "idle"),
        standing(judged(iter([[]])), "blind"),
        standing(spent(), "poor"),
        standing(incident(), "broken"),
    ]
    lines = screen.of_documents(found)[1].splitlines()
    begin = next(n for n, line in enumerate(lines) if "STATE" in line) + 1
    assert [" ".join(line.split()[:3]) for line in lines[begin : begin + 5]] == [
        "broken INCIDENT 0", "poor BUDGET SPENT", "blind No data", "idle No traffic", "fine OK 100"
    ]  # fmt: skip


def spent() -> Judging:
    """Nothing burns, and too much has."""
    few = replace(AVAILABILITY, burns=(), outage=None)
    return judged((page(98 * n, 2 * n) for n in range(30)), few)


def test_the_window_of_good_is_that_of_the_file(screen: Screen) -> None:
    found = documents(healthy())
    found["/v1/slo"]["base_seconds"] = 600
    assert "GOOD 10M" in screen.of_documents(found)[1]


def test_what_is_not_known_is_a_dash_and_never_0(screen: Screen) -> None:
    code, text = screen.of(judged(iter([[]])))
    row = next(line for line in text.splitlines() if line.startswith("answered"))
    assert row.split()[1:4] == ["No", "data", "-"]
    assert row.endswith("-")
    assert code == 0


def test_before_the_first_judgement(screen: Screen) -> None:
    code, text = screen.of(judged(iter(())))
    assert (code, text.splitlines()[0]) == (1, "checkout-assistant  not yet judged")
    assert UNKNOWN in text.splitlines()


def test_without_an_slo_file_it_says_how_to_get_one(screen: Screen) -> None:
    code, text = screen.of(None)
    assert code == 0
    assert text.splitlines()[0] == ("URL: no SLO file is judged; start the sidecar with --slo FILE")
    assert "engine: up" in text


def test_a_judge_that_fails_is_not_calm(screen: Screen) -> None:
    judging = healthy()
    judging.step(None, 99 * STEP)  # type: ignore[arg-type]  # a fault of ours
    code, text = screen.of(judging)
    assert code == 1
    assert "cannot judge: TypeError: " in text
    assert UNKNOWN in text.splitlines()
    assert "nobody is called" not in text.splitlines()


def test_a_history_that_is_not_kept_is_said_and_who_is_called_is_known(screen: Screen) -> None:
    found = documents(healthy())
    found["/v1/slo"]["history"] = {"fault": "slo.db cannot be written"}
    code, text = screen.of_documents(found)
    assert code == 0
    assert {"slo.db cannot be written", "nobody is called"} <= set(text.splitlines())


def test_what_is_not_judged_here_is_said(screen: Screen) -> None:
    query = Query(bad="holt_winters(x[5m], 0.1, 0.1)", total="x")
    mine = objective("promql", name="mine", query=query, selection=ANY)
    _, text = screen.of(judged(iter([page(1)]), AVAILABILITY, mine))
    assert "mine: not judged here: " in text


HOSTILE = "\x1b[2J\x1b]0;owned\x07\nnobody is called\r"


def test_names_of_others_cannot_command_the_terminal_or_forge_lines(screen: Screen) -> None:
    bad = judged(
        (turns(**{HOSTILE: (0, 10 * n)}) for n in range(30)),
        objective("agent_turn_success", **TURNS),
    )
    found = documents(bad)
    found["/v1/status"]["sources"][1]["error"]["detail"] = HOSTILE
    found["/v1/slo"]["fault"] = HOSTILE
    found["/v1/slo"]["history"]["fault"] = HOSTILE
    found["/v1/slo"]["service"] = HOSTILE
    found["/v1/slo"]["not_judged"] = {HOSTILE: HOSTILE}
    found["/v1/slo"]["alerts"][0]["annotations"] |= {"impact": HOSTILE, "runbook_url": HOSTILE}
    for flags in ((), ("--json",)):
        code, text = screen.of_documents(found, *flags)
        assert code == 1
        assert not {"\x1b", "\x07", "\r"} & set(text)
        assert "nobody is called" not in text.splitlines()


def test_colours_on_a_terminal_only_and_not_where_they_are_unwanted(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\x1b" not in screen.of(incident())[1]
    screen.is_terminal(100)
    assert "\x1b[31m" in screen.of(incident())[1]
    assert "\x1b[31m" not in screen.of(healthy())[1], "red is for what is wrong"
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in screen.of(incident())[1]


def test_on_a_narrow_terminal_names_give_way_to_numbers(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "a-very-long-name-of-an-objective-that-nobody-should-give"
    long = objective("availability", name=name, selection=ANY)
    pages = [list(page(10 * n)) for n in range(30)]
    whole = screen.of(judged(iter(pages), long))[1]
    assert name in whole, "nothing is cut where it is no terminal"
    screen.is_terminal(72)
    monkeypatch.setenv("NO_COLOR", "1")
    text = screen.of(judged(iter(pages), long))[1]
    [row] = [line for line in text.splitlines() if line.startswith("a-very")]
    assert len(row) <= 72
    assert "…" in row
    assert row.endswith("0.0x")


def test_json_is_both_documents_as_the_sidecar_gives_them(screen: Screen) -> None:
    found = documents(incident())
    code, text = screen.of_documents(found, "--json")
    assert code == 1
    assert json.loads(text) == {"status": found["/v1/status"], "slo": found["/v1/slo"]}
    assert json.loads(screen.of(None, "--json")[1])["slo"] is None


@pytest.mark.parametrize(
    "pages",
    [
        {},
        {"/v1/status": b"<html>", "/v1/slo": b"{}"},
        {"/v1/status": b"[]"},
        {"/v1/status": b"{}"},
        {"/v1/status": b'"sources"'},
        {"/v1/status": b'{"sources": [], "not_watched": []}', "/v1/slo": b"{}"},
    ],
)
def test_a_server_that_is_no_sidecar_is_one_line(
    pages: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(pages) as url:
        assert main(["status", "--sidecar", url]) == 1
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)


def test_nobody_there_is_one_line_with_the_address_and_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["status", "--sidecar", "http://127.0.0.1:1"]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "127.0.0.1:1" in line
    assert line.endswith("--sidecar http://HOST:PORT")


def test_a_wrong_address_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("status", "watch"):
        assert main([command, "--sidecar", "127.0.0.1:9400"]) == 2
        assert "--sidecar: " in capsys.readouterr().err


# --- watch ---------------------------------------------------------------------------------------


@contextmanager
def watching(url: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    # What a shell starts in the background ignores Ctrl-C, and so do these tests' children then.
    command = ["env", "--default-signal=INT", EXECUTABLE, "watch"]
    command += ["--sidecar", url, "--every", "0.5"]
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            yield process
        finally:
            process.kill()


def test_watch_waits_for_a_sidecar_draws_again_and_ends_by_ctrl_c(tmp_path: Path) -> None:
    log = tmp_path / "screen"
    url = f"http://127.0.0.1:{free_port()}"
    with watching(url, log) as process:
        wait_until("it says that nobody is there", lambda: "127.0.0.1" in log.read_text(), 30)
        with served_at(url, documents(healthy())):
            wait_until("twice", lambda: log.read_text().count("nobody is called") >= 2, 30)
        size = log.stat().st_size
        wait_until("it waits again", lambda: "refused" in log.read_text()[size - 1 :], 30)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    text = log.read_text()
    assert "\x1b" not in text, "it clears a terminal only"
    assert "Traceback" not in text


def test_on_a_terminal_watch_draws_over_the_last_screen() -> None:
    ours, its = os.openpty()
    with a_sidecar(documents(healthy())) as url:
        command = [EXECUTABLE, "watch", "--sidecar", url, "--every", "0.5"]
        with subprocess.Popen(command, stdin=its, stdout=its, stderr=its) as process:
            os.close(its)
            seen = b""
            while seen.count(b"nobody is called") < 3:
                seen += os.read(ours, 4096)
            process.kill()
    os.close(ours)
    assert seen.count(b"\x1b[H\x1b[J") >= 3
    assert seen.startswith(b"\x1b[H\x1b[J")


@contextmanager
def served_at(url: str, found: dict[str, Any]) -> Iterator[None]:
    pages = {path: json.dumps(document).encode() for path, document in found.items()}
    with serving(pages, port=int(url.rpartition(":")[2])):
        yield


def test_watch_asks_no_more_often_than_is_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "--every", "0.1"]) == 2
    assert "--every" in capsys.readouterr().err
