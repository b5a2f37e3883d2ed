"""The bad server does what it says: else the tests that lean on it would prove nothing."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from badserver import PAGE, BadServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[BadServer]:
    with BadServer(tmp_path) as running:
        yield running


def test_the_good_page_and_its_gzip_are_the_same(server: BadServer) -> None:
    assert httpx.get(f"{server.url}/metrics").content == PAGE
    zipped = httpx.get(f"{server.url}/gzip")
    assert zipped.headers["content-encoding"] == "gzip"
    assert zipped.content == PAGE


@pytest.mark.parametrize(("path", "status"), [("/500", 500), ("/401", 401), ("/nothing", 404)])
def test_statuses(server: BadServer, path: str, status: int) -> None:
    assert httpx.get(server.url + path).status_code == status


def test_half_a_page_breaks_off(server: BadServer) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(f"{server.url}/half")


@pytest.mark.parametrize("path", ["/slow", "/hang"])
def test_slow_pages_outlast_any_patience(server: BadServer, path: str) -> None:
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(server.url + path, timeout=0.2)


def test_big_page_does_not_end_early(server: BadServer) -> None:
    with httpx.stream("GET", f"{server.url}/big") as response:
        pieces = response.iter_raw(1_000_000)
        assert sum(len(next(pieces)) for _ in range(20)) == 20_000_000


def test_gzip_bomb_is_small_on_the_wire(server: BadServer) -> None:
    with httpx.stream("GET", f"{server.url}/gzip-bomb") as response:
        assert int(response.headers["content-length"]) < 2_000_000


def test_redirect_to_another_host_would_be_answered_there(server: BadServer) -> None:
    assert httpx.get(f"{server.url}/redirect-same", follow_redirects=True).content == PAGE
    assert httpx.get(f"{server.url}/redirect-other", follow_redirects=True).content == PAGE
    host, path = server.seen[-1]
    assert host.startswith("localhost:")
    assert path == "/metrics"


def test_certificate_is_refused_unless_trusted(server: BadServer) -> None:
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        httpx.get(f"{server.tls_url}/metrics")
    trusting = ssl.create_default_context(cafile=str(server.certificate))
    assert httpx.get(f"{server.tls_url}/metrics", verify=trusting).content == PAGE
