"""Small builders of PromQL text that Prometheus from 2.42 on, Mimir, Thanos and vmalert read alike.

They know two things of the data. Which series belong to a service: labels that no family has
(job, namespace, cluster) are labels of the targets and apply to all; `model_name` applies where a
family has it, and elsewhere through the engine beside which a sidecar stands. And that counters
with open labels are born late, with their first event already in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal

from ..exporters.names import (
    BUILD_INFO,
    ENGINE_INFO,
    ENGINE_UP,
    GATEWAY_UP,
    LABELS,
    Family,
    Feed,
)
from ..slo.plan import Selection
from ..slo.quantities import format_duration

ON_TARGET = ("job", "instance")
# The model that an application or a gateway names may be none.
_MAY_BE_NAMELESS = (Feed.EVENTS, Feed.GATEWAY)
_AWAY = ("1h", "1d")
# A metric's regex special characters (RE2), as classes: a backslash would need escaping twice.
_SPECIAL = frozenset(r".+*?()|[]{}^$")


def quoted(value: str) -> str:
    """A PromQL string: the escapes are Go's."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def matcher(label: str, values: Sequence[str]) -> str:
    """The label has one of these values; "" is also no such label."""
    if len(values) == 1:
        return f"{label}={quoted(values[0])}"
    return f"{label}=~{quoted('|'.join(_literal(value) for value in values))}"


def _literal(value: str) -> str:
    """A regex that matches exactly this text."""
    return "".join(_escaped(character) for character in value)


def _escaped(character: str) -> str:
    if character in "\\^[]":  # not themselves in a class
        return "\\" + character
    return f"[{character}]" if character in _SPECIAL else character


def le(bound: Decimal) -> str:
    """Matches this bucket however its bound is spelled: 1, 1.0, 1e+00 (Prometheus 2 keeps the text
    of the page, Python writes 1e+06, Prometheus 3 writes 1.0)."""
    digits = f"{bound.normalize():f}"
    mantissa, _, exponent = f"{bound.normalize():e}".partition("e")
    sign, power = ("-", exponent[1:]) if exponent.startswith("-") else ("[+]?", exponent[1:])
    return f"le=~{quoted(f'{_decimals(digits)}|{_decimals(mantissa)}e{sign}0*{power}')}"


def _decimals(digits: str) -> str:
    whole, _, fraction = digits.partition(".")
    fraction = fraction.rstrip("0")
    return f"{whole}[.]{fraction}0*" if fraction else f"{whole}([.]0*)?"


def series(name: str, matchers: Iterable[str] = ()) -> str:
    inside = ",".join(matchers)
    return f"{name}{{{inside}}}" if inside else name


def select(family: Family, selection: Selection, *own: str, part: str = "") -> str:
    """The series of a family that belong to the service, class and tenant selected.

    own: matchers beside those. part: `_bucket`, `_sum`, `_count` of a histogram. What a family
    without `model_name` has is narrowed down by `of_service`, after it was made a vector.
    """
    return series(family.name + part, [*own, *_matchers(family, selection)])


def _matchers(family: Family, selection: Selection) -> list[str]:
    matchers = []
    for label, values in selection.match:
        if label == "model_name" and family.feed in _MAY_BE_NAMELESS:
            values = (*values, "")
        if label in family.labels or label not in LABELS:
            matchers.append(matcher(label, values))
    if selection.sla_class is not None and "sla_class" in family.labels:
        matchers.append(matcher("sla_class", [selection.sla_class]))
    if selection.tenant is not None and "tenant" in family.labels:
        matchers.append(matcher("tenant", [selection.tenant]))
    if selection.prompts and "prompt_class" in family.labels:
        matchers.append(matcher("prompt_class", [prompt.label for prompt in selection.prompts]))
    return matchers


def of_service(vector: str, family: Family, selection: Selection, within: str = "1h") -> str:
    """Keeps of a vector what stands beside an engine of the service, where the family itself does
    not say whose it is."""
    named = [label for label, _ in selection.match if label in ENGINE_INFO.labels]
    if all(label in family.labels for label in named) or family.feed is Feed.EVENTS:
        return vector
    on = [*ON_TARGET, "engine"] if "engine" in family.labels else ON_TARGET
    return f"({beside(vector, selection, on, within)})"


def beside(vector: str, selection: Selection, on: Sequence[str], within: str = "1h") -> str:
    """Keeps of a vector what shares these labels with an engine of the service. Engines of the last
    hour (`within`) count: one that is down does not tell its name."""
    engines = f"last_over_time({select(ENGINE_INFO, selection)}[{within}])"
    return f"{vector} and on ({', '.join(on)}) {engines}"


def any_model(selection: Selection) -> Selection:
    """Whatever model, told apart by targets alone: a gateway's names of models are its own."""
    targets = tuple(each for each in selection.match if each[0] not in ENGINE_INFO.labels)
    return replace(selection, match=targets)


def born_late(family: Family) -> bool:
    """Whether its series appear only with their first event, which increase() and rate() miss.
    Those of an engine all appear at its start, or with its first request."""
    return family.feed in (Feed.EVENTS, Feed.GATEWAY)


def rate(counter: str, family: Family, window: int) -> str:
    """Events a second over `window` seconds, the first of a series included."""
    span = format_duration(window)
    plain = f"rate({counter}[{span}])"
    if not born_late(family):
        return plain
    return f"({newborn(counter, family, window)} / {window} or {plain})"


def newborn(counter: str, family: Family, window: int) -> str:
    """The counters that did not exist `window` seconds ago although their source did answer: all
    that they count has happened since. A source that was not read then proves nothing, and one
    that counted no more an hour or a day ago is old and was away: what it counts is not new."""
    span = format_duration(window)
    away = "".join(f" unless {counter} offset {ago} <= {counter}" for ago in _AWAY)
    alive, on = _alive(family)
    return (
        f"(({counter} unless {counter} offset {span}{away})"
        f" and on ({', '.join(on)}) ({alive} offset {span} == 1))"
    )


def _alive(family: Family) -> tuple[str, Sequence[str]]:
    if family.feed is Feed.EVENTS:
        return BUILD_INFO.name, ON_TARGET
    source = GATEWAY_UP if family.feed is Feed.GATEWAY else ENGINE_UP
    return source.name, [*ON_TARGET, *source.labels]


def sum_by(per: Sequence[str], vector: str) -> str:
    return aggregate("sum", per, vector)


def aggregate(operator: str, per: Sequence[str], vector: str) -> str:
    return f"{operator} by ({', '.join(per)}) ({vector})" if per else f"{operator}({vector})"


def or_zero(vector: str, like: str) -> str:
    """The vector, and 0 for the series of `like` that it lacks: what has not happened yet."""
    return f"({vector} or 0 * {like})"


def ratio(bad: str, total: str) -> str:
    """No ratio without events: 0/0 would be NaN and poison every sum over it."""
    return f"{bad} / ({total} > 0)"
