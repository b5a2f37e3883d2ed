"""Long spans scrape by scrape say what the same hours event by event say."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from inferslo.exporters.reading import Histogram
from inferslo.sidecar.demo.aggregate import HealthySpans
from inferslo.sidecar.demo.buckets import LATENCIES, PROBE
from inferslo.sidecar.demo.fleet import Fleet, Scenario
from inferslo.sidecar.demo.tally import Tally

HOURS = 4
MORNING = Scenario(rate=60, replicas=2, start=1_767_571_200.0 + 6 * 3600)


def summed(fleet: Fleet, which: str) -> Tally:
    total = Tally()
    for replica in fleet.replicas:
        total.gain(getattr(replica.engine.counts, which))
    return total


@pytest.fixture(scope="module")
def by_events() -> Fleet:
    fleet = Fleet(MORNING)
    fleet.advance(fleet.now + HOURS * 3600)
    return fleet


@pytest.fixture(scope="module")
def spans() -> HealthySpans:
    return HealthySpans(replace(MORNING, seed=7), 60.0, levels=6)


@pytest.fixture(scope="module")
def by_intervals(spans: HealthySpans) -> Fleet:
    fleet = Fleet(MORNING)
    for _ in range(HOURS * 60):
        spans.advance(fleet)
    return fleet


@pytest.mark.parametrize(
    "key", ["http_2xx", "prompt_tokens", "generation_tokens", "busy_seconds", "prefix_hits"]
)
def test_counts_agree(by_events: Fleet, by_intervals: Fleet, key: str) -> None:
    """Within four standard deviations of a Poisson count, and of lengths' own spread."""
    events, intervals = summed(by_events, "page"), summed(by_intervals, "page")
    tolerance = 4 * math.sqrt(2 / events["http_2xx"]) * 2
    assert intervals[key] == pytest.approx(events[key], rel=tolerance)


@pytest.mark.parametrize("key", ["ttft", "itl", "tpot", "e2e", "queue", "prefill", "decode"])
def test_histograms_agree_in_mean_and_shares(
    by_events: Fleet, by_intervals: Fleet, key: str
) -> None:
    bounds = LATENCIES[key]
    events = summed(by_events, "page").histogram(key, bounds)
    intervals = summed(by_intervals, "page").histogram(key, bounds)
    assert intervals.sum / intervals.count == pytest.approx(events.sum / events.count, rel=0.06)
    assert farthest(events, intervals) < 0.03


@pytest.mark.parametrize("labels", [("S", "le_8000"), ("default", "le_8000")])
def test_the_probe_agrees(by_events: Fleet, by_intervals: Fleet, labels: tuple[str, str]) -> None:
    found = [
        summed(fleet, "probe").histogram(("e2e", *labels), PROBE["e2e"])
        for fleet in (by_events, by_intervals)
    ]
    assert farthest(*found) < 0.03


def farthest(one: Histogram, other: Histogram) -> float:
    """The greatest difference between two shares of observations up to a bound."""
    pairs = zip(one.counts, other.counts, strict=True)
    return max(abs(a / one.count - b / other.count) for a, b in pairs)


def test_the_day_has_its_shape(spans: HealthySpans) -> None:
    fleet = Fleet(MORNING)
    by_hour = []
    for _ in range(24):
        before = summed(fleet, "page")["http_2xx"]
        for _ in range(60):
            spans.advance(fleet)
        by_hour.append(summed(fleet, "page")["http_2xx"] - before)
    assert by_hour.index(max(by_hour)) in (3, 4, 5, 8, 9)  # 9 to 11, 14 to 15 o'clock
    assert max(by_hour) > 4 * min(by_hour)
    assert sum(by_hour) == pytest.approx(60 * 1440, rel=0.03)


def test_what_is_in_flight_when_a_span_begins_is_not_lost(spans: HealthySpans) -> None:
    fleet = Fleet(MORNING)
    fleet.advance(fleet.now + 3600)
    spans.advance(fleet)
    fleet.advance(fleet.now + 600)
    fleet.drain(120)
    for replica in fleet.replicas:
        page = replica.engine.counts.page
        first = page.histogram("ttft", LATENCIES["ttft"]).count
        left = sum(n for key, n in replica.engine.counts.probe.items()
                   if key[0] == "requests" and key[-1] != "success")  # fmt: skip
        assert first - page["finished_stop"] <= left + 5


def test_gpu_and_gateway_go_on_too(by_intervals: Fleet) -> None:
    assert 40 < by_intervals.replicas[0].gpu.temperature < 75
    assert sum(by_intervals.gateway.tally.values()) > 10_000
    assert sum(by_intervals.clients.tally.values()) > 10_000
