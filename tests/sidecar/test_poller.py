"""Reads and their health: failed, hung, late, fatal and faulty sources, side by side."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from scripted import Gate, Scripted, running

from inferslo.exporters import names
from inferslo.exporters.names import Family
from inferslo.exporters.reading import (
    ErrorKind,
    FatalSourceError,
    Observation,
    Reading,
    SourceError,
)
from inferslo.sidecar.board import Board
from inferslo.sidecar.poller import Poller


class House:
    """A board and its poller, and what they were told."""

    def __init__(self) -> None:
        self.readings: list[Reading] = []
        self.fatal: list[FatalSourceError] = []
        self.board = Board(on_reading=self.readings.append)
        self.poller = Poller(self.board, on_fatal=self.fatal.append)

    def value(self, family: Family, *labels: str) -> object:
        found = [p.value for p in self.board.points() if p.family is family and p.labels == labels]
        assert len(found) <= 1
        return found[0] if found else None


@pytest.fixture
def house() -> Iterator[House]:
    house = House()
    yield house
    house.poller.stop()


def until(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < ends, "did not happen within 20 s"
        time.sleep(0.005)


def refused() -> Observation:
    raise SourceError(ErrorKind.REFUSED, "nobody listens")


def test_a_good_read_is_published_with_its_health(house: House) -> None:
    house.poller.add(Scripted(lambda: running(3.0)))
    until(lambda: house.value(names.SOURCE_UP, "engine") == 1.0)

    assert house.value(names.REQUESTS_RUNNING, "engine", "m") == 3.0
    assert house.value(names.ENGINE_UP, "engine") == 1.0
    assert house.value(names.SOURCE_ERRORS, "engine", "refused") is None


def test_before_the_first_read_nothing_is_claimed(house: House) -> None:
    gate = Gate()
    house.poller.add(Scripted(gate))
    gate.entered.wait(5)

    assert house.value(names.SOURCE_UP, "engine") is None
    assert house.value(names.ENGINE_UP, "engine") is None
    assert house.value(names.REQUESTS_RUNNING, "engine", "m") is None
    gate.opened.set()


def test_a_failed_read_publishes_health_only_never_the_last_values(house: House) -> None:
    answers: list[Callable[[], Observation]] = [lambda: running(3.0)]
    house.poller.add(Scripted(lambda: answers[-1]()))
    until(lambda: house.value(names.REQUESTS_RUNNING, "engine", "m") == 3.0)

    answers.append(refused)
    until(lambda: house.value(names.SOURCE_ERRORS, "engine", "refused") == 1.0)

    assert house.value(names.REQUESTS_RUNNING, "engine", "m") is None
    assert house.value(names.SOURCE_UP, "engine") == 0.0
    assert house.value(names.ENGINE_UP, "engine") == 0.0
    assert house.value(names.SOURCE_LAST_SUCCESS, "engine") is not None


def test_a_source_that_fails_at_once_does_not_spin(house: House) -> None:
    source = Scripted(refused, interval=0.0)
    house.poller.add(source)
    until(lambda: source.reads == 1)
    time.sleep(0.3)

    assert source.reads == 1


def test_a_hung_source_is_counted_once_drops_its_values_and_delays_nobody(house: House) -> None:
    gate = Gate()
    answers: list[Callable[[], Observation]] = [lambda: running(3.0)]
    house.poller.add(Scripted(lambda: answers[-1](), deadline=0.05))
    house.poller.watch(0.01)
    other = Scripted(lambda: running(5.0, "other"), "other")
    house.poller.add(other)
    until(lambda: house.value(names.REQUESTS_RUNNING, "engine", "m") == 3.0)
    answers.append(gate)
    gate.entered.wait(5)
    until(lambda: house.value(names.SOURCE_ERRORS, "engine", "timeout") is not None)
    time.sleep(0.1)

    assert house.value(names.SOURCE_ERRORS, "engine", "timeout") == 1.0
    assert house.value(names.REQUESTS_RUNNING, "engine", "m") is None
    assert house.value(names.SOURCE_UP, "engine") == 0.0
    in_flight = house.value(names.SOURCE_IN_FLIGHT, "engine")
    assert isinstance(in_flight, float)
    assert in_flight > 0.05
    reads = other.reads
    until(lambda: other.reads > reads + 5)
    assert house.value(names.SOURCE_UP, "other") == 1.0

    answers.pop()
    gate.opened.set()
    until(lambda: house.value(names.SOURCE_UP, "engine") == 1.0)
    assert house.value(names.SOURCE_ERRORS, "engine", "timeout") == 1.0


def test_what_arrives_after_the_deadline_is_dropped(house: House) -> None:
    gate = Gate()
    house.poller.add(Scripted(gate, deadline=0.05, interval=60.0))
    gate.entered.wait(5)
    time.sleep(0.1)
    house.board.check()
    gate.opened.set()
    until(lambda: house.value(names.SOURCE_IN_FLIGHT, "engine") == 0.0)

    assert house.value(names.SOURCE_UP, "engine") == 0.0
    assert house.value(names.REQUESTS_RUNNING, "engine", "m") is None
    assert [r.error for r in house.readings] == [ErrorKind.TIMEOUT]


def test_a_fault_of_ours_fails_the_read_and_not_the_thread(house: House) -> None:
    answers: list[Callable[[], Observation]] = [lambda: running(1.0)]

    def script() -> Observation:
        if source.reads == 1:
            raise ZeroDivisionError
        return answers[-1]()

    source = Scripted(script)
    house.poller.add(source)
    until(lambda: house.value(names.SOURCE_UP, "engine") == 1.0)

    assert house.value(names.SOURCE_ERRORS, "engine", "internal") == 1.0


def test_values_from_before_a_standstill_are_not_published() -> None:
    """The process or the machine was stopped for a while: no thread has read anything since."""
    now = [100.0]
    board = Board(clock=lambda: now[0])
    board.add(Scripted(lambda: running(1.0), interval=2.0, deadline=5.0))
    board.begin("engine")
    board.finish(Reading("engine", 1000.0, 0.1, running(3.0)))
    assert names.REQUESTS_RUNNING in {point.family for point in board.points()}

    now[0] += 20.0

    found = {point.family: point.value for point in board.points()}
    assert names.REQUESTS_RUNNING not in found
    assert found[names.SOURCE_UP] == found[names.ENGINE_UP] == 0.0


def test_a_fault_of_ours_is_logged_with_its_traceback_once(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    def script() -> Observation:
        raise ZeroDivisionError(f"at read {source.reads}")

    source = Scripted(script)
    house.poller.add(source)
    until(lambda: source.reads == 3)

    assert [record.message for record in caplog.records] == ["fault of ours"]
    assert caplog.records[0].exc_info


def test_a_fatal_error_is_told(house: House) -> None:
    def script() -> Observation:
        raise FatalSourceError(ErrorKind.DRIVER, "re-create the container")

    house.poller.add(Scripted(script))
    until(lambda: bool(house.fatal))

    assert house.fatal[0].detail == "re-create the container"


def test_two_sources_of_one_name_are_refused(house: House) -> None:
    house.poller.add(Scripted(lambda: running(1.0)))

    with pytest.raises(ValueError, match="two sources are named 'engine'"):
        house.poller.add(Scripted(lambda: running(1.0)))


def test_stop_ends_the_threads_that_can_end_and_leaves_the_others(house: House) -> None:
    gate = Gate()
    house.poller.add(Scripted(gate, "stuck"))
    house.poller.add(Scripted(lambda: running(1.0), "free", interval=60.0))
    gate.entered.wait(5)
    until(lambda: house.value(names.SOURCE_UP, "free") == 1.0)

    house.poller.stop(patience=0.2)

    alive = {thread.name for thread in threading.enumerate()}
    assert "read-free" not in alive
    assert "read-stuck" in alive
    gate.opened.set()
