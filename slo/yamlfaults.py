"""What is wrong with a text as YAML, said to whoever wrote it by hand: what PyYAML says itself is
about its parser."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping

import yaml

Misread = tuple[int, int, str]  # line and column, from 0; what is wrong and how to mend it

_SLIP = re.compile(r"\s*(?:- +)*(?P<pair>(?P<key>[A-Za-z_][\w-]*):(?P<value>[^\s/:].*?))(?: #.*)?")
_DASH_SLIP = re.compile(r"\s*(?P<pair>-(?P<item>[A-Za-z_].*?))(?: #.*)?")
_COMMENTED_BRACKET = re.compile(r"(?P<before>[^#]*[\[{][^#]*\s)#.*[\]}]")
_LOST = "# begins a comment, and what follows is lost: write a text that holds a # in quotes"
_STRAY = (
    "this line does not belong to those above it: give it their indentation, and see whether one"
    " of them lacks a colon"
)
_ANYTHING = "this is not YAML: look at the quotes, brackets and colons here and above"
_NO_BREAK = "\u00a0"
_NOT_READ = "a value cannot begin with {0}: write it in quotes"
# What PyYAML says of a problem, as a pattern → what to say instead; {0} is what the group found.
_HERE: Mapping[str, str] = {
    r"character '\\t' that cannot start": "a tab stands here: indent with spaces",
    r"character '(.)' that cannot start": _NOT_READ,
    "sequence entries are not allowed": "a list does not begin behind its key: put each `- ` on a"
    " line of its own below, or write [a, b]",
    "expected chomping|expected a comment or a line break": "a text that begins with > or | is"
    " written in quotes",
    "escape": r"\ begins an escape within double quotes: write single quotes, or \\",
    "found '<scalar>'": "the quotes end before the value does: write all of it in quotes, and a"
    " quote within twice",
    "expected <block end>": _STRAY,
    "found another document|expected '<document start>'": "a second document begins here: write"
    " one file for each",
    "expected the node content": "a value is expected here",
}
# The same, told where the thing began that the problem is in.
_WHERE_IT_BEGAN: Mapping[str, str] = {
    "could not find expected ':'": "KEY: VALUE is expected here, with a colon and a space",
    "end of stream|document separator": "the quote that opens here is never closed",
    "expected ',' or '([]}])'": "the bracket that opens here is not closed with {0}, or a comma is"
    " missing between two items",
}


def missing_space(text: str) -> str:
    """What to say of `service:chat` or `-chat`, one word to YAML; "" of any other text."""
    if found := _SLIP.fullmatch(text):
        return f"a space is missing after the colon: write `{found['key']}: {found['value']}`"
    if found := _DASH_SLIP.fullmatch(text):
        return f"a space is missing after the dash: write `- {found['item']}`"
    return ""


def after_comment_sign(node: yaml.ScalarNode) -> str:
    """What a comment took of a value that is empty: "#ops" of `channel: #ops`. Else ""."""
    mark = node.start_mark
    if node.value or mark.buffer is None:
        return ""
    rest = re.split("[\r\n\0]", mark.buffer[mark.pointer :], maxsplit=1)[0].strip()
    return rest if rest.startswith("#") else ""


def decode(body: bytes) -> str:
    """The text of a file. Raises UndecodableError."""
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UndecodableError(
            (0, 0, "this is UTF-16 text, as some Windows programs write: save the file as UTF-8")
        )
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode()
        what = "this is not UTF-8 text: save the file as UTF-8"
        raise UndecodableError((*_end_of(before), what)) from None
    if found := yaml.reader.Reader.NON_PRINTABLE.search(text):
        what = f"the character U+{ord(found[0]):04X} stands here: remove it"
        if found[0] == "\0":
            what = "a NUL byte stands here: is this a text file, saved as UTF-8?"
        raise UndecodableError((*_end_of(text[: found.start()]), what))
    return text


class UndecodableError(Exception):
    """Bytes that are no text of YAML."""

    def __init__(self, misread: Misread) -> None:
        super().__init__(misread[2])
        self.misread = misread


def misreadings(error: yaml.MarkedYAMLError, text: str) -> list[Misread]:
    """What the error means, at least one thing."""
    lines = text.splitlines()
    here = error.problem_mark or error.context_mark
    if here is None:
        return [(0, 0, _ANYTHING)]
    began = error.context_mark or here
    if slips := [*_slips(lines, began.line, here.line)]:
        return slips
    problem = error.problem or ""
    if "flow" in (error.context or ""):
        for n in range(min(here.line, len(lines) - 1), -1, -1):
            if found := _COMMENTED_BRACKET.match(lines[n]):
                return [(n, found.end("before"), _LOST)]
    if problem.startswith("mapping values"):
        return [(here.line, here.column, _second_colon(lines[here.line][: here.column]))]
    for words, mark in ((_HERE, here), (_WHERE_IT_BEGAN, began)):
        for pattern, says in words.items():
            if found := re.search(pattern, f"{problem} {error.context or ''}"):
                return [(mark.line, mark.column, says.format(*found.groups()))]
    return [(here.line, here.column, _ANYTHING)]


def _slips(lines: list[str], began: int, here: int) -> Iterator[Misread]:
    """Spaces that lack or are none, from which a misreading may come."""
    first = last = min(here, len(lines) - 1)
    while first and missing_space(lines[first - 1]):
        first -= 1
    for n in sorted({began, *range(max(first - 1, 0), last + 1)} - {len(lines)}):
        line = lines[n]
        if what := missing_space(line):
            yield n, len(line) - len(line.lstrip()), what
        elif _NO_BREAK in line:
            what = "this space is none to YAML, as it is one at which no line breaks: type it anew"
            yield n, line.index(_NO_BREAK), what


def _second_colon(before: str) -> str:
    if re.search(r":\s", before):
        return "a second colon stands here: write a text that holds one in quotes"
    return _STRAY


def _end_of(text: str) -> tuple[int, int]:
    lines = text.splitlines() or [""]
    return (len(lines), 0) if text.endswith(("\n", "\r")) else (len(lines) - 1, len(lines[-1]))
