"""The event journal: totals and remembered ids in one SQLite file, durable at every commit.

Raw events are not kept, nothing reads them: a start reads the totals and replays nothing, and
the file stays bounded by the number of series and of remembered ids.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...exporters.reading import InfersloError

Series = tuple[str, tuple[str, ...]]
"""Name of a family and the values of its labels."""

_APPLICATION_ID = 0x496E534C  # "InSL": tells our files from other people's databases
_VERSION = 1
# The second is how SQLite says it of a file that it maps.
_NO_ROOM = ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")
_SCHEMA = f"""
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_VERSION};
PRAGMA journal_mode = WAL;
CREATE TABLE totals (
    family TEXT NOT NULL, labels TEXT NOT NULL, value INTEGER NOT NULL,
    PRIMARY KEY (family, labels)
) WITHOUT ROWID;
CREATE TABLE seen (seq INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, at INTEGER NOT NULL);
"""


class JournalError(InfersloError):
    """The journal cannot be opened; the message names the file and what to do."""


class JournalWriteError(InfersloError):
    """The journal could not write just now (disk full, …): nothing of the transaction counts."""


@dataclass(frozen=True, slots=True)
class Memory:
    """How long an id is remembered: until it is `seconds` old or `ids` newer ones have come,
    whichever is first."""

    ids: int = 1_000_000
    seconds: float = 86_400.0


class Journal:
    """One process owns the file, from construction to `close()`; one thread at a time uses it.

    clock: Unix time, for the age of ids only. Raises JournalError.
    """

    def __init__(
        self,
        path: Path,
        *,
        memory: Memory | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = path
        self._memory = memory or Memory()
        self._clock = clock
        self._added = 0
        try:
            if not path.exists():
                _create(path)
        except (sqlite3.Error, OSError) as error:
            raise JournalError(_not_made(path, error)) from error
        self._db = _open(path)
        self._file = _identity(path)
        self._log: tuple[int, int] | None = None

    def totals(self) -> dict[Series, int]:
        rows = self._db.execute("SELECT family, labels, value FROM totals")
        return {(family, tuple(json.loads(labels))): value for family, labels, value in rows}

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is done inside is durable once this returns, or else undone.

        Raises JournalWriteError.
        """
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._added = 0
            yield
            self._forget()
            self._db.execute("COMMIT")
            self._check_files()
        except sqlite3.Error as error:
            raise JournalWriteError(
                f"cannot write the event journal {self.path}: {error}"
            ) from error
        finally:
            if self._db.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")

    def remember(self, id: str) -> bool:
        """Whether the id is new; inside a transaction."""
        # 16 bytes whatever the id's length bound the file; a chance collision is out of reach.
        digest = hashlib.blake2b(id.encode(), digest_size=16).digest()
        cursor = self._db.execute(
            "INSERT INTO seen (digest, at) VALUES (?, ?) ON CONFLICT DO NOTHING",
            (digest, int(self._clock())),
        )
        self._added += cursor.rowcount
        return cursor.rowcount == 1

    def save(self, totals: Mapping[Series, int]) -> None:
        """Writes the new values of the totals that changed; inside a transaction."""
        self._db.executemany(
            "INSERT INTO totals VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            ((family, json.dumps(labels), value) for (family, labels), value in totals.items()),
        )

    def _forget(self) -> None:
        """Drops ids past their time, at most two for each one added, so that no commit is slow."""
        if not self._added:
            return
        self._db.execute(
            "DELETE FROM seen WHERE seq < (SELECT min(seq) FROM seen) + 2 * ?"
            " AND (at < ? OR seq <= (SELECT max(seq) FROM seen) - ?)",
            (self._added, int(self._clock() - self._memory.seconds), self._memory.ids),
        )

    def _check_files(self) -> None:
        """SQLite writes on, and says all is well, when its files were removed or replaced.

        The log is there from the first change on.
        """
        log = _identity(_log_of(self.path))
        if _identity(self.path) != self._file or (self._log and log != self._log):
            raise JournalWriteError(
                f"the event journal {self.path} was removed, replaced or emptied while in use:"
                " restore it and restart the sidecar"
            )
        self._log = log

    def bytes_on_disk(self) -> int:
        """Size of the file and its write-ahead log; 0 if they were deleted under us."""
        size = 0
        for path in (self.path, _log_of(self.path)):
            with contextlib.suppress(OSError):
                size += path.stat().st_size
        return size

    def close(self) -> None:
        self._db.close()


def _identity(path: Path) -> tuple[int, int] | None:
    """None for a file that is not there, or is empty."""
    try:
        file = path.stat()
    except OSError:
        return None
    return (file.st_dev, file.st_ino) if file.st_size else None


def _log_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _create(path: Path) -> None:
    """Makes a whole journal appear at once, so that an empty or half file is always a fault."""
    if not path.parent.is_dir():
        raise JournalError(
            f"the folder of the event journal {path} does not exist: create it, or mount the"
            " volume that should be there"
        )
    log = _log_of(path)
    if log.exists():
        # SQLite would play the log of the lost file into the new one.
        raise JournalError(
            f"{log} was left behind without {path}: restore the journal, or remove this file too"
            " to start counting from zero"
        )
    with tempfile.TemporaryDirectory(prefix=f"{path.name}.new-", dir=path.parent) as folder:
        unfinished = Path(folder, path.name)
        with contextlib.closing(sqlite3.connect(unfinished, isolation_level=None)) as db:
            db.executescript(_SCHEMA)
            # close() would do it and keep silent about a full disk: half a file would be published.
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        _publish(unfinished, path)


def _publish(unfinished: Path, path: Path) -> None:
    try:
        path.hardlink_to(unfinished)
    except FileExistsError:
        return  # another process was faster; opening the file will tell
    except OSError:  # a file system without hard links
        unfinished.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _open(path: Path) -> sqlite3.Connection:
    with contextlib.ExitStack() as undo:
        try:
            # timeout 0: the only other holder is another sidecar, which will not let go.
            db = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)
            undo.callback(db.close)
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA journal_size_limit = 4194304")
            _claim(db, path)
        except sqlite3.Error as error:
            raise JournalError(_in_words(path, error)) from error
        undo.pop_all()
    return db


def _claim(db: sqlite3.Connection, path: Path) -> None:
    """Takes the lock that lasts until close, and refuses a file that is not a sound journal."""
    db.execute("BEGIN EXCLUSIVE")
    application = db.execute("PRAGMA application_id").fetchone()[0]
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if application != _APPLICATION_ID:
        raise JournalError(
            f"{path} is not an event journal of inferslo, or was emptied: give another path, or"
            " move it away to start counting from zero"
        )
    if version != _VERSION:
        raise JournalError(
            f"the event journal {path} has version {version}, this inferslo reads {_VERSION}: use"
            " the inferslo that wrote it, or move it away to start counting from zero"
        )
    found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    db.execute("COMMIT")
    if found != "ok":
        raise JournalError(_in_words(path, sqlite3.DatabaseError(found)))


def _not_made(path: Path, error: sqlite3.Error | OSError) -> str:
    name = getattr(error, "sqlite_errorname", "")
    if name in _NO_ROOM or getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"cannot create the event journal {path}: no room on the disk ({error}): make room, or"
            " give a path on another disk"
        )
    return (
        f"cannot create the event journal {path}: {error}: its folder must be writable and its"
        " disk must have room"
    )


def _in_words(path: Path, error: sqlite3.Error) -> str:
    if "locked" in str(error):
        return (
            f"the event journal {path} is in use by another process: stop it, or give this one a"
            " path of its own"
        )
    if isinstance(error, sqlite3.OperationalError):
        return (
            f"cannot open the event journal {path}: {error}: it must be a readable and writable"
            " file on a disk with room"
        )
    if getattr(error, "sqlite_errorname", "") == "SQLITE_NOTADB":
        return (
            f"{path} is not an event journal of inferslo ({error}): give another path, or, if it"
            " was one, restore it, or move it away to start counting from zero"
        )
    reason = " ".join(str(error).split())
    return (
        f"the event journal {path} is corrupt ({reason}): restore it, or move it away to start"
        " counting from zero"
    )
