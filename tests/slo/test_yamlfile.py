"""YAML with places: what is read, where it stood, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

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
        ("a:\n\t- 1\n", "f.yaml:2:1: this is not YAML: a tab stands here: indent with spaces"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2:1: a second document begins here: write one file for each"),
        ("- 1\n", "f.yaml:1:1: settings are expected"),
        ("5\n", "f.yaml:1:1: settings are expected"),
        ("{[1]: 2}\n", "f.yaml:1:2: a key is one word"),
        ("a: [1\n", "f.yaml:2:1: this is not YAML: expected ',' or ']', but got '<stream end>'"),
        ("a: " + "[" * 999, "f.yaml:1:23: this is nested too deep"),
        ("a: " + "x" * 2049, "f.yaml:1:4: this is longer than 2048 characters"),
        ('a: "\\ud800"\n', "f.yaml:1:4: this is not UTF-8 text"),
        ("a: \x01\n", "f.yaml: this is not YAML: unacceptable character #x0001: special"),
    ],
)
def test_what_is_refused_is_told_in_one_line(text: str, problem: str) -> None:
    [found] = document(text).problems

    assert found.startswith(problem)
    assert "\n" not in found


def test_bytes_that_are_not_utf_8_are_refused() -> None:
    [problem] = parse(b"a: \xe9\n", "f.yaml", "").problems

    assert problem.startswith("f.yaml: this is not YAML: 'utf-8' codec can't decode byte 0xe9")


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
