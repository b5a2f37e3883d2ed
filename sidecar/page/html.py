"""HTML made of elements: only `tag` makes markup, and whatever comes from outside is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TypeAlias, Union

_VOID = frozenset({"link", "meta"})


class Html(str):
    """Markup, which is not escaped again."""

    __slots__ = ()


Content: TypeAlias = Union[str, int, "Iterable[Content]", None]


def join(*content: Content) -> Html:
    """The markup of all of it; what is not markup is escaped, None is nothing."""
    return Html("".join(_markup(each) for each in content))


def tag(name: str, /, *content: Content, **attributes: str | float | bool | None) -> Html:
    """An element. Attributes: `class_` is class, `data_at` data-at; True has no value, None and
    False are left out."""
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{_plain(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{join(*content)}</{name}>")


def table(labelled_by: str, columns: Sequence[str], rows: Iterable[Html]) -> Html:
    """Of rows that `row` made. The roles keep it a table where a phone's style makes it a list."""
    heads = [tag("th", column, scope="col", role="columnheader") for column in columns]
    return tag(
        "table",
        tag("thead", tag("tr", heads, role="row"), role="rowgroup"),
        tag("tbody", rows, role="rowgroup"),
        role="table", aria_labelledby=labelled_by,
    )  # fmt: skip


def row(
    columns: Sequence[str], cells: Sequence[Content], *, head: int = 0, **attributes: str
) -> Html:
    """head: the index of the cell that names the row."""
    return tag("tr", [
        tag("th", cell, scope="row", role="rowheader") if number == head
        else tag("td", cell, role="cell", data_title=columns[number])
        for number, cell in enumerate(cells)
    ], role="row", **attributes)  # fmt: skip


def _markup(content: Content) -> str:
    if content is None:
        return ""
    if isinstance(content, Html):
        return content
    if isinstance(content, str | int):
        return escape(str(content))
    return "".join(_markup(each) for each in content)


def _plain(value: str | float) -> str:
    return escape(f"{value:.13g}" if isinstance(value, float) else str(value))
