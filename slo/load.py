"""Reads an SLO file: a Plan, or every fault in it as FILE:LINE:COLUMN, what is wrong, the mend."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from .errors import SpecError, UnreadableError, closest, one_line
from .faults import Fault, FaultyError, Keys
from .plan import Plan
from .resolve import resolve
from .spec import ClassesSpec, ClassSpec, Spec
from .yamlfile import Document, parse, read

_EXPECTED = "an SLO file is expected: `service`, `objectives` and so on, one KEY: VALUE a line"


def load(path: Path) -> Plan:
    """The plan of a file. Raises SpecError, and UnreadableError where there is no such file."""
    try:
        document = read(path, _EXPECTED)
    except ValueError as error:
        raise UnreadableError([one_line(str(error))]) from None
    return _plan(document)


def load_text(text: str | bytes, name: str = "slo.yaml") -> Plan:
    """The plan of a file's text. name: what to call the file. Raises SpecError."""
    body = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return _plan(parse(body, name, _EXPECTED))


def _plan(document: Document) -> Plan:
    if not document.values:
        problems = document.problems or [f"{document.name}: the file is empty: {_EXPECTED}"]
        raise SpecError([one_line(problem) for problem in problems])
    faults: list[Fault] = []
    plan = None
    try:
        plan = resolve(Spec.model_validate(document.values))
    except ValidationError as error:
        faults = list(_explain(error))
    except FaultyError as error:
        faults = list(error.faults)
    problems = [*document.problems, *(_line(fault, document) for fault in faults)]
    if problems or plan is None:
        raise SpecError([one_line(problem) for problem in problems])
    return plan


def _line(fault: Fault, document: Document) -> str:
    return f"{document.place(fault.keys)}: {_name(fault.keys)}{fault.what}"


def _name(keys: Keys) -> str:
    return ".".join(str(key) for key in keys) + ": " if keys else ""


# --- faults that pydantic found ------------------------------------------------------------------


def _explain(error: ValidationError) -> Iterator[Fault]:
    for detail in error.errors(include_url=False):
        yield Fault(tuple(k for k in detail["loc"] if k != "[key]"), _what(detail))


def _what(detail: ErrorDetails) -> str:
    kind, value = detail["type"], detail["input"]
    match kind:
        case "extra_forbidden":
            fields = _model_at(detail["loc"][:-1]).model_fields
            names = [field.alias or name for name, field in fields.items()]
            return f"no such key{closest(str(detail['loc'][-1]), names)}"
        case "missing":
            return "this key is missing"
        case "value_error":
            return str(detail["ctx"]["error"])
        case "string_type" if isinstance(value, (int, float)):
            return f'{value} is no text here: write it in quotes, "{value}"'
        case "enum" if isinstance(value, str):
            return f'"{value}" is none of {detail["ctx"]["expected"]}'
        case "model_type" | "dict_type" | "model_attributes_type":
            return f'"{value}": KEY: VALUE pairs are expected here'
        case "tuple_type" | "list_type":
            return f'"{value}": a list is expected here'
    return f'"{value}": {detail["msg"][0].lower()}{detail["msg"][1:]}'


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
