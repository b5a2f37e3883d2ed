"""What ends on a phone: real Alertmanager renders it, a small server receives it."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email import message_from_string, policy
from pathlib import Path
from typing import Any

from alertmanager_server import Inbox, alertmanager
from e2e.processes import wait_until
from plans import chat_plan

from inferslo.rules.alertmanager.api import Report
from inferslo.rules.alertmanager.client import Alertmanager
from inferslo.rules.alertmanager.tree import Timing, tree
from inferslo.rules.yamltext import dump
from inferslo.slo.plan import OfficeHours, Receiver

ANNOTATIONS = {
    "summary": 'Time to first token of "chat" burns its budget 20 times too fast',
    "impact": "the answer takes long to begin",
    "actions": "1. Ask the client.\n2. Ask the gateway.\n3. Ask the engine.",
    "runbook_url": "https://runbooks.example/InfersloTTFTBurn",
    "dashboard_url": "https://grafana.example/d/chat?var-service=chat&from=now-6h",
}
PAGE = {"tier": "1", "severity": "page", "urgency": "always", "team": "operations"}
ALWAYS = OfficeHours("sunday:saturday", "00:00", "24:00")


@contextmanager
def told_by(scratch: Path, receiver: Receiver) -> Iterator[Alertmanager]:
    """An Alertmanager that tells this one receiver everything."""
    others = ("ops-pager", "ops-tickets", "eng-oncall", "eng-tickets", "slo-review")
    receivers = tuple(Receiver(name, receiver.kind, receiver.settings) for name in others)
    config = tree(
        [chat_plan(receivers=receivers, office_hours=ALWAYS)], Timing("300ms", "500ms", "1h")
    )
    with alertmanager(scratch, dump(config)) as server:
        yield Alertmanager([server.url])


def report(slo: str, ends_in: int = 600, **changed: str) -> Report:
    labels = {"alertname": "InfersloTTFTBurn", "service": "checkout-assistant", "slo": slo, **PAGE}
    return Report(
        labels | {k: v for k, v in changed.items() if k in labels},
        ANNOTATIONS | {k: v for k, v in changed.items() if k in ANNOTATIONS},
        ends_at=datetime.now(UTC) + timedelta(seconds=ends_in),
    )


def pagerduty(scratch: Path, inbox: Inbox) -> Receiver:
    key = scratch / "pagerduty.key"
    key.write_text("the-key", encoding="ascii")
    return Receiver("", "pagerduty", (("routing_key_file", str(key)), ("url", f"{inbox.url}/pd")))


def test_pagerduty_opens_one_incident_and_closes_it(tmp_path: Path) -> None:
    with Inbox() as inbox, told_by(tmp_path, pagerduty(tmp_path, inbox)) as client:
        client.post([report("first-token"), report("whole-answer")])
        opened = inbox.wait(lambda _: True, "the trigger").body
        client.post([report("first-token", 0), report("whole-answer", 0)])
        closed = inbox.wait(lambda told: told.body["event_action"] != "trigger", "its end").body
    payload = opened["payload"]
    assert (opened["routing_key"], opened["event_action"]) == ("the-key", "trigger")
    assert payload["summary"] == f"checkout-assistant tier 1: {ANNOTATIONS['summary']} (2 alerts)"
    assert (payload["severity"], payload["component"]) == ("critical", "checkout-assistant")
    assert opened["links"] == [
        {"text": "Runbook", "href": ANNOTATIONS["runbook_url"]},
        {"text": "Dashboard", "href": ANNOTATIONS["dashboard_url"]},
    ]
    assert payload["custom_details"]["firing"] == (
        f"""{ANNOTATIONS["summary"]}
Users: the answer takes long to begin
Do first:
1. Ask the client.
2. Ask the gateway.
3. Ask the engine.
Runbook: {ANNOTATIONS["runbook_url"]}
Dashboard: {ANNOTATIONS["dashboard_url"]}
Also: {ANNOTATIONS["summary"]}
"""
    )
    assert (closed["event_action"], closed["dedup_key"]) == ("resolve", opened["dedup_key"])


def test_a_ticket_is_a_warning_to_pagerduty_and_no_link_is_empty(tmp_path: Path) -> None:
    with Inbox() as inbox, told_by(tmp_path, pagerduty(tmp_path, inbox)) as client:
        client.post([report("first-token", severity="ticket", dashboard_url="")])
        told = inbox.wait(lambda _: True, "the trigger").body
    assert told["payload"]["severity"] == "warning"
    assert [link["text"] for link in told["links"]] == ["Runbook"]


def test_the_longest_summary_is_within_what_pagerduty_takes(tmp_path: Path) -> None:
    with Inbox() as inbox, told_by(tmp_path, pagerduty(tmp_path, inbox)) as client:
        client.post([report(f"slo-{n}", summary="ü" * 5000) for n in range(120)])
        told = inbox.wait(lambda _: True, "the trigger").body
    assert told["payload"]["summary"].endswith("ü (120 alerts)")
    assert 700 < len(told["payload"]["summary"]) < 1024
    assert told["payload"]["custom_details"]["firing"].count("\n") < 25


def test_what_office_hours_hold_back_is_to_be_closed_by_hand_and_says_so(tmp_path: Path) -> None:
    with Inbox() as inbox, told_by(tmp_path, pagerduty(tmp_path, inbox)) as client:
        client.post([report("first-token", urgency="office-hours")])
        details = inbox.wait(lambda _: True, "the trigger").body["payload"]["custom_details"]
    assert details["firing"].endswith("nobody is told that it is over.\n")


def test_slack_tells_what_happened_and_that_it_is_over(tmp_path: Path) -> None:
    address = tmp_path / "slack.url"
    with Inbox() as inbox:
        address.write_text(f"{inbox.url}/slack", encoding="ascii")
        slack = Receiver("", "slack", (("api_url_file", str(address)), ("channel", "#ops")))
        with told_by(tmp_path, slack) as client:
            client.post([report("first-token")])
            opened = inbox.wait(lambda _: True, "the message").body
            client.post([report("first-token", 0)])
            closed = inbox.wait(lambda told: "Resolved" in str(told.body), "its end").body
    assert opened["channel"] == "#ops"
    [message] = opened["attachments"]
    assert message["title"] == f"checkout-assistant tier 1: {ANNOTATIONS['summary']}"
    assert message["title_link"] == ANNOTATIONS["runbook_url"]
    assert "3. Ask the engine." in message["text"]
    [message] = closed["attachments"]
    assert message["title"] == f"Resolved: checkout-assistant tier 1: {ANNOTATIONS['summary']}"
    assert "Do first" not in message["text"]


def test_an_alert_without_annotations_is_told_by_its_name(tmp_path: Path) -> None:
    with Inbox() as inbox, told_by(tmp_path, pagerduty(tmp_path, inbox)) as client:
        client.post([Report(report("first-token").labels)])
        told = inbox.wait(lambda _: True, "the trigger").body
    assert told["payload"]["summary"] == "checkout-assistant tier 1: InfersloTTFTBurn"
    assert told["payload"]["custom_details"]["firing"] == "InfersloTTFTBurn\n"


class _Mail(socketserver.StreamRequestHandler):
    """As much of SMTP as it takes to be handed one message."""

    server: _MailServer  # pyright: ignore[reportIncompatibleVariableOverride] - it is that

    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        for line in self.rfile:
            command = line[:4].upper()
            if command == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                lines = iter(self.rfile.readline, b".\r\n")
                self.server.messages.append(b"".join(lines).decode())
            self.wfile.write(b"221 bye\r\n" if command == b"QUIT" else b"250 ok\r\n")


class _MailServer(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Mail)
        self.messages: list[str] = []


def test_mail_is_plain_text_with_the_summary_as_its_subject(tmp_path: Path) -> None:
    with _MailServer() as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        smarthost = f"127.0.0.1:{server.server_address[1]}"
        settings: dict[str, Any] = {"to": "ops@example.com", "from": "slo@example.com"}
        settings |= {"smarthost": smarthost, "require_tls": False, "hello": "localhost"}
        with told_by(tmp_path, Receiver("", "email", tuple(settings.items()))) as client:
            client.post([report("first-token", summary="Zeit läuft\nBcc: evil@example.com")])
            wait_until("a mail", lambda: server.messages, 15)
        server.shutdown()
    mail = message_from_string(server.messages[0], policy=policy.default)
    assert mail["Subject"].startswith("checkout-assistant tier 1: Zeit läuft")
    assert (mail["To"], mail["Bcc"]) == ("ops@example.com", None)
    [body] = [part for part in mail.walk() if part.get_content_type() == "text/plain"]
    assert "2. Ask the gateway." in body.get_content()
    assert not [part for part in mail.walk() if part.get_content_type() == "text/html"]
