"""YAML with places: what is read, where it stood, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from librarytexts import LIBRARY_TEXT

from inferslo.slo.yamlfile import Document, parse, read


def document(text: str) -> Document:
    return parse(text.encode(), "f.yaml", "settings are expected")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("18:00", "18:00"),
        ("2026-01-02", "2026-01-02"),
        ("010", 10),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("-5", -5),
        ("99.9", 99.9),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-.INF", float("-inf")),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ('"5"', "5"),
        ("1.2.3", "1.2.3"),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text: str, value: Any) -> None:
    found = document(f"key: {text}\n")

    assert found.problems == []
    assert (found.values["key"], type(found.values["key"])) == (value, type(value))


def test_keys_are_text_whatever_they_look_like() -> None:
    assert document("1: a\nno: b\ntrue: c\n~: d\n").values == {
        "1": "a",
        "no": "b",
        "true": "c",
        "~": "d",
    }


def test_places_are_those_of_keys_and_items() -> None:
    found = document("a: 1\nb:\n  - {c: 2}\n  - 3\n")

    assert found.place(("a",)) == "f.yaml:1:1"
    assert found.place(("b", 0)) == "f.yaml:3:5"
    assert found.place(("b", 0, "c")) == "f.yaml:3:6"
    assert found.place(("b", 1)) == "f.yaml:4:5"


def test_what_is_missing_is_where_its_parent_is() -> None:
    found = document("a:\n  - b: 1\n")

    assert found.place(("a", 0, "z", "y")) == "f.yaml:2:5"
    assert found.place(("z",)) == "f.yaml:1:1"
    assert Document("f.yaml").place(("z",)) == "f.yaml"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\na: 2\n", "f.yaml:2:1: a is set twice: remove one"),
        ("x: {a: 1, a: 2}\n", "f.yaml:1:11: a is set twice: remove one"),
        ("a: &x 1\nb: *x\n", "f.yaml:2:4: aliases are not read: write the value again"),
        ("a: !!int 1\n", "f.yaml:1:4: tags (!) are not read: write the value alone"),
        ("a: ! 1\n", "f.yaml:1:4: tags (!) are not read"),
        ("a: !x {b: 1}\n", "f.yaml:1:4: tags (!) are not read: write the value alone"),
        ("a:\n\t- 1\n", "f.yaml:2:1: a tab stands here: indent with spaces"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2:1: a second document begins here: write one file for each"),
        ("- 1\n", "f.yaml:1:1: settings are expected"),
        ("5\n", "f.yaml:1:1: settings are expected"),
        ("{[1]: 2}\n", "f.yaml:1:2: a key is one word"),
        ("a: [1\n", "f.yaml:1:4: the bracket that opens here is not closed with ]"),
        ("a: " + "[" * 999, "f.yaml:1:23: this is nested too deep"),
        ("a: " + "x" * 2049, "f.yaml:1:4: this is longer than 2048 characters"),
        ('a: "\\ud800"\n', "f.yaml:1:4: this is not UTF-8 text"),
        ("a: \x01\n", "f.yaml:1:4: the character U+0001 stands here: remove it"),
    ],
)
def test_what_is_refused_is_told_in_one_line(text: str, problem: str) -> None:
    [found] = document(text).problems

    assert found.startswith(problem)
    assert "\n" not in found


def test_bytes_that_are_not_utf_8_are_refused() -> None:
    [problem] = parse(b"a: \xe9\n", "f.yaml", "").problems

    assert problem == "f.yaml:1:4: this is not UTF-8 text: save the file as UTF-8"


def test_an_empty_text_holds_nothing_and_is_no_fault() -> None:
    for text in ("", "# only a comment\n", "---\n"):
        found = document(text)
        assert (found.values, found.problems) == ({}, [])


def test_a_file_is_read_within_bounds(tmp_path: Path) -> None:
    large = tmp_path / "large.yaml"
    large.write_bytes(b"# " + b"x" * (256 << 10))

    with pytest.raises(ValueError, match="is larger than 256KiB: is it the right file"):
        read(large, "")
    with pytest.raises(ValueError, match="cannot be read: Is a directory"):
        read(tmp_path, "")
    with pytest.raises(ValueError, match="cannot be read: No such file or directory"):
        read(tmp_path / "none.yaml", "")
    with pytest.raises(ValueError, match="is a pipe or device: a file is expected"):
        read(Path("/dev/zero"), "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a:b\n", "1:1: a space is missing after the colon: write `a: b`"),
        ("a:b\nc: d\n", "1:1: a space is missing after the colon: write `a: b`"),
        ("c: d\na:b # why\n", "2:1: a space is missing after the colon: write `a: b`"),
        ("l:\n- a:b\n  c: d\n", "2:1: a space is missing after the colon: write `a: b`"),
        ("l:\n- c: d\n  a:b\n  e: f\n", "3:3: a space is missing after the colon: write `a: b`"),
        ("x: {a:b}\n", "1:5: a space is missing after the colon: write `a: b`"),
        ("l:\n -a: b\n  c: d\n", "2:2: a space is missing after the dash: write `- a: b`"),
        ("a:\u00a0b\nc: d\n", "1:3: this space is none to YAML"),
        ("a: b: c\n", "1:5: a second colon stands here: write a text that holds one in quotes"),
        ("a: b\n  c: d\n", "2:4: this line does not belong to those above it: give it their inde"),
        ("l:\n  - a: b\n c: d\n", "3:2: this line does not belong to those above it"),
        ("a: b\nc\n", "2:1: KEY: VALUE is expected here, with a colon and a space"),
        ('a: "b\nc: d\n', "1:4: the quote that opens here is never closed"),
        ("a: 'it's'\n", "1:8: the quotes end before the value does"),
        ('a: "b\\d"\n', "1:7: \\ begins an escape within double quotes: write single quotes, or"),
        ("a: @b\n", "1:4: a value cannot begin with @: write it in quotes"),
        ("a: `b`\n", "1:4: a value cannot begin with `: write it in quotes"),
        ("a: %b\n", "1:4: a value cannot begin with %: write it in quotes"),
        ("a: > 8000\n", "1:6: a text that begins with > or | is written in quotes"),
        ("a: >8000\n", "1:6: a text that begins with > or | is written in quotes"),
        ("a: - b\n", "1:4: a list does not begin behind its key: put each `- ` on a line"),
        ("a: {b: c\nd: e\n", "1:4: the bracket that opens here is not closed with }, or a comma"),
        ("a: [b c: d]\nx: {a b: c d: e}\n", "2:4: the bracket that opens here is not closed wi"),
        ("a: {b: c, d: #e}\n", "1:14: # begins a comment, and what follows is lost: write a text"),
        ("a: {b: [c, #e]}\nf: g\n", "1:12: # begins a comment, and what follows is lost"),
        ("a: b\n...\nc: d\n", "3:1: a second document begins here: write one file for each"),
        ("a: b\n\tc: d\n", "2:1: a tab stands here: indent with spaces"),
        ("a:\tb\n", "1:3: a tab stands here: indent with spaces"),
        ("a: b\0c\n", "1:5: a NUL byte stands here: is this a text file, saved as UTF-8?"),
        ("a: b\nc: d\x1a", "2:5: the character U+001A stands here: remove it"),
    ],
)
def test_a_beginners_slip_is_told_in_words_of_yaml(text: str, problem: str) -> None:
    [found] = document(text).problems

    assert found.startswith(f"f.yaml:{problem}")


def test_every_line_without_its_space_is_told() -> None:
    assert [line[:8] for line in document("a:b\nc:d\nl:\n- e: f\n").problems] == [
        "f.yaml:1",
        "f.yaml:2",
    ]


@pytest.mark.parametrize("text", ["a: b:c\n", "a: -5s\n", "a: |\n  x:y\n", "a: 'b:c'\n", "a:\n"])
def test_a_colon_or_dash_within_a_value_is_no_slip(text: str) -> None:
    assert document(text).problems == []


@pytest.mark.parametrize(
    ("text", "comments"),
    [
        ("a: #b\n", {("a",): "#b"}),
        ("a: # b\nc: d # e\n", {("a",): "# b"}),
        ("l:\n- #b\n- c\n", {("l", 0): "#b"}),
        ("x: {\n  a: #b\n  }\n", {("x", "a"): "#b"}),
        ("a: # why\n  b: c\n", {}),
        ("a: ~ # b\n", {}),
        ("a:\n# b\n", {}),
    ],
)
def test_what_a_comment_took_of_a_value_is_known(
    text: str, comments: dict[tuple[str | int, ...], str]
) -> None:
    assert document(text).commented == comments


SMALL = "a: b\nc:\n- d\n"


@pytest.mark.parametrize(
    "body",
    [
        SMALL.encode("utf-8-sig"),
        SMALL.replace("\n", "\r\n").encode(),
        SMALL.replace("\n", "\r\n").encode("utf-8-sig"),
    ],
)
def test_a_text_that_windows_made_is_read(body: bytes) -> None:
    found = parse(body, "f.yaml", "")

    assert (found.values, found.problems) == ({"a": "b", "c": ["d"]}, [])
    assert found.place(("a",)) == "f.yaml:1:1"
    assert found.place(("c", 0)) == "f.yaml:3:3"


@pytest.mark.parametrize(
    ("encoding", "problem"),
    [
        ("utf-16", "f.yaml:1:1: this is UTF-16 text, as some Windows programs write: save the"),
        ("utf-16-le", "f.yaml:1:2: a NUL byte stands here: is this a text file, saved as UTF-8?"),
        ("utf-16-be", "f.yaml:1:1: a NUL byte stands here: is this a text file, saved as UTF-8?"),
    ],
)
def test_a_text_in_another_encoding_is_told_once(encoding: str, problem: str) -> None:
    [found] = parse(SMALL.encode(encoding), "f.yaml", "").problems

    assert found.startswith(problem)


CHARACTERS = st.sampled_from([*"ab:-#{}[]'\"|>&*!%@`,? \n\t\\\r", "\u00a0", "\0", "\ufeff", ": "])


@given(st.lists(CHARACTERS, max_size=40).map("".join))
@settings(max_examples=500, deadline=None)
def test_no_text_whatever_brings_up_words_of_the_library(text: str) -> None:
    for problem in document(text).problems:
        assert problem.startswith("f.yaml:")
        assert not LIBRARY_TEXT.search(problem), problem
