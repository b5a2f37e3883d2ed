"""A counter that is the difference of two counters read on one page but not moved as one."""

from __future__ import annotations

from enum import Enum


class Restart(Enum):
    """What the counters of an engine did since the page before."""

    NONE = "none"
    PROCESS = "process"  # all began again at zero
    STATISTICS = "statistics"  # vLLM's own began again, those of its HTTP server went on
    PART = "part"  # some series left the page: sums are of fewer, the others went on
    SEVERAL = "several"  # not known: several engines answer in turn


SEVERAL_ENGINES = (
    "several engines answer at this address in turn, so that no page continues the one before",
    "name each replica by its own address",
)


class Excess:
    """Counts how far one counter has got ahead of another; never backwards.

    Requests leave the engine before their HTTP response is counted, so the difference dips while
    work is in flight; it exceeds the truth only between two writes of one event. Hence a value
    counts once two pages in a row have shown it, and the greatest such value stands.

    count_first: the first page counts from zero (a one-off read). Otherwise counting begins with
    it: a restarted sidecar must not give Prometheus the engine's whole history again. How deep the
    difference dips at that moment nobody can tell, and what fills a dip would be counted. So the
    base is the greatest difference of the first `settle` pages (the true one is never below 0), and
    what happens on them is lost; a dip that lasts longer is counted when it fills.
    """

    def __init__(self, *, count_first: bool, settle: int = 2) -> None:
        self._settle = settle
        self._unsettled = 0 if count_first else settle  # pages to come that belong to the base
        self._base = 0.0
        self._previous: float | None = None
        self._confirmed = 0.0
        self._carried = 0.0

    @property
    def settling(self) -> bool:
        """Whether nothing has been counted yet, because the first base is still being found."""
        return self._unsettled > 0 and not self._carried

    def update(
        self, difference: float, restart: Restart = Restart.NONE, *, level: bool = False
    ) -> float:
        """The total so far, over all restarts. difference: of the two counters as they stand.

        level: nothing can be in a dip now, so that no more pages are needed for a base.
        """
        if restart is not Restart.NONE:
            self._begin_again(restart)
        previous, self._previous = self._previous, difference
        if self._unsettled:
            self._base = max(self._base, difference)
            self._unsettled = 0 if level else self._unsettled - 1
            return self._carried
        seen_twice = difference if previous is None else min(previous, difference)
        self._confirmed = max(self._confirmed, seen_twice - self._base)
        return self._carried + self._confirmed

    def _begin_again(self, restart: Restart) -> None:
        self._carried += self._confirmed
        self._confirmed = self._base = 0.0
        process = restart is Restart.PROCESS
        self._unsettled, self._previous = (0, 0.0) if process else (self._settle, None)
