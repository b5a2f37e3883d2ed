"""What a source says of the world in one read: the seam between exporters and the sidecar.

A source is anything with `observe()`. It blocks until it has an Observation or raises
SourceError; the sidecar runs each source in a thread of its own, so a source that hangs
delays nobody else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from .names import Family, Kind


class ErrorKind(StrEnum):
    """Why a read failed: the closed set of values of the label `kind`."""

    REFUSED = "refused"  # nobody listens, or no route
    DNS = "dns"
    TIMEOUT = "timeout"
    TLS = "tls"
    REDIRECT = "redirect"
    STATUS = "status"  # HTTP status other than 200
    UNAUTHORIZED = "unauthorized"
    TOO_LARGE = "too_large"
    TRUNCATED = "truncated"  # the body ended early
    NOT_METRICS = "not_metrics"  # HTML, JSON, …
    MALFORMED = "malformed"
    UNKNOWN_ENGINE = "unknown_engine"
    LIBRARY_MISSING = "library_missing"
    DRIVER = "driver"
    DRIVER_MISMATCH = "driver_mismatch"
    GPU_LOST = "gpu_lost"
    NO_PERMISSION = "no_permission"
    NO_DEVICE = "no_device"
    UNREADABLE = "unreadable"  # a file under /proc or /sys
    INTERNAL = "internal"  # a fault of ours


class InfersloError(Exception):
    """Base of every error that inferslo raises on purpose."""


class SourceError(InfersloError):
    """A read failed; `detail` is one line for the operator: what is wrong and what to do."""

    def __init__(self, kind: ErrorKind, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail


class FatalSourceError(SourceError):
    """Only a new process (or container) can mend it: the sidecar exits non-zero."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """A cumulative histogram.

    bounds: upper bounds, ascending, the last is +Inf; counts: observations ≤ bound, same length.
    """

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    sum: float

    def __post_init__(self) -> None:
        if not self.bounds or len(self.bounds) != len(self.counts):
            raise ValueError("a histogram needs one count per bound, and at least one bound")
        if not math.isinf(self.bounds[-1]):
            raise ValueError("the last bound of a histogram is +Inf")

    @property
    def count(self) -> float:
        return self.counts[-1]


@dataclass(frozen=True, slots=True)
class Point:
    """One value of one published series.

    labels: values in the order of `family.labels`; origin: the series or call it came from,
    for `inferslo read --explain`.
    """

    family: Family
    labels: tuple[str, ...]
    value: float | Histogram
    origin: str = ""

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.family.labels):
            raise ValueError(f"{self.family.name} takes labels {self.family.labels}")
        if isinstance(self.value, Histogram) != (self.family.kind is Kind.HISTOGRAM):
            raise ValueError(f"{self.family.name} is a {self.family.kind}")


@dataclass(frozen=True, slots=True)
class Gap:
    """A signal that this source cannot give now: why, and what the operator can do."""

    signal: str
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Observation:
    """All that one successful read gave. `facts` go to /v1/status, not to /metrics."""

    points: tuple[Point, ...]
    gaps: tuple[Gap, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


class Source(Protocol):
    """Something that can be read. Constructors take clock, client and roots; no globals."""

    @property
    def name(self) -> str:
        """Unique; the value of the label `source` in the sidecar's own families."""
        ...

    @property
    def interval(self) -> float:
        """Seconds between the starts of two reads; 0 reads again at once."""
        ...

    @property
    def deadline(self) -> float:
        """Seconds after which a read counts as hung."""
        ...

    def up_point(self, up: bool) -> Point | None:
        """The health series of this source's own kind (engine_up, gpu_up, …), if it has one."""
        ...

    def observe(self) -> Observation:
        """Read once. Raises SourceError."""
        ...


@dataclass(frozen=True, slots=True)
class Reading:
    """The outcome of one read, good or bad. A failed one carries no observation.

    started: Unix time; seconds: duration.
    """

    source: str
    started: float
    seconds: float
    observation: Observation | None
    error: ErrorKind | None = None
    detail: str = ""

    @property
    def ok(self) -> bool:
        return self.observation is not None
