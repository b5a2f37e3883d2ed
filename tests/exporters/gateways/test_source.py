"""GatewaySource: the seam between a gateway's page and the sidecar."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferslo.exporters.gateways import GatewaySource
from inferslo.exporters.http import Response
from inferslo.exporters.names import GATEWAY_IN_FLIGHT, GATEWAY_UP
from inferslo.exporters.reading import ErrorKind, Point, SourceError

CAPTURE = Path(__file__).parents[2] / "captures" / "litellm-1.108.7__fresh.prom"
URL = "http://proxy:4000/metrics"


class FakeFetcher:
    def __init__(self, body: bytes) -> None:
        self.body = body
        self.asked: list[str] = []

    def get(self, url: str) -> Response:
        self.asked.append(url)
        return Response(self.body, "text/plain")


def test_it_reads_the_page_that_it_was_given() -> None:
    fetcher = FakeFetcher(CAPTURE.read_bytes())
    observation = GatewaySource("proxy", URL, fetcher).observe()
    assert fetcher.asked == [URL]
    assert GATEWAY_IN_FLIGHT in {point.family for point in observation.points}
    assert {point.labels[0] for point in observation.points} == {"proxy"}


def test_its_health_is_the_gateways() -> None:
    source = GatewaySource("proxy", URL, FakeFetcher(b""))
    assert source.up_point(up=False) == Point(GATEWAY_UP, ("proxy",), 0.0)
    assert source.up_point(up=True) == Point(GATEWAY_UP, ("proxy",), 1.0)


def test_the_page_of_something_else_is_refused_with_what_to_do() -> None:
    source = GatewaySource("proxy", URL, FakeFetcher(b"up 1\n"))
    with pytest.raises(SourceError, match=r"callbacks: \[prometheus\]") as error:
        source.observe()
    assert error.value.kind is ErrorKind.UNKNOWN_ENGINE
