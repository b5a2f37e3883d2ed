"""The grammar of one line of an exposition; `exposition` puts pages together from it.

Quantifiers are possessive (`++`): no line, however hostile, can make them backtrack.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

_QUOTED = r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
_METRIC_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*+"
_NUMBER_TEXT = r"[-+]?(?:(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:e[-+]?[0-9]++)?|inf(?:inity)?|nan)"

_NAME = re.compile(_METRIC_NAME)
_OPENING_BRACE = re.compile(r"[ \t]*+\{[ \t]*+")
_LABEL = re.compile(
    rf"(?:([a-zA-Z_][a-zA-Z0-9_]*+)|{_QUOTED})[ \t]*+"
    rf"(?:=[ \t]*+{_QUOTED}[ \t]*+)?+(?:,[ \t]*+|(?=\}}))"
)
_VALUE_TIME_HASH = re.compile(
    r"[ \t]*+([^ \t]++)(?:[ \t]++([^# \t][^ \t]*+))?+[ \t]*+(#[ \t]*+\{[ \t]*+)?+"
)
_COMMENT = re.compile(r"#[ \t]++(HELP|TYPE|UNIT)[ \t]++(.*+)")
_COMMENTED_NAME = re.compile(rf"(?:({_METRIC_NAME})|{_QUOTED})(?:[ \t]++|$)")
_NUMBER = re.compile(_NUMBER_TEXT, re.IGNORECASE)
_NUMBERS = re.compile(rf"(?:{_NUMBER_TEXT}\n)*+", re.IGNORECASE)
_MILLISECONDS = re.compile(r"-?[0-9]{1,19}")
_ESCAPED = re.compile(r'\\([\\n"])')
_ESCAPED_IN_HELP = re.compile(r"\\([\\n])")  # quotes are escaped there in OpenMetrics only

_TEXT_TYPES = {"counter", "gauge", "histogram", "summary", "untyped"}
_OPENMETRICS_TYPES = {
    "counter", "gauge", "histogram", "gaugehistogram", "summary", "info", "stateset", "unknown",
}  # fmt: skip


class LineError(Exception):
    """What is wrong with a line; its number is known to who has the page."""


class Exemplar(NamedTuple):
    """timestamp: Unix seconds."""

    labels: Mapping[str, str]
    value: float
    timestamp: float | None = None


class Comment(NamedTuple):
    """keyword: HELP, TYPE or UNIT."""

    keyword: str
    name: str
    text: str


class Series(NamedTuple):
    """A series by its exposed name. Labels are read-only."""

    name: str
    labels: Mapping[str, str]


class Row(NamedTuple):
    """One sample. text: the series as it was written; timestamp: Unix seconds."""

    text: str
    series: Series
    value: float
    timestamp: float | None = None
    exemplar: Exemplar | None = None

    @property
    def bare(self) -> bool:
        return self.timestamp is None and self.exemplar is None


def read_line(line: str, openmetrics: bool, known: Mapping[str, Series]) -> Comment | Row | None:
    """None: a blank line or a comment without meaning. Raises LineError.

    known: series by their exact text, which spares reading it again.
    """
    text, _, value = line.rpartition(" ")
    if (series := known.get(text)) and _NUMBER.fullmatch(value):
        return Row(text, series, _read_number(value))
    line = line.strip(" \t")
    if line.startswith("#"):
        return _read_comment(line, openmetrics)
    return _read_row(line, openmetrics) if line else None


def _read_number(text: str) -> float:
    if _NUMBER.fullmatch(text) is None:
        raise LineError(f"expected a number, found {_shown(text)}")
    value = float(text)
    if math.isinf(value) and text[-1] in "0123456789.":
        raise LineError(f"number out of range: {_shown(text)}")
    return value


def read_finite_numbers(texts: Sequence[str]) -> Sequence[float] | None:
    """Many at once, which is cheaper; None if one of them is none, or is infinite."""
    if _NUMBERS.fullmatch("\n".join([*texts, ""])) is None:
        return None
    values = tuple(map(float, texts))
    return None if any(map(math.isinf, values)) else values


def _read_comment(line: str, openmetrics: bool) -> Comment | None:
    if line == "# EOF":
        raise LineError("the page goes on after # EOF")
    comment = _COMMENT.fullmatch(line)
    if comment is None or (comment[1] == "UNIT" and not openmetrics):
        return None
    keyword, rest = comment.groups()
    found = _COMMENTED_NAME.match(rest)
    if found is None:
        raise LineError(f"{keyword} without a valid metric name: {_shown(rest)}")
    name, text = found[1] or _unescaped(found[2]), rest[found.end() :]
    if keyword == "TYPE" and text not in (_OPENMETRICS_TYPES if openmetrics else _TEXT_TYPES):
        raise LineError(f"{_shown(name)} has an unknown type: {_shown(text)}")
    if keyword == "HELP":
        text = _unescaped(text, _ESCAPED if openmetrics else _ESCAPED_IN_HELP)
    return Comment(keyword, name, text)


def _read_row(line: str, openmetrics: bool) -> Row:
    series, end = _read_series(line)
    text = line[:end]
    value, timestamp, hash_, end = _read_value(line, end, openmetrics)
    exemplar = None
    if hash_:
        exemplar, end = _read_exemplar(line, end, openmetrics)
    if end < len(line):
        raise LineError(f"unexpected after the value: {_shown(line[end:])}")
    return Row(text, series, value, timestamp, exemplar)


def _read_series(line: str) -> tuple[Series, int]:
    """A series and where it ends."""
    plain = _NAME.match(line)
    name, end = (plain[0], plain.end()) if plain else ("", 0)
    labels: dict[str, str] = {}
    if opening := _OPENING_BRACE.match(line, end):
        quoted, labels, end = _read_labels(line, opening.end())
        if name and quoted:
            raise LineError(f"two metric names: {_shown(name)} and {_shown(quoted)}")
        name = name or quoted
    if not name:
        raise LineError(f"no metric name in {_shown(line)}")
    return Series(name, MappingProxyType(labels)), end


def _read_labels(line: str, start: int) -> tuple[str, dict[str, str], int]:
    """Quoted metric name or "", labels, and their end; start: behind the opening brace."""
    name, labels, end = "", dict[str, str](), start
    while not line.startswith("}", end):
        found = _LABEL.match(line, end)
        if found is None:
            raise LineError(f"expected a label and its quoted value, found {_shown(line[end:])}")
        plain, quoted, value = found.groups()
        key = plain or _unescaped(quoted)
        if value is None and quoted and not name:
            name = key
        elif value is None or not key or key == "__name__" or key in labels:
            raise LineError(f"label without value, reserved, or given twice: {_shown(key)}")
        else:
            labels[key] = _unescaped(value)
        end = found.end()
    return name, labels, end + 1


def _read_value(line: str, start: int, openmetrics: bool) -> tuple[float, float | None, bool, int]:
    """Value, timestamp, whether an exemplar's labels begin, and where the reading stopped."""
    found = _VALUE_TIME_HASH.match(line, start)
    if found is None:
        raise LineError(f"no value after {_shown(line)}")
    text, time, hash_ = found.groups()
    value = _read_number(text)
    timestamp = None if time is None else _read_timestamp(time, openmetrics)
    return value, timestamp, hash_ is not None, found.end()


def _read_timestamp(text: str, openmetrics: bool) -> float:
    """The text format has whole milliseconds, OpenMetrics seconds."""
    if openmetrics:
        seconds = _read_number(text)
        if math.isfinite(seconds):
            return seconds
    elif _MILLISECONDS.fullmatch(text):
        return int(text) / 1000
    raise LineError(f"expected a timestamp, found {_shown(text)}")


def _read_exemplar(line: str, start: int, openmetrics: bool) -> tuple[Exemplar, int]:
    if not openmetrics:
        raise LineError("an exemplar, but no # EOF at the end: OpenMetrics cut short?")
    name, labels, end = _read_labels(line, start)
    if name:
        raise LineError(f"an exemplar has no name: {_shown(name)}")
    value, timestamp, _, end = _read_value(line, end, openmetrics)
    return Exemplar(MappingProxyType(labels), value, timestamp), end


def _unescaped(text: str, escaped: re.Pattern[str] = _ESCAPED) -> str:
    if "\\" not in text:
        return text
    return escaped.sub(lambda found: "\n" if found[1] == "n" else found[1], text)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "…")
