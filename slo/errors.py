"""Errors of the room `slo`: mistakes of the user, in lines that say where, what and how to mend."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence

_MAX_LINE = 1000  # characters of one problem


class SloError(Exception):
    """Base of every error that the room raises on purpose."""


class SpecError(SloError):
    """An SLO file is wrong; `problems` holds one line each, all that were found."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class UnreadableError(SpecError):
    """There is no such file, or nothing that could be one."""


def printable(text: str) -> str:
    """The text, what is not printable in it (line ends too) escaped as in Python: \\x1b."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def one_line(problem: str) -> str:
    """A problem as one line that can be read, whatever the values in it hold."""
    line, half = printable(problem), _MAX_LINE // 2
    return line if len(line) <= _MAX_LINE else f"{line[:half]} … {line[-half:]}"


def shown(value: object) -> str:
    """A value as a file of YAML has it: true, ["a"], {"a": 1}; a text as it is."""
    if isinstance(value, (bool, list, dict)):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def closest(word: str, words: Iterable[str]) -> str:
    """A hint to append to "no such thing": the nearest word, if any is near, else all of them."""
    words = sorted(words)
    near = difflib.get_close_matches(word, words, n=1)
    return f": did you mean {near[0]}?" if near else f": known are {', '.join(words)}"


def among(word: str, words: Iterable[str]) -> str:
    """As closest, of few words: all of them, and the nearest, if any is near."""
    words = list(words)
    near = difflib.get_close_matches(word, words, n=1)
    hint = f"did you mean {near[0]}? There are" if near else "there are"
    return f": {hint} {', '.join(words)}"
