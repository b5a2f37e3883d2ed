"""The world: arming, recovering, following a clock, and never pretending to be real."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from inferslo.exporters import names
from inferslo.exporters.reading import Point
from inferslo.sidecar.demo.live.buttons import buttons
from inferslo.sidecar.demo.live.pace import TICK, Pace
from inferslo.sidecar.demo.live.rehearsal import Rehearsal, rehearsal
from inferslo.sidecar.demo.live.sources import sources
from inferslo.sidecar.demo.live.world import MODEL, PREFIX, World

START = 1_767_571_200.0


@pytest.fixture
def world() -> World:
    world = World(START)
    world.advance(START + 30)
    return world


def down(world: World) -> list[bool]:
    return [world.replica(index).engine.down for index in range(2)]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0
        self.passes = 0.0  # with each look

    def __call__(self) -> float:
        self.now += self.passes
        return self.now


def test_a_fault_is_there_at_once_and_gone_once_recovered(world: World) -> None:
    world.arm(buttons()["dead-instance"])
    world.advance(world.now + 1)
    assert down(world) == [True, False]
    assert world.armed is not None
    world.recover()
    assert (down(world), world.armed) == ([False, False], None)


def test_another_fault_takes_the_place_of_the_one_before(world: World) -> None:
    world.arm(buttons()["dead-instance"])
    world.arm(buttons()["traffic-burst"])
    assert (down(world), world.armed and world.armed.button.name) == (
        [False, False], "traffic-burst",
    )  # fmt: skip


def test_a_fault_ends_by_itself_when_its_time_is_over(world: World) -> None:
    world.arm(buttons()["dead-instance"])
    assert world.armed is not None
    until = world.armed.until
    world.advance(until - 1)
    assert world.armed is not None
    world.advance(until + 1)
    assert (world.armed, down(world)) == (None, [False, False])


def test_a_leak_ends_in_a_killed_process_and_what_grew_is_gone_after_recovery(world: World) -> None:
    host = world.replica(0).host

    def memory() -> float:
        found = host.observation(with_network=False).points
        return next(p.value for p in found if p.family is names.CONTAINER_MEMORY)  # type: ignore[return-value]

    before = memory()
    world.arm(buttons()["memory-leak"])
    world.advance(world.now + 90)
    assert memory() > 3 * before
    world.advance(world.now + 15)
    assert down(world) == [True, False]
    world.recover()
    assert memory() == before


def test_a_gpu_forgets_its_xid_when_it_was_replaced(world: World) -> None:
    def xids() -> list[Point]:
        [gpus] = [each for each in sources(world) if each.name.endswith("gpu")]
        return [p for p in gpus.observe().points if p.family is names.GPU_XID_EVENTS]

    world.arm(buttons()["dead-instance"])
    world.advance(world.now + 1)
    assert xids()
    world.recover()
    assert not xids()


# --- following the clock ---


def test_the_world_follows_the_clock(world: World) -> None:
    clock = Clock()
    pace = Pace(world, clock)
    for _ in range(40):
        clock.now += TICK
        pace.tick()
    assert world.now == pytest.approx(START + 31)
    assert pace.lag == 0


def test_a_short_stop_is_caught_up_with_and_a_long_one_is_told_and_given_up(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    pace = Pace(world, clock)
    clock.now += 3
    pace.tick()
    assert (world.now, pace.lag) == (pytest.approx(START + 33), 0)
    for _ in range(2):
        clock.now += 3600
        pace.tick()
    assert world.now == pytest.approx(START + 43)
    assert pace.lag == pytest.approx(7190)
    assert len([r for r in caplog.records if "cannot keep up" in r.message]) == 1


def test_a_tick_ends_after_its_share_of_time_however_late_the_world_is(world: World) -> None:
    clock = Clock()
    pace = Pace(world, clock)
    clock.now += 4
    clock.passes = 1.0  # each look finds that much time gone: the machine is far too slow
    pace.tick()
    assert world.now < START + 31


# --- labels ---


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    with rehearsal(tmp_path_factory.mktemp("labels"), START) as played:
        played.world.arm(buttons()["fallback-storm"])
        for _ in played.advance(60):
            pass
        yield played


def test_whatever_names_a_model_engine_or_gateway_says_that_it_is_simulated(
    played: Rehearsal,
) -> None:
    told = {
        (label, value)
        for point in played.points()
        for label, value in zip(point.family.labels, point.labels, strict=True)
        if label in ("model_name", "engine", "gateway", "source", "app") and value
    }
    origins = {"engine", "derived", "probe", "gateway", "event"}  # how a value was got
    real = {pair for pair in told if not pair[1].startswith(PREFIX) and pair[1] not in origins}
    assert real == set()
    assert {label for label, _ in told} >= {"model_name", "engine", "gateway", "source", "app"}
    assert ("model_name", MODEL) in told


def test_the_gpu_says_that_it_is_simulated(played: Rehearsal) -> None:
    [info] = {p.labels[2:3] for p in played.points() if p.family is names.GPU_INFO}
    assert info == ("simulated GPU",)


def test_no_series_is_told_twice(played: Rehearsal) -> None:
    series = [(point.family.name, point.labels) for point in played.points()]
    assert len(series) == len(set(series))


def test_two_gpus_are_expected_and_seen(played: Rehearsal) -> None:
    found = {p.family: p.value for p in played.points() if p.family in (
        names.GPU_VISIBLE, names.GPU_EXPECTED)}  # fmt: skip
    assert found == {names.GPU_VISIBLE: 2.0, names.GPU_EXPECTED: 2.0}


def test_turns_and_fallbacks_are_posted_as_events_and_counted_once(played: Rehearsal) -> None:
    with played.world.locked() as fleet:
        turns = sum(n for key, n in fleet.clients.tally.items() if key[0] == names.AGENT_TURNS.name)
        fallen = sum(
            n for key, n in fleet.gateway.tally.items() if key[0] == names.GATEWAY_FALLBACKS.name
        )
    published = played.points()

    def total(family: names.Family) -> float:
        return sum(p.value for p in published if p.family is family)  # type: ignore[misc]

    assert turns > 300
    # The last second's may still be on the way to the disk.
    assert turns - 60 <= total(names.AGENT_TURNS) <= turns
    assert 0 < total(names.FALLBACKS) <= fallen
    assert total(names.GATEWAY_FALLBACKS) == 0


def test_a_rehearsal_leaves_nothing_but_its_folder(tmp_path: Path) -> None:
    with rehearsal(tmp_path, START) as played:
        assert next(played.advance(10)).verdicts
    left = {path.name.partition("-")[0].removesuffix(".lock") for path in tmp_path.iterdir()}
    assert left == {"events.db", "slo.db"}
