"""What fires here is told to a real Alertmanager, once, and so is its end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from alertmanager_server import Inbox, alertmanager
from e2e.processes import Server, wait_until
from plans import objective, plan

from inferslo.rules.alertmanager.api import Matcher
from inferslo.rules.alertmanager.client import Alertmanager
from inferslo.rules.alerts import urgent
from inferslo.rules.compile import watchdog as watchdog_of
from inferslo.sidecar.judge.firing import Firing
from inferslo.sidecar.judge.judge import Judgement
from inferslo.sidecar.judge.messenger import Messenger

CONFIG = """
route: {{receiver: page, group_by: [service, tier], group_wait: 100ms, group_interval: 200ms}}
receivers: [{{name: page, webhook_configs: [{{url: "{url}/page"}}]}}]
"""
TTFT = objective("ttft")
ALERT = next(urgent(plan(TTFT), TTFT)).alert


def judgement(*shares: float) -> Judgement:
    """One alert a share of bad events, each of a tenant of its own."""
    now = time.time()
    firing = [
        Firing(ALERT, {**ALERT.labels, "tenant": f"t{n}"}, share, now)
        for n, share in enumerate(shares)
    ]
    return Judgement(now, firing=firing)


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with Inbox() as inbox:
        yield inbox


@pytest.fixture
def server(tmp_path: Path, inbox: Inbox) -> Iterator[Server]:
    with alertmanager(tmp_path, CONFIG.format(url=inbox.url)) as server:
        yield server


@pytest.fixture
def messenger(server: Server) -> Iterator[Messenger]:
    messenger = Messenger(Alertmanager([server.url], deadline=2), again=1)
    messenger.start()
    yield messenger
    messenger.stop()


def test_it_is_told_with_the_labels_and_texts_of_the_compiled_alert(
    messenger: Messenger, inbox: Inbox
) -> None:
    messenger.hear(judgement(0.25))
    [told] = inbox.wait(lambda each: each.status == "firing", "a page").body["alerts"]
    assert told["labels"] == {"alertname": ALERT.alert, **ALERT.labels, "tenant": "t0"}
    assert told["annotations"]["summary"].startswith("checkout-assistant/ttft: 25% ")
    assert told["annotations"]["runbook_url"] == ALERT.annotations["runbook_url"]
    assert told["annotations"]["actions"] == ALERT.annotations["actions"]


def test_its_end_is_told_and_nothing_twice(messenger: Messenger, inbox: Inbox) -> None:
    messenger.hear(judgement(0.5))
    inbox.wait(lambda each: each.status == "firing", "a page")
    for _ in range(5):  # the same alert, judged again
        messenger.hear(judgement(0.5))
        time.sleep(0.3)
    messenger.hear(judgement())
    inbox.wait(lambda each: each.status == "resolved", "its end")
    time.sleep(2)  # what is over is told to Alertmanager again
    assert [each.status for each in inbox.received] == ["firing", "resolved"]


def test_an_alertmanager_that_comes_back_knows_it_within_a_refresh(
    messenger: Messenger, server: Server
) -> None:
    messenger.hear(judgement(0.5, 0.6))
    client = Alertmanager([server.url], deadline=2)
    wait_until("both are held", lambda: len(client.alerts()) == 2, 10)
    server.kill()
    wait_until("nobody answers", lambda: messenger.fault, 10)
    server.start()  # it does not store alerts, only silences and what it sent
    wait_until("both are held again", lambda: len(client.alerts()) == 2, 20)
    wait_until("all is well", lambda: not messenger.fault, 10)
    messenger.hear(judgement(0.5))
    one = [Matcher("tenant", "t1")]
    wait_until("the other has ended", lambda: client.alerts(one) == [], 10)
    assert len(client.alerts()) == 1


def test_what_ended_while_nobody_answered_is_told_later(
    messenger: Messenger, server: Server, inbox: Inbox
) -> None:
    messenger.hear(judgement(0.5))
    inbox.wait(lambda each: each.status == "firing", "a page")
    server.stop()  # of what it sent it keeps nothing if it is killed
    wait_until("nobody answers", lambda: messenger.fault, 10)
    messenger.hear(judgement())
    server.start()
    inbox.wait(lambda each: each.status == "resolved", "its end", 30)


def test_what_fires_has_an_end_ahead_and_what_is_over_is_forgotten() -> None:
    messenger = Messenger(Alertmanager(["http://127.0.0.1:1"]), again=60)
    messenger.hear(judgement(0.5))
    at = time.time()
    [report] = messenger.reports(at)
    assert report.ends_at is not None
    assert report.ends_at.timestamp() == pytest.approx(at + 240)
    messenger.hear(judgement())
    [report] = messenger.reports(at + 60)
    assert report.ends_at is not None
    assert report.ends_at.timestamp() < at + 60
    assert messenger.reports(at + 1000) == []


def test_a_judge_that_cannot_judge_tells_on_what_fired_but_not_the_watchdog() -> None:
    watchdog = watchdog_of(plan(TTFT))
    judged = judgement(0.5)
    fires = Firing(watchdog, watchdog.labels, 1.0, judged.at)
    messenger = Messenger(Alertmanager(["http://127.0.0.1:1"]))
    messenger.hear(replace(judged, firing=[*judged.firing, fires]))
    messenger.hear_nothing()
    assert [each.labels["alertname"] for each in messenger.reports(judged.at)] == [ALERT.alert]
    messenger.hear(replace(judged, firing=[*judged.firing, fires]))
    assert len(messenger.reports(judged.at)) == 2
