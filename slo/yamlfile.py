"""YAML as people write it by hand, with the place of every key: for settings and for SLO files.

Scalars are read as YAML 1.2 reads them: `no` and `on` are words and `18:00` is no number. What no
such file needs and an attacker's does (aliases, depth, length) is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from .files import read_small
from .yamlfaults import (
    Misread,
    UndecodableError,
    after_comment_sign,
    decode,
    misreadings,
    missing_space,
)

MAX_BYTES = 256 << 10
_MAX_DEPTH = 20
_MAX_SCALAR = 2048  # characters of one key or value
NO_TEXT = "this is not UTF-8 text"

Keys = tuple[str | int, ...]  # the way to a value: keys of mappings, indices of lists


@dataclass(slots=True)
class Document:
    """What a file says. places: way to a key or item → "file:line:column". problems: what is wrong
    with it as YAML, one line each; values may then lack something. lines: before it in its file.
    commented: of a key or item without a value, what stands behind a # in its place."""

    name: str
    lines: int = 0
    values: dict[str, Any] = field(default_factory=dict)
    places: dict[Keys, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    commented: dict[Keys, str] = field(default_factory=dict)

    def place(self, keys: Keys) -> str:
        """Where it was written; of what is missing, where its parent is."""
        for end in range(len(keys), -1, -1):
            if keys[:end] in self.places:
                return self.places[keys[:end]]
        return self.name


def read(path: Path, expected: str) -> Document:
    """The document in a file; ValueError if it cannot be read. expected: what the file should hold,
    told if it is no mapping."""
    return parse(read_small(path, MAX_BYTES), str(path), expected)


def parse(body: bytes, name: str, expected: str, lines: int = 0) -> Document:
    """The document in a text. name: of the file, for places; lines: before the text in it."""
    document = Document(name, lines)
    try:
        text = decode(body)
    except UndecodableError as error:
        document.problems.append(_told(error.misread, document))
        return document
    try:
        root = _Loader(text).get_single_node()
        if root is None or root.tag == _NULL:
            return document
        if root.tag != _MAP:
            slip = missing_space(root.value) if isinstance(root, yaml.ScalarNode) else ""
            raise _RefusedError(root.start_mark, slip or expected)
        document.values = _value(root, (), document)
    except _RefusedError as error:
        document.problems.append(f"{_place(error.mark, document)}: {error.problem}")
    except yaml.MarkedYAMLError as error:
        document.problems += [_told(each, document) for each in misreadings(error, text)]
    return document


def is_no_text(text: str) -> bool:
    """Bytes that are not UTF-8 become lone surrogates; no path may hold a NUL."""
    return re.search("[\0\ud800-\udfff]", text) is not None


def _told(misread: Misread, document: Document) -> str:
    line, column, what = misread
    return f"{document.name}:{document.lines + line + 1}:{column + 1}: {what}"


def _place(mark: yaml.Mark, document: Document) -> str:
    return f"{document.name}:{document.lines + mark.line + 1}:{mark.column + 1}"


_TAG = "tag:yaml.org,2002:"
_MAP, _NULL = _TAG + "map", _TAG + "null"


class _RefusedError(Exception):
    def __init__(self, mark: yaml.Mark, problem: str) -> None:
        super().__init__(problem)
        self.mark, self.problem = mark, problem


class _Loader(yaml.SafeLoader):
    """Composes nodes of bounded size."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - filled below, as PyYAML has it
    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]  # its stub lacks types
        problem = self._refusal(
            event, is_key=isinstance(parent, yaml.MappingNode) and index is None
        )
        if problem:
            raise _RefusedError(event.start_mark, problem)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def _refusal(self, event: yaml.Event, *, is_key: bool) -> str | None:
        if isinstance(event, yaml.AliasEvent):
            return "aliases are not read: write the value again"
        if getattr(event, "tag", None) is not None:
            return "tags (!) are not read: write the value alone"
        if not isinstance(event, yaml.ScalarEvent):
            if is_key:
                return "a key is one word"
            return "this is nested too deep" if self._depth >= _MAX_DEPTH else None
        if len(event.value) > _MAX_SCALAR:
            return f"this is longer than {_MAX_SCALAR} characters"
        return NO_TEXT if is_no_text(event.value) else None


# The core schema of YAML 1.2, without octal and hexadecimal numbers.
_SCALARS = {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9]+",
    "float": r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
}
for _name, _pattern in _SCALARS.items():
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(rf"(?:{_pattern})\Z"), None)


def _scalar(node: yaml.ScalarNode) -> Any:
    """PyYAML's own constructors would read 010 as 8."""
    match node.tag.removeprefix(_TAG):
        case "null":
            return None
        case "bool":
            return node.value.lower() == "true"
        case "int":
            return int(node.value)
        case "float":
            return float(node.value.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return node.value


def _value(node: yaml.Node, at: Keys, document: Document) -> Any:
    """What a node stands for, the places in it noted."""
    document.places.setdefault(at, _place(node.start_mark, document))
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*at, n), document) for n, item in enumerate(node.value)]
    if isinstance(node, yaml.ScalarNode):
        if lost := after_comment_sign(node):
            document.commented[at] = lost
        return _scalar(node)
    values: dict[str, Any] = {}
    for key, item in node.value:
        child, place = (*at, key.value), _place(key.start_mark, document)
        if child in document.places:
            document.problems.append(f"{place}: {key.value} is set twice: remove one")
        document.places[child] = place
        if item.tag == _NULL and (slip := missing_space(key.value)):
            document.problems.append(f"{place}: {slip}")
            continue
        values[key.value] = _value(item, child, document)
    return values
