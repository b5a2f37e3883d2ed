"""PromQL as it stands in data: families in capitals, as `exporters.names` calls them.

`rate(REQUESTS{outcome="aborted"}[10m])` becomes PromQL with the published name and with the
matchers of the service. Two things more: `@REQUESTS` is the family of whatever model on the
service's targets, and `gained(FALLBACKS[1h])` the growth of a counter that may have been born
within the window, with its first event already in it.
"""

from __future__ import annotations

import re
from functools import partial

from ..exporters import names
from ..exporters.names import ENGINE_INFO, Family
from ..slo.plan import Selection
from ..slo.quantities import parse_whole_seconds
from .promql import ON_TARGET, any_model, beside, newborn, select

ON_ENGINE = (*ON_TARGET, "engine")
_STRING = r'"(?:[^"\\]|\\.)*"'
_FAMILY = re.compile(
    _STRING + r"|(?P<any>@?)\b(?P<word>[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)"
    r"(?P<part>_sum|_count|_bucket)?\b"
    rf"(?:\{{(?P<own>(?:{_STRING}|[^}}\"])*)\}})?"
)  # fmt: skip
_GAINED = r"gained\((?P<counter>\w+(?:\{[^}]*\})?)\[(?P<window>\w+)\]\)"
# In one pass: what was filled in holds the user's own words.
_TERM = re.compile(f"{_GAINED}|{_FAMILY.pattern}")


def expand(text: str, selection: Selection) -> str:
    """The PromQL of such a text, on one line. Raises KeyError where there is no such family."""
    return _TERM.sub(partial(_term, selection), " ".join(text.split()))


def of_engines(
    expr: str, text: str, selection: Selection, on: tuple[str, ...], within: str = "1h"
) -> str:
    """Keeps of an expression what stands beside an engine of the service, if the families of its
    text do not say themselves whose they are."""
    named = {label for label, _ in selection.match if label in ENGINE_INFO.labels}
    if not named or any(named <= set(family.labels) for family in own_families(text)):
        return expr
    return beside(f"({expr})", selection, on, within)


def own_families(text: str) -> list[Family]:
    """The families that a text reads of the service alone, those with `@` left out."""
    return [_family(m["word"]) for m in _FAMILY.finditer(text) if m["word"] and not m["any"]]


def _term(selection: Selection, found: re.Match[str]) -> str:
    return _gained(selection, found) if found["counter"] else _series(selection, found)


def _gained(selection: Selection, found: re.Match[str]) -> str:
    inside = _FAMILY.fullmatch(found["counter"])
    if inside is None:
        raise KeyError(f"no family in {found[0]}")
    counter = _series(selection, inside)
    born = newborn(counter, _family(inside["word"]), parse_whole_seconds(found["window"]))
    return f"({born} or increase({counter}[{found['window']}]))"


def _series(selection: Selection, found: re.Match[str]) -> str:
    if not found["word"]:
        return found[0]  # a string
    own = [found["own"]] if found["own"] else []
    whose = any_model(selection) if found["any"] else selection
    return select(_family(found["word"]), whose, *own, part=found["part"] or "")


def _family(word: str) -> Family:
    family = getattr(names, word, None)
    if not isinstance(family, Family):
        raise KeyError(f"no family {word} in exporters.names")
    return family
