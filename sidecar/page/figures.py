"""The numbers that the page shows of engines, GPUs, host and gateway, as data; and what of all
published points they are made from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from ...exporters import names
from ...exporters.names import Family, Feed, Kind
from ...exporters.reading import Histogram, Point
from .trends import Key, Line, Trends
from .words import FORMS, count

if TYPE_CHECKING:
    from ...slo.plan import Plan

_GROUPS = ("engine", "uuid", "gateway", "scope")  # labels that say of what a number is
_ADDED = frozenset({"", "tokens", "bytes"})  # units; of the others the greatest is shown
# Counted over the hour, by the labels that tell outcomes apart.
EVENTS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    names.AGENT_TURNS.name: ("outcome",),
    names.SESSIONS.name: ("state",),
    names.FALLBACKS.name: ("level", "reason"),
    names.QUALITY_CHECKS.name: ("check", "result"),
    names.REGENERATIONS.name: (),
    names.SCHEMA_FAILURES.name: ("schema",),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Figure:
    """A number. A gauge is shown as it is, a counter as its growth a second, a histogram as the
    mean of the last minute; with `of` the share of it.

    where: a label and those of its values that are meant. warn: from this value on it is worth a
    look; warning: the early warning whose threshold that is. yes: it is 1 or 0.
    """

    title: str
    family: Family
    of: Family | None = None
    where: tuple[str, ...] = ()
    warn: float | None = None
    warning: str = ""
    yes: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure's value now, as text, and its line over the last hour."""

    figure: Figure
    text: str
    line: Line
    value: float


def limit(figure: Figure, plan: Plan | None) -> float | None:
    """From which value on it is worth a look, as the SLO file has it, if there is one."""
    if not figure.warning:
        return figure.warn
    from ...rules.warnings import catalogue, threshold  # what no page needs that nobody opens

    [warning] = (each for each in catalogue() if each.name == figure.warning)
    number = warning.threshold if plan is None else threshold(plan, warning)
    return None if number is None else float(number)


_HOT = ("reason", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_slowdown")
FIGURES: Mapping[Feed, tuple[Figure, ...]] = MappingProxyType({
    Feed.ENGINE: (
        Figure("Running", names.REQUESTS_RUNNING),
        Figure("Waiting in the queue", names.REQUESTS_WAITING),
        Figure("Requests", names.REQUESTS),
        Figure("Tokens written", names.GENERATION_TOKENS),
        Figure("Time to first token", names.TTFT),
        Figure("Queue wait", names.QUEUE),
        Figure("Time per output token", names.TPOT),
        Figure("KV cache in use", names.KV_USAGE_MAX, warning="kv_full"),
        Figure("KV fragmentation", names.KV_TAIL_WASTE, warning="kv_fragmentation"),
        Figure("KV fragmentation, at most", names.KV_TAIL_WASTE_UPPER_BOUND),
        Figure("Stranded in the allocator", names.ALLOCATOR_STRANDED),
        Figure("Preemptions", names.PREEMPTIONS),
        Figure("Prefix cache hits", names.PREFIX_CACHE_HITS, of=names.PREFIX_CACHE_QUERIES),
    ),
    Feed.GPU: (
        Figure("Utilisation", names.GPU_UTILIZATION),
        Figure("Memory in use", names.GPU_MEMORY_USED),
        Figure("Memory full", names.GPU_MEMORY_USED, of=names.GPU_MEMORY_TOTAL, warn=0.98),
        Figure("Temperature", names.GPU_TEMPERATURE, where=("sensor", "gpu")),
        Figure("Power", names.GPU_POWER),
        Figure("Slowed by heat", names.GPU_CLOCK_EVENT_ACTIVE, where=_HOT, warn=1, yes=True),
    ),
    Feed.HOST: (
        Figure("Memory", names.CONTAINER_MEMORY),
        Figure("Memory of its limit", names.CONTAINER_MEMORY, of=names.CONTAINER_MEMORY_LIMIT,
               warn=0.95),
        Figure("Open files", names.HOST_OPEN_FDS),
        Figure("Threads", names.HOST_THREADS),
        Figure("Connections", names.HOST_SOCKETS, where=("state", "established")),
    ),
    Feed.GATEWAY: (
        Figure("In flight", names.GATEWAY_IN_FLIGHT),
        Figure("Requests", names.GATEWAY_REQUESTS),
        Figure("Turned away", names.GATEWAY_REJECTED),
        Figure("Fallbacks", names.GATEWAY_FALLBACKS),
        Figure("Failed attempts", names.GATEWAY_UPSTREAM_FAILURES),
    ),
})  # fmt: skip
_WANTED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        family.name: figure.where
        for figures in FIGURES.values()
        for figure in figures
        for family in (figure.family, figure.of)
        if family is not None
    }
)


def numbers(points: Iterable[Point]) -> dict[Key, float]:
    """Of all that is published, what is kept for an hour: (family, group, part) of a figure,
    (family, label values …) of an event."""
    found: dict[Key, float] = {}
    for point in points:
        labels = dict(zip(point.family.labels, point.labels, strict=True))
        for key, value in _numbers(point, labels):
            added = point.family.name in EVENTS or point.family.unit in _ADDED
            before = found.get(key)
            both = value if before is None else before + value if added else max(before, value)
            found[key] = both
    return found


def _numbers(point: Point, labels: Mapping[str, str]) -> Iterator[tuple[Key, float]]:
    name, value = point.family.name, point.value
    if name in EVENTS and not isinstance(value, Histogram):
        yield (name, *(labels[label] for label in EVENTS[name])), value
    elif name in _WANTED:
        where = _WANTED[name]
        if where and labels[where[0]] not in where[1:]:
            return
        group = group_of(labels)
        if isinstance(value, Histogram):
            yield (name, group, "sum"), value.sum
            yield (name, group, "count"), value.count
        else:
            yield (name, group, ""), value


def group_of(labels: Mapping[str, str]) -> str:
    """Of which engine, GPU, … a number is."""
    group = next((labels[label] for label in _GROUPS if label in labels), "")
    if "gpu" not in labels:
        return group
    return f"{labels['gpu']} ({group})" if group else labels["gpu"]


def groups(trends: Trends, feed: Feed) -> list[str]:
    """Of which engines, GPUs, … there are numbers now."""
    families = {figure.family.name for figure in FIGURES[feed]}
    found = {key[1] for key in trends.known() if key[0] in families and trends.now(key) is not None}
    return sorted(found)


def shown(trends: Trends, feed: Feed, group: str) -> Iterator[Shown]:
    """The figures of one engine, GPU, … that have a value now."""
    for figure in FIGURES[feed]:
        value, line = _read(trends, figure, group)
        if value is not None:
            yield Shown(figure, _text(figure, value), line, value)


def _read(trends: Trends, figure: Figure, group: str) -> tuple[float | None, Line]:
    key: Key = (figure.family.name, group, "")
    counts = figure.family.kind is Kind.COUNTER
    if figure.family.kind is Kind.HISTOGRAM:
        return _ratio(trends, (key[0], group, "sum"), (key[0], group, "count"))
    if figure.of is not None:
        whole: Key = (figure.of.name, group, "")
        if counts:
            return _ratio(trends, key, whole)
        part, all_of_it = trends.now(key), trends.now(whole)
        return (part / all_of_it if part is not None and all_of_it else None), []
    if counts:
        change = trends.change(key)
        return (change[0] / change[1] if change is not None else None), trends.rate(key)
    return trends.now(key), trends.gauge(key)


def _ratio(trends: Trends, above: Key, below: Key) -> tuple[float | None, Line]:
    a, b = trends.change(above), trends.change(below)
    now = a[0] / b[0] if a is not None and b is not None and b[0] else None
    return now, trends.ratio(above, below)


def _text(figure: Figure, value: float) -> str:
    if figure.yes:
        return "yes" if value else "no"
    if figure.of is not None:
        return FORMS["ratio"](value)
    if figure.family.kind is Kind.COUNTER:
        return f"{count(value)}/s"
    return FORMS.get(figure.family.unit, count)(value)
