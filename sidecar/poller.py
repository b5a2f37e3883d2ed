"""Reads each source over and over, each in a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable

from ..exporters.reading import ErrorKind, FatalSourceError, Reading, Source, SourceError
from .board import Board
from .log import fields

# A source that fails at once must not spin, whatever its interval.
MIN_PAUSE_AFTER_FAILURE = 1.0
_log = logging.getLogger(__name__)


class Poller:
    """Starts a daemon thread per source: a read that never returns cannot be stopped, only left.

    on_fatal hears of an error that only a new process can mend.
    """

    def __init__(
        self,
        board: Board,
        *,
        on_fatal: Callable[[FatalSourceError], None],
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._board = board
        self._on_fatal = on_fatal
        self._wall = wall
        self._clock = clock
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._faults: set[tuple[str, str]] = set()

    def add(self, source: Source) -> None:
        """Starts to read the source. Raises ValueError if its name is taken."""
        self._board.add(source)
        thread = threading.Thread(
            target=self._run, args=(source,), name=f"read-{source.name}", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def watch(self, period: float = 1.0) -> None:
        """Starts a thread that marks hung sources, whether or not anybody scrapes."""

        def watch() -> None:
            while not self._stop.wait(period):
                self._board.check()

        thread = threading.Thread(target=watch, name="watch", daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self, patience: float = 1.0) -> None:
        """Asks every thread to end and waits `patience` seconds in all for those that can."""
        self._stop.set()
        ends = self._clock() + patience
        for thread in self._threads:
            thread.join(max(0.0, ends - self._clock()))

    def _run(self, source: Source) -> None:
        while not self._stop.is_set():
            began = self._clock()
            reading = self._read(source)
            self._board.finish(reading)
            pause = source.interval - (self._clock() - began)
            if not reading.ok:
                pause = max(pause, MIN_PAUSE_AFTER_FAILURE)
            self._stop.wait(max(0.0, pause))

    def _read(self, source: Source) -> Reading:
        started, began = self._wall(), self._clock()

        def reading(error: ErrorKind, detail: str) -> Reading:
            return Reading(source.name, started, self._clock() - began, None, error, detail)

        self._board.begin(source.name)
        try:
            observation = source.observe()
        except FatalSourceError as error:
            self._on_fatal(error)
            return reading(error.kind, error.detail)
        except SourceError as error:
            return reading(error.kind, error.detail)
        except Exception as error:  # noqa: BLE001 - a fault of one adapter must not end its thread
            self._log_once(source.name, error)
            return reading(ErrorKind.INTERNAL, f"{type(error).__name__}: {error}"[:200])
        return Reading(source.name, started, self._clock() - began, observation)

    def _log_once(self, source: str, error: Exception) -> None:
        """The traceback, for us to mend; once for a place, although it may come at every read."""
        place = traceback.extract_tb(error.__traceback__)[-1]
        fault = source, f"{type(error).__name__} at {place.filename}:{place.lineno}"
        if fault not in self._faults:
            self._faults.add(fault)
            _log.exception("fault of ours", extra=fields(source=source))
