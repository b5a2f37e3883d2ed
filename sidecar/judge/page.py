"""What the sidecar publishes, as the samples that Prometheus would scrape."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator

from ...exporters.reading import Histogram, Point
from .samples import Labels

# Labels that a scrape would add. The rules only ask whether they are the same.
TARGET = {"job": "inferslo", "instance": "self"}
Sample = tuple[str, Labels, float]


def samples_of(points: Iterable[Point], needed: Collection[str]) -> Iterator[Sample]:
    """Of the families that are needed; and `up`, as of a target that answers."""
    yield "up", frozenset(TARGET.items()), 1.0
    for point in points:
        if point.family.name in needed:
            yield from _samples(point)


def _samples(point: Point) -> Iterator[Sample]:
    name, value = point.family.name, point.value
    named = {k: v for k, v in zip(point.family.labels, point.labels, strict=True) if v} | TARGET
    labels = frozenset(named.items())
    if not isinstance(value, Histogram):
        yield name, labels, value
        return
    for bound, count in zip(value.bounds, value.counts, strict=True):
        le = "+Inf" if math.isinf(bound) else repr(bound)
        yield f"{name}_bucket", frozenset({**named, "le": le}.items()), count
    yield f"{name}_count", labels, value.count
    yield f"{name}_sum", labels, value.sum
