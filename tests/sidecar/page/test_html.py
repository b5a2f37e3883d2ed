"""Markup is only what `tag` makes."""

from __future__ import annotations

import pytest

from inferslo.sidecar.page.html import Html, join, tag


def test_an_element_with_attributes() -> None:
    made = tag(
        "td", "a", 1, None, ["b", tag("i", "c")], class_="x", data_at=1.5, hidden=True, id=None
    )
    assert made == '<td class="x" data-at="1.5" hidden>a1b<i>c</i></td>'


@pytest.mark.parametrize("hostile", ["<script>x</script>", '"><img src=x onerror=x>', "a & b'"])
def test_whatever_is_not_markup_is_escaped(hostile: str) -> None:
    for made in (tag("p", hostile), tag("p", [hostile]), join(hostile), tag("p", title=hostile)):
        assert "<script" not in made
        assert "<img" not in made
        assert '""' not in made
        assert "& " not in made


def test_what_is_made_of_markup_by_others_is_no_markup() -> None:
    """Text that is put together from markup is text again, so it shows, and does no harm."""
    assert tag("p", "a" + tag("i", "b")) == "<p>a&lt;i&gt;b&lt;/i&gt;</p>"
    assert isinstance(tag("p"), Html)


def test_void_elements_are_not_closed() -> None:
    assert tag("meta", charset="utf-8") == '<meta charset="utf-8">'
