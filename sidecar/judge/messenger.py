"""Tells an Alertmanager what fires, where no Prometheus does.

As Prometheus tells it: at once when something changes, again every minute while it fires, with an
end that lies ahead so that an alert whose sender died ends by itself; and what is over is said to
be over for a quarter of an hour, so that an Alertmanager that was away hears of it too.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ...rules.alertmanager.api import Report
from ...rules.alertmanager.errors import AlertmanagerError
from ...rules.naming import WATCHDOG
from ..log import fields
from .firing import Firing
from .judge import Judgement
from .texts import filled

if TYPE_CHECKING:
    from ...rules.alertmanager.client import Alertmanager

AGAIN = 60.0  # seconds until what still fires is told again
_RESOLVED_FOR = 900.0
_AFTER_FAILURE = 5.0
_log = logging.getLogger(__name__)
_Key = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Ended:
    firing: Firing
    at: float


class Messenger:
    """A thread that posts. again: seconds until what still fires is told again."""

    def __init__(
        self,
        alertmanager: Alertmanager,
        *,
        again: float = AGAIN,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._alertmanager = alertmanager
        self._again = again
        self._wall = wall
        self._lock = threading.Lock()
        self._firing: dict[_Key, Firing] = {}
        self._ended: dict[_Key, _Ended] = {}
        self._changed = threading.Event()
        self._stopping = False
        self.fault = ""
        self._thread = threading.Thread(target=self._run, name="messenger", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, patience: float = 5.0) -> None:
        """Ends the thread. What fires is left to end by itself: a restart is no recovery."""
        self._stopping = True
        self._changed.set()
        if self._thread.is_alive():
            self._thread.join(patience)

    def hear(self, judgement: Judgement) -> None:
        """The alerts that fire now, all of them."""
        now = {_key(firing): firing for firing in judgement.firing}
        with self._lock:
            gone = self._firing.keys() - now.keys()
            changed = bool(gone) or bool(now.keys() - self._firing.keys())
            for key in gone:
                self._ended[key] = _Ended(self._firing[key], judgement.at)
            for key in now:
                self._ended.pop(key, None)
            self._firing = now
        if changed:
            self._changed.set()

    def hear_nothing(self) -> None:
        """The judge cannot judge. What fired is told on, but for the watchdog: that it is not heard
        tells whoever listens for it."""
        with self._lock:
            self._firing = {
                key: one for key, one in self._firing.items() if one.alert.alert != WATCHDOG.name
            }

    def reports(self, at: float) -> list[Report]:
        """What is to be told at a time."""
        ends = _time(at + 4 * self._again)
        with self._lock:
            ended = {k: each for k, each in self._ended.items() if at - each.at < _RESOLVED_FOR}
            self._ended = ended
            firing: Sequence[Firing] = list(self._firing.values())
        return [
            *(_report(one, ends) for one in firing),
            *(_report(each.firing, _time(each.at)) for each in ended.values()),
        ]

    def _run(self) -> None:
        wait = self._again
        while True:
            self._changed.wait(wait)
            if self._stopping:
                return
            self._changed.clear()
            wait = self._again if self._tell() else _AFTER_FAILURE

    def _tell(self) -> bool:
        if not (reports := self.reports(self._wall())):
            return True
        try:
            delivery = self._alertmanager.post(reports)
        except AlertmanagerError as error:
            return self._failed(str(error))
        if delivery.failed:  # the peers that took them tell each other only what was sent
            return self._failed("; ".join(fault for _, fault in delivery.failed))
        if self.fault:
            _log.info("Alertmanager hears again")
        self.fault = ""
        return True

    def _failed(self, fault: str) -> bool:
        if not self.fault:
            _log.warning("Alertmanager cannot be told", extra=fields(error=fault))
        self.fault = fault
        return False


def _key(firing: Firing) -> _Key:
    return frozenset({**firing.labels, "alertname": firing.alert.alert}.items())


def _report(firing: Firing, ends: datetime) -> Report:
    labels = {"alertname": firing.alert.alert, **firing.labels}
    return Report(labels, filled(firing), starts_at=_time(firing.since), ends_at=ends)


def _time(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
