"""Turns points into a page of Prometheus text or OpenMetrics, by prometheus_client's encoders."""

from __future__ import annotations

import gzip
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import Metric
from prometheus_client.exposition import choose_encoder, generate_latest
from prometheus_client.registry import Collector

from ..exporters.names import FAMILIES, Kind
from ..exporters.reading import Histogram, Point

# A page is made anew when something changed, and else at this age: the gauges that grow by
# themselves (in-flight age) are never older.
MAX_AGE = 1.0


def render(points: Iterable[Point]) -> bytes:
    """The points as Prometheus text 0.0.4, in the order of the contract."""
    return generate_latest(_Points(points))


class Publisher:
    """Serves pages of what `collect` gives; a page is kept until `version` changes.

    version: anything that is unequal once `collect` would give other points.
    """

    def __init__(
        self,
        collect: Callable[[], Iterable[Point]],
        version: Callable[[], object],
        *,
        extra: Collector | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._collect = collect
        self._version = version
        self._extra = extra
        self._clock = clock
        self._lock = threading.Lock()
        self._made: tuple[object, float] = (object(), 0.0)
        self._pages: dict[tuple[str, bool], bytes] = {}

    def page(self, accept: str, *, compress: bool) -> tuple[bytes, str]:
        """The page and its content type, negotiated from the Accept header."""
        try:
            encoder, content_type = choose_encoder(accept)
        except TypeError:  # a version that is no number
            encoder, content_type = choose_encoder("")
        with self._lock:
            self._expire()
            page = self._pages.get((content_type, False))
            if page is None:
                page = self._pages[content_type, False] = encoder(
                    _Points(self._collect(), self._extra)
                )
            if compress:
                plain = page
                page = self._pages.get((content_type, True))
                if page is None:
                    page = self._pages[content_type, True] = gzip.compress(plain, compresslevel=1)
        return page, content_type

    def _expire(self) -> None:
        version, made = self._made
        if version != self._version() or self._clock() - made > MAX_AGE:
            self._pages.clear()
            self._made = (self._version(), self._clock())


class _Points(Collector):
    """Points as prometheus_client's metric families, in the order of the contract."""

    def __init__(self, points: Iterable[Point], extra: Collector | None = None) -> None:
        self._points = points
        self._extra = extra

    def collect(self) -> Iterator[Metric]:
        by_family: dict[str, list[Point]] = {}
        for point in self._points:
            by_family.setdefault(point.family.name, []).append(point)
        for name, family in FAMILIES.items():
            if name not in by_family:
                continue
            metric = Metric(name.removesuffix("_total"), family.help, family.kind)
            for point in by_family[name]:
                _add(metric, point)
            yield metric
        if self._extra is not None:
            yield from self._extra.collect()


def _add(metric: Metric, point: Point) -> None:
    labels = dict(zip(point.family.labels, point.labels, strict=True))
    if isinstance(point.value, Histogram):
        for bound, count in zip(point.value.bounds, point.value.counts, strict=True):
            le = "+Inf" if math.isinf(bound) else repr(bound)
            metric.add_sample(metric.name + "_bucket", {**labels, "le": le}, count)
        metric.add_sample(metric.name + "_count", labels, point.value.count)
        metric.add_sample(metric.name + "_sum", labels, point.value.sum)
    elif point.family.kind is Kind.COUNTER:
        metric.add_sample(metric.name + "_total", labels, point.value)
    else:
        metric.add_sample(metric.name, labels, point.value)
