"""PromQL over the last minutes of samples: what the compiled rules ask of counters and gauges.

promql_parser reads the text; what is evaluated is what the rules of this project use, and what they
do not is refused when the expression is read. Ranges leave out their left end, as Prometheus does
from 3 on, unless told otherwise. A vector has no two series with the same labels, so the names of
metrics, which functions and operators drop anyway, are no part of them.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import promql_parser as parser

from ...exporters.reading import InfersloError
from .ranges import FUNCTIONS, Range, quantile
from .samples import Labels, Matcher, Samples, Series, Vector, differs, equals, like, unlike

Query = Callable[[float], Vector]  # what an expression gives at a time, Unix seconds
Number = Callable[[float], float]
Ranges = Callable[[float], Iterable[tuple[Labels, Range]]]
_LOOKBACK = 300.0
NO_LABELS: Labels = frozenset()


class UnsupportedError(InfersloError):
    """PromQL that is not evaluated here; the text says what of it."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number that needs no series."""

    at: Number


class Engine:
    """Reads expressions over some samples. closed: ranges have their left end, as before 3."""

    def __init__(self, samples: Samples, *, closed: bool = False) -> None:
        self._samples = samples
        self._closed = closed
        self._within = 0.0  # seconds of the subqueries around what is read

    def query(self, text: str) -> Query:
        """Raises UnsupportedError, also for what is no PromQL. What is given raises FailedError."""
        try:
            value = _vector(self._read(parser.parse(text)))
        except (ValueError, re.error) as error:
            raise UnsupportedError(f"{text}: {error}") from None

        def query(at: float) -> Vector:
            try:
                return value(at)
            except (ArithmeticError, TypeError, ValueError) as error:  # as of infinities
                raise FailedError(f"{text}: {error}") from None

        return query

    def _read(self, tree: parser.Expr) -> Query | Scalar:
        match tree:
            case parser.ParenExpr():
                return self._read(tree.expr)
            case parser.NumberLiteral():
                number = tree.val
                return Scalar(lambda _: number)
            case parser.VectorSelector():
                return self._instant(tree)
            case parser.UnaryExpr():
                return _arithmetic(operator.mul, Scalar(lambda _: -1.0), self._read(tree.expr))
            case parser.BinaryExpr():
                return self._binary(tree)
            case parser.AggregateExpr():
                return _aggregated(tree, _vector(self._read(tree.expr)))
            case parser.Call():
                return self._call(tree)
        raise UnsupportedError(f"{type(tree).__name__} is not evaluated here: {tree}")

    # --- series ----------------------------------------------------------------------------------

    def _instant(self, tree: parser.VectorSelector) -> Query:
        select, offset = self._selector(tree, _LOOKBACK), _seconds(tree.offset)
        closed = self._closed

        def query(at: float) -> Vector:
            values = (
                (one.labels, one.now(at - offset, _LOOKBACK, closed=closed)) for one in select()
            )
            return {labels: value for labels, value in values if value is not None}

        return query

    def _selector(self, tree: parser.VectorSelector, span: float) -> Callable[[], list[Series]]:
        """span: seconds that are looked back."""
        if tree.name is None or tree.at is not None or tree.matchers.or_matchers:
            raise UnsupportedError(f"{tree}: no name, @ or `or` between matchers")
        name, matchers, samples = tree.name, list(_matchers(tree.matchers.matchers)), self._samples
        samples.remember(name, self._within + _seconds(tree.offset) + span)
        known: tuple[int, list[Series]] = (-1, [])

        def select() -> list[Series]:
            nonlocal known
            if known[0] != samples.version:
                known = samples.version, samples.select(name, matchers)
            return known[1]

        return select

    def _ranges(self, tree: parser.Expr) -> Ranges:
        if isinstance(tree, parser.SubqueryExpr):
            return self._subquery(tree)
        if not isinstance(tree, parser.MatrixSelector):
            raise UnsupportedError(f"{tree}: a range is expected")
        selector, closed = tree.vector_selector, self._closed
        span, offset = _seconds(tree.range), _seconds(selector.offset)
        select = self._selector(selector, span)

        def ranges(at: float) -> Iterator[tuple[Labels, Range]]:
            end = at - offset
            for one in select():
                yield one.labels, Range(one.within(end, span, closed=closed), end, span)

        return ranges

    def _subquery(self, tree: parser.SubqueryExpr) -> Ranges:
        span, step, offset = (_seconds(time) for time in (tree.range, tree.step, tree.offset))
        if not step or tree.at is not None:
            raise UnsupportedError(f"{tree}: a subquery needs a step, and no @")
        self._within += span + offset
        try:
            inner, closed = _vector(self._read(tree.expr)), self._closed
        finally:
            self._within -= span + offset

        def ranges(at: float) -> Iterator[tuple[Labels, Range]]:
            end = at - offset
            points: dict[Labels, list[tuple[float, float]]] = {}
            for time in _steps(end - span, end, step, closed=closed):
                for labels, value in inner(time).items():
                    points.setdefault(labels, []).append((time, value))
            for labels, seen in points.items():
                yield labels, Range(seen, end, span)

        return ranges

    # --- functions -------------------------------------------------------------------------------

    def _call(self, tree: Any) -> Query | Scalar:
        name, arguments = tree.func.name, tree.args
        if name in FUNCTIONS:
            return _over_time(name, self._ranges(arguments[0]))
        if name == "time":
            return Scalar(lambda at: at)
        if name == "vector":
            return _vector(self._read(arguments[0]))
        if name in _OF_EACH:
            return _mapped(_OF_EACH[name], _vector(self._read(arguments[0])))
        if name in _CLAMPS:
            bound, clamp = _number(self._read(arguments[1])), _CLAMPS[name]
            inner = _vector(self._read(arguments[0]))
            return lambda at: {labels: clamp(v, bound(at)) for labels, v in inner(at).items()}
        if name == "histogram_quantile":
            return _quantile(_number(self._read(arguments[0])), _vector(self._read(arguments[1])))
        if name == "label_replace":
            texts = [text.val for text in arguments[1:]]
            return _label_replaced(_vector(self._read(arguments[0])), *texts)
        raise UnsupportedError(f"the function {name} is not evaluated here")

    # --- operators -------------------------------------------------------------------------------

    def _binary(self, tree: parser.BinaryExpr) -> Query | Scalar:
        symbol = str(tree.op)
        left, right = self._read(tree.lhs), self._read(tree.rhs)
        if symbol in _SETS:
            return _set(_SETS[symbol], _key(tree.modifier), _vector(left), _vector(right))
        if symbol in _COMPARISONS:
            bools = tree.modifier is not None and tree.modifier.return_bool
            if isinstance(left, Scalar) and not bools:  # what is kept is the series
                left, right, symbol = right, left, _MIRRORED[symbol]
            apply = _comparison(_COMPARISONS[symbol], bools=bools)
        elif symbol in _ARITHMETIC:
            apply = _ARITHMETIC[symbol]
        else:
            raise UnsupportedError(f"the operator {symbol} is not evaluated here")
        if isinstance(left, Scalar) or isinstance(right, Scalar):
            return _arithmetic(apply, left, right)
        return _matched(apply, tree.modifier, left, right)


Apply = Callable[[float, float], float | None]  # None drops the pair


def _vector(value: Query | Scalar) -> Query:
    if isinstance(value, Scalar):
        number = value.at
        return lambda at: {NO_LABELS: number(at)}
    return value


def _seconds(time: timedelta | None) -> float:
    return time.total_seconds() if time is not None else 0.0


def _steps(begin: float, end: float, step: float, *, closed: bool) -> Iterator[float]:
    """Multiples of the step."""
    n = math.floor(begin / step)
    n += not (closed and n * step == begin)
    while n * step <= end:
        yield n * step
        n += 1


_MATCHES = (
    (parser.MatchOp.Equal, equals),
    (parser.MatchOp.NotEqual, differs),
    (parser.MatchOp.Re, like),
    (parser.MatchOp.NotRe, unlike),
)


def _matchers(written: Iterable[parser.Matcher]) -> Iterator[Matcher]:
    for one in written:
        [make] = [make for op, make in _MATCHES if op == one.op]  # they cannot be hashed
        yield make(one.name, one.value)


def _over_time(name: str, ranges: Ranges) -> Query:
    function = FUNCTIONS[name]

    def query(at: float) -> Vector:
        found = {}
        for labels, whole in ranges(at):
            if whole.points and (value := function(whole)) is not None:
                found[labels] = value
        return found

    return query


def _mapped(function: Callable[[float], float], inner: Query) -> Query:
    return lambda at: {labels: function(value) for labels, value in inner(at).items()}


def _root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


_OF_EACH: Mapping[str, Callable[[float], float]] = MappingProxyType({"abs": abs, "sqrt": _root})
_CLAMPS: Mapping[str, Callable[[float, float], float]] = MappingProxyType(
    {"clamp_min": max, "clamp_max": min}
)


def _quantile(q: Number, inner: Query) -> Query:
    def query(at: float) -> Vector:
        histograms: dict[Labels, list[tuple[float, float]]] = {}
        for labels, value in inner(at).items():
            named = dict(labels)
            try:
                bound = float(named.pop("le"))
            except (KeyError, ValueError):
                continue
            histograms.setdefault(frozenset(named.items()), []).append((bound, value))
        return {labels: quantile(q(at), buckets) for labels, buckets in histograms.items()}

    return query


def _label_replaced(inner: Query, target: str, text: str, source: str, pattern: str) -> Query:
    regex = re.compile(pattern, re.DOTALL)

    def replaced(labels: Labels) -> Labels:
        named = dict(labels)
        found = regex.fullmatch(named.get(source, ""))
        if found is None:
            return labels
        named[target] = _GROUP.sub(lambda group: _group(found, group[1] or group[2]), text)
        return frozenset((k, v) for k, v in named.items() if v)

    return lambda at: {replaced(labels): value for labels, value in inner(at).items()}


_GROUP = re.compile(r"\$(?:(\w+)|\{(\w+)\})")


def _group(found: re.Match[str], name: str) -> str:
    """Nothing where there is no such group, as in Go."""
    number = int(name) if name.isdigit() else found.re.groupindex.get(name, -1)
    return found[number] or "" if 0 <= number <= found.re.groups else ""


# --- grouping and matching -----------------------------------------------------------------------

Key = Callable[[Labels], Labels]


def _only(names: Iterable[str]) -> Key:
    kept = frozenset(names)
    return lambda labels: frozenset(pair for pair in labels if pair[0] in kept)


def _all_but(names: Iterable[str]) -> Key:
    left_out = frozenset(names)
    return lambda labels: frozenset(pair for pair in labels if pair[0] not in left_out)


def _grouping(modifier: parser.AggModifier | None) -> Key:
    if modifier is None:
        return _only(())
    by = modifier.type == parser.AggModifierType.By
    return _only(modifier.labels) if by else _all_but(modifier.labels)


def _key(modifier: parser.BinModifier | None) -> Key:
    matching = modifier.matching if modifier is not None else None
    if matching is None:
        return _all_but(())
    on = matching.type == parser.LabelModifierType.Include
    return _only(matching.labels) if on else _all_but(matching.labels)


def _numbers(values: Iterable[float]) -> Iterator[float]:
    return (value for value in values if not math.isnan(value))


_AGGREGATES: Mapping[str, Callable[[list[float]], float]] = MappingProxyType(
    {
        "sum": math.fsum,
        "max": lambda values: max(_numbers(values), default=math.nan),
        "min": lambda values: min(_numbers(values), default=math.nan),
        "avg": lambda values: math.fsum(values) / len(values),
        "count": lambda values: float(len(values)),
        "group": lambda _: 1.0,
    }
)


def _aggregated(tree: parser.AggregateExpr, inner: Query) -> Query:
    symbol = str(tree.op)
    if symbol not in _AGGREGATES:
        raise UnsupportedError(f"the aggregation {symbol} is not evaluated here")
    aggregate, key = _AGGREGATES[symbol], _grouping(tree.modifier)

    def query(at: float) -> Vector:
        groups: dict[Labels, list[float]] = {}
        for labels, value in inner(at).items():
            groups.setdefault(key(labels), []).append(value)
        return {labels: aggregate(values) for labels, values in groups.items()}

    return query


def _and(left: Vector, right: Vector, key: Key) -> Vector:
    there = {key(labels) for labels in right}
    return {labels: value for labels, value in left.items() if key(labels) in there}


def _unless(left: Vector, right: Vector, key: Key) -> Vector:
    there = {key(labels) for labels in right}
    return {labels: value for labels, value in left.items() if key(labels) not in there}


def _or(left: Vector, right: Vector, key: Key) -> Vector:
    return left | _unless(right, left, key)


_SETS: Mapping[str, Callable[[Vector, Vector, Key], Vector]] = MappingProxyType(
    {"and": _and, "unless": _unless, "or": _or}
)


def _set(
    combine: Callable[[Vector, Vector, Key], Vector], key: Key, left: Query, right: Query
) -> Query:
    return lambda at: combine(left(at), right(at), key)


def _divided(left: float, right: float) -> float:
    if right == 0:
        return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left)
    return left / right


_ARITHMETIC: Mapping[str, Apply] = MappingProxyType(
    {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
        "/": _divided,
        "^": operator.pow,
        "%": lambda left, right: math.fmod(left, right) if right else math.nan,
    }
)
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = MappingProxyType(
    {
        "==": operator.eq,
        "!=": operator.ne,
        ">": operator.gt,
        "<": operator.lt,
        ">=": operator.ge,
        "<=": operator.le,
    }
)


_MIRRORED = MappingProxyType({"==": "==", "!=": "!=", ">": "<", "<": ">", ">=": "<=", "<=": ">="})


def _comparison(compare: Callable[[float, float], bool], *, bools: bool) -> Apply:
    if bools:
        return lambda left, right: float(compare(left, right))
    return lambda left, right: left if compare(left, right) else None


def _arithmetic(apply: Apply, left: Query | Scalar, right: Query | Scalar) -> Query | Scalar:
    """Where at least one side is a number."""
    if not isinstance(left, Scalar):
        vector, number = left, _number(right)
        return lambda at: _kept(vector(at), lambda value: apply(value, number(at)))
    first = left.at
    if isinstance(right, Scalar):
        second = right.at
        return Scalar(lambda at: _certain(apply(first(at), second(at))))
    others = right
    return lambda at: _kept(others(at), lambda value: apply(first(at), value))


def _number(value: Query | Scalar) -> Number:
    if not isinstance(value, Scalar):
        raise UnsupportedError("a number is expected where series are")
    return value.at


def _certain(value: float | None) -> float:
    if value is None:
        raise UnsupportedError("numbers are compared with bool only")
    return value


def _kept(vector: Vector, apply: Callable[[float], float | None]) -> Vector:
    values = ((labels, apply(value)) for labels, value in vector.items())
    return {labels: value for labels, value in values if value is not None}


def _matched(apply: Apply, modifier: parser.BinModifier | None, left: Query, right: Query) -> Query:
    key, card = _key(modifier), modifier.card if modifier is not None else None
    if card == parser.VectorMatchCardinality.OneToMany:
        raise UnsupportedError("group_right is not evaluated here")
    many = card == parser.VectorMatchCardinality.ManyToOne
    extra = _only(modifier.group_labels or ()) if many and modifier is not None else None

    def query(at: float) -> Vector:
        ones: dict[Labels, tuple[Labels, float]] = {}
        for labels, value in right(at).items():
            if key(labels) in ones:
                raise ManyMatchesError(f"several series on the right are {dict(key(labels))}")
            ones[key(labels)] = labels, value
        found: Vector = {}
        for labels, value in left(at).items():
            matching = key(labels)
            if matching not in ones:
                continue
            other, number = ones[matching]
            if (result := apply(value, number)) is None:
                continue
            named = _joined(labels, extra(other)) if extra is not None else matching
            if named in found:
                raise ManyMatchesError(f"several series on the left are {dict(named)}")
            found[named] = result
        return found

    return query


def _joined(labels: Labels, more: Labels) -> Labels:
    return frozenset({**dict(labels), **dict(more)}.items())


class FailedError(InfersloError):
    """An evaluation that fails: it gives nothing, as Prometheus's."""


class ManyMatchesError(FailedError):
    """Series that one operator cannot tell apart."""
