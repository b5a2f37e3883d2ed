"""`inferslo read`: what the sidecar would publish from one page, and where each value came from."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..exporters.engines import ENGINES
from ..exporters.exposition import parse
from ..exporters.gateways.litellm import LiteLlm
from ..exporters.http import HttpFetcher
from ..exporters.reading import ErrorKind, Histogram, Observation, Point, SourceError
from .discovery import version
from .publisher import render
from .recognise import LITELLM, recognise
from .settings import Target
from .values import read_token


@dataclass(frozen=True, slots=True)
class Fetched:
    """One page, not yet read. name: becomes the label `engine` or `gateway`."""

    name: str
    body: bytes
    content_type: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Interpretation:
    """What the page is of (as in `recognise`), and what it gives."""

    name: str
    type: str
    observation: Observation


def fetch_url(target: Target) -> Fetched:
    """Raises SourceError."""
    token = read_token(target.bearer_token_file) if target.bearer_token_file else None
    fetcher = HttpFetcher(bearer_token=token, ca_file=target.ca_file)
    answer = fetcher.get(target.metrics_url)
    return Fetched(target.name, answer.body, answer.content_type, version(target.url, fetcher))


def fetch_file(path: str, stdin: BinaryIO) -> Fetched:
    """`-` is standard input. Raises SourceError."""
    if path == "-":
        return Fetched("stdin", stdin.read())
    try:
        return Fetched(Path(path).name, Path(path).read_bytes())
    except OSError as error:
        raise SourceError(
            ErrorKind.UNREADABLE,
            f"{path} cannot be read: {error.strerror}; a URL starts with http://",
        ) from None


def interpret(page: Fetched) -> Interpretation:
    """Raises SourceError."""
    parsed = parse(page.body, page.content_type)
    type = recognise(parsed)
    if type == LITELLM:
        observation = LiteLlm(page.name).observe(parsed)
    else:
        observation = ENGINES[type](page.name).observe(parsed, page.version)
    return Interpretation(page.name, type, observation)


def as_text(read: Interpretation) -> str:
    """Prometheus text, as at /metrics."""
    return render(read.observation.points).decode()


def as_table(read: Interpretation) -> str:
    """For people: each published family and its source series; then what is missing."""
    published = [("published", "series", "made from"), *_families(read.observation.points)]
    lines = [f"{read.name} is {read.type}", "", *_columns(published)]
    if read.observation.gaps:
        missing = [(gap.signal, gap.reason, gap.remedy) for gap in read.observation.gaps]
        lines += ["", *_columns([("missing", "why", "what to do"), *missing])]
    return "\n".join(lines)


def as_json(read: Interpretation) -> str:
    """For scripts. Numbers that JSON cannot hold are text: "+Inf", "NaN"."""
    document = {
        "name": read.name,
        "type": read.type,
        "points": [_point(point) for point in read.observation.points],
        "missing": [
            {"signal": gap.signal, "reason": gap.reason, "remedy": gap.remedy}
            for gap in read.observation.gaps
        ],
        "facts": dict(read.observation.facts),
    }
    return json.dumps(document, indent=2, allow_nan=False)


def _families(points: Iterable[Point]) -> Iterator[tuple[str, str, str]]:
    origins: dict[str, list[str]] = {}
    for point in points:
        origins.setdefault(point.family.name, []).append(point.origin)
    for name, came_from in origins.items():
        yield name, str(len(came_from)), ", ".join(dict.fromkeys(filter(None, came_from)))


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
