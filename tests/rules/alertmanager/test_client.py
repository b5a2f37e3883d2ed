"""The client against a real Alertmanager, and against servers that are none or misbehave."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from alertmanager_server import alertmanager
from e2e.processes import Server, free_port

from inferslo.rules.alertmanager.api import Matcher, Report
from inferslo.rules.alertmanager.client import Alertmanager
from inferslo.rules.alertmanager.errors import AddressError, AlertmanagerError
from inferslo.sidecar.cli import main

CONFIG = """
route:
  receiver: unclaimed
  group_by: [service]
  group_wait: 100ms
  routes:
  - {matchers: ['tier="1"'], receiver: ops}
receivers: [{name: unclaimed}, {name: ops}]
"""

ODD = 'quotes "", back\\slash, new\nline, ü, {}=~,'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with alertmanager(tmp_path_factory.mktemp("alertmanager"), CONFIG) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Alertmanager:
    return Alertmanager([server.url])


def report(name: str, **labels: str) -> Report:
    ends = datetime.now(UTC) + timedelta(minutes=5)
    return Report({"alertname": name, **labels}, {"summary": f"about {name}"}, ends_at=ends)


def only(name: str) -> list[Matcher]:
    return [Matcher("alertname", name)]


def test_what_is_posted_is_held_until_it_is_resolved(client: Alertmanager, server: Server) -> None:
    posted = report("Held", service="chat", tier="1")
    assert client.post([posted]).taken == (server.url,)
    [held] = client.alerts(only("Held"))
    assert (held.labels, held.annotations) == (posted.labels, posted.annotations)
    assert posted.ends_at
    assert abs(held.ends_at - posted.ends_at) < timedelta(milliseconds=1)
    assert held.receivers == ("ops",)
    assert (held.silenced_by, held.inhibited_by) == ((), ())
    client.post([Report(posted.labels, ends_at=datetime.now(UTC))])
    assert client.alerts(only("Held")) == []


def test_labels_may_hold_anything(client: Alertmanager) -> None:
    client.post([report("Odd", service=ODD)])
    [found] = client.alerts([Matcher("service", ODD)])
    assert found.labels["service"] == ODD
    assert client.alerts([Matcher("service", ODD, is_equal=False), *only("Odd")]) == []


def test_groups_are_what_is_told_together(client: Alertmanager) -> None:
    client.post([report("Grouped", service="g", slo=slo, tier="1") for slo in "ab"])
    [group] = client.groups(only("Grouped"))
    assert (group.receiver, group.labels, len(group.alerts)) == ("ops", {"service": "g"}, 2)


def test_status_and_receivers(client: Alertmanager) -> None:
    status = client.status()
    assert status.version.startswith("0.")
    # This module's own server, in UTC: a zone that was lost is hours off.
    assert timedelta(0) <= datetime.now(UTC) - status.started_at < timedelta(minutes=50)
    assert (status.cluster, status.peers) == ("disabled", ())
    assert "group_wait: 100ms" in status.config
    assert client.receivers() == ["unclaimed", "ops"]


def silence(client: Alertmanager, *matchers: Matcher) -> str:
    end = datetime.now(UTC) + timedelta(hours=1)
    return client.silence(
        matchers, start=datetime.now(UTC), end=end, created_by="me", comment="rollout: ü"
    )


def test_a_silence_is_made_listed_and_ended(client: Alertmanager) -> None:
    matchers = (Matcher("alertname", "Muted"), Matcher("slo", "a|b", is_regex=True, is_equal=False))
    id = silence(client, *matchers)
    [listed] = client.silences(only("Muted"))
    assert (listed.id, listed.state, listed.matchers) == (id, "active", matchers)
    assert (listed.created_by, listed.comment) == ("me", "rollout: ü")
    client.post([report("Muted", slo="c"), report("Muted", slo="a")])
    states = {alert.labels["slo"]: alert.silenced_by for alert in client.alerts(only("Muted"))}
    assert states == {"c": (id,), "a": ()}
    client.expire(id)
    assert [each.state for each in client.silences(only("Muted"))] == ["expired"]


def test_a_silence_that_is_not_there_is_named(client: Alertmanager, server: Server) -> None:
    missing = "00000000-0000-0000-0000-000000000000"
    with pytest.raises(AlertmanagerError) as error:
        client.expire(missing)
    assert str(error.value) == (
        f"Alertmanager at {server.url} knows no silence {missing}: `inferslo silence list --all`"
        " tells those that it knows"
    )


def test_what_alertmanager_refuses_is_told_in_its_words(client: Alertmanager) -> None:
    with pytest.raises(
        AlertmanagerError, match=r"refuses \(400\): silence invalid: .*regular expression"
    ) as error:
        silence(client, Matcher("service", "(", is_regex=True))
    assert "\n" not in str(error.value)


def test_alerts_go_to_every_peer_and_one_that_is_down_is_named(
    server: Server, tmp_path: Path
) -> None:
    down = f"http://127.0.0.1:{free_port()}"
    with alertmanager(tmp_path, CONFIG) as second:
        delivery = Alertmanager([server.url, down, second.url + "/"]).post([report("Everywhere")])
        assert delivery.taken == (server.url, second.url)
        [(url, why)] = delivery.failed
        assert url == down
        assert why.startswith(f"Alertmanager at {down} cannot be reached (")
        for peer in (server, second):
            assert len(Alertmanager([peer.url]).alerts(only("Everywhere"))) == 1


def test_a_question_is_answered_by_the_first_peer_that_can(server: Server) -> None:
    down = f"http://127.0.0.1:{free_port()}"
    assert Alertmanager([down, server.url]).receivers() == ["unclaimed", "ops"]


def test_when_no_peer_takes_alerts_each_says_why() -> None:
    first, second = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    with pytest.raises(AlertmanagerError) as error:
        Alertmanager([first, second], deadline=1).post([report("Nowhere")])
    assert str(error.value).count("cannot be reached") == 2
    assert "does it run there?" in str(error.value)


Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def answering(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[tuple[str, list[str]]]:
    """A server that is no Alertmanager: its URL and, as "METHOD path", what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.command} {self.path}")
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            answer(self)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


def says(status: int, body: str = "", **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body.encode())

    return answer


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (400, '"bad start time"', "refuses (400): bad start time"),
        (422, json.dumps({"code": 602, "message": "labels in body is required"}), "labels in body"),
        (401, "", "refuses (401): a token that it knows is needed"),
        (403, "<html>", "refuses (403): a token that it knows is needed"),
        (404, "404 page not found", "has no /api/v2/alerts: is it an Alertmanager"),
        (302, "", "sends elsewhere (302): give the URL that it leads to"),
    ],
)
def test_a_refusal_is_one_line_and_is_not_tried_again(status: int, body: str, told: str) -> None:
    with answering(says(status, body)) as (url, asked):
        with pytest.raises(AlertmanagerError) as error:
            Alertmanager([url]).post([report("Refused")])
        assert told in str(error.value)
        assert "\n" not in str(error.value)
        assert asked == ["POST /api/v2/alerts"]


def test_a_failure_is_tried_again() -> None:
    failures = iter([503, 500])

    def answer(handler: BaseHTTPRequestHandler) -> None:
        says(next(failures, 200))(handler)

    with answering(answer) as (url, asked):
        assert Alertmanager([url]).post([report("Retried")]).failed == ()
        assert len(asked) == 3


def test_a_silence_is_not_made_twice_where_the_first_may_have_been(server: Server) -> None:
    with answering(says(500, '"half done"')) as (url, asked):
        with pytest.raises(AlertmanagerError, match=r"fails \(500\): half done"):
            silence(Alertmanager([url, server.url]), *only("Twice"))
        assert len(asked) == 1
    assert Alertmanager([server.url]).silences(only("Twice")) == []


@pytest.mark.parametrize(
    "body", ["<html>Welcome to nginx</html>", "", "{}", "[1]", '[{"labels": 3}]', "\x00\x1b["]
)
def test_what_is_no_alertmanager_is_said_to_be_none(body: str) -> None:
    told = "does not answer like Alertmanager's API v2"
    with answering(says(200, body)) as (url, _), pytest.raises(AlertmanagerError, match=told):
        Alertmanager([url]).alerts()


def test_a_page_for_logging_in_has_taken_no_alert() -> None:
    told = "does not answer like Alertmanager's API v2"
    with answering(says(200, "<html>Log in")) as (url, asked):
        with pytest.raises(AlertmanagerError, match=told):
            Alertmanager([url]).post([report("Lost")])
        assert len(asked) == 1


def test_a_server_that_drips_is_given_up_at_the_deadline() -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        for _ in range(100):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.1)

    with answering(lambda handler: _quietly(drip, handler)) as (url, _):
        with pytest.raises(AlertmanagerError, match=r"did not answer within 0\.5 s"):
            Alertmanager([url], deadline=0.5).alerts()
        with pytest.raises(AlertmanagerError, match=r"did not answer within 0\.5 s"):
            Alertmanager([url], deadline=0.5).post([report("Dripped")])


def _quietly(answer: Answer, handler: BaseHTTPRequestHandler) -> None:
    try:
        answer(handler)
    except OSError:
        handler.close_connection = True


def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inferslo.rules.alertmanager.exchange.MAX_BYTES", 1 << 20)
    endless = says(200, " " * (2 << 20))
    with (
        answering(lambda handler: _quietly(endless, handler)) as (url, _),
        pytest.raises(AlertmanagerError, match="answers more than 1 MiB"),
    ):
        Alertmanager([url]).alerts()


def test_the_token_goes_into_a_header_and_nowhere_else() -> None:
    seen: list[str | None] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        seen.append(handler.headers["Authorization"])
        says(403)(handler)

    with answering(answer) as (url, asked), pytest.raises(AlertmanagerError) as error:
        Alertmanager([url], token=lambda: "s3cret").alerts()
    assert seen == ["Bearer s3cret"]
    assert "s3cret" not in str(error.value) + asked[0]


def test_a_proxy_in_the_environment_is_not_used(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    assert Alertmanager([server.url]).receivers()


@pytest.mark.parametrize(
    "url",
    ["localhost:9093", "ftp://host", "http://", "http://host:0", "http://host:x", "", "http://a b"],
)  # fmt: skip
def test_an_address_that_is_none_is_told_at_once(url: str) -> None:
    with pytest.raises(AddressError, match="is not the URL of an Alertmanager: write http"):
        Alertmanager([url])


@pytest.mark.parametrize("url", ["http://me:s3cret@host", "http://host?token=s3cret"])
def test_a_secret_in_the_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(AddressError, match="put a token into a file") as error:
        Alertmanager([url])
    assert "s3cret" not in str(error.value)


def test_no_address_is_a_mistake_too() -> None:
    with pytest.raises(AddressError, match="give at least one URL"):
        Alertmanager([])


@pytest.mark.parametrize(
    ("written", "matcher"),
    [
        ("service=chat", Matcher("service", "chat")),
        ('service="chat"', Matcher("service", "chat")),
        ("service!=chat", Matcher("service", "chat", is_equal=False)),
        ("slo=~a|b", Matcher("slo", "a|b", is_regex=True)),
        ("slo!~a.*", Matcher("slo", "a.*", is_regex=True, is_equal=False)),
        (" slo = a=b ", Matcher("slo", "a=b")),
        ("slo=", Matcher("slo", "")),
    ],
)
def test_matchers_are_written_as_for_amtool(written: str, matcher: Matcher) -> None:
    assert Matcher.parse(written) == matcher
    assert Matcher.parse(str(matcher)) == matcher


@pytest.mark.parametrize("written", ["chat", "=chat", "1a=b", "a-b=c", "", "a<b"])
def test_what_is_no_matcher_is_told(written: str) -> None:
    with pytest.raises(ValueError, match="is not a matcher: write service=chat"):
        Matcher.parse(written)


HELD = {
    "labels": {"tier": 1, "service": None}, "annotations": {"summary": ["x"]},
    "startsAt": "2026-01-01T00:00:00", "endsAt": "2026-01-01T00:00:00+01:00",
    "status": {"state": "active", "silencedBy": [3], "inhibitedBy": []},
    "receivers": [{"name": 5}], "fingerprint": 7,
}  # fmt: skip


def test_what_is_not_quite_an_alert_can_still_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers for texts, and times without a zone beside those with one."""
    other = {**HELD, "labels": {"tier": "1"}, "startsAt": "2026-01-01T00:00:00Z"}
    with answering(says(200, json.dumps([HELD, other]))) as (url, _):
        assert main(["alerts", "--alertmanager", url]) == 0
    assert "silenced" in capsys.readouterr().out


@pytest.mark.parametrize(
    "body",
    [
        "[" * 200_000,
        json.dumps([{**HELD, "startsAt": "0001-01-01T00:00:00+14:00"}]),
        json.dumps([{**HELD, "labels": [1]}]),
    ],
    ids=["deep", "before all time", "a list for labels"],
)
def test_rubbish_is_told_in_one_line(body: str) -> None:
    with answering(says(200, body)) as (url, _):
        with pytest.raises(AlertmanagerError, match="does not answer like") as error:
            Alertmanager([url]).alerts()
        assert "\n" not in str(error.value)
    with answering(says(400, body)) as (url, _), pytest.raises(AlertmanagerError, match="refuses"):
        Alertmanager([url]).alerts()
