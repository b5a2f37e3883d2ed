"""Annotations of an alert, filled in as Prometheus fills in its templates.

Of Go's templates only what our own annotations use: a value, a label, a text, a number made
readable, and an `if` about the value. Forms of numbers as in Prometheus's template/template.go.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType
from urllib.parse import quote

from ...slo.plan import NO_RUNBOOKS
from .firing import Firing

_IF = re.compile(
    r"\{\{ if ge \$value (?P<least>[\d.]+) \}\}(?P<then>.*?)"
    r"\{\{ else \}\}(?P<other>.*?)\{\{ end \}\}",
    re.DOTALL,
)
_TERM = re.compile(
    r"\{\{ (?:\$value(?: \| (?P<form>\w+))?|\$labels\.(?P<label>\w+)|\"(?P<text>[^\"]*)\") \}\}"
)


def filled(firing: Firing) -> dict[str, str]:
    """The annotations of an alert that fires."""
    annotations = firing.alert.annotations.items()
    return {name: fill(text, firing.value, firing.labels) for name, text in annotations}


def runbook(firing: Firing) -> str:
    """Where the SLO file says; the sidecar's own page, a path, where it says nothing."""
    name = firing.alert.alert
    url = filled(firing).get("runbook_url", "")
    return f"/runbooks/{quote(name)}" if url in ("", NO_RUNBOOKS.replace("{alert}", name)) else url


def fill(text: str, value: float, labels: Mapping[str, str]) -> str:
    def term(found: re.Match[str]) -> str:
        if found["label"] is not None:
            return labels.get(found["label"], "")
        if found["text"] is not None:
            return found["text"]
        return _FORMS[found["form"] or ""](value)

    chosen = _IF.sub(  # `ge` is "not less": true of NaN
        lambda found: found["other"] if value < float(found["least"]) else found["then"], text
    )
    return _TERM.sub(term, chosen)


def _written(value: float) -> str:
    """As Go does: the fewest digits that read back the same."""
    if not math.isfinite(value):
        return _short(value)
    digits = Decimal(repr(value)).normalize()
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return f"{digits:f}"
    mantissa, _, exponent = f"{digits:e}".partition("e")
    return f"{mantissa}e{int(exponent):+03}"


def _short(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else f"{value:.4g}"


def _humanize(value: float) -> str:
    if value == 0 or not math.isfinite(value):
        return _short(value)
    prefix = ""
    if abs(value) >= 1:
        for larger in "kMGTPEZY":
            if abs(value) < 1000:
                break
            prefix, value = larger, value / 1000
    else:
        for smaller in "munpfazy":
            if abs(value) >= 1:
                break
            prefix, value = smaller, value * 1000
    return f"{value:.4g}{prefix}"


def _duration(value: float) -> str:
    if not math.isfinite(value):
        return _short(value)
    if abs(value) < 60:
        return f"{value:.4g}s" if abs(value) >= 1 or value == 0 else f"{_humanize(value)}s"
    minutes, seconds = divmod(int(abs(value)), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = (f"{days}d", f"{hours}h", f"{minutes}m", f"{seconds}s")
    first = 0 if days else 1 if hours else 2
    return ("-" if value < 0 else "") + " ".join(parts[first:])


_FORMS: Mapping[str, Callable[[float], str]] = MappingProxyType(
    {
        "": _written,
        "humanize": _humanize,
        "humanizeDuration": _duration,
        "humanizePercentage": lambda value: f"{_short(value * 100)}%",
    }
)
