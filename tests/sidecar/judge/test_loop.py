"""The thread that judges: when it does, and what happens where it cannot."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from e2e.processes import wait_until
from judges import ANY, DAY, STEP, at_its_last, judge, page
from plans import objective

from inferslo.exporters import names
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
            raise ArithmeticError("a fault of ours")
        return page(10)

    judging.start(collect)
    wait_until("judged", lambda: judged_at(judging, STEP), 10, every=0.01)
    fails[0] = True
    clock.now = 2 * STEP - SOON
    wait_until("said", lambda: judging.fault, 10, every=0.01)
    assert judging.fault == "ArithmeticError: a fault of ours"
    assert judged_at(judging, STEP)
    [age] = judging.points()  # and nothing of yesterday
    assert (age.family, age.value) == (names.SLO_JUDGED_TIMESTAMP, STEP)
    fails[0] = False
    clock.now = 3 * STEP - SOON
    wait_until("judged again", lambda: judged_at(judging, 3 * STEP), 10, every=0.01)
    assert judging.fault == ""
    assert [record.message for record in caplog.records] == ["cannot judge", "judging again"]


def test_a_history_that_cannot_be_written_costs_a_step_and_goes_on_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    history = History(tmp_path / "slo.db", DAY)
    judging = at_its_last(judge(objective("availability", selection=ANY), history=history))
    for n in range(1, 21):
        judging.step(page(10 * n), n * STEP)
    assert judging.latest
    before = judging.latest.verdicts[0].spent.coverage
    history._db.execute("PRAGMA query_only = ON")
    judging.step(page(210), 21 * STEP)
    assert "readonly" in judging.fault
    assert "readonly" in judging.unkept
    assert judged_at(judging, 20 * STEP)
    for n in range(22, 42):
        judging.step(page(10 * n), n * STEP)
        assert judging.fault == ""
        assert judged_at(judging, n * STEP)
    assert judging.latest.verdicts[0].spent.coverage > before
    assert len([r for r in caplog.records if "goes on in memory" in r.message]) == 1
    history.close()
    kept = History(tmp_path / "slo.db", DAY)
    assert kept.newest() == 20 * STEP
    kept.close()


def test_a_judge_that_stands_still_publishes_its_age_alone(clock: Clock) -> None:
    judging = Judging(judge(objective("availability", selection=ANY)), wall=clock)
    clock.now = STEP
    judging.step(page(10), STEP)
    assert len(judging.points()) > 1
    clock.now = 5 * STEP
    assert judging.is_late
    assert [point.family for point in judging.points()] == [names.SLO_JUDGED_TIMESTAMP]


def test_nothing_is_published_before_the_first_judgement(judging: Judging) -> None:
    assert judging.points() == []


def test_stop_ends_the_threads_and_may_come_before_the_start(clock: Clock) -> None:
    judging = Judging(judge(objective("availability", selection=ANY)), wall=clock)
    judging.stop()
    again = Judging(judge(objective("availability", selection=ANY)), wall=clock)
    again.start(lambda: page(1))
    again.stop()
    assert "judge" not in {thread.name for thread in threading.enumerate()}
