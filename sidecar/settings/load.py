"""Lays the origins of settings over each other: flags > environment > file > defaults.

Each origin is read whole and every fault in any of them is reported at once, at the place where
the user wrote it: `--listen`, `INFERSLO_LISTEN` or `inferslo.yaml:3:9`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import EnvSettingsSource

from ...slo.errors import among, closest, one_line, shown
from ...slo.yamlfile import NO_TEXT, Document, Keys, is_no_text, read
from ..errors import SettingsError
from .model import ENV_PREFIX, FIELDS, Settings, contradictions, flag, variable
from .targets import Engine, Target

CONFIG_FLAG = "--config"
CONFIG_VARIABLE = ENV_PREFIX + "CONFIG"
# What Kubernetes sets in every pod for a Service named "inferslo" (or "inferslo-…").
_SERVICE_VARIABLE = re.compile(r".*_(SERVICE_(HOST|PORT)(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)")
_EXPECTED = "settings are expected, one KEY: VALUE a line"


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and where each that is no default was set: field → flag, variable or file:line."""

    settings: Settings
    origins: Mapping[str, str]


def load(flags: Mapping[str, Any], config: Path | None = None) -> Loaded:
    """The effective settings. flags: field → text, absent ones left out. Raises SettingsError."""
    environment = {k: v for k, v in EnvSettingsSource(Settings)().items() if v is not None}
    file = _read(config or _config_of_environment())
    origins = {
        **{name: file.places.get((name,), file.places[()]) for name in file.values},
        **{name: variable(name) for name in environment},
        **{name: flag(name) for name in flags},
    }
    _require_text({variable(name): value for name, value in environment.items()})
    _require_text({flag(name): value for name, value in flags.items()})
    problems = [*file.problems, *_unknown_variables()]
    try:
        settings = Settings(**{**file.values, **environment, **flags})
    except ValidationError as error:
        raise _error([*problems, *_explain(error, file, origins)]) from None
    for names, what in contradictions(settings):
        set_by = [f"{name} ({origins[name]})" if name in origins else name for name in names]
        problems.append(f"{' and '.join(set_by)}: {what}")
    if problems:
        raise _error(problems)
    return Loaded(settings, origins)


def load_target(values: Mapping[str, str | None], origins: Mapping[str, str]) -> Target:
    """One target from flags. origins: field → what to call it. Raises SettingsError."""
    given = {name: value for name, value in values.items() if value is not None}
    _require_text({origins[name]: value for name, value in given.items()})
    try:
        return Target.model_validate(given)
    except ValidationError as error:
        raise _error(_explain(error, Document(""), origins)) from None


def _error(problems: Iterable[str]) -> SettingsError:
    return SettingsError([one_line(problem) for problem in problems])


def _read(path: Path | None) -> Document:
    if path is None:
        return Document("")
    try:
        file = read(path, _EXPECTED)
    except ValueError as error:
        return Document(str(path), problems=[str(error)])
    # A key without a value is not set, as an empty variable is not.
    file.values = {key: value for key, value in file.values.items() if value is not None}
    return file


def _config_of_environment() -> Path | None:
    path = os.environ.get(CONFIG_VARIABLE)
    return Path(path) if path else None


def _unknown_variables() -> Iterator[str]:
    known = {variable(name) for name in FIELDS} | {CONFIG_VARIABLE}
    for name in sorted(os.environ):
        if not name.upper().startswith(ENV_PREFIX) or name.upper() in known:
            continue
        if not _SERVICE_VARIABLE.fullmatch(name):
            yield f"{name} is not a setting{closest(name, known)}"


def _require_text(values: Mapping[str, str | list[str]]) -> None:
    """values: by what to call them. pydantic cannot even report a fault of other than text."""
    problems = [
        f"{name}: {NO_TEXT}"
        for name, value in values.items()
        if is_no_text(value if isinstance(value, str) else "".join(value))
    ]
    if problems:
        raise _error(problems)


# --- faults of values ----------------------------------------------------------------------------


def _explain(error: ValidationError, file: Document, origins: Mapping[str, str]) -> Iterator[str]:
    for detail in error.errors(include_url=False):
        if detail["type"] == "default_factory_not_called":
            continue  # follows from a fault reported for another field of the same target
        place = [_place(detail["loc"], file, origins)] if detail["loc"] else []
        yield ": ".join([*place, _what(detail)])


def _place(loc: Keys, file: Document, origins: Mapping[str, str]) -> str:
    """Where the user wrote the value; a key that is missing is looked for where its parent is."""
    name = str(loc[0])
    if name in origins and origins[name] != file.places.get((name,)):
        return origins[name]
    return f"{file.place(loc)}: {'.'.join(str(part) for part in loc)}"


# Kind of a fault, or how the kinds of several begin → how it is mended.
_WANTED = {
    "bool": "write on or off",
    "int": "write a whole number",
    "byte": "write a size, as 64KiB or 2MiB",
    "missing": "this key is missing",
    "tuple_type": "write a list",
    "model_type": "write {{url: http://HOST:PORT}}",
    "string_type": "write a text, in quotes if it looks like something else",
    "path_type": "write a path, in quotes if it looks like something else",
    "float_type": "write a duration, as 2s, 500ms or 1m",
    "greater_than": "write a number above {gt}",
    "greater_than_equal": "write at least {ge}",
    "less_than_equal": "write at most {le}",
}


def _what(detail: ErrorDetails) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        model = _model_at(detail["loc"])
        return f"no such setting{closest(str(detail['loc'][-1]), model.model_fields)}"
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        word, words = str(detail["input"]), re.findall("'(.*?)'", context["expected"])
        return f'"{word}" is none{among(word, words)}'
    wanted = _WANTED.get(kind) or _WANTED.get(kind.partition("_")[0], "see docs/configuration.md")
    wanted = wanted.format(**context)
    return wanted if kind == "missing" else f'"{shown(detail["input"])}": {wanted}'


def _model_at(loc: Keys) -> type[BaseModel]:
    if len(loc) == 1:
        return Settings
    return Engine if loc[0] == "engines" else Target
