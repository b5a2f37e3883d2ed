"""`inferslo alerts` and `inferslo silence`, against a real Alertmanager."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from alertmanager_server import alertmanager
from e2e.processes import free_port

from inferslo.rules.alertmanager.api import Matcher, Report, Silence
from inferslo.rules.alertmanager.client import Alertmanager
from inferslo.sidecar.cli import main

CONFIG = "{route: {receiver: unclaimed}, receivers: [{name: unclaimed}]}"
BEGUN = datetime.now(UTC).replace(microsecond=0)  # well before an alert is posted

LATER = datetime.now(UTC) + timedelta(hours=9)


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with alertmanager(tmp_path, CONFIG) as server:
        yield server.url


@pytest.fixture
def client(url: str) -> Alertmanager:
    return Alertmanager([url])


def report(slo: str, tier: str, minutes_ago: int = 1, summary: str = "") -> Report:
    labels = {"alertname": "InfersloTTFTBurn", "service": "chat", "slo": slo, "tier": tier}
    return Report(
        labels | {"severity": "page"},
        {"summary": summary} if summary else {},
        starts_at=BEGUN - timedelta(minutes=minutes_ago),
        ends_at=datetime.now(UTC) + timedelta(minutes=30),
    )


def run(url: str, *arguments: str) -> int:
    return main([*arguments, "--alertmanager", url])


def hours(silence: Silence) -> float:
    """Alertmanager lets it begin when it hears of it, a few milliseconds later."""
    return round((silence.ends_at - silence.starts_at) / timedelta(hours=1), 3)


def failed(capsys: pytest.CaptureFixture[str], code: int, expected: int, told: str) -> None:
    """One line that says what to do."""
    out, err = capsys.readouterr()
    assert (code, out) == (expected, "")
    [line] = err.splitlines()
    assert line.startswith("inferslo: error: ")
    assert told in line


def test_alerts_are_listed_by_tier_and_age(
    url: str, client: Alertmanager, capsys: pytest.CaptureFixture[str]
) -> None:
    client.post([
        report("slow", "2"),
        report("young", "1", 1, "the answer takes\nlong\x1b[31m"),
        report("old", "1", 9),
        Report({"alertname": "Other"}, starts_at=BEGUN),
    ])  # fmt: skip
    assert run(url, "alerts") == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[4:] == ["SERVICE", "SLO", "ALERT", "SUMMARY"]
    assert [row.split()[0] for row in rows] == ["1", "1", "2", "-"]
    since = f"{BEGUN - timedelta(minutes=9):%Y-%m-%d %H:%M}Z"
    assert rows[0].split(maxsplit=4)[2:4] == since.split()
    assert "old" in rows[0]
    assert rows[1].endswith("the answer takes\\nlong\\x1b[31m")
    assert rows[3].split()[-2:] == ["Other", "-"]


def test_alerts_of_which_the_matchers_hold(
    url: str, client: Alertmanager, capsys: pytest.CaptureFixture[str]
) -> None:
    client.post([report("a", "1"), report("b", "2"), report("c", "3")])
    assert run(url, "alerts", "slo=~a|b", "tier!=2", "--json") == 0
    [found] = json.loads(capsys.readouterr().out)
    assert (found["labels"]["slo"], found["receivers"]) == ("a", ["unclaimed"])
    assert datetime.fromisoformat(found["starts_at"]) == BEGUN - timedelta(minutes=1)


def test_no_alert_is_said_in_words_and_in_json(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(url, "alerts") == 0
    assert run(url, "alerts", "--json") == 0
    assert run(url, "silence", "list") == 0
    assert capsys.readouterr().out == "no alert fires\n[]\nno silence\n"


def test_a_silence_from_its_making_to_its_end(
    url: str, client: Alertmanager, capsys: pytest.CaptureFixture[str]
) -> None:
    client.post([report("a", "1"), report("b", "1")])
    add = ("silence", "add", "service=chat", "slo=a", "--for", "2h", "--by", "me")
    assert run(url, *add, "--comment", "moves to new GPUs") == 0
    said = capsys.readouterr().out
    [silence] = client.silences()
    assert hours(silence) == 2
    until = f"{silence.ends_at:%Y-%m-%d %H:%M}Z"
    assert said == (
        f"{silence.id} until {until}: mutes 1 that fire now\n"
        f"to end it: inferslo silence expire {silence.id}\n"
    )
    assert run(url, "alerts", "slo=a") == 0
    assert "  silenced  " in capsys.readouterr().out
    assert run(url, "silence", "list") == 0
    [_, row] = capsys.readouterr().out.splitlines()
    assert row.startswith(f'{silence.id}  active  {until}  me  service="chat" slo="a" alertname!=')
    assert row.endswith("  moves to new GPUs")
    assert run(url, "silence", "expire", silence.id) == 0
    assert run(url, "silence", "list") == 0
    assert capsys.readouterr().out == f"ended {silence.id}\nno silence\n"
    assert run(url, "silence", "list", "--all", "--json") == 0
    [over] = json.loads(capsys.readouterr().out)
    assert (over["id"], over["state"]) == (silence.id, "expired")


@pytest.mark.parametrize(
    ("alertname", "muted"),
    [("", False), ("alertname=~Inferslo.*", False), ("alertname=InfersloWatchdog", True)],
)
def test_the_dead_mans_switch_goes_on_unless_it_is_named(
    alertname: str, muted: bool, url: str, client: Alertmanager
) -> None:
    watchdog = {"alertname": "InfersloWatchdog", "service": "chat"}
    client.post([report("a", "1"), Report(watchdog, ends_at=LATER)])
    matchers = [each for each in ("service=chat", alertname) if each]

    assert run(url, "silence", "add", *matchers, "--for", "2h", "--comment", "x") == 0

    [found] = client.alerts([Matcher("alertname", "InfersloWatchdog")])
    assert bool(found.silenced_by) is muted


def test_a_service_that_nobody_knows_is_told(
    url: str, client: Alertmanager, capsys: pytest.CaptureFixture[str]
) -> None:
    client.post([Report({"alertname": "InfersloWatchdog", "service": "chat"}, ends_at=LATER)])
    for service, told in (("chta", True), ("chat", False)):
        add = ("silence", "add", f"service={service}", "--for", "1d", "--comment", "x")
        assert run(url, *add) == 0
        out = capsys.readouterr().out
        assert ("but no alert is of a service chta: did you mean chat?" in out) is told


def test_a_silence_that_mutes_nothing_says_so(
    url: str, client: Alertmanager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(url, "silence", "add", "service=chta", "--for", "1d", "--comment", "x") == 0
    assert "no alert that fires now is muted by it" in capsys.readouterr().out
    assert client.silences()[0].created_by


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("service=chat", "--for", "8d", "--comment", "x"), "longer than 7d"),
        (("service=chat", "--for", "8", "--comment", "x"), '"8" has no unit: write 8s or 8ms'),
        (("service=chat", "--for", "soon", "--comment", "x"), '"soon" is not a duration'),
        (("service=chat", "--for", "2h", "--comment", " "), "--comment is empty: say why"),
        (("service=chat", "--for", "2h"), "missing option '--comment'"),
        (("service=chat", "--comment", "x"), "missing option '--for'"),
        (("--for", "2h", "--comment", "x"), "missing argument"),
        (("chat", "--for", "2h", "--comment", "x"), '"chat" is not a matcher: write service=chat'),
    ],
)
def test_a_silence_needs_a_reason_an_end_and_something_to_mute(
    arguments: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(f"http://127.0.0.1:{free_port()}", "silence", "add", *arguments)
    failed(capsys, code, 2, told)


def test_a_longer_silence_is_made_by_force(url: str, client: Alertmanager) -> None:
    add = ("silence", "add", "service=chat", "--for", "30d", "--comment", "x", "--force")
    assert run(url, *add) == 0
    [silence] = client.silences()
    assert hours(silence) == 30 * 24


@pytest.mark.parametrize(
    "matchers", [("service=~.*",), ("service!=chat",), ("slo!~ttft.+", "tier=~|1")]
)
def test_a_silence_of_everything_is_refused(
    matchers: tuple[str, ...], url: str, client: Alertmanager, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(url, "silence", "add", *matchers, "--for", "2h", "--comment", "x")
    failed(capsys, code, 2, "that would silence everything: name a service, an slo or a tier")
    assert client.silences() == []


def test_a_pattern_that_is_none_is_refused_by_alertmanager(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(url, "silence", "add", "slo=~(", "--for", "2h", "--comment", "x")
    failed(capsys, code, 1, "missing closing )")


def test_a_silence_that_is_not_there_cannot_be_ended(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = "00000000-0000-0000-0000-000000000000"
    failed(capsys, run(url, "silence", "expire", missing), 1, f"knows no silence {missing}")


@pytest.mark.parametrize("id", ["chat", "service=chat", "0b4cd5a6", "", "."])
def test_what_is_no_id_ends_no_silence_and_says_where_they_are(
    id: str, url: str, client: Alertmanager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(url, "silence", "add", "service=chat", "--for", "2h", "--comment", "x") == 0
    [silence] = client.silences()
    told = f'"{id}" is not the ID of a silence: `inferslo silence list` tells them'
    capsys.readouterr()

    failed(capsys, run(url, "silence", "expire", silence.id, id), 2, told)

    assert [each.state for each in client.silences()] == ["active"]


def test_where_no_alertmanager_is_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(f"http://127.0.0.1:{free_port()}", "alerts")
    failed(capsys, code, 1, "cannot be reached")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--alertmanager", "localhost:9093"), "--alertmanager:"),
        (("--alertmanager", "http://me:s3cret@host"), "the URL holds a user or password"),
        (("--token-file", "/nowhere"), "--token-file: /nowhere cannot be read"),
        (("--ca-file", "/nowhere"), "--ca-file: /nowhere cannot be read"),
        (("no matcher",), "is not a matcher"),
    ],
)
def test_a_mistake_in_what_is_asked_costs_one_line(
    arguments: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    failed(capsys, main(["alerts", *arguments]), 2, told)


def test_the_running_sidecar_loads_no_client_of_alertmanager() -> None:
    """Its memory is shared with an engine."""
    ask = "import sys, inferslo.sidecar.app, inferslo.sidecar.cli; print('httpx' in sys.modules)"
    python = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)
    assert python.stdout == "False\n"
