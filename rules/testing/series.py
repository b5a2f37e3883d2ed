"""Input series in promtool's notation, from spans of time.

https://prometheus.io/docs/prometheus/latest/configuration/unit_testing_rules/: `a+bxn` is n+1
samples from a in steps of b, `_xn` is n samples that are missing, `stale` ends a series.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..promql import quoted


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one series. value: of a counter its growth a second, of a gauge its value; None
    is no sample at all. reset: the counter begins again at 0."""

    seconds: int
    value: float | None
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """One input series, as promtool reads it: name{label="value",…} and its samples."""

    selector: str
    values: str


def selector(name: str, labels: Mapping[str, str]) -> str:
    """Labels in order, so that the same series is always the same text."""
    pairs = ",".join(f"{label}={quoted(value)}" for label, value in sorted(labels.items()))
    return f"{name}{{{pairs}}}"


def counter(
    name: str, labels: Mapping[str, str], spans: Iterable[Span], step: int, start: float = 0.0
) -> Series:
    """A counter that grows as the spans say, from `start`; step: seconds between samples."""
    return Series(selector(name, labels), _samples(spans, step, start))


def gauge(name: str, labels: Mapping[str, str], spans: Iterable[Span], step: int) -> Series:
    """A gauge that has the value of each span in turn."""
    return Series(selector(name, labels), _samples(spans, step, None))


def _samples(spans: Iterable[Span], step: int, start: float | None) -> str:
    """start: where a counter begins; None for a gauge, which jumps from value to value."""
    parts: list[str] = []
    last: float | None = None  # the sample before; None before the first
    for span in spans:
        steps = span.seconds // step
        if span.value is None:
            # A target that loses a series is marked stale; one that never had it is not.
            parts.append(f"_x{steps}" if last is None else f"stale _x{steps - 1}")
            continue
        each = 0.0 if start is None else _exact(span.value * step)
        if start is None:
            first = span.value
        elif last is None:  # a counter that is born late has its first events already in it
            first = each if parts else start
        else:
            first = 0.0 if span.reset else last + each
        parts.append(f"{_number(first)}+{_number(each)}x{steps - 1}")
        last = first + each * (steps - 1)
    return " ".join(parts)


def _exact(growth: float) -> float:
    """The nearest part of 1024, which floats add up without an error: a counter that seems to go
    back by a billionth has been reset, to Prometheus."""
    return round(growth * 1024) / 1024


def _number(value: float) -> str:
    return repr(float(value)).removesuffix(".0")
