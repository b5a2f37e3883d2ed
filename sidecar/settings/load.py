"""Lays the origins of settings over each other: flags > environment > file > defaults.

Each origin is read whole and every fault in any of them is reported at once, at the place where
the user wrote it: `--listen`, `INFERSLO_LISTEN` or `inferslo.yaml:3:9`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import EnvSettingsSource

from ..errors import SettingsError
from ..printable import printable
from .model import ENV_PREFIX, FIELDS, Settings, contradictions, flag, variable
from .targets import Engine, Target
from .values import closest, read_small

CONFIG_FLAG = "--config"
CONFIG_VARIABLE = ENV_PREFIX + "CONFIG"
# What Kubernetes sets in every pod for a Service named "inferslo" (or "inferslo-…").
_SERVICE_VARIABLE = re.compile(r".*_(SERVICE_(HOST|PORT)(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)")
_MAX_FILE_BYTES = 256 << 10
_MAX_DEPTH = 20
_MAX_SCALAR = 2048  # characters of one key or value
_MAX_LINE = 1000  # characters of one problem

_Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and where each that is no default was set: field → flag, variable or file:line."""

    settings: Settings
    origins: Mapping[str, str]


@dataclass(slots=True)
class _File:
    """What a configuration file says. places: path of a key → "file:line:column"."""

    values: dict[str, Any] = field(default_factory=dict)
    places: dict[_Path, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


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
        raise _error(_explain(error, _File(), origins)) from None


def _error(problems: Iterable[str]) -> SettingsError:
    return SettingsError([_line(problem) for problem in problems])


def _line(problem: str) -> str:
    """One line that can be read, whatever the values in it hold."""
    line, half = printable(problem), _MAX_LINE // 2
    return line if len(line) <= _MAX_LINE else f"{line[:half]} … {line[-half:]}"


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
        f"{name}: {_NO_TEXT}"
        for name, value in values.items()
        if _is_no_text(value if isinstance(value, str) else "".join(value))
    ]
    if problems:
        raise _error(problems)


_NO_TEXT = "this is not UTF-8 text"


def _is_no_text(text: str) -> bool:
    """Bytes that are not UTF-8 become lone surrogates; no path may hold a NUL."""
    return re.search("[\0\ud800-\udfff]", text) is not None


# --- faults of values ----------------------------------------------------------------------------


def _explain(error: ValidationError, file: _File, origins: Mapping[str, str]) -> Iterator[str]:
    for detail in error.errors(include_url=False):
        if detail["type"] == "default_factory_not_called":
            continue  # follows from a fault reported for another field of the same target
        place = [_place(detail["loc"], file, origins)] if detail["loc"] else []
        yield ": ".join([*place, _what(detail)])


def _place(loc: _Path, file: _File, origins: Mapping[str, str]) -> str:
    """Where the user wrote the value; a key that is missing is looked for where its parent is."""
    name = str(loc[0])
    if name in origins and origins[name] != file.places.get((name,)):
        return origins[name]
    end = next(n for n in range(len(loc), -1, -1) if loc[:n] in file.places)
    return f"{file.places[loc[:end]]}: {'.'.join(str(part) for part in loc)}"


def _what(detail: ErrorDetails) -> str:
    if detail["type"] == "extra_forbidden":
        model = _model_at(detail["loc"])
        return f"no such setting{closest(str(detail['loc'][-1]), model.model_fields)}"
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"])
    if detail["type"].startswith("bool_"):
        return f'"{detail["input"]}": write on or off'
    message = detail["msg"][0].lower() + detail["msg"][1:]
    return message if detail["type"] == "missing" else f'"{detail["input"]}": {message}'


def _model_at(loc: _Path) -> type[BaseModel]:
    if len(loc) == 1:
        return Settings
    return Engine if loc[0] == "engines" else Target


# --- the file ------------------------------------------------------------------------------------


def _read(path: Path | None) -> _File:
    file = _File()
    if path is None:
        return file
    try:
        body = read_small(path, _MAX_FILE_BYTES)
    except ValueError as error:
        file.problems.append(str(error))
        return file
    try:
        _parse(_Loader(body.decode()), str(path), file)
    except _RefusedError as error:
        file.problems.append(f"{_place_of(error.mark, str(path))}: {error.problem}")
    except yaml.MarkedYAMLError as error:
        place = _place_of(error.problem_mark, str(path)) if error.problem_mark else path
        file.problems.append(f"{place}: this is not YAML: {error.problem}")
    except (ValueError, yaml.YAMLError) as error:  # not UTF-8, control characters, bad dates
        file.problems.append(f"{path}: this is not YAML: {str(error).splitlines()[0]}")
    return file


class _RefusedError(Exception):
    """YAML that settings never need; an attacker's file does."""

    def __init__(self, mark: yaml.Mark, problem: str) -> None:
        super().__init__(problem)
        self.mark, self.problem = mark, problem


class _Loader(yaml.SafeLoader):
    """Refuses what grows without bound (aliases, depth) and what is no setting."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]  # its stub lacks types
        problem = self._refusal(
            event, is_key=isinstance(parent, yaml.MappingNode) and index is None
        )
        if problem:
            raise _RefusedError(event.start_mark, problem)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def _refusal(self, event: yaml.Event, *, is_key: bool) -> str | None:
        if isinstance(event, yaml.AliasEvent):
            return "aliases are not read: write the value again"
        if not isinstance(event, yaml.ScalarEvent):
            if is_key:
                return "a key is one word"
            return "this is nested too deep" if self._depth >= _MAX_DEPTH else None
        if len(event.value) > _MAX_SCALAR:
            return f"this is longer than {_MAX_SCALAR} characters"
        return _NO_TEXT if _is_no_text(event.value) else None


def _parse(loader: yaml.SafeLoader, path: str, file: _File) -> None:
    root = loader.get_single_node()
    if root is None:
        return
    if not isinstance(root, yaml.MappingNode) or root.tag != "tag:yaml.org,2002:map":
        place = _place_of(root.start_mark, path)
        file.problems.append(f"{place}: settings are expected, one KEY: VALUE a line")
        return
    _note_places(root, (), path, file)
    values = loader.construct_document(root)
    # A key without a value is not set, as an empty variable is not.
    file.values = {str(key): value for key, value in values.items() if value is not None}


def _note_places(node: yaml.Node, at: _Path, path: str, file: _File) -> None:
    file.places.setdefault(at, _place_of(node.start_mark, path))
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _note_places(item, (*at, index), path, file)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            child, place = (*at, key.value), _place_of(key.start_mark, path)
            if child in file.places:
                file.problems.append(f"{place}: {key.value} is set twice: remove one")
            file.places[child] = place
            _note_places(value, child, path, file)


def _place_of(mark: yaml.Mark, path: str) -> str:
    return f"{path}:{mark.line + 1}:{mark.column + 1}"
