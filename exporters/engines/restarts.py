"""Notices that an engine's counters began again."""

from __future__ import annotations

from collections.abc import Iterator

from ..replicas import Replicas, start_time
from .excess import Restart
from .series import HTTP_REQUESTS, VllmPage, identity
from .traffic import inference_responses

_WATCHED = ("request_success_total", "prompt_tokens_total", "generation_tokens_total")


_Key = tuple[str, frozenset[tuple[str, str]]]  # name and labels


class Restarts:
    """Compares a page with the one before. `total`: restarts seen, of whatever kind.

    An elastic scale-up rebuilds vLLM's statistics in place: they fall while the process lives.
    With several API servers there is no start time; then only falling counters tell. Where there
    is one and it stays, the process lives, whatever its HTTP counters do: a series of theirs that
    falls or is missing once must not give us the engine's whole history again.
    """

    def __init__(self) -> None:
        self.total = 0
        self._replicas = Replicas()
        self._last: dict[_Key, float] | None = None  # None: the page before is of no use

    def seen(self, page: VllmPage) -> Restart:
        restart = self._compare(page)
        self.total += restart not in (Restart.NONE, Restart.SEVERAL)
        return restart

    def _compare(self, page: VllmPage) -> Restart:
        started = engine_start_time(page)
        new = started is not None and self._replicas.seen(started)
        lives = started is not None and not new
        if self._replicas.several:
            self._last = None
            return Restart.SEVERAL
        now = dict(_counters(page))
        last, self._last = self._last, now
        if last is None:
            return Restart.NONE
        fell = {key[0] for key, value in now.items() if value < last.get(key, 0.0)}
        gone = {key[0] for key in last.keys() - now.keys()}
        if new or (not lives and HTTP_REQUESTS in fell | gone):
            return Restart.PROCESS
        if fell - {HTTP_REQUESTS}:
            lives = lives or bool(page.page.samples(HTTP_REQUESTS))
            return Restart.STATISTICS if lives else Restart.PROCESS
        return Restart.PART if gone - {HTTP_REQUESTS} else Restart.NONE


def engine_start_time(page: VllmPage) -> float | None:
    """Unix time at which the API process started; None where the page does not tell.

    On a page of Ray's agent it is the agent's own.
    """
    return None if page.is_ray else start_time(page.page)


def _counters(page: VllmPage) -> Iterator[tuple[_Key, float]]:
    for name in _WATCHED:
        for sample in page.find(name).samples:
            yield (name, identity(sample)), sample.value
    for sample in inference_responses(page):
        yield (HTTP_REQUESTS, identity(sample)), sample.value
