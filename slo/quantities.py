"""How quantities are written in SLO files: durations, percentages, ranges of prompt lengths.

Exact: what is read is Decimal or int, never float arithmetic. What is written is read back the
same.
"""

from __future__ import annotations

import re
from decimal import Decimal

from .errors import shown
from .plan import PromptRange

_UNITS = {
    "ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600),
    "d": Decimal(86400), "w": Decimal(7 * 86400),
}  # fmt: skip
_PART = r"(\d+(?:\.\d+)?)(ms|[smhdw])"
_MAX_DIGITS = 20
_MAX_TOKENS = 10**9


def parse_duration(value: object) -> Decimal:
    """Seconds of "800ms", "1.2s", "1h30m" or "30d". Raises ValueError, of a bare number too."""
    return _duration(value, ("s", "ms"), "800ms, 1.2s, 5m, 1h30m or 30d")


def parse_whole_seconds(value: object) -> int:
    """As parse_duration, of windows and intervals, which have no part of a second."""
    seconds = _duration(value, ("s", "m"), _WHOLE)
    if seconds != seconds.to_integral_value():
        raise ValueError(f'"{value}" is not a whole number of seconds: write {_WHOLE}')
    return int(seconds)


_WHOLE = "30s, 5m, 1h30m or 30d"


def _duration(value: object, units: tuple[str, str], forms: str) -> Decimal:
    """Raises ValueError. units: to propose for a bare number; forms: for everything else."""
    text = shown(value).strip()
    joined = "".join(text.split())
    if isinstance(value, str) and re.fullmatch(rf"(?:{_PART})+", joined, re.ASCII):
        if joined != text:
            raise ValueError(f'"{text}" holds a space: write {joined}')
        seconds = sum((Decimal(n) * _UNITS[u] for n, u in re.findall(_PART, text)), Decimal(0))
        if 0 < seconds <= 3660 * _UNITS["d"]:
            return plain(seconds)
        raise ValueError(f'"{text}" is not between 1ms and ten years')
    number = _number(value)
    if number is not None and number > 0:
        raise ValueError(f'"{text}" has no unit: write {text}{units[0]} or {text}{units[1]}')
    raise ValueError(f'"{text}" is not a duration: write {forms}')


def format_duration(seconds: Decimal | int) -> str:
    """In the greatest unit of which it is a whole number, up to days: "30d", "90m", "800ms"; else
    in seconds, "1.2s"."""
    exact = Decimal(seconds)
    for unit in ("d", "h", "m", "s", "ms"):
        count = exact / _UNITS[unit]
        if unit == "ms" and exact > 1:
            break
        if count >= 1 and count == count.to_integral_value():
            return f"{int(count)}{unit}"
    return f"{exact.normalize():f}s"


def parse_number(value: object) -> Decimal:
    """A finite number, "15 %" being 0.15. Raises ValueError."""
    text = shown(value).strip()
    percent = isinstance(value, str) and text.endswith("%")
    number = _number(text.removesuffix("%").rstrip() if percent else value)
    if number is None:
        raise ValueError(f'"{text}" is not a number: write one such as 0.15, or "15 %"')
    return plain(number.scaleb(-2) if percent else number)


def parse_percent(value: object) -> Decimal:
    """The ratio that a percentage is: 99.9, or "99.9 %", is exactly 0.999. Raises ValueError."""
    text = shown(value).strip()
    number = _number(text.removesuffix("%").rstrip() if isinstance(value, str) else value)
    if number is None or not 0 <= number <= 100:
        raise ValueError(f'"{text}" is not a percentage: write a number from 0 to 100')
    return plain(number.scaleb(-2))


def format_percent(ratio: Decimal) -> str:
    """0.999 is "99.9 %"."""
    return f"{plain(ratio.scaleb(2)):f} %"


def plain(number: Decimal) -> Decimal:
    """The same number without trailing zeros and exponent, so that equal files make equal plans."""
    return Decimal(f"{number.normalize():f}")


def _number(value: object) -> Decimal | None:
    """None if it is no finite number. A float is what its shortest text says: 99.9, exactly."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, str)):
        return None
    text = str(value).strip()
    # 1e999 would be written out in full, and what has more digits would be rounded.
    found = re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,2})?", text, re.ASCII)
    return Decimal(text) if found and len(found[1]) <= _MAX_DIGITS else None


_BOUND = re.compile(r"(<=|>=|<|>|≤|≥)\s*([0-9]+)")
_BETWEEN = re.compile(r"([0-9]+)\s*\.\.\s*([0-9]+)")


def parse_prompt_range(value: object) -> PromptRange:
    """Of "> 8000", "<= 8000" or "2000..8000", which is above 2000 and up to 8000, so that ranges
    that share a bound share no length. Raises ValueError."""
    text = shown(value).strip()
    if found := _BETWEEN.fullmatch(text):
        above, upto = (_tokens(group) for group in found.groups())
        if above >= upto:
            raise ValueError(f'"{text}" is empty: write the smaller number first')
        return PromptRange(above or None, upto)
    if not (found := _BOUND.fullmatch(text)):
        raise ValueError(
            f'"{text}" is not a range of prompt lengths: write "> 8000", "<= 8000" or "2000..8000"'
        )
    sign, tokens = found[1], _tokens(found[2])
    if sign in (">", ">=", "≥"):
        above = tokens if sign == ">" else tokens - 1
        if above < 1:
            raise ValueError(f'"{text}" is every length: leave the key out')
        return PromptRange(above)
    upto = tokens - 1 if sign == "<" else tokens
    if upto < 1:
        raise ValueError(f'"{text}" is empty: every prompt has at least one token')
    return PromptRange(upto=upto)


def _tokens(digits: str) -> int:
    if len(digits) > len(str(_MAX_TOKENS)):
        raise ValueError(f'"{digits}" is more than any prompt has')
    return int(digits)


def format_prompt_range(range_: PromptRange) -> str:
    """As parse_prompt_range reads it; "all lengths" where there is no bound."""
    if range_.above is None:
        return "all lengths" if range_.upto is None else f"<= {range_.upto}"
    return f"> {range_.above}" if range_.upto is None else f"{range_.above}..{range_.upto}"
