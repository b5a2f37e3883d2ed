import contextlib
import errno
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from full_disk import files_no_larger_than

from inferslo.sidecar.events import journal as journal_module
from inferslo.sidecar.events.journal import (
    _SCHEMA,
    Journal,
    JournalError,
    JournalWriteError,
    Memory,
)

TURNS = ("inferslo_agent_turns_total", ("shop", "", "", "", "success"))


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.db"


@contextlib.contextmanager
def opened(
    path: Path, memory: Memory | None = None, clock: Clock | None = None
) -> Iterator[Journal]:
    journal = Journal(path, memory=memory, clock=clock or Clock())
    try:
        yield journal
    finally:
        journal.close()


def write(journal: Journal, value: int, *ids: str) -> list[bool]:
    with journal.transaction():
        new = [journal.remember(id) for id in ids]
        journal.save({TURNS: value})
    return new


def refusal(path: Path) -> str:
    with pytest.raises(JournalError) as caught:
        Journal(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_totals_and_ids_outlive_the_process(path: Path) -> None:
    with opened(path) as journal:
        assert journal.totals() == {}
        assert write(journal, 2, "a", "b", "a") == [True, True, False]
    with opened(path) as journal:
        assert journal.totals() == {TURNS: 2}
        assert write(journal, 3, "b", "c") == [False, True]
        assert journal.totals() == {TURNS: 3}


def test_every_commit_is_synced_to_disk(path: Path) -> None:
    with opened(path) as journal:
        assert journal._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert journal._db.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


def test_a_transaction_that_fails_leaves_nothing(path: Path) -> None:
    with opened(path) as journal:
        write(journal, 1, "a")
        with contextlib.suppress(ZeroDivisionError), journal.transaction():
            journal.remember("b")
            journal.save({TURNS: 2})
            raise ZeroDivisionError
        assert journal.totals() == {TURNS: 1}
        assert write(journal, 2, "b") == [True]


def test_an_id_is_forgotten_when_it_is_too_old(path: Path) -> None:
    clock = Clock()
    with opened(path, Memory(seconds=60), clock) as journal:
        write(journal, 1, "a")
        clock.now += 59
        assert write(journal, 1, "a", "b") == [False, True]
        clock.now += 2
        write(journal, 1, "c")
        assert write(journal, 1, "a", "b", "c") == [True, False, False]


def test_an_id_is_forgotten_when_enough_newer_ones_have_come(path: Path) -> None:
    with opened(path, Memory(ids=3)) as journal:
        write(journal, 1, "a", "b", "c")
        assert write(journal, 1, "a") == [False]
        write(journal, 1, "d")
        assert write(journal, 1, "b", "c", "d") == [False, False, False]
        assert write(journal, 1, "a") == [True]


def test_remembered_ids_shrink_to_a_smaller_bound_bit_by_bit(path: Path) -> None:
    with opened(path) as journal:
        write(journal, 1, *(str(number) for number in range(100)))
    with opened(path, Memory(ids=10)) as journal:

        def remembered() -> int:
            return journal._db.execute("SELECT count(*) FROM seen").fetchone()[0]

        write(journal, 1, "one")
        assert remembered() == 99
        for number in range(100):
            write(journal, 1, f"more-{number}")
        assert remembered() == 10


def test_a_clock_that_steps_back_neither_forgets_nor_blocks_the_number_bound(path: Path) -> None:
    clock = Clock()
    with opened(path, Memory(ids=3, seconds=60), clock) as journal:
        write(journal, 1, "a")
        clock.now -= 10_000
        assert write(journal, 1, "a", "b", "c", "d") == [False, True, True, True]
        write(journal, 1, "e", "f")
        assert write(journal, 1, "a") == [True]


def test_the_file_and_its_log_stay_bounded(path: Path) -> None:
    largest = 0
    with opened(path, Memory(ids=100)) as journal:
        for batch in range(300):
            write(journal, 1, *(f"{batch}-{number}" for number in range(100)))
            largest = max(largest, journal.bytes_on_disk())
    assert path.stat().st_size < 64 << 10  # 30,000 ids would take 2 MB
    assert largest < 5 << 20


def test_another_process_may_not_share_the_file(path: Path) -> None:
    code = "import sys; from pathlib import Path; from inferslo.sidecar.events.journal import *\n"
    code += "try: Journal(Path(sys.argv[1]))\nexcept JournalError as error: print(error)"

    def other() -> str:
        run = [sys.executable, "-c", code, str(path)]
        return subprocess.run(run, capture_output=True, text=True, check=True).stdout

    with opened(path):
        assert "is in use by another process: stop it" in other()
    assert other() == ""


def test_the_same_process_may_not_share_the_file_either(path: Path) -> None:
    with opened(path):
        assert "is in use by another process" in refusal(path)


def test_a_missing_folder_is_not_made_because_it_may_be_a_missing_volume(tmp_path: Path) -> None:
    assert "does not exist: create it, or mount the volume" in refusal(tmp_path / "no" / "e.db")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_place_of_the_file(path: Path) -> None:
    path.mkdir()
    assert "cannot open the event journal" in refusal(path)


@pytest.mark.parametrize("content", [b"", b"\0" * 8192], ids=["emptied", "zeroed"])
def test_an_emptied_journal_is_not_taken_for_a_new_one(path: Path, content: bytes) -> None:
    with opened(path) as journal:
        write(journal, 5, "a")
    path.write_bytes(content)
    text = refusal(path)
    assert "start counting from zero" in text
    assert path.read_bytes() == content


def test_a_file_that_is_no_database(path: Path) -> None:
    path.write_text("these are my notes, and they are worth keeping\n" * 100)
    text = refusal(path)
    assert "is not an event journal of inferslo (file is not a database): give another" in text
    assert path.read_text().startswith("these are my notes")


def test_a_database_of_somebody_else(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE theirs (x)")
    db.close()
    assert "is not an event journal of inferslo" in refusal(path)


def test_a_journal_of_another_version(path: Path) -> None:
    Journal(path).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    assert "has version 99, this inferslo reads 1: use the inferslo that wrote it" in refusal(path)


def test_a_damaged_page_stops_the_start(path: Path) -> None:
    with opened(path) as journal:
        write(journal, 1, *(str(number) for number in range(5000)))
    content = bytearray(path.read_bytes())
    content[8 * 4096 : 12 * 4096] = os.urandom(4 * 4096)
    path.write_bytes(content)
    assert "is corrupt" in refusal(path)


def test_a_journal_cut_short_stops_the_start(path: Path) -> None:
    with opened(path) as journal:
        write(journal, 1, *(str(number) for number in range(5000)))
    path.write_bytes(path.read_bytes()[:20_000])
    assert "is corrupt" in refusal(path)


def test_a_log_without_its_journal_is_not_played_into_a_new_one(path: Path) -> None:
    log = path.with_name("events.db-wal")
    log.write_bytes(b"frames")
    assert f"{log} was left behind without {path}" in refusal(path)
    assert not path.exists()


def test_two_that_start_at_once_do_not_replace_each_other(path: Path) -> None:
    code = "import sys; from pathlib import Path; from inferslo.sidecar.events.journal import *\n"
    code += "journal = Journal(Path(sys.argv[1]))\nprint(journal.path.stat().st_ino, flush=True)\n"
    code += "sys.stdin.read()"
    run = [sys.executable, "-c", code, str(path)]
    pipe = subprocess.PIPE
    both = [
        subprocess.Popen(run, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        for _ in range(2)
    ]
    inodes = [process.stdout.readline() for process in both if process.stdout]
    for process in both:
        process.communicate()
    assert sorted(inodes) == ["", f"{path.stat().st_ino}\n"]


def test_a_refused_write_undoes_the_transaction_and_room_mends_it(path: Path) -> None:
    with opened(path) as journal:
        write(journal, 1, "a")
        with files_no_larger_than(journal.bytes_on_disk() // 8):
            for _ in range(3):
                with pytest.raises(JournalWriteError, match="cannot write the event journal"):
                    write(journal, 2, "b")
        assert journal.totals() == {TURNS: 1}
        assert write(journal, 2, "a", "b") == [False, True]
    with opened(path) as journal:
        assert journal.totals() == {TURNS: 2}


def test_a_full_database_undoes_the_transaction_and_room_mends_it(path: Path) -> None:
    with opened(path) as journal:
        write(journal, 1, "a")
        journal._db.execute("PRAGMA max_page_count = 1")
        with pytest.raises(JournalWriteError, match="full"):
            write(journal, 2, *(str(number) for number in range(5000)))
        assert journal.totals() == {TURNS: 1}
        journal._db.execute("PRAGMA max_page_count = 1000000")
        assert write(journal, 2, "0") == [True]


def test_a_folder_that_cannot_take_the_file_is_told(path: Path) -> None:
    with files_no_larger_than(100):
        assert "cannot create the event journal" in refusal(path)
    assert list(path.parent.iterdir()) == []


def test_a_disk_that_is_full_once_the_log_is_written_leaves_no_half_journal(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's close() writes the log into the file, and is silent where that fails."""
    limit = contextlib.ExitStack()

    class Filling(sqlite3.Connection):
        def executescript(self, script: str) -> sqlite3.Cursor:
            done = super().executescript(script)
            limit.enter_context(files_no_larger_than(8192))
            return done

    connect = partial(sqlite3.connect, factory=Filling)
    monkeypatch.setattr(sqlite3, "connect", connect)
    with limit:
        assert "cannot create the event journal" in refusal(path)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    "schema", ["PRAGMA page_size = 4096; PRAGMA max_page_count = 2;" + _SCHEMA, None]
)
def test_no_room_for_a_new_journal_is_said_and_leaves_nothing(
    path: Path, schema: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if schema is not None:
        monkeypatch.setattr(journal_module, "_SCHEMA", schema)
    else:
        monkeypatch.setattr(journal_module, "_publish", full)
    assert "no room on the disk" in refusal(path)
    assert list(path.parent.iterdir()) == []


def test_a_path_that_the_system_refuses_is_told(tmp_path: Path) -> None:
    assert "File name too long" in refusal(tmp_path / ("x" * 300))


def test_labels_of_any_text_come_back_as_they_were(path: Path) -> None:
    series = ("inferslo_regenerations_total", ('a"\\,[é', "", "日本", "}"))
    with opened(path) as journal, journal.transaction():
        journal.save({series: 7})
    with opened(path) as journal:
        assert journal.totals() == {series: 7}
    assert json.loads(json.dumps(series[1])) == list(series[1])


@pytest.mark.parametrize("harm", ["removed", "replaced", "log removed"])
def test_nothing_is_acknowledged_once_the_files_are_gone_from_under_us(
    tmp_path: Path, harm: str
) -> None:
    """SQLite itself writes on into files that nobody will ever find."""
    path = tmp_path / "events.db"
    journal = Journal(path)
    with journal.transaction():
        journal.remember("before")
    if harm == "removed":
        path.unlink()
    elif harm == "replaced":
        copy = tmp_path / "copy"
        copy.write_bytes(path.read_bytes())
        copy.replace(path)
    else:
        (tmp_path / "events.db-wal").unlink()

    with pytest.raises(JournalWriteError, match="removed, replaced or emptied"):  # noqa: SIM117
        with journal.transaction():
            journal.remember("after")
    journal.close()
