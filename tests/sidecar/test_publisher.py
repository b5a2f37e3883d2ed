"""Pages: both formats, in the contract's order, kept until something changes."""

from __future__ import annotations

import gzip
import math

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from inferslo.exporters import names
from inferslo.exporters.reading import Histogram, Point
from inferslo.sidecar.publisher import MAX_AGE, Publisher, render

POINTS = [
    Point(names.SOURCE_ERRORS, ("e", "refused"), 2.0),
    Point(names.TTFT, ("e", 'a "model"\\\n', "engine"), Histogram((0.1, math.inf), (1, 3), 4.5)),
    Point(names.ENGINE_UP, ("e",), 1.0),
    Point(names.TTFT, ("f", "m", "engine"), Histogram((1.0, math.inf), (0, 0), 0.0)),
]
OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"


def test_text_lists_families_once_in_the_order_of_the_contract() -> None:
    page = render(POINTS).decode()

    assert [line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")] == [
        "inferslo_engine_up", "inferslo_ttft_seconds", "inferslo_source_errors_total",
    ]  # fmt: skip
    assert 'inferslo_ttft_seconds_bucket{engine="e",le="0.1",' in page
    assert 'inferslo_ttft_seconds_bucket{engine="f",le="+Inf",model_name="m",source="engine"} 0.0'


@pytest.mark.parametrize("accept", ["", "text/plain", OPENMETRICS])
def test_both_formats_carry_the_same_values(accept: str) -> None:
    page, content_type = Publisher(lambda: POINTS, lambda: 0).page(accept, compress=False)
    parse = parse_openmetrics if accept == OPENMETRICS else parse_text

    samples = {
        (s.name, tuple(sorted(s.labels.items()))): s.value
        for family in parse(page.decode())
        for s in family.samples
    }

    assert content_type.startswith(
        "application/openmetrics-text" if accept == OPENMETRICS else "text/plain"
    )
    assert len(samples) == 10
    labels = (("engine", "e"), ("model_name", 'a "model"\\\n'), ("source", "engine"))
    assert samples["inferslo_ttft_seconds_sum", labels] == 4.5
    assert samples["inferslo_source_errors_total", (("kind", "refused"), ("source", "e"))] == 2.0


def test_an_accept_header_that_makes_no_sense_gets_text() -> None:
    accept = "application/openmetrics-text; version=abc"

    page, content_type = Publisher(lambda: POINTS, lambda: 0).page(accept, compress=False)

    assert content_type.startswith("text/plain")
    assert page == render(POINTS)


def test_compressed_is_the_same_page() -> None:
    publisher = Publisher(lambda: POINTS, lambda: 0)

    assert gzip.decompress(publisher.page("", compress=True)[0]) == render(POINTS)


class Counted:
    """Counts the times that a page is made."""

    def __init__(self) -> None:
        self.now = 0.0
        self.version = 0
        self.made = 0
        self.publisher = Publisher(self._collect, lambda: self.version, clock=lambda: self.now)

    def _collect(self) -> list[Point]:
        self.made += 1
        return [Point(names.ENGINE_UP, ("e",), float(self.made))]


def test_a_page_is_made_once_until_something_changes() -> None:
    counted = Counted()
    pages = {counted.publisher.page("", compress=False)[0] for _ in range(10)}
    assert counted.made == 1

    counted.version = 1
    pages.add(counted.publisher.page("", compress=False)[0])

    assert counted.made == 2
    assert len(pages) == 2


def test_a_page_does_not_grow_old() -> None:
    counted = Counted()
    counted.publisher.page("", compress=False)
    counted.now = MAX_AGE + 0.1
    counted.publisher.page("", compress=False)

    assert counted.made == 2
