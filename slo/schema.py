"""The JSON Schema of SLO files, for editors and for whoever writes them by program."""

from __future__ import annotations

from typing import Any

from .signals import SIGNALS
from .spec import Spec

_NULL = {"type": "null"}


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12). It says what may stand where; `inferslo check` says the rest."""
    schema = _tidy(Spec.model_json_schema())
    schema["$defs"]["ObjectiveSpec"]["properties"]["signal"]["enum"] = list(SIGNALS)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "inferslo SLO file",
        **schema,
    }


def _tidy(node: Any) -> Any:
    """Without titles, which repeat keys, and without null: a key that is there has a value."""
    if isinstance(node, list):
        return [_tidy(item) for item in node if item != _NULL]
    if not isinstance(node, dict):
        return node
    kept = {
        key: _tidy(value)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str)) and not (key == "default" and not value)
    }
    [*only] = kept.get("anyOf", [])
    return {**kept.pop("anyOf")[0], **kept} if len(only) == 1 else kept
