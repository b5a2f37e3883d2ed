"""The kinds of values in an SLO file: how each is written, checked and told in the JSON Schema."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlsplit
from zoneinfo import available_timezones

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from ..errors import closest, shown
from ..plan import Calendar, PromptRange, When, Window
from ..quantities import (
    parse_duration,
    parse_number,
    parse_percent,
    parse_prompt_range,
    parse_whole_seconds,
)
from .query import query

_DAY = 86400
_BAD_ESCAPE = r"%(?![0-9a-fA-F]{2})"  # Alertmanager does not start with one
_SECRET_KEYS = {"token", "access_token", "key", "api_key", "apikey", "secret", "sig", "password"}
_MOST = 10**9  # beyond any count of events that a window has
_DURATION: dict[str, Any] = {"type": "string", "examples": ["800ms", "1.2s", "5m", "30d"]}
_PERCENT: dict[str, Any] = {"type": ["number", "string"], "examples": [99.5]}
_NUMBER: dict[str, Any] = {"type": ["number", "string"], "examples": [0.15, "15 %"]}


def _read(parse: Callable[[Any], Any], schema: Mapping[str, Any]) -> tuple[object, object]:
    return BeforeValidator(parse), WithJsonSchema(dict(schema))


def _positive(value: object) -> Decimal:
    if (number := parse_number(value)) <= 0:
        raise ValueError(f'"{value}" must be above 0')
    return number


def _whole(least: int, most: int) -> tuple[object, object]:
    def parse(value: object) -> int:
        if type(value) is int and least <= value <= most:
            return value
        raise ValueError(f'"{shown(value)}": write a whole number from {least} to {most}')

    return _read(parse, {"type": "integer", "minimum": least, "maximum": most})


def _objective(value: object) -> Decimal:
    """OpenSLO's range, [0,1): all requests good leaves no budget, and burn rates are infinite."""
    try:
        number = parse_number(str(value).removesuffix("%"))
    except ValueError:
        raise ValueError(
            f'"{shown(value)}" is not a percentage: write a number such as 99.5'
        ) from None
    if 0 < number <= 1:
        hint = "100 leaves no budget" if number == 1 else f"write {number.scaleb(2).normalize():f}"
        raise ValueError(f'"{value}" looks like a ratio, and an objective is in percent: {hint}')
    if not 0 < number < 100:
        budget = " (100 leaves no budget at all)" if number == 100 else ""
        raise ValueError(f'"{value}" is not between 0 and 100, both excluded{budget}: as in 99.5')
    return parse_percent(value)


_PERIODS = "write a length, as in 30d, or {calendar: month} or {calendar: week}"


def _window(value: object) -> Window:
    if not isinstance(value, Mapping):
        try:
            return Window(parse_whole_seconds(value))
        except ValueError:
            raise ValueError(f'"{shown(value)}" is not a period: {_PERIODS}') from None
    if list(value) != ["calendar"]:
        raise ValueError(_PERIODS)
    try:
        calendar = Calendar(str(value["calendar"]))
    except ValueError:
        what = shown(value["calendar"])
        raise ValueError(f'"{what}" is not a calendar: month or week') from None
    return Window((30 if calendar is Calendar.MONTH else 7) * _DAY, calendar)


def _when(value: object) -> frozenset[When]:
    words = value if isinstance(value, list) else [value]
    known = {when.value: when for when in When}
    for word in words:
        if str(word) not in known:
            raise ValueError(f'"{shown(word)}" sets off no tier{closest(str(word), known)}')
    if not words:
        raise ValueError("this is empty: say what sets the tier off, or leave `when` out")
    return frozenset(known[str(word)] for word in words)


def _warning(value: object) -> Decimal | None:
    if value in ("off", False):
        return None
    try:
        is_duration = isinstance(value, str) and re.search("[a-z]$", value)
        return parse_duration(value) if is_duration else parse_number(value)
    except ValueError:
        raise ValueError(
            f'"{shown(value)}" is no threshold: write off, or as the warning has it a number, as'
            ' 0.9 or "15 %", or a duration, as 300ms'
        ) from None


def _labels(value: object) -> object:
    """One value is a list of one."""
    if not isinstance(value, Mapping):
        return value
    return {k: v if isinstance(v, list) else [v] for k, v in value.items()}


def _name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", text):
        raise ValueError(
            f'"{text}" is not a name: at most 63 letters, digits and . _ - beginning with a letter'
            " or digit"
        )
    return text


def _label(text: str) -> str:
    if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", text) or text.startswith("__"):
        raise ValueError(f'"{text}" is not the name of a label: letters, digits and _')
    if text == "le":
        raise ValueError("le is the label of buckets: the rules need all of them")
    return text


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("this is empty: write a text or remove the key")
    return text.strip()


def _line(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f'"{text}" holds a line end or control character: write one line')
    return text


def _plain(text: str) -> str:
    """Prometheus and Alertmanager fill templates in; one that is wrong loses the alert with it."""
    if "{{" in text:
        raise ValueError("{{ begins a template there, and this is to be as it stands: remove it")
    return text


def _file(text: str) -> str:
    """What a secret looks like is no name of a file. It is not repeated."""
    if "://" in text or re.fullmatch(r"[0-9a-zA-Z]{32}", text):
        raise ValueError(
            "this looks like the secret itself: put that into a file and write the file's name"
        )
    return text


def _url(text: str) -> str:
    if re.match(r"https?://[^/]*@", text):
        raise ValueError("the URL holds a user or password: secrets are never in this file")
    if not _is_url(text):
        raise ValueError(f'"{text}" is not a URL: write https://…')
    return text


def _is_url(text: str) -> bool:
    if " " in text or not text.isprintable() or re.search(_BAD_ESCAPE, text):
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets, a port beyond 65535
        return False


def _hook(text: str) -> str:
    """Of one that may be a secret, nothing is repeated."""
    if not _is_url(text):
        raise ValueError("this is not a URL: write https://…")
    parts = urlsplit(_plain(_url(text)))
    keys = {key.lower() for key, _ in parse_qsl(parts.query, keep_blank_values=True)}
    if parts.hostname == "hooks.slack.com":
        raise ValueError("the URL of a Slack webhook is a secret: write `slack`, with api_url_file")
    if keys & _SECRET_KEYS:
        raise ValueError(
            "the URL holds a key or token: secrets are never in this file; post to a relay of your"
            " own that adds it"
        )
    return text


def _host_port(text: str) -> str:
    if not re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^\s:\[\]]+):[0-9]{1,5}", text):
        raise ValueError(f'"{text}" is not HOST:PORT: write mail.example.com:587')
    return text


def _page_url(text: str) -> str:
    rest = _url(text).replace("{alert}", "").replace("{service}", "")
    if "{" in rest or "}" in rest:
        raise ValueError(f'"{text}": only {{alert}} and {{service}} are filled in')
    return text


def _time(text: str) -> str:
    if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d|24:00", text):
        raise ValueError(f'"{text}" is not a time of day: write 09:00')
    return text


_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")


def _weekdays(text: str) -> str:
    first, _, last = text.partition(":")
    days = [first, last or first]
    if not set(days) <= set(_DAYS):
        raise ValueError(f'"{text}" is not a range of days: write monday:friday')
    if _DAYS.index(days[0]) > _DAYS.index(days[1]):
        raise ValueError(f'"{text}": the week of Alertmanager begins on sunday')
    return text


def _location(text: str) -> str:
    """Alertmanager does not start with one that it does not know. Where this machine has no time
    zones, there is no telling."""
    known = available_timezones()
    if known and text not in known:
        near = difflib.get_close_matches(text, known, n=1)
        hint = f": did you mean {near[0]}?" if near else ": write one such as Europe/Berlin"
        raise ValueError(f'"{text}" is not a time zone{hint}')
    return text


Name = Annotated[str, AfterValidator(_name)]
Text = Annotated[str, AfterValidator(_filled)]
Line = Annotated[Text, AfterValidator(_line)]
Plain = Annotated[Line, AfterValidator(_plain)]
SecretFile = Annotated[Plain, AfterValidator(_file)]
HostPort = Annotated[Plain, AfterValidator(_host_port)]
QueryText = Annotated[Text, AfterValidator(query)]
LabelName = Annotated[str, AfterValidator(_label)]
Url = Annotated[str, AfterValidator(_url)]
HookUrl = Annotated[str, AfterValidator(_hook)]
PageUrl = Annotated[str, AfterValidator(_page_url)]
Count = Annotated[int, *_whole(1, _MOST)]
Times = Annotated[int, *_whole(2, _MOST)]
TierNumber = Annotated[int, *_whole(1, 3)]
Seconds = Annotated[Decimal, *_read(parse_duration, _DURATION)]
WholeSeconds = Annotated[int, *_read(parse_whole_seconds, _DURATION)]
Percent = Annotated[Decimal, *_read(parse_percent, _PERCENT)]
ObjectivePercent = Annotated[Decimal, *_read(_objective, _PERCENT)]
Positive = Annotated[Decimal, *_read(_positive, _NUMBER)]
Threshold = Annotated[Any, WithJsonSchema({"type": ["number", "string"], "examples": ["2s", 0.5]})]
Prompts = Annotated[
    PromptRange,
    *_read(parse_prompt_range, {"type": "string", "examples": ["> 8000", "2000..8000"]}),
]
Period = Annotated[
    Window,
    *_read(
        _window,
        {
            "anyOf": [
                _DURATION,
                {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["calendar"],
                    "properties": {"calendar": {"enum": [c.value for c in Calendar]}},
                },
            ]
        },
    ),
]
_WHEN = {"enum": [when.value for when in When]}
Whens = Annotated[
    frozenset[When],
    *_read(_when, {"anyOf": [_WHEN, {"type": "array", "minItems": 1, "items": _WHEN}]}),
]
WarningThreshold = Annotated[
    Decimal | None,
    *_read(_warning, {"anyOf": [{"const": "off"}, {"type": ["number", "string", "boolean"]}]}),
]
Match = Annotated[
    dict[LabelName, Annotated[tuple[Line, ...], Field(min_length=1)]],
    BeforeValidator(_labels),
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": {
                "anyOf": [
                    {"type": "string"},
                    {"type": "array", "minItems": 1, "items": {"type": "string"}},
                ]
            },
        }
    ),
]
Time = Annotated[str, AfterValidator(_time)]
Location = Annotated[str, AfterValidator(_location)]
Weekdays = Annotated[str, AfterValidator(_weekdays)]
