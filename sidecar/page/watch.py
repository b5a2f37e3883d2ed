"""What the page knows beyond this moment: an hour of numbers and the last changes, kept whether or
not anybody looks."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...exporters.reading import Point
from ..judge.levels import Level, of_severity, of_source, standing
from .changes import OVER, Change, Changes, Now
from .figures import numbers
from .trends import Trends

if TYPE_CHECKING:
    from ..judge.judge import Judgement
    from ..judge.loop import Judging

_EVERY = 5.0  # seconds
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Facts:
    """All that is shown. status: the document of /v1/status."""

    at: float
    status: dict[str, Any]
    judging: Judging | None
    trends: Trends
    changes: list[Change]

    @property
    def judgement(self) -> Judgement | None:
        return self.judging.latest if self.judging is not None else None


class Watch:
    """Looks every few seconds, and whenever the page is made.

    points: what is published now; status: the document of /v1/status.
    """

    def __init__(
        self,
        points: Callable[[], Iterable[Point]],
        status: Callable[[], dict[str, Any]],
        judging: Judging | None,
        *,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.judging = judging
        self._points = points
        self._status = status
        self.wall = wall
        self._trends = Trends()
        self._changes: Changes | None = None
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._run, name="page", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()

    def look(self) -> Facts:
        """How all stands now; one thread at a time."""
        with self._lock:
            at, status = self.wall(), self._status()
            self._trends.put(at, numbers(self._points()))
            if self._changes is None:
                self._changes = Changes(_remembered(self.judging))
            self._changes.look(at, _states(status, self.judging))
            return Facts(at, status, self.judging, self._trends, self._changes.latest())

    def _run(self) -> None:
        failed = False
        while not self._stop.wait(_EVERY):
            try:
                self.look()
                failed = False
            except Exception:  # noqa: BLE001 - a fault of ours must not end the thread
                if not failed:
                    _log.exception("the page cannot look")
                failed = True


def _states(status: dict[str, Any], judging: Judging | None) -> dict[str, Now]:
    sources = {
        f"source {source['name']}": Now(of_source(source["state"]), source["state"])
        for source in status["sources"]
    }
    if judging is None or judging.latest is None:
        return sources
    from ..judge.gauges import group_text

    judged = {
        " ".join(filter(None, ("objective", verdict.objective.name, group_text(verdict)))): Now(
            *standing(verdict)
        )
        for verdict in judging.latest.verdicts
    }
    told = {}
    for one in judging.latest.alerts:
        which = f"tier {one.labels['tier']} ({one.labels['team']}), {one.alert.alert}"
        word = "paged" if one.labels["severity"] == "page" else "has a ticket"
        what = f"{which} of {one.labels['slo']}"
        told[what] = Now(of_severity(one.labels["severity"]), word)
    return sources | judged | told


def _remembered(judging: Judging | None) -> list[Change]:
    """Incidents that the judge's history knows of."""
    if judging is None:
        return []
    from ..judge.recent import incidents

    begun = Now(Level.PAGE, "Incident")
    return [
        Change(at, f"objective {name}", begun if on else OVER)
        for at, name, on in incidents(judging.judge.history_file)
    ]
