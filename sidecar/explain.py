"""`inferslo read`: what the sidecar would publish from one page, and where each value came from."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

from ..exporters.reading import Histogram, Point
from .interpret import Interpretation
from .printable import printable
from .publisher import render


def as_text(read: Interpretation) -> str:
    """Prometheus text, as at /metrics."""
    return render(read.observation.points).decode()


def as_explained_text(read: Interpretation) -> str:
    """The page, and as comments at its end, where people look: what came from what, what is
    missing."""
    published = [("published", "series", "made from"), *_made_from(read.observation.points)]
    lines = ["", f"{read.name} is {read.type} {read.version}".rstrip(), "", *_columns(published)]
    if read.observation.gaps:
        missing = [(gap.signal, gap.reason, gap.remedy) for gap in read.observation.gaps]
        lines += ["", *_columns([("missing", "why", "what to do"), *missing])]
    return as_text(read) + "".join(f"# {printable(line)}".rstrip() + "\n" for line in lines)


def as_json(read: Interpretation) -> str:
    """For scripts. Numbers that JSON cannot hold are text: "+Inf", "NaN"."""
    document = {
        "name": read.name,
        "type": read.type,
        "version": read.version,
        "points": [_point(point) for point in read.observation.points],
        "missing": [
            {"signal": gap.signal, "reason": gap.reason, "remedy": gap.remedy}
            for gap in read.observation.gaps
        ],
        "facts": dict(read.observation.facts),
    }
    return json.dumps(document, indent=2, allow_nan=False)


def _made_from(points: Iterable[Point]) -> Iterator[tuple[str, str, str]]:
    """One row for a family, or one for each of its series if they are made differently."""
    families: dict[str, list[Point]] = {}
    for point in points:
        families.setdefault(point.family.name, []).append(point)
    for name, group in families.items():
        if len({point.origin for point in group}) == 1:
            yield name, str(len(group)), group[0].origin
        else:
            for point in group:
                yield f"{name}{{{_distinguishing(point, group)}}}", "1", point.origin


def _distinguishing(point: Point, group: list[Point]) -> str:
    return ",".join(
        f'{label}="{value}"'
        for i, (label, value) in enumerate(zip(point.family.labels, point.labels, strict=True))
        if len({other.labels[i] for other in group}) > 1
    )


def _columns(rows: list[tuple[str, str, str]]) -> Iterator[str]:
    first, second = (max(len(row[i]) for row in rows) for i in (0, 1))
    for row in rows:
        yield f"{row[0]:<{first}}  {row[1]:<{second}}  {row[2]}".rstrip()


def _point(point: Point) -> dict[str, Any]:
    labels = dict(zip(point.family.labels, point.labels, strict=True))
    value: Any
    if isinstance(point.value, Histogram):
        value = {
            "bounds": [_number(bound) for bound in point.value.bounds],
            "counts": [_number(count) for count in point.value.counts],
            "sum": _number(point.value.sum),
        }
    else:
        value = _number(point.value)
    return {"name": point.family.name, "labels": labels, "value": value, "origin": point.origin}


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else f"{value:+}".replace("inf", "Inf")
