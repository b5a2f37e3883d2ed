"""An Observation in the making: points, and for every signal how it was obtained or why not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ..names import SIGNAL_AVAILABLE, Family, Origin
from ..reading import Gap, Histogram, Observation, Point
from .series import UnusableError


class Draft:
    """Collects what one page of one engine gave. The label `engine` is put in front of others."""

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self._points: list[Point] = []
        self._sources: dict[str, Origin | None] = {}
        self._gaps: list[Gap] = []

    def add(self, family: Family, value: float | Histogram, *labels: str, origin: str = "") -> None:
        self._points.append(Point(family, (self._engine, *labels), value, origin))

    def available(self, signal: str, source: Origin) -> None:
        self._sources[signal] = source

    def missing(self, gap: Gap) -> None:
        self._sources[gap.signal] = None
        self._gaps.append(gap)

    @contextmanager
    def gap_if_unusable(self, *signals: str) -> Iterator[None]:
        """Where samples give no value these signals are missing, and no others."""
        try:
            yield
        except UnusableError as unusable:
            for signal in signals:
                self.missing(Gap(signal, str(unusable), "see what vLLM's page says of it"))

    def observation(self, facts: Mapping[str, str]) -> Observation:
        for signal, source in self._sources.items():
            self.add(SIGNAL_AVAILABLE, float(source is not None), signal, source or "")
        return Observation(tuple(self._points), tuple(self._gaps), facts)
