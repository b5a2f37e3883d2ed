"""Reads one page of metrics: Prometheus text 0.0.4, or OpenMetrics 1.0 if it ends in `# EOF`.

A page is read whole or not at all. Where the rules leave a choice, Prometheus's own scrape
parser decides (prometheus/model/textparse, not expfmt, which promtool uses and which is
stricter). What differs from it:

==============================  =====================  =========================================
input                           Prometheus             here
==============================  =====================  =========================================
last line without line feed     read                   refused: its number may have been cut
`-nan`, `+nan`                  refused                NaN: llama.cpp writes it
CR LF                           refused                read
blank after TYPE's word         refused                read
negative timestamp              refused in text        read, as the format allows it
labels without a comma between  read in text           refused
line feed inside a label value  read in text           refused
not UTF-8                       refused but in         refused anywhere
                                comments
spaces, TABs, blank lines and   refused                read as in the text format
comments in OpenMetrics
UNIT that is no suffix          refused                read
`# EOF`, and the page goes on   a comment in text      refused: two pages run together
series twice at one time        first kept, warned of  first kept
TYPE or HELP twice              last kept              last kept
samples apart from their TYPE   read                   read, and put into their family
quoted UTF-8 names              from 3.0 on            read
label named `__name__`          refused                refused
histogram that makes no sense   read                   read: this is a reader, no linter
native histogram                protobuf only          refused
==============================  =====================  =========================================
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .exposition_lines import Comment, Exemplar, LineError, Row, read_finite_numbers, read_line
from .exposition_page import Layout, MetricFamily, Page, Sample, layout_of
from .reading import ErrorKind, SourceError

__all__ = ["Exemplar", "ExpositionError", "MetricFamily", "Page", "Parser", "Sample", "parse"]

# Memory while reading, measured on pages made to cost most.
_LINE_BYTES = 1300
_QUOTE_BYTES = 200
# HTML, a JSON array or object, or a byte that no text has.
_NO_METRICS = re.compile(
    rb'(?:\xef\xbb\xbf)?+\s*+(?:[<\[]|\{\s*+(?:\}|"[^"]*+"\s*+:)|.{0,255}[\x00-\x08\x0e-\x1f])',
    re.DOTALL,
)


class ExpositionError(SourceError):
    """The page cannot be read. `line` counts from 1.

    kind: NOT_METRICS if it looks like HTML, JSON or binary data, TOO_LARGE, else MALFORMED.
    """

    def __init__(self, kind: ErrorKind, line: int, wrong: str) -> None:
        super().__init__(kind, f"line {line} of the page: {wrong}")
        self.line = line


class Parser:
    """Reads the pages of one target, one after another; a page like the last one is cheap.

    Between pages it keeps the layout of the last good one, and nothing else.
    max_memory: bytes that a page may take while it is read, by its lines and quotes at their
    worst (an engine's page: about 1 MB); its text comes on top, in size bounded by who fetched it.
    max_kept: the same for a page whose layout is kept; a greater one is read anew each time.
    """

    def __init__(self, max_memory: int = 64 << 20, max_kept: int = 16 << 20) -> None:
        self._max_memory = max_memory
        self._max_kept = max_kept
        self._layout = Layout()

    def parse(self, page: bytes, content_type: str = "") -> Page:
        """Raises ExpositionError.

        content_type: as the server gave it; if it says OpenMetrics, a page without `# EOF` is
        refused. Without it such a page reads as text, unless something else gives it away.
        """
        lines = self._split(page)
        rest = lines.pop()
        if rest == "# EOF":
            lines.append(rest)
            rest = ""
        openmetrics = not rest and lines[-1:] == ["# EOF"]
        if openmetrics:
            lines.pop()
        elif content_type.startswith("application/openmetrics-text"):
            raise _error(page, len(lines) + 1, "no # EOF at the end: the page was cut short")
        if not rest and (parsed := self._like_the_last(lines, openmetrics)):
            return parsed
        return self._line_by_line(page, lines, rest, openmetrics)

    def _split(self, page: bytes) -> list[str]:
        """Lines, and last what follows the last line feed: nothing, if the page is whole."""
        if len(page) * _LINE_BYTES > self._max_memory:  # else not even line feeds alone could
            memory = _memory(page)
            if memory > self._max_memory:
                wrong = (
                    f"reading so many lines and labels takes {memory >> 20} MiB, above the limit"
                )
                raise ExpositionError(ErrorKind.TOO_LARGE, 1, wrong)
        try:
            text = page.decode()
        except UnicodeDecodeError as error:
            line = page.count(b"\n", 0, error.start) + 1
            raise _error(page, line, f"byte {error.start} of the page is not UTF-8") from None
        return (text.replace("\r\n", "\n") if "\r" in text else text).split("\n")

    def _like_the_last(self, lines: Sequence[str], openmetrics: bool) -> Page | None:
        """Reads nothing but numbers; None if more has changed or one of them is suspect."""
        layout = self._layout
        if openmetrics != layout.openmetrics or len(lines) != len(layout.texts):
            return None
        texts, numbers = list(lines), []
        for index in layout.sample_lines:
            texts[index], _, number = lines[index].rpartition(" ")
            numbers.append(number)
        if texts != layout.texts:
            return None
        values = read_finite_numbers(numbers)
        return None if values is None else Page(layout, values)

    def _line_by_line(
        self, page: bytes, lines: Sequence[str], rest: str, openmetrics: bool
    ) -> Page:
        comments: list[Comment] = []
        rows: dict[int, Row] = {}
        for index, line in enumerate(lines):
            try:
                read = read_line(line, openmetrics, self._layout.known)
            except LineError as wrong:
                raise _error(page, index + 1, str(wrong)) from None
            if isinstance(read, Comment):
                comments.append(read)
            elif read is not None:
                rows[index] = read
        if rest.strip(" \t"):
            raise _error(page, len(lines) + 1, "no line feed at the end: the page was cut short")
        layout = layout_of(openmetrics, lines, rows, comments)
        self._layout = layout if _memory(page) <= self._max_kept else Layout()
        extras = {
            at: (row.timestamp, row.exemplar)
            for at, row in enumerate(rows.values())
            if not row.bare
        }
        return Page(layout, [row.value for row in rows.values()], extras)


def parse(page: bytes, content_type: str = "") -> Page:
    """Read one page alone. Raises ExpositionError."""
    return Parser().parse(page, content_type)


def _memory(page: bytes) -> int:
    """Bytes that it takes at most to read the page."""
    return _LINE_BYTES * page.count(b"\n") + _QUOTE_BYTES * page.count(b'"')


def _error(page: bytes, line: int, wrong: str) -> ExpositionError:
    if _NO_METRICS.match(page):
        wrong = f"no page of metrics, it begins with {page[:40]!r}: is the address right?"
        return ExpositionError(ErrorKind.NOT_METRICS, line, wrong)
    return ExpositionError(ErrorKind.MALFORMED, line, wrong)
