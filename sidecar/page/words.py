"""Numbers and times as the page says them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from hashlib import blake2s
from types import MappingProxyType

from .html import Html, join, tag

_DAY = 86400


def ident(*parts: object) -> str:
    """An id for an element about something that others named."""
    return "x" + blake2s(repr(parts).encode(), digest_size=6).hexdigest()


def digits(number: float, significant: int = 3) -> str:
    """Rounded to so many digits, and never in powers of ten, which nobody reads at night."""
    return f"{Decimal(f'{number:.{significant}g}'):,f}"


def percent(share: float) -> str:
    return f"{digits(share * 100, 3 if abs(share) < 0.995 else 4)} %"


def times(rate: float) -> str:
    """A burn rate: 0.3x, 14x, 1,083x."""
    return f"{rate:.1f}x" if rate < 10 else f"{rate:,.0f}x"


def count(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 or number == int(number) else digits(number)


def seconds(number: float) -> str:
    return f"{digits(number * 1000)} ms" if number < 1 else f"{digits(number)} s"


def size(number: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if abs(number) < 1024:
            return f"{digits(number)} {unit}"
        number /= 1024
    return f"{number:.1f} GiB"


def span(number: float) -> str:
    """How long: 40 s, 12 min, 3 h, 5 d."""
    for unit, length in (("d", _DAY), ("h", 3600), ("min", 60)):
        if number >= 2 * length:
            return f"{number / length:.0f} {unit}"
    return f"{number:.0f} s"


def moment(at: float, now: float) -> str:
    """UTC; with the day if it was not today."""
    today = int(at // _DAY) == int(now // _DAY)
    return time.strftime("%H:%M:%S UTC" if today else "%b %d %H:%M UTC", time.gmtime(at))


def clock(at: float, now: float, *, age: bool = True) -> Html:
    """A moment, and room for its age, which the script keeps."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
    since = tag("span", class_="age", data_at=round(at)) if age else None
    return join(tag("time", moment(at, now), datetime=stamp), since)


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def several(number: int, one: str) -> str:
    return f"{number} {one}" if number == 1 else f"{number} {one}s"


FORMS: Mapping[str, Callable[[float], str]] = MappingProxyType(
    {
        "ratio": percent,
        "seconds": seconds,
        "bytes": size,
        "watts": lambda number: f"{number:.0f} W",
        "celsius": lambda number: f"{number:.0f} °C",
    }
)
"""By the unit of a family; what is not there is a count."""
