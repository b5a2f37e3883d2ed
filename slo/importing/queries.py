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

AS_RATE = "increase is written as rate: the same ratio, in events a second as event floors need"
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
    rates = {"rate", "irate"}
    return queries, "" if all(functions <= rates for functions in used) else NOT_A_RATE


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


def ratio(bad_ratio: str) -> tuple[str, str]:
    """bad and total of a ratio that is already computed: every evaluation weighs the same, as in
    the mean of ratios that Sloth and OpenSLO's RatioTimeslices are."""
    return f"({bad_ratio})", f"({bad_ratio}) * 0 + 1"


def _without_strings(query: str) -> str:
    return re.sub(_STRING, '""', query)


def _without_selectors(query: str) -> str:
    return re.sub(r"\{[^{}]*\}", "", _without_strings(query))
