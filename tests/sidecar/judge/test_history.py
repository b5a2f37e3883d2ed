"""What the judge remembers: thinned, bounded, and whole whatever happens to the process."""

from __future__ import annotations

import math
import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from inferslo.sidecar.errors import StartError
from inferslo.sidecar.judge.history import _APPLICATION_ID, History, Key, Row
from inferslo.slo.budget import Mark, Sums, incidents, lasted

HOUR, DAY = 3600, 86400
A, B = Key("a"), Key("b", (("tenant", "acme"),), "tone")
STEP = 30


def filled(seconds: int, longest: float = 40 * DAY, *, thin: bool = True) -> History:
    """Ten events an evaluation, of which one is bad in every tenth."""
    history = History(None, longest)
    for at in range(STEP, seconds + 1, STEP):
        with history.evaluation():
            history.count([Row(A, float(at % 300 == 0), 10.0)], at)
        if thin and at % 3600 == 0:
            history.thin(at)
    history.thin(seconds)
    return history


def test_sums_are_of_what_lies_in_the_window_its_left_end_left_out() -> None:
    history = History(None, DAY)
    with history.evaluation():
        for at in (30, 60, 90):
            history.count([Row(A, 1, at), Row(B, 0, 5)], at)
    assert history.of(A).sums(30, 90) == Sums(2, 150, 2)
    assert history.of(B).sums(0, 60).total == 10
    assert history.of(Key("c")).sums(0, 90) == Sums(0, 0, 0)


def test_thinning_loses_no_event_and_no_evaluation() -> None:
    history = filled(3 * DAY)
    sums = history.of(A).sums(-1, 3 * DAY)
    assert (sums.bad, sums.total, sums.samples) == (3 * DAY / 300, 3 * DAY / 3, 3 * DAY / STEP)


@pytest.mark.parametrize("window", [HOUR, 6 * HOUR, DAY, 3 * DAY])
def test_a_window_over_thinned_rows_is_off_by_less_than_one_of_them(window: int) -> None:
    now = 4 * DAY
    thin, exact = filled(now), filled(now, thin=False) if window <= HOUR else None
    row = 0 if window <= HOUR else 60 if window <= DAY else 600
    sums = thin.of(A).sums(now - window, now)
    assert abs(sums.total - window / 3) <= 10 * math.ceil(row / STEP)
    if exact is not None:
        assert sums == exact.of(A).sums(now - window, now)


def test_rows_are_bounded_by_the_period() -> None:
    history = filled(40 * DAY, longest=30 * DAY)
    [(rows,)] = history._db.execute("SELECT count(*) FROM count")
    most = HOUR / STEP + DAY / 60 + 30 * DAY / 600
    assert most * 0.95 < rows <= most + 100
    assert history.of(A).sums(-1, 10 * DAY - 600).samples == 0


def test_what_is_no_longer_counted_is_forgotten() -> None:
    history = History(None, DAY)
    with history.evaluation():
        history.count([Row(B, 0, 1)], 0)
        history.mark(B, 0, True, 75)
    assert history.groups("b") == [B.group]
    history.thin(2 * DAY)
    assert history.groups("b") == []
    with history.evaluation():
        history.count([Row(B, 0, 1)], 2 * DAY)
    assert history.groups("b") == [B.group]


def test_runs_of_incidents_give_back_every_mark() -> None:
    pick = random.Random(1)
    history, marks, on = History(None, DAY), [], False
    for at in range(0, HOUR, STEP):
        on = on != (pick.random() < 0.1)
        if pick.random() < 0.1:  # not judged
            continue
        marks.append(Mark(at, on))
        with history.evaluation():
            history.mark(A, at, on, STEP * 1.5)
    assert history.marks(A, -1, HOUR, STEP) == marks
    for now in range(0, HOUR, 7 * STEP):
        inside = [mark for mark in marks if mark.at <= now]
        edges = history.edges(A, now - 900, now)
        if inside and edges:
            assert incidents(edges, now, 900) == incidents(inside, now, 900)
        found = history.marks(A, now - 300, now, STEP)
        assert lasted(found, now, 300, STEP) == lasted(inside, now, 300, STEP)


def test_a_clock_that_is_set_back_leaves_nothing_to_be_counted_twice() -> None:
    history = History(None, DAY)
    for at in (30, 60, 90):
        with history.evaluation():
            history.count([Row(A, 1, 1)], at)
            history.mark(A, at, True, 75)
    history.rewind(60)
    assert history.newest() == 60
    assert history.marks(A, 0, 1000, 30) == [Mark(30, True), Mark(60, True)]


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "slo.db"
    for start in (0, 300):
        history = History(path, DAY)
        for at in range(start, start + 300, STEP):
            with history.evaluation():
                history.count([Row(B, 1, 2)], at)
        history.close()
    history = History(path, DAY)
    assert history.groups("b") == [B.group]
    assert history.of(B).sums(-1, 600) == Sums(20, 40, 20)
    history.close()


def test_an_evaluation_that_fails_adds_nothing() -> None:
    history = History(None, DAY)

    def evaluate() -> None:
        with history.evaluation():
            history.count([Row(A, 1, 1)], 30)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        evaluate()
    assert history.newest() is None


def database(path: Path, *pragmas: str) -> Path:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(";".join((*pragmas, "CREATE TABLE theirs (x)")))
    return path


def text(path: Path) -> Path:
    path.write_text("service: assistant\n" * 1000)
    return path


FOREIGN: dict[str, Callable[[Path], Path]] = {
    "a file of text": text,
    "a database": database,
    "the events' journal": lambda path: database(path, f"PRAGMA application_id = {0x496E534C}"),
    "another version": lambda path: database(
        path, f"PRAGMA application_id = {_APPLICATION_ID}", "PRAGMA user_version = 9"
    ),
}


def test_what_an_evaluation_that_failed_was_the_first_to_count_gets_no_other_name() -> None:
    history = History(None, DAY)
    with suppress(ZeroDivisionError), history.evaluation():
        history.count([Row(A, 1, 1)], 30)
        raise ZeroDivisionError
    with history.evaluation():
        history.count([Row(B, 0, 5)], 60)
        history.count([Row(A, 1, 1)], 60)
    assert history.of(A).sums(0, 60).total == 1
    assert history.of(B).sums(0, 60).total == 5


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN)
def test_what_is_no_history_of_ours_is_refused_and_let_be(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    path = make(tmp_path / "theirs")
    before = path.read_bytes()
    with pytest.raises(StartError, match=r"left as it is; name another file with --slo-history"):
        History(path, DAY)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", ["folder", "fifo", "device"])
def test_what_is_no_file_is_refused_and_let_be(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "slo.db"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/full")
    with pytest.raises(StartError, match="is no regular file"):
        History(path, DAY)
    assert list(tmp_path.iterdir()) == [path]
    assert Path("/dev/full").is_char_device()


def test_an_empty_file_becomes_a_history(tmp_path: Path) -> None:
    path = tmp_path / "slo.db"
    path.touch()
    counted(path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["slo.db", "slo.db.lock"]


def test_a_history_that_is_corrupt_is_put_aside_and_never_over_another(tmp_path: Path) -> None:
    path = tmp_path / "slo.db"
    aside = [tmp_path / f"slo.db.broken{n}" for n in ("", ".1", ".2")]
    aside[0].write_bytes(b"of before")
    kept = [b"of before"]
    for _ in aside[1:]:
        counted(path)
        content = bytearray(path.read_bytes())
        content[4096:] = random.Random(1).randbytes(len(content) - 4096)
        path.write_bytes(content)
        kept.append(bytes(content))
        counted(path)
    assert [each.read_bytes() for each in aside] == kept


def test_a_history_of_which_nobody_can_say_that_it_is_sound_is_let_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk, where SQLite finds no room for its log."""
    path = tmp_path / "slo.db"
    counted(path)
    before = path.read_bytes()

    def connect(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", connect)
        with pytest.raises(StartError, match="its disk must have room"):
            History(path, DAY)
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*.broken*"))


def test_the_file_that_is_locked_loses_nothing_that_was_in_it(tmp_path: Path) -> None:
    lock = tmp_path / "slo.db.lock"
    lock.write_text("somebody's")
    counted(tmp_path / "slo.db")
    assert lock.read_text() == "somebody's"


def counted(path: Path) -> None:
    """One more evaluation is in the history, which is closed again."""
    history = History(path, DAY)
    at = (history.newest() or 0) + STEP
    with history.evaluation():
        history.count([Row(A, 1, 1)], at)
    assert history.of(A).sums(at - STEP, at).total == 1
    history.close()


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="its folder must be writable"):
        History(tmp_path / "none" / "slo.db", DAY)


def test_a_history_that_another_process_has_is_refused_and_let_be(tmp_path: Path) -> None:
    """Its judge would count the same evaluations; and what is locked is not broken."""
    path = tmp_path / "slo.db"
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), str(path)], stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        with pytest.raises(StartError, match="another sidecar that runs: name another file"):
            History(path, DAY)
        assert writer.poll() is None
        writer.kill()
    assert not (tmp_path / "slo.db.broken").exists()
    History(path, DAY).close()


def test_what_engines_were_called_outlives_a_restart_and_is_forgotten_after_a_day(
    tmp_path: Path,
) -> None:
    old, new = (frozenset({("engine", name), ("model_name", 'a"b')}) for name in ("old", "new"))
    history = History(tmp_path / "slo.db", 40 * DAY)
    for at, engines in ((0, [old]), (HOUR, [old, new]), (2 * HOUR, [new]), (3 * HOUR, ())):
        history.written(lambda at=at, engines=engines: history.saw(engines, at))
    history.close()
    history = History(tmp_path / "slo.db", 40 * DAY)
    assert dict(history.seen()) == {old: HOUR, new: 2 * HOUR}
    history.thin(HOUR + DAY)
    assert dict(history.seen()) == {new: 2 * HOUR}
    history.rewind(HOUR)  # a clock that was wrong: it is still known, and is not in the future
    assert dict(history.seen()) == {new: HOUR}
    history.close()


def test_a_file_from_before_it_knew_engines_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / "slo.db"
    with closing(History(path, DAY)) as history, history.evaluation():
        history.count([Row(A, 1, 2)], STEP)
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE seen")
    with closing(History(path, DAY)) as history:
        assert (history.newest(), history.seen()) == (STEP, [])


WRITER = """
    import sys
    from pathlib import Path
    from inferslo.sidecar.judge.history import History, Key, Row
    history = History(Path(sys.argv[1]), 86400)
    at = history.newest() or 0
    print("ready", flush=True)
    while True:
        at += 1
        with history.evaluation():
            history.count([Row(Key("a"), 1, 2), Row(Key("b"), 1, 2)], at)
            history.mark(Key("a"), at, True, 3)
        if at % 50 == 0:
            history.thin(at + 3600)
"""


def test_fifty_times_killed_while_writing_it_is_whole_and_goes_on(tmp_path: Path) -> None:
    path, before = tmp_path / "slo.db", 0.0
    for _ in range(50):
        command = [sys.executable, "-c", textwrap.dedent(WRITER), str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            time.sleep(0.02)
            writer.send_signal(signal.SIGKILL)
        history = History(path, DAY)
        newest = history.newest() or 0.0
        assert newest >= before
        a, b = (history.of(Key(name)).sums(0, newest) for name in ("a", "b"))
        assert a == b == Sums(newest, 2 * newest, int(newest))  # both, or none, of every evaluation
        assert not (tmp_path / "slo.db.broken").exists()
        before = newest
        history.close()
    assert before > 50
