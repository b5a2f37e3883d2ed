"""Reads an SLO file: a Plan, or every fault in it as FILE:LINE:COLUMN, what is wrong, the mend."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from .errors import SpecError, UnreadableError, closest, one_line, shown
from .plan import Plan
from .resolve import resolve
from .resolve.faults import Fault, FaultyError
from .spec import ClassesSpec, ClassSpec, Spec
from .yamlfaults import missing_space
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
    plan, faults = _judge(document)
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


def _judge(document: Document) -> tuple[Plan | None, list[Fault]]:
    """The plan and no fault, or None and every fault."""
    empty = {keys: _of_empty(keys, document) for keys in _empty(document.values, ())}
    filled = _without_empty(document.values)
    plan, found = None, []
    try:
        plan = resolve(Spec.model_validate(filled))
    except FaultyError as error:
        found = list(error.faults)
    except ValidationError as error:
        found = list(_explain(error))
        found += _faults_of_the_rest(filled, found)
    faults = [Fault(keys, what) for keys, what in empty.items()]
    return plan, [*faults, *(fault for fault in found if fault.keys not in empty)]


def _empty(value: Any, keys: Keys) -> Iterator[Keys]:
    """Keys and items without a value: a default that was meant, or a slip; it is asked for."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if item is None:
            yield (*keys, key)
        elif isinstance(item, (dict, list)):
            yield from _empty(item, (*keys, key))


def _of_empty(keys: Keys, document: Document) -> str:
    what = "this has no value" if isinstance(keys[-1], int) else "this key has no value"
    if lost := document.commented.get(keys):
        return f'{what}, as # begins a comment: if that is the value, write it in quotes, "{lost}"'
    return f"{what}: give it one or remove it"


def _without_empty(value: Any) -> Any:
    """Without the keys that have no value. Items stay where they are."""
    if isinstance(value, list):
        return [_without_empty(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _without_empty(item) for key, item in value.items() if item is not None}


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


_PAIRS = "KEY: VALUE pairs are expected here"
_WANTED = {
    "string_type": "one text is expected here",
    "model_type": _PAIRS,
    "dict_type": _PAIRS,
    "tuple_type": "a list is expected here: begin each item with `- `, or write [a, b]",
    "bool_type": "write true or false",
    "bool_parsing": "write true or false",
}


def _what(detail: ErrorDetails) -> str:
    value, written = detail["input"], shown(detail["input"])
    # A secret may stand where only its file may be named.
    secret = detail["loc"][:1] == ("receivers",)
    written = "…" if secret else written[:_MAX_SHOWN] + "…" * (len(written) > _MAX_SHOWN)
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
        case "enum":
            return f'"{written}" is not {detail["ctx"]["expected"]}'
        case "string_type" if isinstance(value, (int, float)):
            return f'{written} is no text here: write it in quotes, "{written}"'
    wanted = _WANTED.get(detail["type"], "something else is expected here, see docs/slo.md")
    return f'"{written}": {(not secret and _slip(value)) or wanted}'


def _slip(value: Any) -> str:
    """What to say of `canary: label:x` and of `objectives: -name`, in which spaces lack."""
    words = value.split() if isinstance(value, str) else value
    words = words if isinstance(words, (list, dict)) else []
    return next(filter(None, (missing_space(word) for word in words if isinstance(word, str))), "")


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
