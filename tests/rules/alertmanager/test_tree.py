"""The tree as a real Alertmanager lives it: who is told what, how often, and that it is over."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from alertmanager_server import Inbox, alertmanager
from e2e.processes import Server, free_port, wait_until
from plans import RECEIVERS, RESPONSE, chat_plan, objective, plan

from inferslo.rules.alertmanager.api import Matcher, Report
from inferslo.rules.alertmanager.client import Alertmanager
from inferslo.rules.alertmanager.errors import NoReceiversError, TreeError
from inferslo.rules.alertmanager.tree import Timing, doubts, tree
from inferslo.rules.yamltext import dump
from inferslo.slo.plan import OfficeHours, Plan, Receiver, Urgency

ROOT = Path(__file__).parents[3]
USUAL = Timing()
QUICK = Timing("200ms", "500ms", "1h", "1h", "1h", "500ms")
SILENCE = 2.0  # seconds in which all that QUICK would send has been sent
ALL_DAY = OfficeHours("sunday:saturday", "00:00", "24:00")
NAMES = tuple(receiver.name for receiver in RECEIVERS)
ODD = 'chat "ü"\\{x},=~\nnext'


def test_receivers_that_work_are_not_doubted() -> None:
    assert list(doubts([chat_plan()])) == []
    assert list(doubts([chat_plan(receivers=())])) == []  # none are made, which is told elsewhere


def test_a_watchdog_that_nobody_hears_is_told() -> None:
    [told] = doubts([chat_plan(receivers=RECEIVERS[:-1])])
    assert told.startswith("nobody hears InfersloWatchdog")


@pytest.mark.parametrize(
    ("name", "meant"), [("watchdog", "watchdogs"), ("ops-pager", "ops-pagers")]
)
def test_a_receiver_that_no_alert_reaches_is_told_with_what_was_meant(
    name: str, meant: str
) -> None:
    receivers = [replace(r, name=meant) if r.name == name else r for r in RECEIVERS]
    told = list(doubts([chat_plan(receivers=tuple(receivers))]))
    assert told[0] == f"no alert reaches receiver {meant}: did you mean {name}?"


def test_a_receiver_that_one_service_describes_and_another_reaches_is_fine() -> None:
    shared = Receiver("shared", "webhook", (("url", "http://h/"),))
    response = tuple(replace(t, receiver="shared", tickets="shared") for t in RESPONSE)
    other = chat_plan(service="other", response=response, receivers=(shared,))
    assert list(doubts([chat_plan(receivers=(*RECEIVERS, shared)), other])) == []


def text(plans: Sequence[Plan], timing: Timing = USUAL) -> str:
    return dump(tree(plans, timing))


def closed() -> OfficeHours:
    """One minute, half a day away."""
    then = datetime.now(UTC) + timedelta(hours=12)
    return OfficeHours("sunday:saturday", f"{then:%H}:10", f"{then:%H}:11")


def webhooks(inbox: Inbox, *names: str) -> tuple[Receiver, ...]:
    return tuple(Receiver(name, "webhook", (("url", f"{inbox.url}/{name}"),)) for name in names)


@dataclass(frozen=True)
class Chain:
    inbox: Inbox
    client: Alertmanager
    server: Server

    def fire(self, *slos: str, **labels: str) -> None:
        self._post(slos, labels, datetime.now(UTC) + timedelta(minutes=10))

    def end(self, *slos: str, **labels: str) -> None:
        self._post(slos, labels, datetime.now(UTC))

    def _post(self, slos: Sequence[str], labels: Mapping[str, str], ends: datetime) -> None:
        self.client.post([Report(alert(slo, **labels), ANNOTATIONS, ends_at=ends) for slo in slos])


ANNOTATIONS = {
    "summary": "Time to first token burns its budget 20 times too fast",
    "impact": "the answer takes long to begin",
    "actions": "1. Ask the client.\n2. Ask the gateway.\n3. Ask the engine.",
    "runbook_url": "https://runbooks.example/InfersloTTFTBurn",
}


def alert(slo: str, **labels: str) -> dict[str, str]:
    usual = {"alertname": "InfersloTTFTBurn", "service": "checkout-assistant", "slo": slo}
    usual |= {"tier": "1", "severity": "page", "urgency": "always", "team": "operations"}
    return {label: value for label, value in (usual | labels).items() if value}


@contextmanager
def chain(scratch: Path, **overrides: Any) -> Iterator[Chain]:
    """A real Alertmanager with the tree of one service, of which all receivers are webhooks."""
    with Inbox() as inbox:
        service = chat_plan(**{"receivers": webhooks(inbox, *NAMES)} | overrides)
        with alertmanager(scratch, text([service], QUICK)) as server:
            yield Chain(inbox, Alertmanager([server.url]), server)


def accepted(scratch: Path, config: str) -> list[str]:
    """Codes of amlint's findings; that amtool accepts it is asserted."""
    file = scratch / "alertmanager.yaml"
    file.write_text(config, encoding="utf-8")
    checked = subprocess.run(["amtool", "check-config", file], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    command = [Path(sys.executable).with_name("amlint"), "check", "--format", "json", file]
    lint = json.loads(subprocess.run(command, capture_output=True, check=False).stdout)
    return sorted(found["code"] for found in lint)


def test_amtool_accepts_the_tree_and_amlint_finds_only_what_is_meant(tmp_path: Path) -> None:
    """The default receiver is empty: what ends there is no service's of ours."""
    services = [
        chat_plan(),
        chat_plan(
            service=ODD,
            office_hours=OfficeHours("sunday:saturday", "00:00", "24:00", "Europe/Berlin"),
        ),
        plan(objective("ttft", response=RESPONSE[:1]), objective("e2e"), service="own-response"),
    ]
    assert accepted(tmp_path, text(services)) == ["empty-receiver"]


def test_the_same_plans_give_the_same_tree() -> None:
    assert text([chat_plan(), chat_plan(service="b")]) == text(
        [chat_plan(), chat_plan(service="b")]
    )


def test_services_share_receivers_and_hours_that_are_the_same() -> None:
    made = tree([chat_plan(), chat_plan(service="b"), chat_plan(service="c", office_hours=ALL_DAY)])
    assert [interval["name"] for interval in made["time_intervals"]] == [
        "monday:friday 09:00-18:00 UTC",
        "sunday:saturday 00:00-24:00 UTC",
    ]
    names = [receiver["name"] for receiver in made["receivers"]]
    assert len(names) == len(set(names))


def test_two_services_that_describe_a_receiver_differently_are_told_so() -> None:
    other = replace(RECEIVERS[0], settings=(("routing_key_file", "/other"),))
    with pytest.raises(TreeError) as error:
        tree([chat_plan(), chat_plan(service="search", receivers=(other, *RECEIVERS[1:]))])
    assert str(error.value) == (
        "receiver ops-pager is described differently by checkout-assistant and by search: write"
        " the same settings in both, or rename one"
    )


def test_a_file_without_receivers_says_which_are_needed() -> None:
    with pytest.raises(
        NoReceiversError, match=r"needs `receivers`.*checkout-assistant.*eng-oncall"
    ):
        tree([chat_plan(receivers=())])


def test_a_service_may_use_the_receivers_that_another_describes() -> None:
    assert tree([chat_plan(), chat_plan(service="search", receivers=())])["receivers"]


def test_two_files_about_one_service_are_refused() -> None:
    with pytest.raises(TreeError, match="two files are about service checkout-assistant"):
        tree([chat_plan(), chat_plan()])


def test_mail_without_a_server_is_refused() -> None:
    bare = Receiver("ops-tickets", "email", (("to", "ops@example.com"),))
    receivers = tuple(bare if each.name == bare.name else each for each in RECEIVERS)
    with pytest.raises(TreeError, match="ops-tickets cannot send mail without from and smarthost"):
        tree([chat_plan(receivers=receivers)])


def test_no_secret_stands_in_the_tree() -> None:
    config = text([chat_plan()])
    secrets = ("routing_key:", "service_key:", "api_url:", "auth_password:", "credentials:")
    assert not [secret for secret in secrets if secret in config]
    assert "routing_key_file: /etc/alertmanager/pagerduty.key" in config


REACHED = {  # by slo: labels, receiver
    "page": ({}, "ops-pager"),
    "ticket": ({"severity": "ticket"}, "ops-tickets"),
    "escalated": ({"tier": "2"}, "eng-oncall"),
    "slow": ({"tier": "2", "severity": "ticket"}, "eng-tickets"),
    "budget": ({"tier": "3", "severity": "ticket"}, "slo-review/office-hours"),
    "incident-of-tier-3": ({"tier": "3"}, "slo-review"),  # a page is a page
    "of-class-b": ({"urgency": Urgency.OFFICE_HOURS}, "ops-pager/office-hours"),
    "of-no-tier": ({"tier": ""}, "ops-tickets"),  # somebody is told all the same
    "of-another-tier": ({"tier": "7", "severity": ""}, "ops-tickets"),
    "watchdog": ({"alertname": "InfersloWatchdog", "tier": "", "severity": ""}, "watchdog"),
}


def test_an_alert_reaches_the_receiver_of_its_tier_and_no_other(tmp_path: Path) -> None:
    with chain(tmp_path, office_hours=ALL_DAY) as real:
        for slo, (labels, _) in REACHED.items():
            real.fire(slo, **labels)
        wait_until("all of them", lambda: len(heard(real.inbox)) == len(REACHED), 15)
        time.sleep(SILENCE)
        assert heard(real.inbox) == {(slo, receiver) for slo, (_, receiver) in REACHED.items()}
        assert "unclaimed" not in {group.receiver for group in real.client.groups()}


def heard(inbox: Inbox) -> set[tuple[str, str]]:
    """Each alert told, and the receiver that was."""
    return {(slo, told.body["receiver"]) for told in inbox.received for slo in told.names}


@pytest.mark.parametrize("page", ["README.md", "docs/alertmanager.md"])
def test_the_page_that_the_docs_tell_to_send_reaches_tier_1(page: str, tmp_path: Path) -> None:
    written = (ROOT / page).read_text(encoding="utf-8")
    [command] = re.findall(r"^amtool .* alert add .*\\\n.*$", written, re.MULTILINE)
    with chain(tmp_path) as chained:
        command = command.replace("http://127.0.0.1:9093", chained.server.url)
        command = command.replace("SERVICE", "checkout-assistant")
        subprocess.run(command, shell=True, check=True)
        chained.inbox.wait(lambda told: told.receiver == "ops-pager", "the page")


def test_what_is_no_service_of_ours_ends_in_the_default_receiver_unheard(tmp_path: Path) -> None:
    with chain(tmp_path) as real:
        real.fire("first-token", service="somebody-elses")
        real.fire("first-token", service="")
        time.sleep(SILENCE)
        assert {group.receiver for group in real.client.groups()} == {"unclaimed"}
        assert real.inbox.received == []


def test_an_objective_with_its_own_response_has_its_own_receivers(tmp_path: Path) -> None:
    own = (replace(RESPONSE[0], receiver="eng-oncall", tickets="eng-tickets"),)
    objectives = (objective("ttft", name="own", response=own), objective("e2e", name="usual"))
    with chain(tmp_path, objectives=objectives) as real:
        real.fire("own", "usual")
        wait_until("two notifications", lambda: len(real.inbox.received) == 2, 15)
        told = {told.receiver: told.names for told in real.inbox.received}
        assert told == {"eng-oncall": ["own"], "ops-pager": ["usual"]}


def test_one_outage_that_burns_four_objectives_is_one_page_and_one_resolve(tmp_path: Path) -> None:
    burned = ("answered", "first-token", "steady-writing", "whole-answer")
    with chain(tmp_path) as real:
        real.fire(*burned)
        real.inbox.wait(lambda told: told.status == "firing", "the page")
        time.sleep(SILENCE)
        real.end(*burned)
        real.inbox.wait(lambda told: told.status == "resolved", "the resolve")
        told = [(told.receiver, told.status, told.names) for told in real.inbox.received]
        assert told == [
            ("ops-pager", "firing", sorted(burned)),
            ("ops-pager", "resolved", sorted(burned)),
        ]


def test_services_and_tiers_are_told_apart(tmp_path: Path) -> None:
    with Inbox() as inbox:
        receivers = webhooks(inbox, *NAMES)
        plans = [chat_plan(receivers=receivers), chat_plan(service=ODD, receivers=receivers)]
        with alertmanager(tmp_path, text(plans, QUICK)) as server:
            real = Chain(inbox, Alertmanager([server.url]), server)
            real.fire("a", "b", model_name='"quoted"\nnew line, ü')
            real.fire("a", service=ODD)
            real.fire("a", tier="2")
            wait_until("three notifications", lambda: len(inbox.received) == 3, 15)
            time.sleep(SILENCE / 2)
            told = [
                (each.receiver, each.body["groupLabels"]["service"], each.names)
                for each in inbox.received
            ]
            assert sorted(told) == [
                ("eng-oncall", "checkout-assistant", ["a"]),
                ("ops-pager", ODD, ["a"]),
                ("ops-pager", "checkout-assistant", ["a", "b"]),
            ]
            odd = Matcher("model_name", '"quoted"\nnew line, ü')
            assert sorted(each.labels["slo"] for each in real.client.alerts([odd])) == ["a", "b"]


def test_outside_office_hours_nobody_is_told_until_they_begin(tmp_path: Path) -> None:
    """The clock cannot be moved; the hours can."""
    with chain(tmp_path, office_hours=closed()) as real:
        real.fire("a", urgency=Urgency.OFFICE_HOURS)
        real.fire("budget", tier="3", severity="ticket")
        real.fire("b")
        real.inbox.wait(lambda told: told.names == ["b"], "what cannot wait")
        time.sleep(SILENCE)
        assert len(real.inbox.received) == 1
        service = chat_plan(receivers=webhooks(real.inbox, *NAMES), office_hours=ALL_DAY)
        (tmp_path / "alertmanager.yaml").write_text(text([service], QUICK))
        assert httpx.post(f"{real.server.url}/-/reload").status_code == 200
        wait_until("what was held back", lambda: len(real.inbox.received) == 3, 15)
        held_back = sorted((told.receiver, *told.names) for told in real.inbox.received[1:])
        assert held_back == [("ops-pager", "a"), ("slo-review", "budget")]


def test_whom_office_hours_hold_back_is_never_promised_a_resolve(tmp_path: Path) -> None:
    with chain(tmp_path, office_hours=ALL_DAY) as real:
        real.fire("a", urgency=Urgency.OFFICE_HOURS)
        real.inbox.wait(lambda told: told.status == "firing", "the page")
        real.end("a", urgency=Urgency.OFFICE_HOURS)
        time.sleep(SILENCE)
        assert [told.status for told in real.inbox.received] == ["firing"]


@pytest.mark.e2e
def test_alertmanager_loses_a_resolve_outside_office_hours(tmp_path: Path) -> None:
    """The reason for the test above. If this one fails, Alertmanager has learnt to keep it, and
    held-back routes may promise resolves. Takes two minutes: that is how fine its clock is."""
    minute = timedelta(minutes=1)
    closing = datetime.now(UTC).replace(second=0, microsecond=0) + minute
    if closing - datetime.now(UTC) < timedelta(seconds=10):
        closing += minute
    opening = closing + minute
    with Inbox() as inbox:
        config = tree([chat_plan(receivers=webhooks(inbox, *NAMES))], QUICK)
        times = [
            {"start_time": f"{closing - 2 * minute:%H:%M}", "end_time": f"{closing:%H:%M}"},
            {"start_time": f"{opening:%H:%M}", "end_time": f"{opening + 5 * minute:%H:%M}"},
        ]
        config["time_intervals"][0]["time_intervals"] = [{"times": times}]
        for receiver in config["receivers"][2:]:
            receiver["webhook_configs"][0]["send_resolved"] = True
        with alertmanager(tmp_path, dump(config)) as server:
            real = Chain(inbox, Alertmanager([server.url]), server)
            for slo in ("in hours", "at night"):
                real.fire(slo, service="checkout-assistant", urgency=Urgency.OFFICE_HOURS)
            inbox.wait(lambda told: told.status == "firing", "the page")
            sleep_until(closing + timedelta(seconds=2))
            real.end("in hours", "at night", urgency=Urgency.OFFICE_HOURS)
            sleep_until(opening + timedelta(seconds=3))
            assert {told.status for told in inbox.received} == {"firing"}


def sleep_until(moment: datetime) -> None:
    time.sleep(max(0.0, (moment - datetime.now(UTC)).total_seconds()))


def test_after_a_restart_nothing_is_told_twice_and_the_resolve_still_comes(tmp_path: Path) -> None:
    """Alertmanager forgets alerts, and Prometheus tells them again; what it has sent it keeps."""
    with chain(tmp_path) as real:
        real.fire("a")
        real.inbox.wait(lambda told: told.status == "firing", "the page")
        time.sleep(SILENCE)  # stopped before it has noted what it sent, it sends it twice
        assert real.server.stop() == 0
        real.server.start()
        real.fire("a")
        time.sleep(SILENCE)
        real.end("a")
        real.inbox.wait(lambda told: told.status == "resolved", "the resolve")
        assert [told.status for told in real.inbox.received] == ["firing", "resolved"]


def test_after_a_crash_a_page_that_goes_on_is_told_again(tmp_path: Path) -> None:
    """What it has sent it writes down every 15 minutes and when it is stopped."""
    with chain(tmp_path) as real:
        real.fire("a")
        real.inbox.wait(lambda told: told.status == "firing", "the page")
        time.sleep(SILENCE)
        real.server.kill()
        real.server.start()
        real.fire("a")
        wait_until("the same page", lambda: len(real.inbox.received) == 2, 15)
        real.end("a")
        real.inbox.wait(lambda told: told.status == "resolved", "the resolve")
        assert [told.status for told in real.inbox.received] == ["firing", "firing", "resolved"]


def test_two_peers_send_one_page_and_one_alone_still_sends(tmp_path: Path) -> None:
    ports = (free_port(), free_port())
    cluster = ["--cluster.peer-timeout=2s", "--cluster.settle-timeout=2s"]
    peers = [f"--cluster.peer=127.0.0.1:{port}" for port in ports]
    folders = (tmp_path / "first", tmp_path / "second")
    with Inbox() as inbox, ExitStack() as stack:
        config = text([chat_plan(receivers=webhooks(inbox, *NAMES))], QUICK)
        servers: list[Server] = []
        for folder, port in zip(folders, ports, strict=True):
            folder.mkdir()
            listen = f"--cluster.listen-address=127.0.0.1:{port}"
            one = alertmanager(folder, config, listen, *cluster, *peers)
            servers.append(stack.enter_context(one))
        client = Alertmanager([server.url for server in servers])
        wait_until("a cluster of two", lambda: len(client.status().peers) == 2, 15)
        real = Chain(inbox, client, servers[0])
        real.fire("a")
        inbox.wait(lambda told: told.status == "firing", "the page")
        time.sleep(2 + SILENCE)
        assert len(inbox.received) == 1
        servers[0].kill()
        real.fire("b", tier="2")
        assert (
            inbox.wait(lambda told: told.names == ["b"], "from the other").receiver == "eng-oncall"
        )


def test_a_resolve_that_happens_while_alertmanager_is_down_still_comes(tmp_path: Path) -> None:
    """Prometheus goes on telling of the end for 15 minutes."""
    with chain(tmp_path) as real:
        real.fire("a")
        real.inbox.wait(lambda told: told.status == "firing", "the page")
        time.sleep(SILENCE)  # as above; what it has not noted it does not end either
        real.server.stop()
        real.server.start()
        real.end("a")
        real.inbox.wait(lambda told: told.status == "resolved", "the resolve")


def test_a_resolve_that_happens_while_alertmanager_is_crashed_is_lost(tmp_path: Path) -> None:
    """The reason to run two. If this fails, Alertmanager has become better than our docs say."""
    with chain(tmp_path) as real:
        real.fire("a")
        real.inbox.wait(lambda told: told.status == "firing", "the page")
        time.sleep(SILENCE)
        real.server.kill()
        real.server.start()
        real.end("a")
        time.sleep(SILENCE)
        assert [told.status for told in real.inbox.received] == ["firing"]


def test_a_silence_mutes_and_its_end_lets_speak(tmp_path: Path) -> None:
    with chain(tmp_path) as real:
        now = datetime.now(UTC)
        silence = real.client.silence(
            [Matcher("service", "checkout-assistant"), Matcher("slo", "a|b", is_regex=True)],
            start=now, end=now + timedelta(hours=1), created_by="test", comment="rollout",
        )  # fmt: skip
        real.fire("a", "b")
        time.sleep(SILENCE)
        assert real.inbox.received == []
        assert [alert.silenced_by for alert in real.client.alerts()] == [(silence,)] * 2
        real.client.expire(silence)
        assert real.inbox.wait(lambda _: True, "the page").names == ["a", "b"]


def test_the_watchdog_is_heard_again_and_again_and_never_resolved(tmp_path: Path) -> None:
    with chain(tmp_path) as real:
        watchdog = {"alertname": "InfersloWatchdog", "tier": "3", "severity": "ticket"}
        real.fire("watchdog", **watchdog)
        wait_until("three pings", lambda: len(real.inbox.of("watchdog")) == 3, 15)
        real.end("watchdog", **watchdog)
        time.sleep(SILENCE)
        assert {(told.receiver, told.status) for told in real.inbox.received} == {
            ("watchdog", "firing")
        }
