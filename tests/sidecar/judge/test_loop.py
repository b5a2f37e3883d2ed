"""The thread that judges: when it does, and what happens where it cannot."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from e2e.processes import wait_until
from full_disk import files_no_larger_than
from judges import ANY, DAY, STEP, judge, page
from plans import objective

from inferslo.exporters import names
from inferslo.exporters.reading import Point
from inferslo.sidecar.judge.history import History, Key
from inferslo.sidecar.judge.loop import Judging

SOON = 0.02  # seconds, of the clock's, before an evaluation


class Clock:
    """Stands still where it is told to."""

    def __init__(self) -> None:
        self.now = STEP - SOON

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def judging(clock: Clock) -> Iterator[Judging]:
    judging = Judging(judge(objective("availability", selection=ANY)), wall=clock)
    yield judging
    judging.stop()


def judged_at(judging: Judging, at: float) -> bool:
    return judging.latest is not None and judging.latest.at == at


def test_it_judges_at_multiples_of_the_interval_wherever_the_clock_jumps(
    clock: Clock, judging: Judging
) -> None:
    asked: list[float] = []

    def collect() -> Iterable[Point]:
        asked.append(clock.now)
        return page(10 * len(asked))

    judging.start(collect)
    for multiple in (1, 2, 3, 50, 40):  # a gap, and set back
        clock.now = multiple * STEP - SOON
        wait_until("judged", lambda at=multiple * STEP: judged_at(judging, at), 10, every=0.01)
    assert len(asked) == len(set(asked)) == 5, "once each, though the clock stood still"
    assert judging.version == 5


def test_what_fails_leaves_the_last_judgement_says_so_and_then_recovers(
    clock: Clock, judging: Judging, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    fails = [False]

    def collect() -> Iterable[Point]:
        if fails[0]:
            raise sqlite3.OperationalError("database or disk is full")
        return page(10)

    judging.start(collect)
    wait_until("judged", lambda: judged_at(judging, STEP), 10, every=0.01)
    fails[0] = True
    clock.now = 2 * STEP - SOON
    wait_until("said", lambda: judging.fault, 10, every=0.01)
    assert judging.fault == "OperationalError: database or disk is full"
    assert judged_at(judging, STEP)
    assert [p.value for p in judging.points()] == [STEP], "its age, and nothing that is no more"
    fails[0] = False
    clock.now = 3 * STEP - SOON
    wait_until("judged again", lambda: judged_at(judging, 3 * STEP), 10, every=0.01)
    assert judging.fault == ""
    assert [record.message for record in caplog.records] == ["cannot judge", "judging again"]


def test_on_a_full_disk_it_judges_on_in_memory_and_keeps_all_once_there_is_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    path = tmp_path / "slo.db"
    history = History(path, DAY)
    judging = Judging(judge(objective("availability", selection=ANY), history=history))
    for n in range(1, 11):
        judging.step(page(10 * n), n * STEP)
    with files_no_larger_than(path.with_name("slo.db-wal").stat().st_size // 8):
        for n in range(11, 41):
            judging.step(page(100, 10 * n), n * STEP)
            assert judging.fault == ""
            assert judged_at(judging, n * STEP)
            assert "cannot be written" in judging.judge.history_fault
    assert judging.latest is not None
    assert {one.alert.alert for one in judging.latest.alerts} >= {"InfersloAvailabilityBurn"}
    for n in (41, 42, 43):
        judging.step(page(100, 10 * n), n * STEP)
    assert judging.judge.history_fault == ""
    history.close()
    said = ["the history is not kept", "the history is kept again"]
    assert [record.message for record in caplog.records] == said
    again = History(path, DAY)
    assert again.of(Key("availability")).sums(0, 43 * STEP).samples == 42  # the first has no rate
    assert again.newest() == 43 * STEP
    again.close()


def test_a_history_that_can_no_longer_be_read_costs_what_was_in_it_and_no_judgement(
    tmp_path: Path,
) -> None:
    path = tmp_path / "slo.db"
    history = History(path, DAY)
    judging = Judging(judge(objective("availability", selection=ANY), history=history))
    for n in range(1, 4):
        judging.step(page(10 * n), n * STEP)
    history._db.close()  # every question of it fails
    for n in range(4, 10):
        judging.step(page(10 * n), n * STEP)
        assert judging.fault == ""
    assert "cannot be written" in judging.judge.history_fault, "there may be more in the file"
    history.close()


def test_a_judgement_that_is_too_old_is_published_no_more(clock: Clock, judging: Judging) -> None:
    judging.step(page(10), STEP)
    clock.now = 4 * STEP
    assert len(judging.points()) > 1
    assert judging.doubt(clock.now) == ""
    clock.now += 2
    assert [point.family for point in judging.points()] == [names.SLO_JUDGED_TIMESTAMP]
    assert judging.doubt(clock.now) == "the judge stands still"


def test_nothing_is_published_before_the_first_judgement(judging: Judging) -> None:
    assert judging.points() == []


def test_stop_ends_the_threads_and_may_come_before_the_start(clock: Clock) -> None:
    judging = Judging(judge(objective("availability", selection=ANY)), wall=clock)
    judging.stop()
    again = Judging(judge(objective("availability", selection=ANY)), wall=clock)
    again.start(lambda: page(1))
    again.stop()
    assert "judge" not in {thread.name for thread in threading.enumerate()}
