"""PromQL of other tools, made into queries of ours: events a second over `$window`."""

from __future__ import annotations

import re

_RANGE_FUNCTION = re.compile(r"\b(rate|irate|increase|delta|idelta|deriv|\w+_over_time)\s*\(")
_COMPARISON = re.compile(r"[<>]|[=!]=(?!~)")
_STRING = r'"(?:\\.|[^"\\])*"|' + r"'(?:\\.|[^'\\])*'"
_SELECTOR = rf"[a-zA-Z_:][\w:]*\s*(?:\{{(?:[^{{}}\"']|{_STRING})*\}})?"
_COUNTER = re.compile(
    rf"(?:sum\s*(?P<by>(?:by|without)\s*\([^()]*\))?\s*\(\s*)?(?P<selector>{_SELECTOR})\s*"
    r"(?P<close>\)\s*(?P<after>(?:by|without)\s*\([^()]*\))?)?",
    re.DOTALL,
)

_GROUPING = re.compile(r"\b(?:by|without)\s*\(")
_OUTER = re.compile(
    r"sum\s*by\s*\((?P<before>[^()]*)\)\s*\(.*\)|sum\s*\(.*\)\s*by\s*\((?P<after>[^()]*)\)",
    re.DOTALL,
)

UNGROUPED = "labels that the queries keep are added up: name them in `per` for a budget of each"
AS_RATE = "increase is written as rate: the same ratio, in events a second as event floors need"
NO_RATE = "no rate stands in the queries: they are taken as events a second"
NOT_A_RATE = (
    "counts samples or events of its window, not events a second: event floors of alerts hold for"
    " these numbers"
)


def per_window(query: str) -> str | None:
    """The query over `$window` in place of a template of a window; None if it has another one."""
    text = re.sub(r"\{\{\s*\.window\s*\}\}", "$window", query.strip())
    return None if "{{" in text else text


def any_window(query: str) -> str:
    """The query over `$window` wherever it names a range of its own, or Grafana's."""
    fixed = r"\[\s*(?:(?:\d+(?:ms|[smhdwy]))+|\$\{?__\w+\}?)\s*(?=[\]:])"
    return re.sub(fixed, "[$window", query.strip())


def per_second(*queries: str) -> tuple[tuple[str, ...], str]:
    """The queries as rates where that is exact, and what to tell of it, "" if nothing.

    Both halves of a ratio are changed or neither: increase is rate times the window.
    """
    used = [set(_RANGE_FUNCTION.findall(_without_strings(query))) for query in queries]
    if all(functions == {"increase"} for functions in used) and not any(
        _COMPARISON.search(_without_selectors(query)) for query in queries
    ):
        return tuple(re.sub(r"\bincrease(?=\s*\()", "rate", query) for query in queries), AS_RATE
    if any(functions - {"rate", "irate"} for functions in used):
        return queries, NOT_A_RATE
    return queries, "" if all(used) else NO_RATE


def has_range(query: str) -> bool:
    """Whether a function over a range stands in it."""
    return _RANGE_FUNCTION.search(_without_strings(query)) is not None


def rate_of_counter(query: str) -> str | None:
    """Events a second of a counter, or a sum of one, summed after the rate; None if the query is
    more than that."""
    found = _COUNTER.fullmatch(query.strip())
    if found is None or (query.strip().startswith("sum") and not found["close"]):
        return None
    by = (found["by"] or found["after"] or "").strip()
    return f"sum {by} (rate({found['selector'].strip()}[$window]))".replace("sum  (", "sum(")


def kept_labels(*queries: str) -> tuple[str, ...] | None:
    """The labels by which all the queries are split, () if by none; None if that cannot be told."""
    found = {_kept(_without_strings(query).strip()) for query in queries}
    return found.pop() if len(found) == 1 else None


def _kept(query: str) -> tuple[str, ...] | None:
    if not _GROUPING.search(query):
        return () if re.search(r"\b(?:sum|count|avg|min|max|vector)\b", query) else None
    outer = _OUTER.fullmatch(query)
    if outer is None or len(_GROUPING.findall(query)) > 1:
        return None
    labels = (label.strip() for label in (outer["before"] or outer["after"]).split(","))
    return tuple(sorted(filter(None, labels)))


def ratio(bad_ratio: str) -> tuple[str, str]:
    """bad and total of a ratio that is already computed: every evaluation weighs the same, as in
    the mean of ratios that Sloth and OpenSLO's RatioTimeslices are. NaN is no evaluation."""
    return f"({bad_ratio}) >= 0", f"(({bad_ratio}) >= 0) * 0 + 1"


def _without_strings(query: str) -> str:
    return re.sub(_STRING, '""', query)


def _without_selectors(query: str) -> str:
    return re.sub(r"\{[^{}]*\}", "", _without_strings(query))
