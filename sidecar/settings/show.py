"""The effective settings as a file that could be loaded again, and where each came from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import yaml

from .load import Loaded
from .model import FIELDS, written
from .targets import Target


def as_yaml(loaded: Loaded) -> str:
    """A configuration file; the comment behind each setting names its origin."""
    return "".join(_lines(loaded))


def as_json(loaded: Loaded) -> str:
    """For scripts: {"settings": …, "origins": …}; seconds and bytes as numbers."""
    settings = loaded.settings.model_dump(mode="json")
    settings.update(_lists(loaded))
    origins = {field: loaded.origins.get(field, "default") for field in FIELDS}
    return json.dumps({"settings": settings, "origins": origins}, indent=2)


def _lines(loaded: Loaded) -> Iterator[str]:
    lists = _lists(loaded)
    for field in FIELDS:
        value = getattr(loaded.settings, field)
        if field in lists:
            text = f"{field}: []" if not lists[field] else f"{field}:"
        else:
            text = f"{field}: {_scalar(field, value)}"
        yield f"{text:<40} # {loaded.origins.get(field, 'default')}\n"
        if lists.get(field):
            yield yaml.safe_dump(lists[field], sort_keys=False, allow_unicode=True)


def _scalar(field: str, value: object) -> str:
    if value is None:
        return "null"
    text = written(field, value)
    return text if re.fullmatch(r"[\w./:-]+", text) else json.dumps(text)


def _lists(loaded: Loaded) -> dict[str, list[dict[str, object]]]:
    values = {field: getattr(loaded.settings, field) for field in FIELDS}
    return {
        field: [_target(target) for target in value]
        for field, value in values.items()
        if isinstance(value, tuple)
    }


def _target(target: Target) -> dict[str, object]:
    return {"name": target.name, **target.model_dump(mode="json", exclude_defaults=True)}
