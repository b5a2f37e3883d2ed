"""The thread that judges: when it does, and what happens where it cannot."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from e2e.processes import wait_until
from judges import ANY, DAY, STEP, judge, page
from plans import objective

from inferslo.exporters.reading import Point
from inferslo.sidecar.judge.history import History
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
    assert any(p.value == STEP for p in judging.points()), "it tells its age"
    fails[0] = False
    clock.now = 3 * STEP - SOON
    wait_until("judged again", lambda: judged_at(judging, 3 * STEP), 10, every=0.01)
    assert judging.fault == ""
    assert [record.message for record in caplog.records] == ["cannot judge", "judging again"]


def test_a_history_that_cannot_be_written_fails_the_step_and_nothing_else(tmp_path: Path) -> None:
    history = History(tmp_path / "slo.db", DAY)
    judging = Judging(judge(objective("availability", selection=ANY), history=history))
    judging.step(page(10), STEP)
    history._db.execute("PRAGMA query_only = ON")
    judging.step(page(20), 2 * STEP)
    assert "readonly" in judging.fault
    assert judged_at(judging, STEP)
    history._db.execute("PRAGMA query_only = OFF")
    judging.step(page(30), 3 * STEP)
    assert judging.fault == ""
    assert judged_at(judging, 3 * STEP)
    history.close()


def test_nothing_is_published_before_the_first_judgement(judging: Judging) -> None:
    assert judging.points() == []


def test_stop_ends_the_threads_and_may_come_before_the_start(clock: Clock) -> None:
    judging = Judging(judge(objective("availability", selection=ANY)), wall=clock)
    judging.stop()
    again = Judging(judge(objective("availability", selection=ANY)), wall=clock)
    again.start(lambda: page(1))
    again.stop()
    assert "judge" not in {thread.name for thread in threading.enumerate()}
