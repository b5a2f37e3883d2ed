"""Counts business events: durably, each id once.

One writer thread takes all that came in while the last commit was under way and commits it at
once, so that many clients share one fsync; a caller hears of its events only after that.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import StrEnum

from ...exporters import names
from ...exporters.names import FAMILIES
from ...exporters.reading import InfersloError, Point
from .journal import Journal, JournalError, JournalWriteError, Series
from .model import Event
from .tally import Limits, Tally

_log = logging.getLogger(__name__)


class Result(StrEnum):
    """What became of an event: the values of the label `result`."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    INVALID = "invalid"


class BusyError(InfersloError):
    """Too many events wait for the disk; come again."""


@dataclass(frozen=True, slots=True)
class _Job:
    events: Sequence[Event]
    invalid: int
    done: Future[list[Result]] = field(default_factory=Future)


class Business:
    """Takes events from any thread and gives their totals as points.

    It owns the journal from now on. pending: events that may wait for the disk. Raises
    JournalError if the totals in the journal are not of the families that this version publishes.
    """

    def __init__(self, journal: Journal, limits: Limits, *, pending: int = 10_000) -> None:
        self._journal = journal
        self._limits = limits
        self._most_pending = pending
        totals = journal.totals()
        _check_families(totals, journal)
        self._tally = Tally(totals, self._limits)
        for result in Result:
            self._tally.add(names.EVENTS_RECEIVED, (result,), 0)
        self._committed: dict[Series, int] = {}
        self._points: dict[Series, Point] = {}
        self._lock = threading.Lock()
        self.version = 0  # grows with every change of points()
        self._publish(totals | self._tally.take_changed())
        self._fault: str | None = None
        self._wakeup = threading.Condition()
        self._jobs: list[_Job] = []
        self._pending = 0
        self._closing = False
        self._writer = threading.Thread(target=self._write, name="events-writer", daemon=True)
        self._writer.start()

    def record(self, events: Sequence[Event], invalid: int = 0) -> Future[list[Result]]:
        """Counts the events, and `invalid` that were refused. The future is done when all is
        on disk, with one result per event, or fails with JournalWriteError: then none counts.

        Raises BusyError if too many events wait already, JournalWriteError after close.
        """
        job = _Job(events, invalid)
        with self._wakeup:
            if self._closing:
                raise JournalWriteError("the sidecar is stopping")
            if self._jobs and self._pending + len(events) > self._most_pending:
                raise BusyError(f"{self._pending} events wait for the disk")
            self._jobs.append(job)
            self._pending += max(1, len(events))
            self._wakeup.notify()
        return job.done

    def points(self) -> tuple[Point, ...]:
        """All totals on disk. Never waits for the disk."""
        with self._lock:
            return tuple(self._points.values())

    @property
    def fault(self) -> str | None:
        """Why the last write failed; None if it did not: then events are being taken."""
        return self._fault

    def close(self, timeout: float = 10.0) -> None:
        """Writes what waits and closes the journal; gives up after `timeout` seconds."""
        with self._wakeup:
            self._closing = True
            self._wakeup.notify()
        self._writer.join(timeout)

    def _write(self) -> None:
        while jobs := self._take():
            # A caller that gave up before its turn is left out; one in its turn is too late.
            self._commit([job for job in jobs if job.done.set_running_or_notify_cancel()])
        self._journal.close()

    def _take(self) -> list[_Job]:
        with self._wakeup:
            self._wakeup.wait_for(lambda: self._jobs or self._closing)
            jobs, self._jobs, self._pending = self._jobs, [], 0
        return jobs

    def _commit(self, jobs: list[_Job]) -> None:
        try:
            with self._journal.transaction():
                results = [self._count(job) for job in jobs]
                changed = self._tally.take_changed()
                self._journal.save(changed)
        except Exception as error:  # noqa: BLE001 - whatever it was, no caller may wait for ever
            self._tally = Tally(self._committed, self._limits)
            self._note(str(error))
            for job in jobs:
                job.done.set_exception(error)
            return
        self._publish(changed)
        self._note(None)
        for job, result in zip(jobs, results, strict=True):
            job.done.set_result(result)

    def _count(self, job: _Job) -> list[Result]:
        results = [self._count_once(event) for event in job.events]
        received = Counter(results) + Counter({Result.INVALID: job.invalid})
        for result, amount in received.items():
            self._tally.add(names.EVENTS_RECEIVED, (result,), amount)
        return results

    def _count_once(self, event: Event) -> Result:
        if event.id is not None and not self._journal.remember(event.id):
            return Result.DUPLICATE
        self._tally.count(event)
        return Result.ACCEPTED

    def _publish(self, changed: dict[Series, int]) -> None:
        self._committed.update(changed)
        size = {(names.EVENTS_JOURNAL_BYTES.name, ()): self._journal.bytes_on_disk()}
        points = {
            (name, labels): Point(FAMILIES[name], labels, value)
            for (name, labels), value in (changed | size).items()
        }
        with self._lock:
            self._points.update(points)
            self.version += 1

    def _note(self, fault: str | None) -> None:
        if fault and not self._fault:
            _log.error("events are refused: %s", fault)
        elif self._fault and not fault:
            _log.info("events are taken again")
        self._fault = fault


def _check_families(totals: Mapping[Series, int], journal: Journal) -> None:
    for name, labels in totals:
        family = FAMILIES.get(name)
        if family is None or len(family.labels) != len(labels):
            raise JournalError(
                f"the event journal {journal.path} holds totals of {name}, which this inferslo"
                " does not publish in that shape: use the inferslo that wrote it, or move it away"
                " to start counting from zero"
            )
