"""Notices that an engine's counters began again."""

from __future__ import annotations

from collections.abc import Iterator

from .excess import Restart
from .series import HTTP_REQUESTS, START_TIME, VllmPage, identity

_WATCHED = ("request_success_total", "prompt_tokens_total", "generation_tokens_total")


_Key = tuple[str, frozenset[tuple[str, str]]]  # name and labels


class Restarts:
    """Compares a page with the one before. `total`: restarts seen, of either kind.

    An elastic scale-up rebuilds vLLM's statistics in place: they fall while the process lives.
    With several API servers there is no start time; then only falling counters tell.
    """

    def __init__(self) -> None:
        self.total = 0
        self._start: float | None = None
        self._last: dict[_Key, float] = {}

    def seen(self, page: VllmPage) -> Restart:
        restart = self._compare(page)
        self.total += restart is not Restart.NONE
        return restart

    def _compare(self, page: VllmPage) -> Restart:
        now = dict(_counters(page))
        last, self._last = self._last, now
        fell = {key[0] for key, value in now.items() if value < last.get(key, 0.0)}
        if self._started_anew(page) or HTTP_REQUESTS in fell:
            return Restart.PROCESS
        if not fell:
            return Restart.NONE
        lives_on = bool(page.page.samples(HTTP_REQUESTS))
        return Restart.STATISTICS if lives_on else Restart.PROCESS

    def _started_anew(self, page: VllmPage) -> bool:
        before, self._start = self._start, start_time(page)
        return before is not None and self._start is not None and self._start != before


def start_time(page: VllmPage) -> float | None:
    """Unix time at which the API process started; None where the page does not tell.

    On a page of Ray's agent it is the agent's own.
    """
    samples = page.page.samples(START_TIME)
    return samples[0].value if len(samples) == 1 and not page.is_ray else None


def _counters(page: VllmPage) -> Iterator[tuple[_Key, float]]:
    for name in _WATCHED:
        for sample in page.find(name).samples:
            yield (name, identity(sample)), sample.value
    for sample in page.page.samples(HTTP_REQUESTS):
        yield (HTTP_REQUESTS, identity(sample)), sample.value
