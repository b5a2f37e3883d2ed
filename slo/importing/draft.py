"""What an imported service comes to, and how it is written as an SLO file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

import yaml

from ..resolve.selection import OWN_LABELS
from .queries import UNGROUPED, kept_labels
from .reading import Node, Remark

_MAX_NAME = 63


@dataclass(slots=True)
class Draft:
    """One service. objectives: as they stand in the file, key for key."""

    service: str
    owner: str = ""
    description: str = ""
    objectives: list[dict[str, Any]] = field(default_factory=list)

    def unique(self, wanted: str, node: Node) -> str:
        """A name that our file accepts and no other objective has. node: whose `name` it is."""
        base = clean(wanted)
        taken = {objective["name"] for objective in self.objectives}
        candidate, count = base, 1
        while candidate in taken:
            count += 1
            candidate = f"{base[: _MAX_NAME - 4]}-{count}"
        if candidate != wanted:
            node.change("name", f"is called {candidate} here")
        return candidate


def clean(name: str) -> str:
    """A name with what our file does not accept in one replaced."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-._")[:_MAX_NAME] or "unnamed"


def percent(text: str, scale: int = 0) -> Decimal | None:
    """A number x 10^scale that an objective may be, above 0 and below 100; None else."""
    value = number(text)
    return value.scaleb(scale) if value is not None and 0 < value.scaleb(scale) < 100 else None


def number(text: str) -> Decimal | None:
    """A finite number, exact; None if it is none."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    # 1e99999 would be written out in full.
    return value if value.is_finite() and abs(value.adjusted()) <= 30 else None


def team(labels: Node) -> str:
    """Who owns it, where a label says so."""
    return labels.text("owner") or labels.text("team")


def split(node: Node, key: str, *queries: str) -> dict[str, list[str]]:
    """The key `per` where all the queries are split by the same labels. key: where they stand."""
    labels = kept_labels(*queries)
    if labels is None or set(labels) & set(OWN_LABELS):
        node.change(key, UNGROUPED)
        return {}
    return {"per": list(labels)} if labels else {}


def render(draft: Draft, title: str, remarks: Sequence[Remark]) -> str:
    """The SLO file, what was left out or changed listed at its top."""
    head = {key: getattr(draft, key) for key in ("service", "owner", "description")}
    values = {key: value for key, value in head.items() if value}
    body = yaml.dump(
        {**values, "objectives": draft.objectives}, Dumper=_Dumper, sort_keys=False,
        allow_unicode=True, width=1_000_000, default_flow_style=False,
    )  # fmt: skip
    return "".join(f"# {line}".rstrip() + "\n" for line in _head(title, remarks)) + "\n" + body


def _head(title: str, remarks: Sequence[Remark]) -> list[str]:
    lines = [
        f"Imported from {title} (docs/import.md). A budget lasts 30 days where no `window` is."
    ]
    for heading, lost in (("Left out:", True), ("Carried over in another form:", False)):
        chosen = [f"  {remark}" for remark in remarks if remark.lost is lost]
        lines += [heading, *chosen] if chosen else []
    return lines


class _Dumper(yaml.SafeDumper):
    """Lists indented as people do, queries of several lines as blocks, exact numbers."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        return True  # they are not read

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _number(dumper: yaml.SafeDumper, number: Decimal) -> yaml.Node:
    text = f"{number.normalize():f}"
    tag = "float" if "." in text else "int"
    return dumper.represent_scalar(f"tag:yaml.org,2002:{tag}", text)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(Decimal, _number)
