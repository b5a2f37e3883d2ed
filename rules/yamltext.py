"""The one way YAML is written: the same content is the same bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml


class _Dumper(yaml.SafeDumper):
    """Texts of several lines stand as blocks."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def dump(*documents: Any, head: Iterable[str] = ()) -> str:
    """YAML of plain dicts, lists, texts and numbers, in their order. head: lines of a comment."""
    comment = "".join(f"# {line}\n" for line in head)
    return comment + yaml.dump_all(
        documents, Dumper=_Dumper, sort_keys=False, width=1_000_000, allow_unicode=True,
        explicit_start=len(documents) > 1,
    )  # fmt: skip
