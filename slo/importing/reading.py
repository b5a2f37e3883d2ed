"""Documents of another tool, read key by key; what nobody read is found at the end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from typing import Any

from ..errors import SpecError, one_line
from ..yamlfile import Document, Keys, parse

UNKNOWN = "has no counterpart in an SLO file of inferslo"


@dataclass(frozen=True, slots=True)
class Remark:
    """place: file:line:column. lost: left out; else carried over in another form."""

    place: str
    what: str
    why: str
    lost: bool = True

    def __str__(self) -> str:
        return one_line(f"{self.place}: {self.what}: {self.why}")


@dataclass(slots=True)
class _Log:
    document: Document
    read: set[Keys] = field(default_factory=set)
    remarks: dict[Keys, list[Remark]] = field(default_factory=dict)
    whole: set[Keys] = field(default_factory=set)  # what is left out with all that is in it


class Node:
    """A mapping of a document. What is asked of it counts as read."""

    def __init__(self, log: _Log, keys: Keys = ()) -> None:
        self._log, self._keys = log, keys

    def text(self, key: str) -> str:
        """A scalar as text, "" if there is none."""
        value = self._peek(key)
        if value is None or isinstance(value, (dict, list)):
            return ""
        self._log.read.add((*self._keys, key))
        return str(value).strip()

    def flag(self, key: str) -> bool | None:
        """true or false, None if it is neither."""
        return {"true": True, "false": False}.get(self.text(key).lower())

    def child(self, *path: str) -> Node:
        """The mapping below; one without keys if there is none."""
        return Node(self._log, (*self._keys, *path))

    def children(self, key: str) -> list[Node]:
        """The mappings of a list."""
        items = self._peek(key)
        count = len(items) if isinstance(items, list) else 0
        return [Node(self._log, (*self._keys, key, n)) for n in range(count)]

    def fields(self) -> list[str]:
        value = self._peek()
        return list(value) if isinstance(value, dict) else []

    def place(self) -> str:
        return self._log.document.place(self._keys)

    def lose(self, key: str, why: str) -> None:
        """What the key holds is left out. Nothing happens if it is not there."""
        self._remark(key, why, lost=True)

    def change(self, key: str, why: str) -> None:
        """What the key holds is carried over in another form; if there is anything to tell."""
        self._remark(key, why, lost=False)

    def lose_all(self, what: str, why: str) -> None:
        """This mapping as a whole is left out."""
        self._log.whole.add(self._keys)
        self._log.remarks[self._keys] = [Remark(self.place(), what, why)]

    def remarks(self) -> list[Remark]:
        """All remarks on the document in its order, and one on each key that was not read."""
        log = self._log
        told = dict(log.remarks)
        known = {keys[:end] for keys in (*log.read, *log.remarks) for end in range(len(keys) + 1)}
        for keys in self._unread((), log.document.values, known):
            told[keys] = [Remark(log.document.place(keys), _path(keys), UNKNOWN)]
        return [
            remark
            for keys in log.document.places
            if log.whole.isdisjoint(keys[:end] for end in range(len(keys)))
            for remark in told.get(keys, ())
        ]

    def _remark(self, key: str, why: str, *, lost: bool) -> None:
        if why and self._peek(key) is not None:
            keys = (*self._keys, key)
            remark = Remark(self._log.document.place(keys), _path(keys), why, lost)
            told = self._log.remarks.setdefault(keys, [])
            if remark not in told:
                told.append(remark)

    def _peek(self, *path: str) -> Any:
        value: Any = self._log.document.values
        for key in (*self._keys, *path):
            if isinstance(value, list) and isinstance(key, int):
                value = value[key]
            elif isinstance(value, dict):
                value = value.get(key)
            else:
                return None
        return value

    def _unread(self, at: Keys, value: Any, known: Set[Keys]) -> Iterator[Keys]:
        """known: what was read or remarked on, and all that it lies in."""
        if at in self._log.read or at in self._log.remarks or value in (None, {}, []):
            return
        if at not in known:
            yield at
        elif isinstance(value, dict):
            for key, item in value.items():
                yield from self._unread((*at, key), item, known)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                yield from self._unread((*at, index), item, known)


def documents(name: str, body: bytes) -> list[Node]:
    """The documents of one file, each a mapping. Raises SpecError."""
    found = [parse(part, name, "a mapping is expected", lines) for lines, part in _parts(body)]
    if problems := [problem for document in found for problem in document.problems]:
        raise SpecError(problems)
    return [Node(_Log(document)) for document in found if document.values]


def _parts(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Each document that holds anything, and the number of lines before it. `---` at the beginning
    of a line is never part of a value."""
    start = lines = 0
    for mark in [*re.finditer(rb"^---[^\S\n]*(?:#.*)?$", body, re.MULTILINE), None]:
        end, after = mark.span() if mark else (len(body), len(body))
        part = body[start:end]
        if text := part.lstrip(b"\n"):
            yield lines + len(part) - len(text), text
        lines += body.count(b"\n", start, after)
        start = after


def _path(keys: Keys) -> str:
    """As people write it: slos[0].alerting.labels."""
    parts = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return "".join(parts).removeprefix(".")
