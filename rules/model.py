"""What the compiler makes before it is written in anybody's format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording rule: `record` is the series' name, `labels` are added to what `expr` gives."""

    record: str
    expr: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alert:
    """An alerting rule. hold: seconds that `expr` must hold (`for`)."""

    alert: str
    expr: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    hold: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """Rules that are evaluated together every `interval` seconds. No rule reads a series that the
    same group records: vmalert would see it one evaluation late."""

    name: str
    interval: int
    rules: tuple[Recording | Alert, ...]


class Format(StrEnum):
    """Whose form the rules are written in (formats.py)."""

    PROMETHEUS = "prometheus"
    OPERATOR = "operator"
    MIMIR = "mimir"
    VMALERT = "vmalert"
