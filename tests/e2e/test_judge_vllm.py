"""One real vLLM, judged without a Prometheus: by `inferslo up` as it is started by a newcomer, and
by a sidecar that tells a real Alertmanager itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from alertmanager_server import Inbox, alertmanager
from e2e import load
from e2e.load import Call
from e2e.processes import Server, free_port, wait_until
from e2e.sidecar import EXECUTABLE, sidecar
from e2e.vllm import vllm_server

from inferslo.rules.alertmanager.tree import Timing, tree
from inferslo.rules.naming import ENGINE_DOWN
from inferslo.slo.load import load as load_plan

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

TIMING = Timing(wait="2s", interval="3s", page="1h", ticket="1h", office="1h", watchdog="5s")
SLO = """
service: tiny-chat
owner: tests
match: {model_name: tiny}
window: 4m
evaluation: {scrape_interval: 1s, interval: 1s, base: 10s}
alerting: {burns: [{name: fast, long: 60s, short: 10s, budget: 50, severity: page}]}
objectives:
  - {name: answered,    signal: availability, objective: 99}
  - {name: first-token, signal: ttft, threshold: 80s, objective: 95}
response: [{tier: 1, team: operations, receiver: operations}]
"""


@pytest.fixture(scope="module")
def engine(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with vllm_server(model, tmp_path_factory.mktemp("judged"), free_port()) as server:
        yield server


def states(url: str) -> dict[str, str | None]:
    found = httpx.get(f"{url}/v1/slo", timeout=10).json()["objectives"]
    return {objective["name"]: objective["state"] for objective in found}


def judged(url: str, engine: Server, *names: str) -> None:
    """Waits until these objectives are, under traffic: without any there is nothing to judge."""

    def known() -> bool:
        load.run(engine.url, [Call()] * 8, at_once=4)
        found = states(url)
        return all(found.get(name) == "ok" for name in names)

    wait_until(f"{names} to be judged", known, 120)


def test_up_judges_by_objectives_that_fit_the_engine(engine: Server, tmp_path: Path) -> None:
    listen = f"127.0.0.1:{free_port()}"
    command = [EXECUTABLE, "up", "--engine", engine.url, "--gpu", "off", "--listen", listen]
    log = tmp_path / "up.log"
    own = {"XDG_STATE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    with Server(command, f"http://{listen}", "/readyz", log, env=own) as up:
        judged(up.url, engine, "first-token", "steady-stream")
        page = httpx.get(up.url).text
    assert "first-token" in page
    assert f"Judging by the catalogue's objectives for chat, fitted to this engine: {tmp_path}" in (
        log.read_text(encoding="utf-8")
    )


def test_a_killed_engine_pages_through_alertmanager_once_and_resolves(
    engine: Server, tmp_path: Path
) -> None:
    with Inbox() as inbox:
        hook = {"operations": {"webhook": {"url": f"{inbox.url}/operations"}}}
        file = tmp_path / "slo.yaml"
        file.write_text(SLO + yaml.safe_dump({"receivers": hook}), encoding="utf-8")
        config = yaml.safe_dump(tree([load_plan(file)], TIMING), sort_keys=False)
        with alertmanager(tmp_path, config) as manager:
            flags = ("--gpu", "off", "--slo", str(file), "--slo-history", str(tmp_path / "slo.db"))
            flags += ("--alertmanager", manager.url)
            with sidecar(tmp_path, engine.url, flags=flags) as watcher:
                judged(watcher.url, engine, "answered", "first-token")
                assert inbox.received == []

                engine.kill()
                told = inbox.wait(lambda told: told.status == "firing", "the page", 120)
                time.sleep(20)  # time enough for a second page
                engine.start()
                inbox.wait(lambda told: told.status == "resolved", "the end", 120)
    (alert,) = told.body["alerts"]
    assert (alert["labels"]["alertname"], alert["labels"]["tier"]) == (ENGINE_DOWN.name, "1")
    assert {"summary", "impact", "actions", "runbook_url"} <= set(alert["annotations"])
    assert [told.status for told in inbox.received] == ["firing", "resolved"]
