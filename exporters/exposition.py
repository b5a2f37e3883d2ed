"""Reads one page of metrics: Prometheus text 0.0.4 or OpenMetrics 1.0."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from .reading import ErrorKind, SourceError

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*+")
_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*+")
_QUOTED = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"')
_SPACE = re.compile(r"[ \t]*+")
_WORD = re.compile(r"[^ \t]++")
_COMMENT = re.compile(r"#[ \t]++(HELP|TYPE|UNIT)[ \t]++(.*+)")
_FINITE = re.compile(r"[-+]?(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][-+]?[0-9]++)?")
_NOT_FINITE = re.compile(r"[-+]?(?:inf(?:inity)?|nan)", re.IGNORECASE)
_INTEGER = re.compile(r"-?[0-9]++")
_ESCAPE = re.compile(r'\\([\\n"])')

_TEXT_TYPES = {"counter", "gauge", "histogram", "summary", "untyped"}
_OPENMETRICS_TYPES = {
    "counter", "gauge", "histogram", "gaugehistogram", "summary", "info", "stateset", "unknown",
}  # fmt: skip
_TEXT_SUFFIXES = {
    "histogram": ("_bucket", "_sum", "_count"),
    "summary": ("_sum", "_count"),
}
_OPENMETRICS_SUFFIXES = {
    "counter": ("_total", "_created"),
    "histogram": ("_bucket", "_sum", "_count", "_created"),
    "summary": ("_sum", "_count", "_created"),
    "gaugehistogram": ("_bucket", "_gsum", "_gcount"),
    "info": ("_info",),
}


class ExpositionError(SourceError):
    """The page is no valid exposition. `line` counts from 1."""

    def __init__(self, kind: ErrorKind, line: int, wrong: str) -> None:
        super().__init__(kind, f"line {line} of the page: {wrong}")
        self.line = line


class Exemplar(NamedTuple):
    """timestamp: Unix seconds."""

    labels: Mapping[str, str]
    value: float
    timestamp: float | None = None


class Sample(NamedTuple):
    """One sample under its exposed name. Labels are read-only. timestamp: Unix seconds."""

    name: str
    labels: Mapping[str, str]
    value: float
    timestamp: float | None = None
    exemplar: Exemplar | None = None


@dataclass(frozen=True, slots=True)
class MetricFamily:
    name: str
    type: str
    help: str
    unit: str
    samples: Sequence[Sample]


class _LineError(Exception):
    """What is wrong with a line, before its number is known."""


class _Comment(NamedTuple):
    keyword: str  # HELP, TYPE or UNIT
    name: str
    text: str


class _Series(NamedTuple):
    name: str
    labels: Mapping[str, str]
    identity: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Page:
    """One page, whole: a page with a fault anywhere is never made into a Page."""

    openmetrics: bool
    _samples: Mapping[str, Mapping[object, Sample]]
    _comments: Sequence[_Comment]

    @property
    def names(self) -> Collection[str]:
        """Exposed sample names."""
        return self._samples.keys()

    def samples(self, name: str) -> Sequence[Sample]:
        """Samples exposed as `name`, in page order; empty if there are none."""
        return tuple(self._samples.get(name, {}).values())

    def declared(self, name: str) -> bool:
        """Whether a sample, HELP, TYPE or UNIT line has this name."""
        return name in self._samples or name in self._declarations

    @cached_property
    def _declarations(self) -> Mapping[str, Mapping[str, str]]:
        found: dict[str, dict[str, str]] = {}
        for keyword, name, text in self._comments:
            found.setdefault(name, {})[keyword] = text
        return found

    @cached_property
    def families(self) -> Mapping[str, MetricFamily]:
        """By family name."""
        samples: dict[str, list[Sample]] = {name: [] for name in self._declarations}
        for name, found in self._samples.items():
            samples.setdefault(self._family_of(name), []).extend(found.values())
        families = (self._family(name, found) for name, found in samples.items())
        return {family.name: family for family in families}

    def _family_of(self, sample: str) -> str:
        if sample in self._declarations:
            return sample
        suffixes = _OPENMETRICS_SUFFIXES if self.openmetrics else _TEXT_SUFFIXES
        base, _, suffix = sample.rpartition("_")
        declared_type = self._declarations.get(base, {}).get("TYPE", "")
        return base if "_" + suffix in suffixes.get(declared_type, ()) else sample

    def _family(self, declared: str, samples: Sequence[Sample]) -> MetricFamily:
        about = self._declarations.get(declared, {})
        type_ = about.get("TYPE", "unknown")
        name = declared.removesuffix("_total") if type_ == "counter" else declared
        if name != declared and self.declared(name):
            name = declared
        type_ = "unknown" if type_ == "untyped" else type_
        return MetricFamily(name, type_, about.get("HELP", ""), about.get("UNIT", ""), samples)


class Parser:
    """Reads the pages of one target."""

    def parse(self, page: bytes) -> Page:
        """Raises ExpositionError."""
        try:
            text = page.decode()
        except UnicodeDecodeError as error:
            line = page.count(b"\n", 0, error.start) + 1
            raise ExpositionError(_kind(page, line), line, "not UTF-8") from None
        lines = text.replace("\r\n", "\n").split("\n")
        torn = lines.pop()
        if torn.lstrip(" \t").startswith("#"):
            lines.append(torn)
            torn = ""
        openmetrics = bool(lines) and lines[-1] == "# EOF"
        samples: dict[str, dict[object, Sample]] = {}
        comments: list[_Comment] = []
        number = 0
        try:
            for number, line in enumerate(lines, 1):
                read = _read_line(line.strip(" \t"), openmetrics)
                if isinstance(read, _Comment):
                    comments.append(read)
                elif read:
                    series, sample = read
                    identity = (series.identity, sample.timestamp)
                    samples.setdefault(sample.name, {}).setdefault(identity, sample)
                elif line == "# EOF" and number < len(lines):
                    number += 1
                    raise _LineError("data after # EOF")
            if torn:
                number = len(lines) + 1
                raise _LineError("no line feed at the end: the page was cut short")
        except _LineError as wrong:
            raise ExpositionError(_kind(page, number), number, str(wrong)) from None
        return Page(openmetrics, samples, comments)


def parse(page: bytes) -> Page:
    """Read one page. Raises ExpositionError."""
    return Parser().parse(page)


def _kind(page: bytes, line: int) -> ErrorKind:
    start = page[:512].lstrip()
    if line <= page[: page.find(start)].count(b"\n") + 1 and start[:1] in (b"<", b"{", b"["):
        return ErrorKind.NOT_METRICS
    if any(byte < 9 or 13 < byte < 32 for byte in start):
        return ErrorKind.NOT_METRICS
    return ErrorKind.MALFORMED


def _read_line(line: str, openmetrics: bool) -> _Comment | tuple[_Series, Sample] | None:
    if not line:
        return None
    if line.startswith("#"):
        return _read_comment(line, openmetrics)
    series, position = _read_series(line)
    value, timestamp, exemplar = _read_rest(line[position:], openmetrics)
    return series, Sample(series.name, series.labels, value, timestamp, exemplar)


def _read_comment(line: str, openmetrics: bool) -> _Comment | None:
    match = _COMMENT.fullmatch(line)
    if match is None or (match[1] == "UNIT" and not openmetrics):
        return None
    keyword, rest = match.groups()
    if quoted := _QUOTED.match(rest):
        name, end = _unescape(quoted[1]), quoted.end()
    elif plain := _NAME.match(rest):
        name, end = plain[0], plain.end()
    else:
        raise _LineError(f"{keyword} without a valid metric name")
    text = rest[end:].lstrip(" \t")
    if text and text == rest[end:]:
        raise _LineError(f"{keyword} without a valid metric name")
    types = _OPENMETRICS_TYPES if openmetrics else _TEXT_TYPES
    if keyword == "TYPE" and text not in types:
        raise _LineError(f"unknown metric type {text[:40]!r}")
    return _Comment(keyword, name, _unescape_help(text) if keyword == "HELP" else text)


def _read_series(line: str) -> tuple[_Series, int]:
    match = _NAME.match(line)
    name = match[0] if match else ""
    position = _skip(line, match.end() if match else 0)
    labels: dict[str, str] = {}
    if line.startswith("{", position):
        found, position = _read_labels(line, position)
        for key, value in found:
            if key == "__name__":
                if name:
                    raise _LineError("two metric names")
                name = value
            elif key in labels:
                raise _LineError(f"label {key!r} twice")
            else:
                labels[key] = value
    if not name:
        raise _LineError(f"no metric name in {line[:80]!r}")
    return _Series(name, MappingProxyType(labels), frozenset(labels.items())), position


def _read_labels(line: str, position: int) -> tuple[list[tuple[str, str]], int]:
    """Labels in braces, from the opening one; a quoted metric name comes as `__name__`."""
    found: list[tuple[str, str]] = []
    position = _skip(line, position + 1)
    while not line.startswith("}", position):
        key, position = _read_label_name(line, position)
        if line.startswith("=", position):
            value = _QUOTED.match(line, _skip(line, position + 1))
            if value is None:
                raise _LineError(f"label {key[:40]!r} has no closed quoted value")
            found.append((key, _unescape(value[1])))
            position = _skip(line, value.end())
        else:
            found.append(("__name__", key))
        if line.startswith(",", position):
            position = _skip(line, position + 1)
        elif not line.startswith("}", position):
            raise _LineError("expected , or } after a label")
    return found, position + 1


def _read_label_name(line: str, position: int) -> tuple[str, int]:
    if quoted := _QUOTED.match(line, position):
        return _unescape(quoted[1]), _skip(line, quoted.end())
    plain = _LABEL_NAME.match(line, position)
    if plain is None or plain[0] == "__name__":
        raise _LineError("expected a label name")
    end = _skip(line, plain.end())
    if not line.startswith("=", end):
        raise _LineError(f"label {plain[0][:40]!r} has no value")
    return plain[0], end


def _read_rest(rest: str, openmetrics: bool) -> tuple[float, float | None, Exemplar | None]:
    """Value, timestamp and exemplar after a series."""
    before, hash_, after = rest.partition("#")
    words = _WORD.findall(before)
    if not words:
        raise _LineError("no value after the series")
    if len(words) > 2:
        raise _LineError(f"unexpected {words[2][:40]!r}")
    timestamp = _timestamp(words[1], openmetrics) if len(words) == 2 else None
    exemplar = _read_exemplar(after, openmetrics) if hash_ else None
    return _number(words[0]), timestamp, exemplar


def _read_exemplar(text: str, openmetrics: bool) -> Exemplar:
    if not openmetrics:
        raise _LineError("an exemplar on a page without # EOF")
    start = _skip(text, 0)
    if not text.startswith("{", start):
        raise _LineError("exemplar without labels")
    labels, position = _read_labels(text, start)
    words = _WORD.findall(text, position)
    if len(words) not in (1, 2):
        raise _LineError("an exemplar has a value and at most a timestamp")
    timestamp = _timestamp(words[1], openmetrics) if len(words) == 2 else None
    return Exemplar(MappingProxyType(dict(labels)), _number(words[0]), timestamp)


def _number(text: str) -> float:
    if _FINITE.fullmatch(text):
        value = float(text)
        if math.isfinite(value):
            return value
    elif _NOT_FINITE.fullmatch(text):
        return float(text)
    raise _LineError(f"expected a number, found {text[:40]!r}")


def _timestamp(text: str, openmetrics: bool) -> float:
    """Unix seconds; the text format counts milliseconds."""
    if openmetrics and _FINITE.fullmatch(text):
        return float(text)
    if not openmetrics and _INTEGER.fullmatch(text):
        return int(text) / 1000
    raise _LineError(f"expected a timestamp, found {text[:40]!r}")


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda m: "\n" if m[1] == "n" else m[1], text) if "\\" in text else text


def _unescape_help(text: str) -> str:
    return re.sub(r"\\([\\n])", lambda m: "\n" if m[1] == "n" else m[1], text)
