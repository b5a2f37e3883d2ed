"""Annotations of an alert, filled in as Prometheus fills in its templates.

Of Go's templates only what our own annotations use: a value, a label, a text, a number made
readable, and an `if` about the value. Forms of numbers as in Prometheus's template/template.go.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

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


def fill(text: str, value: float, labels: Mapping[str, str]) -> str:
    def term(found: re.Match[str]) -> str:
        if found["label"] is not None:
            return labels.get(found["label"], "")
        if found["text"] is not None:
            return found["text"]
        return _FORMS[found["form"] or ""](value)

    chosen = _IF.sub(
        lambda found: found["then"] if value >= float(found["least"]) else found["other"], text
    )
    return _TERM.sub(term, chosen)


def _humanize(value: float) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{value:.4g}"
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
        return f"{value:.4g}"
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
        "": lambda value: f"{value:.17g}" if value % 1 else f"{value:g}",
        "humanize": _humanize,
        "humanizeDuration": _duration,
        "humanizePercentage": lambda value: f"{value * 100:.4g}%",
    }
)
