"""Shapes, bars and sparklines, inline: nothing is fetched, and no style may stand in markup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from ..judge.levels import Level
from .html import Html, tag

_SHAPES = {
    Level.PAGE: "M5 1h6l4 4v6l-4 4H5l-4-4V5z",  # an octagon
    Level.TICKET: "M8 1l7.5 14H.5z",  # a triangle
    Level.UNKNOWN: "M8 1a7 7 0 1 0 .01 0zM8 3.4a4.6 4.6 0 1 1-.01 0z",  # a ring
    Level.IDLE: "M1 6.5h14v3H1z",  # a dash
    Level.OK: "M1 8.5l2.2-2.2 3.3 3.4L13 3l2.2 2.1-8.7 9z",  # a tick
}
WIDE, HIGH = 120, 28


def shape(level: Level) -> Html:
    path = tag("path", d=_SHAPES[level], fill_rule="evenodd")
    return tag("svg", path, class_=f"shape {level}", viewBox="0 0 16 16", aria_hidden="true")


def state(level: Level, word: str) -> Html:
    """A word, and a shape that says it once more; colour only repeats it."""
    return tag("span", shape(level), " ", word, class_=f"state {level}")


def bar(share: float, level: Level) -> Html:
    full = 100 * min(1.0, max(0.0, share))
    return tag(
        "svg",
        tag("rect", class_="back", width=100, height=10, rx=2),
        tag("rect", class_="full", width=full, height=10, rx=2),
        class_=f"bar {level}", viewBox="0 0 100 10", preserveAspectRatio="none", aria_hidden="true",
    )  # fmt: skip


def spark(line: Sequence[float | None], label: str, *, limit: float | None = None) -> Html | None:
    """A line over the last hour, gaps left open. limit: drawn dashed. None if there is no line."""
    known = [value for value in line if value is not None]
    if len(known) < 2:
        return None
    top = max([*known, (limit or 0) * 1.2]) or 1.0
    lines = [tag("polyline", points=points) for points in _polylines(line, top)]
    if limit is not None:
        y = _y(limit, top)
        lines.insert(0, tag("line", x1=0, x2=WIDE, y1=y, y2=y))
    return tag(
        "svg", tag("title", label), lines,
        class_="spark", viewBox=f"0 0 {WIDE} {HIGH}", role="img", preserveAspectRatio="none",
    )  # fmt: skip


def _polylines(line: Sequence[float | None], top: float) -> Iterator[str]:
    step = WIDE / max(1, len(line) - 1)
    for known, run in groupby(enumerate(line), lambda each: each[1] is not None):
        if known:
            points = [f"{x * step:.1f},{_y(y or 0.0, top):.1f}" for x, y in run]
            yield " ".join(points if len(points) > 1 else points * 2)


def _y(value: float, top: float) -> float:
    return round(HIGH - 2 - (HIGH - 4) * min(1.0, max(0.0, value / top)), 1)
