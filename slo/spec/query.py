"""One's own PromQL, as far as it can be judged without a parser of it: that it stays within the
brackets that the rules put around it, and that nothing is left to be filled in."""

from __future__ import annotations

import re

_QUOTED = r'"(?:\\.|[^"\\\n])*"' + r"|'(?:\\.|[^'\\\n])*'|`[^`]*`"
_TOKEN = re.compile(rf"(?:{_QUOTED})|#[^\n]*|(?P<mark>[\"'`()\[\]{{}}])")
_CLOSES = {")": "(", "]": "[", "}": "{"}


def query(text: str) -> str:
    """The text; ValueError if no rule can be made of it."""
    if "{{" in text:
        raise ValueError("{{ begins a template of another tool: write $window for the base window")
    if found := re.search(r"\$(?!window\b)\{?\w*\}?", text):
        raise ValueError(f"only $window is filled in, not {found[0]}")
    if re.fullmatch(r"[-+]?[0-9.]+(?:e[-+]?[0-9]+)?", text, re.IGNORECASE):
        raise ValueError(f"{text} is a number, and series are expected: write vector({text})")
    _check_brackets(text)
    return text


def _check_brackets(text: str) -> None:
    """A query that closes one bracket more than it opens would mean something else in ours."""
    opened: list[str] = []
    for token in _TOKEN.finditer(text):
        mark = token["mark"]
        if mark is None:
            continue
        if mark in "\"'`":
            raise ValueError(f"the string that begins with {text[token.start() :][:20]} never ends")
        if mark not in _CLOSES:
            opened.append(mark)
        elif not opened or opened.pop() != _CLOSES[mark]:
            raise ValueError(f"{mark} closes what was not opened")
    if opened:
        raise ValueError(f"{opened[-1]} is never closed")
