"""The demo as a process has it: ports, faults over HTTP, settings that it cannot have."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from e2e.processes import wait_until
from fastapi import FastAPI
from fastapi.testclient import TestClient

from inferslo.sidecar.demo.live.api import demo_router
from inferslo.sidecar.demo.live.buttons import buttons
from inferslo.sidecar.demo.live.pace import Pace
from inferslo.sidecar.demo.live.panel import panel
from inferslo.sidecar.demo.live.servers import PORTS, listeners
from inferslo.sidecar.demo.live.stage import Stage, staged
from inferslo.sidecar.demo.live.world import World
from inferslo.sidecar.errors import StartError
from inferslo.sidecar.settings.load import Loaded
from inferslo.sidecar.settings.model import Settings

START = 1_767_571_200.0


@pytest.fixture
def api() -> tuple[World, TestClient]:
    world = World(START)
    app = FastAPI()
    app.include_router(demo_router(Pace(world, lambda: 0.0)))
    return world, TestClient(app, follow_redirects=False)


def loaded(**given: object) -> Loaded:
    """As the user gave them by flags."""
    settings = Settings(**given)  # type: ignore[arg-type]
    return Loaded(settings, {name: f"--{name.replace('_', '-')}" for name in given})


# --- the routes ---


def test_the_faults_that_there_are_and_which_is_armed(api: tuple[World, TestClient]) -> None:
    world, client = api
    offered = client.get("/v1/demo").json()
    assert [fault["name"] for fault in offered["faults"]] == list(buttons())
    assert (offered["armed"], offered["simulated"][:9]) == (None, "SIMULATED")
    assert {"id", "title", "says", "pace", "lasts_seconds", "alerts"} < offered["faults"][0].keys()

    armed = client.post("/v1/demo/faults/slow-gpu").json()["armed"]
    assert armed == {"name": "slow-gpu", "since": START, "until": START + 3600}
    assert world.armed is not None
    assert client.delete("/v1/demo/faults").json()["armed"] is None
    assert world.armed is None


def test_a_fault_that_there_is_not_is_a_404_that_names_the_others(
    api: tuple[World, TestClient],
) -> None:
    answer = api[1].post("/v1/demo/faults/earthquake")
    assert answer.status_code == 404
    assert all(name in answer.json()["error"] for name in buttons())


@pytest.mark.parametrize("path", ["/v1/demo/faults/slow-gpu", "/v1/demo/recover"])
def test_a_form_is_answered_by_the_page(api: tuple[World, TestClient], path: str) -> None:
    answer = api[1].post(path, headers={"accept": "text/html,*/*"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_the_panel_has_a_form_for_each_fault_and_says_which_is_armed(
    api: tuple[World, TestClient],
) -> None:
    world, client = api
    world.arm(buttons()["bad-canary"])
    text = panel(world)
    for name in buttons():
        assert f'action="/v1/demo/faults/{name}"' in text
        assert f'data-fault="{name}" aria-pressed="{str(name == "bad-canary").lower()}"' in text
    assert 'data-armed="bad-canary"' in text
    assert "an hour in 10s" in text
    world.recover()
    assert "data-recover disabled" in panel(world)
    assert client.post("/v1/demo/recover").status_code == 200  # nothing to do is no mistake


# --- the ports ---


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    stage.start()
    try:
        for engine in stage.engines:
            wait_until(engine.url, lambda url=engine.url: answers(url), 30)
        yield stage
    finally:
        stage.stop()


def answers(url: str) -> bool:
    try:
        return httpx.get(url + "/health").status_code == 200
    except httpx.TransportError:
        return False


def press(stage: Stage, path: str) -> None:
    app = FastAPI()
    app.include_router(stage.router)
    assert TestClient(app).post(f"/v1/demo/{path}").status_code == 200


def test_every_answer_of_an_engine_says_that_it_is_simulated(stage: Stage) -> None:
    for engine in stage.engines:
        for path in ("/metrics", "/v1/models", "/health", "/nothing", "/v1/completions"):
            answer = httpx.get(engine.url + path)
            assert answer.headers["x-inferslo-simulated"] == "true"


def test_a_dead_engine_refuses_breaks_off_what_it_wrote_and_comes_back(stage: Stage) -> None:
    url = stage.engines[0].url
    body = {"prompt": "a", "stream": True, "max_tokens": 30000}

    def read_until_death() -> None:
        with httpx.stream("POST", url + "/v1/completions", json=body, timeout=30) as answer:
            for number, _ in enumerate(answer.iter_lines()):
                if number == 3:
                    press(stage, "faults/dead-instance")

    with pytest.raises(httpx.TransportError):
        read_until_death()
    with pytest.raises(httpx.ConnectError):
        httpx.get(url + "/health")
    assert answers(stage.engines[1].url)
    press(stage, "recover")
    wait_until("the engine is back", lambda: answers(url), 30)


def test_a_port_that_is_taken_is_replaced_by_a_free_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        [listener] = listeners([port])
        with listener:
            assert listener.getsockname()[1] not in (0, port)


def test_two_demos_do_not_get_into_each_others_way(stage: Stage) -> None:
    others = listeners(PORTS)
    used = {int(engine.url.rpartition(":")[2]) for engine in stage.engines}
    for listener in others:
        assert listener.getsockname()[1] not in used
        listener.close()


# --- its settings ---


def test_what_it_keeps_is_in_a_folder_that_goes_away() -> None:
    with staged(loaded(listen="127.0.0.1:9999")) as (stage, settings):
        kept = {settings.slo, settings.slo_history, settings.events_journal}
        [folder] = {path.parent for path in kept if path is not None}
        assert settings.slo is not None
        assert "simulated-qwen" in settings.slo.read_text()
        assert settings.engines == stage.engines
        assert (settings.gpu, settings.host, settings.listen) == ("off", False, "127.0.0.1:9999")
        assert folder not in Path(Settings().slo_history).parents
    assert not folder.exists()


def test_the_users_own_poll_interval_counts() -> None:
    with staged(loaded(poll_interval=0.5)) as (_, settings):
        assert settings.poll_interval == 0.5


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"engines": "http://127.0.0.1:8000"}, "--engines"),
        ({"slo": "slo.yaml"}, "--slo"),
        ({"alertmanager": "http://127.0.0.1:9093"}, "--alertmanager"),
        ({"gpu": "on"}, "--gpu"),
        ({"events": "off"}, "--events"),
        ({"events_journal": "events.db"}, "--events-journal"),
    ],
)
def test_what_would_mix_the_real_with_the_simulated_is_refused(
    given: dict[str, object], says: str
) -> None:
    with pytest.raises(StartError, match=says), staged(loaded(**given)):
        pass


def test_where_a_setting_came_from_is_told() -> None:
    found = Loaded(Settings(gpu="off"), {"gpu": "INFERSLO_GPU"})
    with pytest.raises(StartError, match=r"gpu \(INFERSLO_GPU\)"), staged(found):
        pass
