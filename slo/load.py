"""Reads an SLO file: a Plan, or every fault in it as FILE:LINE:COLUMN, what is wrong, the mend."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from .errors import SpecError, UnreadableError, closest, one_line
from .plan import Plan
from .resolve import resolve
from .resolve.faults import Fault, FaultyError
from .spec import ClassesSpec, ClassSpec, Spec
from .yamlfile import Document, Keys, parse, read

_EXPECTED = "an SLO file is expected: `service`, `objectives` and so on, one KEY: VALUE a line"
_MAX_SHOWN = 80  # characters of a value


def load(path: Path) -> Plan:
    """The plan of a file. Raises SpecError, and UnreadableError where there is no such file."""
    return load_with_places(path)[0]


def load_with_places(path: Path) -> tuple[Plan, Document]:
    """As load, and where everything stands. `objectives` are in the order of the plan's."""
    try:
        document = read(path, _EXPECTED)
    except ValueError as error:
        raise UnreadableError([one_line(str(error))]) from None
    return _plan(document), document


def load_text(text: str | bytes, name: str = "slo.yaml") -> Plan:
    """The plan of a file's text. name: what to call the file. Raises SpecError."""
    body = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return _plan(parse(body, name, _EXPECTED))


def _plan(document: Document) -> Plan:
    if not document.values:
        problems = document.problems or [f"{document.name}: the file is empty: {_EXPECTED}"]
        raise SpecError([one_line(problem) for problem in problems])
    plan, faults = _judge(document.values)
    if document.problems or faults or plan is None:
        problems = [*document.problems, *_lines(faults, document)]
        raise SpecError([one_line(problem) for problem in problems])
    return plan


def _lines(faults: Iterable[Fault], document: Document) -> Iterator[str]:
    """In the order of the file."""
    order = {place: n for n, place in enumerate(document.places.values())}
    for fault in sorted(faults, key=lambda fault: order[document.place(fault.keys)]):
        name = ".".join(map(str, fault.keys))
        yield f"{document.place(fault.keys)}: {name}: {fault.what}"


def _judge(values: dict[str, Any]) -> tuple[Plan | None, list[Fault]]:
    """The plan and no fault, or None and every fault."""
    empty: list[Fault] = []
    filled = _without_empty(values, (), empty)
    plan, found = None, []
    try:
        plan = resolve(Spec.model_validate(filled))
    except FaultyError as error:
        found = list(error.faults)
    except ValidationError as error:
        found = list(_explain(error))
        found += _faults_of_the_rest(filled, found)
    told = {fault.keys for fault in empty}
    return plan, [*empty, *(fault for fault in found if fault.keys not in told)]


def _without_empty(value: Any, keys: Keys, faults: list[Fault]) -> Any:
    """A key without a value may be a default that was meant, or a slip: it is asked for."""
    if isinstance(value, list):
        return [_without_empty(item, (*keys, n), faults) for n, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    what = "this key has no value: give it one or remove it"
    faults += [Fault((*keys, key), what) for key, item in value.items() if item is None]
    return {
        key: _without_empty(item, (*keys, key), faults)
        for key, item in value.items()
        if item is not None
    }


def _faults_of_the_rest(values: dict[str, Any], found: list[Fault]) -> list[Fault]:
    """What resolving finds in the objectives that are sound so far, if all else is."""
    if any(fault.keys[0] != "objectives" or len(fault.keys) < 2 for fault in found):
        return []
    bad = {fault.keys[1] for fault in found}
    kept = [n for n in range(len(values["objectives"])) if n not in bad]
    if not kept:
        return []
    sound = {**values, "objectives": [values["objectives"][n] for n in kept]}
    try:
        resolve(Spec.model_validate(sound))
    except FaultyError as error:
        return [_renumbered(fault, kept) for fault in error.faults]
    return []


def _renumbered(fault: Fault, kept: list[int]) -> Fault:
    if fault.keys[:1] != ("objectives",):
        return fault
    index = kept[int(fault.keys[1])]
    return Fault(("objectives", index, *fault.keys[2:]), fault.what)


# --- faults that pydantic found ------------------------------------------------------------------


def _explain(error: ValidationError) -> Iterator[Fault]:
    for detail in error.errors(include_url=False):
        if detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"]:
            continue  # enough items, but they are faulty, which is told of each
        yield Fault(tuple(k for k in detail["loc"] if k != "[key]"), _what(detail))


def _shown(value: Any) -> str:
    text = str(value)
    return f'"{text}"' if len(text) <= _MAX_SHOWN else f'"{text[:_MAX_SHOWN]}…"'


def _what(detail: ErrorDetails) -> str:
    value = detail["input"]
    # A secret may stand where only its file may be named.
    shown = '"…"' if detail["loc"][:1] == ("receivers",) else _shown(value)
    match detail["type"]:
        case "extra_forbidden":
            fields = _model_at(detail["loc"][:-1]).model_fields
            names = [field.alias or name for name, field in fields.items()]
            return f"there is no such key{closest(str(detail['loc'][-1]), names)}"
        case "missing":
            return "this key is missing"
        case "value_error":
            return str(detail["ctx"]["error"])
        case "too_short":
            return f"there are too few: write at least {detail['ctx']['min_length']}"
        case "string_type" if isinstance(value, (int, float)):
            return f"{shown[1:-1]} is no text here: write it in quotes, {shown}"
        case "string_type":
            return f"{shown}: one text is expected here"
        case "enum":
            return f"{shown} is not {detail['ctx']['expected']}"
        case "model_type" | "dict_type":
            return f"{shown}: KEY: VALUE pairs are expected here"
        case "tuple_type":
            return f"{shown}: a list is expected here"
    return f"{shown}: {detail['msg'][0].lower()}{detail['msg'][1:]}"


def _model_at(keys: Keys) -> type[BaseModel]:
    """The model of the mapping that stands there."""
    model: type[BaseModel] = Spec
    for key in keys:
        by_name = {f.alias or name: f for name, f in model.model_fields.items()}
        if key in by_name:
            model = _model_in(by_name[str(key)].annotation) or model
        elif model is ClassesSpec:
            model = ClassSpec
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, typing.get_args(annotation))), None)
