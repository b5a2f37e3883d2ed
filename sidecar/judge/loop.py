"""Keeps judging: a thread that steps the judge at every interval."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator

from ...exporters.reading import Point
from ..log import fields
from .gauges import age
from .gauges import points as gauges
from .judge import Judge, Judgement
from .messenger import Messenger

_LATE = 3  # intervals without a judgement after which nobody judges
_log = logging.getLogger(__name__)


class Judging:
    """Holds the latest judgement, and tells the messenger of each.

    Evaluations are at multiples of the interval of the wall's clock, as Prometheus's are. One that
    fails is no judgement: the one before it stays, and tells its age.
    """

    def __init__(
        self,
        judge: Judge,
        messenger: Messenger | None = None,
        *,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.judge = judge
        self.messenger = messenger
        self.latest: Judgement | None = None
        self.fault = ""
        self.version = 0
        self._wall = wall
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def interval(self) -> int:
        return self.judge.plan.evaluation.interval

    def start(self, collect: Callable[[], Iterable[Point]]) -> None:
        """collect: what is published now."""
        if self.messenger is not None:
            self.messenger.start()
        self._thread = threading.Thread(
            target=self._run, args=(collect,), name="judge", daemon=True
        )
        self._thread.start()

    def stop(self, patience: float = 5.0) -> None:
        """Ends the threads; the history may be closed once this returns."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(patience)
        if self.messenger is not None:
            self.messenger.stop(patience)

    def points(self) -> list[Point]:
        """The latest judgement, as published; of one that is not of now its time alone."""
        plan, latest = self.judge.plan, self.latest
        if latest is None:
            return []
        return [age(plan, latest)] if self.doubt(self._wall()) else list(gauges(plan, latest))

    def doubt(self, at: float) -> str:
        """Why the latest judgement does not tell how all stands at a time; empty where it does, and
        before the first."""
        if self.fault or self.latest is None:
            return self.fault
        late = at - self.latest.at > _LATE * self.interval + 1
        return "the judge stands still" if late else ""

    @property
    def now(self) -> float:
        """Unix time."""
        return self._wall()

    def step(self, points: Iterable[Point], at: float) -> None:
        """Judges what is published at a time."""
        try:
            judgement = self.judge.step(points, at)
        except Exception as error:  # noqa: BLE001 - a fault of ours, or of the disk, must not end the thread
            if not self.fault:
                _log.exception("cannot judge", extra=fields(error=str(error)))
            self.fault = f"{type(error).__name__}: {error}"
            self.version += 1
            if self.messenger is not None:
                self.messenger.hear_nothing()
            return
        if self.fault:
            _log.info("judging again")
        self.fault, self.latest = "", judgement
        self.version += 1
        if self.messenger is not None:
            self.messenger.hear(judgement)

    def _run(self, collect: Callable[[], Iterable[Point]]) -> None:
        def points() -> Iterator[Point]:  # what fails in it fails in the step
            yield from collect()

        while not self._stop.wait(self.interval - self._wall() % self.interval):
            at = round(self._wall() / self.interval) * self.interval
            if self.latest is None or at != self.latest.at:
                self.step(points(), at)
