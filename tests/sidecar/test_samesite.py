"""What a page of another site makes a browser send is refused; programs are let through."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from inferslo.sidecar.app import create_app
from inferslo.sidecar.board import Board
from inferslo.sidecar.publisher import Publisher

HOST = "127.0.0.1:9400"


def app(*, on_loopback: bool) -> FastAPI:
    board = Board()
    made = create_app(
        board, Publisher(board.points, lambda: board.version), on_loopback=on_loopback
    )
    made.add_api_route("/act", lambda: "done", methods=["GET", "POST", "DELETE"])
    return made


def status(method: str, headers: dict[str, str], *, on_loopback: bool = True) -> int:
    client = TestClient(app(on_loopback=on_loopback), base_url=f"http://{HOST}")
    return client.request(method, "/act", headers=headers).status_code


@pytest.mark.parametrize("method", ["POST", "DELETE"])
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:9666"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": f"http://{HOST}", "sec-fetch-site": "cross-site"},
        {"origin": "http://evil.example:9400", "host": "evil.example:9400"},  # DNS rebinding
        {"host": "evil.example"},
        {"host": "127.0.0.1.evil.example"},
        {"host": ""},
    ],
)
def test_another_site_may_do_nothing(method: str, headers: dict[str, str]) -> None:
    assert status(method, headers) == 403
    assert status("GET", headers) == 200  # whose answer its page cannot read


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": f"http://{HOST}", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
        {"origin": "null", "sec-fetch-site": "same-origin"},
        {"host": "localhost:9400"},
        {"host": "[::1]:9400"},
        {"host": "demo.localhost"},
    ],
)
def test_programs_and_our_own_page_may(headers: dict[str, str]) -> None:
    assert status("POST", headers) == 200


def test_whoever_is_reached_over_a_network_has_names_of_its_own() -> None:
    assert status("POST", {"host": "inferslo.prod.svc:9400"}, on_loopback=False) == 200
    foreign = {"host": "inferslo.prod.svc:9400", "origin": "http://evil.example"}
    assert status("POST", foreign, on_loopback=False) == 403
