"""The HTTP face: routes, negotiation, and independence from the engine."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families
from scripted import Scripted, running

from inferslo.exporters.reading import ErrorKind, Gap, Observation, Reading
from inferslo.sidecar.app import create_app
from inferslo.sidecar.board import Board
from inferslo.sidecar.publisher import Publisher

NO_GATEWAY = Gap("gateway", "no gateway is configured", "--litellm URL")


class Sidecar:
    def __init__(self) -> None:
        self.board = Board()
        publisher = Publisher(self.board.points, lambda: self.board.version)
        app = create_app(self.board, publisher, not_watched=(NO_GATEWAY,))
        self.client = TestClient(app, follow_redirects=False)

    def read(self, observation: Observation | None) -> None:
        error = None if observation else ErrorKind.REFUSED
        self.board.finish(Reading("engine", 100.0, 0.25, observation, error, "nobody listens"))


@pytest.fixture
def sidecar() -> Sidecar:
    sidecar = Sidecar()
    sidecar.board.add(Scripted(lambda: running(0.0)))
    return sidecar


def test_metrics_answers_at_its_own_path_without_a_redirect(sidecar: Sidecar) -> None:
    sidecar.read(running(3.0))

    response = sidecar.client.get("/metrics")

    assert response.status_code == 200
    families = {f.name: f for f in text_string_to_metric_families(response.text)}
    assert families["inferslo_requests_running"].samples[0].value == 3.0


def test_metrics_negotiates_openmetrics_and_gzip(sidecar: Sidecar) -> None:
    response = sidecar.client.get(
        "/metrics", headers={"accept": "application/openmetrics-text", "accept-encoding": "gzip"}
    )

    assert response.headers["content-type"].startswith("application/openmetrics-text")
    assert response.headers["content-encoding"] == "gzip"
    assert response.text.endswith("# EOF\n")


@pytest.mark.parametrize("path", ["/healthz", "/-/healthy", "/readyz", "/-/ready", "/metrics"])
def test_health_does_not_depend_on_the_engine(sidecar: Sidecar, path: str) -> None:
    sidecar.read(None)

    assert sidecar.client.get(path).status_code == 200


def test_status_names_what_is_not_watched_at_all(sidecar: Sidecar) -> None:
    document = sidecar.client.get("/v1/status").json()

    assert document["not_watched"] == [
        {"signal": "gateway", "reason": "no gateway is configured", "remedy": "--litellm URL"}
    ]
    assert document["events"] == {"state": "off"}


def test_status_says_what_is_missing_and_how_to_get_it(sidecar: Sidecar) -> None:
    gap = Gap("requests_timeout", "a scrape cannot see timeouts", "add the probe")
    sidecar.read(Observation(running(1.0).points, (gap,), {"version": "0.32.0"}))

    (source,) = sidecar.client.get("/v1/status").json()["sources"]

    assert source["state"] == "up"
    assert source["facts"] == {"version": "0.32.0"}
    assert source["gives"] == ["inferslo_requests_running"]
    assert source["missing"] == [{"signal": gap.signal, "reason": gap.reason, "remedy": gap.remedy}]


def test_status_of_a_source_that_fails(sidecar: Sidecar) -> None:
    sidecar.read(running(1.0))
    sidecar.read(None)

    (source,) = sidecar.client.get("/v1/status").json()["sources"]

    assert source["state"] == "down"
    assert source["error"] == {"kind": "refused", "detail": "nobody listens"}
    assert source["errors"] == {"refused": 1}
    assert source["last_success"] == 100.25
    assert "gives" not in source


def test_status_says_which_engine_a_source_is_of_answer_it_or_not(sidecar: Sidecar) -> None:
    for observation in (running(1.0), None):
        sidecar.read(observation)
        (source,) = sidecar.client.get("/v1/status").json()["sources"]
        assert source["watches"] == {"feed": "engine", "engine": "engine"}


def test_status_before_the_first_read(sidecar: Sidecar) -> None:
    (source,) = sidecar.client.get("/v1/status").json()["sources"]

    assert source["state"] == "starting"
    assert source["last_success"] is None
