"""From a fault on a real server to the receiver of the tier that has to act, and back to quiet.

One SLO file with short windows, compiled by the command as a user would, in a real Prometheus and
a real Alertmanager; receivers are webhooks of the test. What a page waits for in Alertmanager
(group_wait, group_interval) is shortened, what the rules wait for is as compiled.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from alertmanager_server import Inbox, Notification, alertmanager
from e2e import load
from e2e.litellm import LiteLlmProxy, Upstream
from e2e.load import Call
from e2e.processes import Server, free_port, wait_until
from e2e.prometheus import Prometheus, prometheus
from e2e.sidecar import EXECUTABLE, read, sidecar, wait_for_polls
from e2e.vllm import vllm_server

from inferslo.exporters import names
from inferslo.rules.alertmanager.tree import Timing, tree
from inferslo.rules.naming import BUDGET_EXHAUSTED, ENGINE_DOWN, INCIDENT, STATE
from inferslo.slo.load import load as load_plan

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

TIMING = Timing(wait="2s", interval="3s", page="1h", ticket="1h", office="1h", watchdog="5s")
COMMON = """
owner: tests
window: 4m
evaluation: {scrape_interval: 1s, interval: 1s, base: 10s}
alerting:
  burns:
    - {name: fast, long: 60s, short: 10s, budget: 50, severity: page}
office_hours: {weekdays: "sunday:saturday", start: "00:00", end: "24:00"}
"""
VLLM = """
service: tiny-chat
match: {model_name: tiny}
objectives:
  - {name: answered,    signal: availability, objective: 99}
  - {name: first-token, signal: ttft, threshold: 80s, objective: 95}
response:
  - {tier: 1, team: operations,  receiver: operations}
  - {tier: 2, team: engineering, receiver: engineering, after: 10m}
  - {tier: 3, team: product,     receiver: product, when: budget exhausted}
"""
GATEWAY = """
service: agents
objectives:
  - name: own-model
    signal: fallback_count
    threshold: 10
    over: 60s
    objective: 90
    min_coverage: 5
response:
  - {tier: 1, team: operations,  receiver: operations}
  - {tier: 2, team: engineering, receiver: engineering, after: 20s, when: slow burn}
  - {tier: 3, team: product,     receiver: product, when: budget exhausted}
"""


@dataclass(frozen=True, slots=True)
class Stack:
    inbox: Inbox
    database: Prometheus

    def alerts(self, receiver: str, status: str = "firing") -> list[str]:
        """Names of the alerts of that status in all notifications, as they came."""
        return [
            alert["labels"]["alertname"]
            for notification in self.inbox.of(receiver)
            for alert in notification.body["alerts"]
            if alert["status"] == status
        ]

    def wait(self, receiver: str, alertname: str, status: str, seconds: float) -> Notification:
        def told(notification: Notification) -> bool:
            alerts = notification.body["alerts"]
            return notification.receiver == receiver and any(
                alert["labels"]["alertname"] == alertname and alert["status"] == status
                for alert in alerts
            )

        return self.inbox.wait(told, f"{alertname} {status} at {receiver}", seconds)


@contextmanager
def stack(scratch: Path, text: str, watcher: Server) -> Iterator[Stack]:
    """Everything between the sidecar's page and the receivers, for one SLO file."""
    with ExitStack() as stops:
        inbox = stops.enter_context(Inbox())
        hooks = {
            name: {"webhook": {"url": f"{inbox.url}/{name}"}}
            for name in ("operations", "engineering", "product", "watchdog")
        }
        file = scratch / "slo.yaml"
        file.write_text(text + COMMON + yaml.safe_dump({"receivers": hooks}))
        out = scratch / "compiled"
        subprocess.run([EXECUTABLE, "build", file, "--out", out], check=True)
        config = yaml.safe_dump(tree([load_plan(file)], TIMING), sort_keys=False)
        manager = stops.enter_context(alertmanager(scratch, config))
        rules = sorted(out.rglob("rules.yaml"))
        assert rules
        targets = {"inferslo": watcher.netloc}
        database = stops.enter_context(prometheus(scratch, targets, rules, manager.netloc))
        yield Stack(inbox, database)


def holds(stack: Stack, expression: str, seconds: float) -> None:
    wait_until(expression, lambda: bool(stack.database.query(expression)), seconds)


@pytest.fixture(scope="module")
def killed(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Healthy traffic on a real vLLM, SIGKILL, restart: told to the end."""
    scratch = tmp_path_factory.mktemp("killed")
    engine = vllm_server(model, scratch, free_port())
    with (
        engine,
        sidecar(scratch, engine.url) as watcher,
        stack(scratch, VLLM, watcher) as story,
    ):
        wait_for_polls(watcher.url, engine.netloc)
        wait_until("the objective to be judged", lambda: _is_judged(story, engine), 120)
        assert story.alerts("operations") == []

        engine.kill()
        story.wait("operations", ENGINE_DOWN.name, "firing", 120)
        time.sleep(30)  # time enough for a second page
        engine.start()
        story.wait("operations", ENGINE_DOWN.name, "resolved", 60)
        yield story


def _is_judged(story: Stack, engine: Server) -> bool:
    """While there is traffic: without any there is nothing to judge."""
    load.run(engine.url, [Call()] * 8, at_once=4)
    return bool(story.database.query(f'{STATE.name}{{slo="first-token"}} == 0'))


def test_a_killed_engine_pages_operations_once(killed: Stack) -> None:
    assert killed.alerts("operations") == [ENGINE_DOWN.name]


def test_a_restarted_engine_is_resolved_once(killed: Stack) -> None:
    assert killed.alerts("operations", "resolved") == [ENGINE_DOWN.name]


def test_nobody_else_is_told_of_a_short_outage(killed: Stack) -> None:
    assert killed.alerts("engineering") == []
    assert killed.alerts("product") == []


def test_the_page_says_what_to_do_first(killed: Stack) -> None:
    (page,) = [n for n in killed.inbox.of("operations") if n.status == "firing"]
    (alert,) = page.body["alerts"]
    assert alert["labels"]["service"] == "tiny-chat"
    assert (alert["labels"]["tier"], alert["labels"]["severity"]) == ("1", "page")
    assert {"summary", "impact", "actions", "runbook_url"} <= set(alert["annotations"])


def test_the_dead_mans_switch_is_heard_throughout(killed: Stack) -> None:
    assert len(killed.alerts("watchdog")) > 3


@pytest.fixture(scope="module")
def storm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A real LiteLLM whose primary dies and comes back: told to the end."""
    scratch = tmp_path_factory.mktemp("storm")
    with Upstream() as primary, Upstream() as backup:
        bases = {"primary": primary.url, "backup": backup.url}
        with LiteLlmProxy(scratch, _fallbacks(bases)) as proxy:
            token = scratch / "litellm.token"
            token.write_text(proxy.key)
            flags = ("--gpu", "off", "--litellm", f"proxy={proxy.url}")
            flags += ("--litellm-token-file", str(token))
            with sidecar(scratch, flags=flags) as watcher, stack(scratch, GATEWAY, watcher) as told:
                wait_until("the proxy to be read", lambda: _answers(watcher), 60)
                holds(told, f"{INCIDENT.name} == 0", 60)
                with _traffic(proxy):
                    time.sleep(15)
                    assert told.alerts("operations") == []
                    primary.kill()
                    told.wait("operations", "InfersloFallbackStorm", "firing", 90)
                    told.wait("engineering", "InfersloFallbackStorm", "firing", 90)
                    told.wait("product", BUDGET_EXHAUSTED.name, "firing", 120)
                    primary.revive()
                    told.wait("operations", "InfersloFallbackStorm", "resolved", 180)
                    told.wait("engineering", "InfersloFallbackStorm", "resolved", 60)
                yield told


def test_each_tier_is_told_of_the_storm_once_and_in_order(storm: Stack) -> None:
    assert storm.alerts("operations") == ["InfersloFallbackStorm"]
    assert storm.alerts("engineering").count("InfersloFallbackStorm") == 1
    assert storm.alerts("product") == [BUDGET_EXHAUSTED.name]
    told = [n.receiver for n in storm.inbox.received if n.status == "firing"]
    told = [receiver for receiver in told if receiver != "watchdog"]
    assert told.index("operations") < told.index("engineering")


def test_each_page_of_the_storm_has_its_resolve(storm: Stack) -> None:
    assert storm.alerts("operations", "resolved") == ["InfersloFallbackStorm"]
    assert "InfersloFallbackStorm" in storm.alerts("engineering", "resolved")


def _fallbacks(bases: dict[str, str]) -> dict[str, object]:
    models = [
        {
            "model_name": name,
            "litellm_params": {"model": "openai/tiny", "api_key": "none", "api_base": base},
        }
        for name, base in bases.items()
    ]
    return {
        "model_list": models,
        "litellm_settings": {"callbacks": ["prometheus"], "fallbacks": [{"primary": ["backup"]}]},
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
    }


def _answers(watcher: Server) -> bool:
    page = read(watcher.url)
    return page.series(names.GATEWAY_UP.name, gateway="proxy") != {} and (
        page.value(names.GATEWAY_UP.name) == 1
    )


@contextmanager
def _traffic(proxy: LiteLlmProxy) -> Iterator[None]:
    """Two requests a second, all of which are answered: by the backup when it must."""
    done = threading.Event()

    def ask() -> None:
        while not done.wait(0.5):
            proxy.ask("primary", "hello")

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(60)
