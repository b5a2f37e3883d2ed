"""A service with a fault: what must move in what the sidecars publish, and what must not."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from inferslo.exporters import names
from inferslo.exporters.names import Family
from inferslo.exporters.reading import Histogram, Point
from inferslo.sidecar.demo.faults import Fault, catalogue
from inferslo.sidecar.demo.fleet import Fleet, Scenario
from inferslo.sidecar.demo.sidecars import Sidecars

PAIR = Scenario(rate=120, replicas=2, start=1_767_571_200.0 + 10 * 3600)


def fleet_of(fault: Fault | None, scenario: Scenario = PAIR) -> tuple[Fleet, Sidecars]:
    fleet = Fleet(scenario)
    if fault is not None:
        fleet.arm(fault)
    return fleet, Sidecars(fleet)


def after(fault: Fault | None, minutes: float, scenario: Scenario = PAIR) -> list[Point]:
    """What all sidecars say at the end of these minutes, scraped once a minute."""
    fleet, sidecars = fleet_of(fault, scenario)
    points: list[Point] = []
    while fleet.now < scenario.start + minutes * 60:
        fleet.advance(fleet.now + 60)
        points = [point for each in sidecars.scrape().values() for point in each]
    return points


def total(points: list[Point], family: Family, *labels: str) -> float:
    return sum(
        point.value.count if isinstance(point.value, Histogram) else point.value
        for point in points
        if point.family is family and set(labels) <= set(point.labels)
    )


def short(id: str, **changed: object) -> Fault:
    return catalogue()[id].model_copy(update={"start": 0.0, "ramp": 0.0, **changed})


def test_a_healthy_service_says_all_that_the_sidecar_can_say_of_it() -> None:
    points = after(None, 10)
    said = {point.family.name for point in points}
    for family in (
        names.TTFT, names.REQUESTS, names.KV_TAIL_WASTE, names.CLASS_TTFT, names.CLASS_GOODPUT,
        names.ALLOCATOR_STRANDED, names.GPU_TEMPERATURE, names.GPU_UTILIZATION_SQUARES,
        names.HOST_SOCKETS, names.CONTAINER_MEMORY, names.GATEWAY_REQUESTS, names.AGENT_TURNS,
        names.SESSIONS, names.QUALITY_CHECKS, names.SOURCE_UP, names.BUILD_INFO,
    ):  # fmt: skip
        assert family.name in said
    assert total(points, names.ENGINE_UP) == 2
    assert total(points, names.PREEMPTIONS) == 0
    assert total(points, names.GPU_XID_EVENTS) == 0


def test_the_same_seed_tells_the_same_story_and_another_seed_another() -> None:
    assert after(None, 5) == after(None, 5)
    assert after(None, 5) != after(None, 5, replace(PAIR, seed=2))


def test_what_the_sidecar_counts_as_given_up_is_what_was_given_up() -> None:
    fleet, sidecars = fleet_of(short("F24", duration=None))
    points: list[Point] = []
    for _ in range(20):
        fleet.advance(fleet.now + 60)
        points = [point for each in sidecars.scrape().values() for point in each]
    true = sum(
        n
        for replica in fleet.replicas
        for key, n in replica.engine.counts.probe.items()
        if key[0] == "requests" and key[-1] in ("aborted", "timeout")
    )
    assert true > 100
    assert total(points, names.REQUESTS, "aborted") == pytest.approx(true, rel=0.1)


def test_one_engine_that_is_killed_is_down_and_comes_back_as_a_new_process() -> None:
    fleet, sidecars = fleet_of(short("F3"))
    fleet.advance(fleet.now + 60)
    first = sidecars.scrape()["qwen-0:9108"]
    assert total(first, names.ENGINE_UP) == 0
    assert not [point for point in first if point.family is names.TTFT]
    assert total(first, names.GPU_XID_EVENTS, "79") == 1
    assert total(sidecars.scrape()["qwen-1:9108"], names.ENGINE_UP) == 1
    fleet.advance(fleet.now + 240)
    again = sidecars.scrape()["qwen-0:9108"]
    assert total(again, names.ENGINE_START_TIME) > PAIR.start + 180
    assert total(again, names.SOURCE_ERRORS, "refused") == 2


@pytest.mark.parametrize("per_host", [1, 2])
def test_no_series_is_told_twice_in_one_scrape(per_host: int) -> None:
    fleet, sidecars = fleet_of(short("F2"), replace(PAIR, per_host=per_host))
    fleet.advance(fleet.now + 120)
    for points in sidecars.scrape().values():
        told = [(point.family.name, point.labels) for point in points]
        assert len(told) == len(set(told))


def test_a_rolling_update_never_takes_two_at_once() -> None:
    fleet, _ = fleet_of(short("F35", duration=900.0))
    down = set()
    for _ in range(90):
        fleet.advance(fleet.now + 10)
        down.add(tuple(replica.engine.down for replica in fleet.replicas))
    assert down == {(True, False), (False, False), (False, True)}


def test_a_canary_is_worse_alone() -> None:
    fleet, sidecars = fleet_of(short("F34"))
    scraped = sidecars.scrape()
    for _ in range(20):
        fleet.advance(fleet.now + 60)
        scraped = sidecars.scrape()
    errors = [total(scraped[f"qwen-{n}:9108"], names.REQUESTS, "error") for n in (0, 1)]
    assert errors[1] > 10 * max(errors[0], 1)


def test_a_disarmed_fault_is_over() -> None:
    fault = short("F14", duration=None)
    fleet, _ = fleet_of(fault)
    fleet.advance(fleet.now + 120)
    assert not fleet.healthy
    fleet.disarm(fault)
    assert fleet.effects(0).empty_share == 0
    assert fleet.healthy


QUIET = replace(PAIR, rate=10.0)
BUSY = replace(PAIR, rate=480.0, replicas=1)


@cache
def healthy(minutes: float, scenario: Scenario) -> list[Point]:
    return after(None, minutes, scenario)


@pytest.mark.parametrize(
    ("id", "scenario", "minutes", "family", "labels"),
    [
        ("F4", BUSY, 10, names.PREEMPTIONS, ()),
        ("F5", QUIET, 60, names.ALLOCATOR_STRANDED, ()),
        ("F6", QUIET, 60, names.CONTAINER_MEMORY, ()),
        ("F6", QUIET, 60, names.GPU_MEMORY_USED, ()),
        ("F7", QUIET, 5, names.CONTAINER_OOM_KILLS, ()),
        ("F11", BUSY, 10, names.REQUESTS, ("rejected",)),
        ("F14", PAIR, 10, names.CLASS_REQUESTS, ("empty",)),
        ("F17", QUIET, 5, names.HOST_SOCKETS, ("time_wait",)),
        ("F17", QUIET, 5, names.HOST_TCP_RETRANSMITS, ()),
        ("F22", QUIET, 60, names.HOST_THREADS, ()),
        ("F29", BUSY, 10, names.GPU_CLOCK_EVENT_SECONDS, ("sw_thermal_slowdown",)),
        ("F31", PAIR, 10, names.SESSIONS, ("interrupted",)),
        ("F33", PAIR, 10, names.SCHEMA_FAILURES, ()),
    ],
)
def test_a_fault_moves_what_it_is_about(
    id: str, scenario: Scenario, minutes: float, family: Family, labels: tuple[str, ...]
) -> None:
    faulty = total(after(short(id, duration=None), minutes, scenario), family, *labels)
    assert faulty > total(healthy(minutes, scenario), family, *labels) * 1.01 + 0.5
