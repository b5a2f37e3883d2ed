"""What the judge remembers: one SQLite file, thinned with age, bounded, and whole after a SIGKILL.

    every evaluation   for an hour
    a minute's         for a day
    ten minutes'       for the longest period of a budget

A row stands for the evaluations of its span, at the time of the last of them; their sums are kept
exactly, so that only the left end of a window that lies among rows is uncertain, by less than one
of them. Incidents are kept as runs: from when, to when, whether there was one. And for a day, what
each engine was called.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import TextIO, TypeVar

from ...slo.budget import Mark, Sums
from ..errors import StartError
from ..log import fields
from .samples import Labels

_APPLICATION_ID = 0x496E534A  # "InSJ"
_VERSION = 1
_SCHEMA = f"""
BEGIN;
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_VERSION};
CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE count (
    thing INTEGER NOT NULL, at REAL NOT NULL, level INTEGER NOT NULL,
    bad REAL NOT NULL, total REAL NOT NULL, samples INTEGER NOT NULL,
    PRIMARY KEY (thing, at)
) WITHOUT ROWID;
CREATE TABLE run (
    thing INTEGER NOT NULL, first REAL NOT NULL, last REAL NOT NULL, incident INTEGER NOT NULL,
    PRIMARY KEY (thing, first)
) WITHOUT ROWID;
COMMIT;
"""
# Since later than the first files of version 1.
_SEEN = "CREATE TABLE IF NOT EXISTS seen (labels TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID"
SEEN_FOR = 86400  # seconds that the rules ask who an engine was
# The first 100 bytes of every SQLite file, as its format says.
_MAGIC, _HEAD, _VERSION_AT, _ID_AT = b"SQLite format 3\0", 100, 60, 68
_NOTHING = -1  # the id of what was never counted
_log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Level:
    """Rows of `span` seconds each, which are thinned further once they are `age` seconds old."""

    span: float
    age: float


LEVELS = (Level(0, 3600), Level(60, 86400), Level(600, 0))


GroupLabels = tuple[tuple[str, str], ...]
"""Labels of the objective's `per`, in order."""


@dataclass(frozen=True, slots=True)
class Key:
    """One thing that is counted: an objective, by the labels of its `per`, and a component."""

    objective: str
    group: GroupLabels = ()
    component: str = ""

    @property
    def text(self) -> str:
        return json.dumps([self.objective, self.group, self.component])

    @classmethod
    def of(cls, text: str) -> Key:
        objective, group, component = json.loads(text)
        return cls(objective, tuple((label, value) for label, value in group), component)


@dataclass(frozen=True, slots=True)
class Row:
    """One evaluation of a thing; 0 ≤ bad ≤ total."""

    key: Key
    bad: float
    total: float


class History:
    """One process owns the file, from construction to `close()`; one thread at a time uses it.

    A file that cannot be written, as on a full disk, is replaced by memory until it can be: `fault`
    says so. longest: seconds after which nothing is remembered. Raises StartError.
    """

    def __init__(self, path: Path | None, longest: float) -> None:
        self.path = path
        self._longest = longest
        self._lock = _owned(path) if path is not None else None
        try:
            self._db = _open(path)
        except StartError:
            self._release()
            raise
        self.fault = ""
        self._file: sqlite3.Connection | None = None  # while memory stands for it
        self._is_to_return = False
        self._ids = self._read_ids()

    def close(self) -> None:
        self._return()
        self._db.close()
        if self._file is not None:
            self._file.close()
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()

    @contextmanager
    def evaluation(self) -> Iterator[None]:
        """All that one evaluation adds is there once this returns, or nothing of it."""
        try:
            with self._db:
                yield
        except BaseException:
            self._ids = self._read_ids()  # those that were undone are given to others
            raise

    def written(self, work: Callable[[], T]) -> T:
        """What it returns that adds to the history: in its file, else in memory. It is done twice
        where the file fails in the midst of it."""
        try:
            with self.evaluation():
                return work()
        except sqlite3.Error as error:
            if self.path is None or self.fault:
                raise
            self._leave(error)
        with self.evaluation():
            return work()

    def count(self, rows: Iterable[Row], at: float) -> None:
        self._db.executemany(
            "INSERT OR REPLACE INTO count VALUES (?, ?, 0, ?, ?, 1)",
            [(self._id(row.key), at, row.bad, row.total) for row in rows],
        )

    def mark(self, key: Key, at: float, incident: bool, gap: float) -> None:
        """Whether there was an incident. gap: seconds between evaluations beyond which nobody can
        say that it went on."""
        thing = self._id(key)
        extended = self._db.execute(
            "UPDATE run SET last = ? WHERE thing = ? AND incident = ? AND last >= ? AND last < ?"
            " AND first = (SELECT max(first) FROM run WHERE thing = ?)",
            (at, thing, incident, at - gap, at, thing),
        )
        if not extended.rowcount:
            self._db.execute(
                "INSERT OR REPLACE INTO run VALUES (?, ?, ?, ?)", (thing, at, at, incident)
            )

    def saw(self, engines: Iterable[Labels], at: float) -> None:
        """The labels by which engines called themselves."""
        self._db.executemany(
            "INSERT OR REPLACE INTO seen VALUES (?, ?)",
            [(json.dumps(sorted(labels)), at) for labels in engines],
        )

    def seen(self) -> list[tuple[Labels, float]]:
        """Those of the last day, and when last."""
        rows = self._db.execute("SELECT labels, at FROM seen").fetchall()
        return [(frozenset(map(tuple, json.loads(labels))), at) for labels, at in rows]

    def groups(self, objective: str) -> list[GroupLabels]:
        """What it was split into as far back as is remembered."""
        found = dict.fromkeys(key.group for key in self._ids if key.objective == objective)
        return list(found)

    def thin(self, at: float) -> None:
        """Merges what is old, forgets what is too old, and tries again a file that failed."""
        self.written(lambda: self._thin(at))
        self._return()

    def rewind(self, at: float) -> None:
        """Forgets what comes after: a clock was set back, and the same hours come again."""
        self.written(lambda: self._rewind(at))

    def newest(self) -> float | None:
        """Time of the last evaluation."""
        [(at,)] = self._db.execute("SELECT max(at) FROM count")
        return None if at is None else float(at)

    def of(self, key: Key) -> Counted:
        return Counted(self._db, self._ids.get(key, _NOTHING))

    def marks(self, key: Key, begin: float, end: float, interval: float) -> list[Mark]:
        """Each evaluation of (begin, end] that could be judged. interval: between them."""
        found = []
        for first, last, incident in self._runs(key, begin, end):
            n = max(0, int((begin - first) // interval))
            while (at := first + n * interval) <= min(last, end) + interval / 2:
                if at > begin:
                    found.append(Mark(min(at, last), bool(incident)))
                n += 1
        return found

    def edges(self, key: Key, begin: float, end: float) -> list[Mark]:
        """First and last of each run of evaluations alike: as good as all, to count incidents."""
        return [
            Mark(at, bool(incident))
            for first, last, incident in self._runs(key, begin, end)
            for at in dict.fromkeys((max(first, begin + 1e-6), last))
        ]

    def _runs(self, key: Key, begin: float, end: float) -> list[tuple[float, float, int]]:
        return self._db.execute(
            "SELECT first, last, incident FROM run"
            " WHERE thing = ? AND last > ? AND first <= ? ORDER BY first",
            (self._ids.get(key, _NOTHING), begin, end),
        ).fetchall()

    def _leave(self, error: sqlite3.Error) -> None:
        """Goes on in memory, with all that can be read of the file; if that is nothing, the file
        is not written again, as it may hold more."""
        copy = _copied(self._db)
        self._file, self._db = self._db, copy or _open(None)
        self._is_to_return = copy is not None
        self._ids = self._read_ids()
        self.fault = (
            f"{self.path} cannot be written ({error}): what is judged is kept in memory, and a"
            " restart forgets it"
        )
        _log.error("the history is not kept", extra=fields(file=str(self.path), error=str(error)))

    def _return(self) -> None:
        """Into the file, if that can be written again."""
        if self._file is None or not self._is_to_return:
            return
        try:
            _copy(self._db, self._file)
        except sqlite3.Error:
            return
        self._db.close()
        self._db, self._file, self.fault = self._file, None, ""
        _log.info("the history is kept again")

    def _read_ids(self) -> dict[Key, int]:
        return {Key.of(name): id for id, name in self._db.execute("SELECT id, name FROM thing")}

    def _thin(self, at: float) -> None:
        for number, level in enumerate(LEVELS[:-1]):
            self._merge(number, LEVELS[number + 1].span, at - level.age)
        self._db.execute("DELETE FROM count WHERE at <= ?", (at - self._longest,))
        self._db.execute("DELETE FROM run WHERE last <= ?", (at - self._longest,))
        self._db.execute("DELETE FROM seen WHERE at <= ?", (at - SEEN_FOR,))
        self._forget_things()

    def _rewind(self, at: float) -> None:
        self._db.execute("DELETE FROM count WHERE at > ?", (at,))
        self._db.execute("DELETE FROM run WHERE first > ?", (at,))
        self._db.execute("UPDATE run SET last = ? WHERE last > ?", (at, at))
        self._db.execute("UPDATE seen SET at = ? WHERE at > ?", (at, at))

    def _merge(self, level: int, span: float, before: float) -> None:
        """Rows of whole spans up to `before` become one row each, of the next level."""
        before = before // span * span
        rows = self._db.execute(
            "SELECT thing, max(at), sum(bad), sum(total), sum(samples) FROM count"
            " WHERE level = ? AND at <= ?"
            " GROUP BY thing, CAST(at / ? AS INTEGER) + (at > ? * CAST(at / ? AS INTEGER))",
            (level, before, span, span, span),
        ).fetchall()
        self._db.execute("DELETE FROM count WHERE level = ? AND at <= ?", (level, before))
        self._db.executemany(
            "INSERT OR REPLACE INTO count VALUES (?, ?, ?, ?, ?, ?)",
            [(thing, at, level + 1, *sums) for thing, at, *sums in rows],
        )

    def _forget_things(self) -> None:
        gone = self._db.execute(
            "DELETE FROM thing WHERE id NOT IN (SELECT thing FROM count)"
            " AND id NOT IN (SELECT thing FROM run) RETURNING name"
        )
        for (name,) in gone.fetchall():
            del self._ids[Key.of(name)]

    def _id(self, key: Key) -> int:
        if key not in self._ids:
            self._db.execute("INSERT OR IGNORE INTO thing (name) VALUES (?)", (key.text,))
            [(self._ids[key],)] = self._db.execute(
                "SELECT id FROM thing WHERE name = ?", (key.text,)
            )
        return self._ids[key]


@dataclass(frozen=True, slots=True)
class Counted:
    """The history of one thing, as slo.budget asks for it."""

    db: sqlite3.Connection
    thing: int

    def sums(self, begin: float, end: float) -> Sums:
        [(bad, total, samples)] = self.db.execute(
            "SELECT total(bad), total(total), total(samples) FROM count"
            " WHERE thing = ? AND at > ? AND at <= ?",
            (self.thing, begin, end),
        )
        return Sums(bad, total, int(samples))


def _open(path: Path | None) -> sqlite3.Connection:
    try:
        if path is not None and _there(path) and not _is_sound(path):
            _put_aside(path)
        db = sqlite3.connect(path or ":memory:", check_same_thread=False)
        db.execute("PRAGMA synchronous = NORMAL")  # whole after SIGKILL; a power cut costs seconds
        if not db.execute("PRAGMA user_version").fetchone()[0]:
            db.executescript(_SCHEMA)
        db.execute(_SEEN)
        db.execute("PRAGMA journal_mode = WAL")  # from here on, so that the file itself has its id
    except (sqlite3.Error, OSError) as error:
        raise _unkept(path, error) from error
    return db


def _refuse_foreign(path: Path) -> None:
    """What is somebody else's is not touched. Raises StartError, OSError."""
    if not path.exists():
        return
    if not path.is_file():
        raise _foreign(path, "is no regular file")
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if not head:
        return
    if not head.startswith(_MAGIC):
        raise _foreign(path, "is no history of the judge")
    if int.from_bytes(head[_ID_AT : _ID_AT + 4]) != _APPLICATION_ID:
        raise _foreign(path, "is the database of something else")
    version = int.from_bytes(head[_VERSION_AT : _VERSION_AT + 4])
    if version != _VERSION:
        raise _foreign(path, f"has version {version}, this inferslo keeps version {_VERSION}")


def _there(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _is_sound(path: Path) -> bool:
    """Raises sqlite3.OperationalError where that cannot be told."""
    try:
        with closing(sqlite3.connect(path)) as db:
            return _is_whole(db)
    except sqlite3.OperationalError:  # no room for its log, no right to read it
        raise
    except sqlite3.DatabaseError:
        return False


def _is_whole(db: sqlite3.Connection) -> bool:
    [(found,)] = db.execute("PRAGMA quick_check(1)")
    return bool(found == "ok")


def _copied(file: sqlite3.Connection) -> sqlite3.Connection | None:
    """In memory; None where it cannot be read."""
    memory = _open(None)
    try:
        _copy(file, memory)
        if _is_whole(memory):
            return memory
    except sqlite3.Error:
        pass
    memory.close()
    return None


def _copy(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    def stop_if_locked(status: int, *_: int) -> None:  # else it waits for ever
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise sqlite3.OperationalError("database is locked")

    source.backup(target, progress=stop_if_locked)


def _put_aside(path: Path) -> None:
    """Under a name that is free, with its log, which SQLite would play into the new file."""
    endings = chain([""], map(".{}".format, count(1)))
    names = (path.with_name(f"{path.name}.broken{ending}") for ending in endings)
    aside = next(name for name in names if not os.path.lexists(name))
    path.rename(aside)
    for suffix in ("-wal", "-shm"):
        if (beside := path.with_name(path.name + suffix)).exists():
            beside.replace(aside.with_name(aside.name + suffix))
    _log.warning("the history is corrupt, put aside", extra=fields(file=str(aside)))


def _foreign(path: Path, why: str) -> StartError:
    return StartError(
        f"{path} {why}: it is left as it is; name another file with --slo-history, or move this one"
        " away"
    )


def _owned(path: Path) -> TextIO:
    """A lock until it is closed or the process ends. Not SQLite's own: the page reads meanwhile."""
    file = None
    try:
        _refuse_foreign(path)
        file = path.with_name(f"{path.name}.lock").open("a", encoding="utf-8")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if file is not None:
            file.close()
        raise StartError(
            f"{path} is the history of another sidecar that runs: name another file with"
            " --slo-history"
        ) from None
    except OSError as error:
        raise _unkept(path, error) from error
    return file


def _unkept(path: Path | None, error: Exception) -> StartError:
    return StartError(
        f"cannot keep the judge's history in {path}: {error}: its folder must be writable and its"
        " disk must have room"
    )
