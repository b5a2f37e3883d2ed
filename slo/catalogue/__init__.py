"""Ready SLO files, and where each number in them comes from.

The files are templates: valid as they are, their thresholds those of their sources. A threshold
that is no bucket bound of an engine is fitted by `inferslo init`; `inferslo check --engine` tells
which. In a file each line with a number ends in a comment that begins with its source: a key of
sources.yaml, or `ours`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from ..errors import SloError, closest
from ..yamlfile import parse

OURS = "ours"

_OWNER = re.compile(r"  (?:- name: )?([\w-]+):?$")  # `  - name: answered`, `  S:` of classes
_NUMBER = re.compile(r" +([\w-]+): (\S.*?) +# ([\w-]+)(?:: (.+))?$")


@dataclass(frozen=True, slots=True)
class Number:
    """One number of a file. of: the objective or class that it belongs to."""

    of: str
    key: str
    value: str
    source: str
    remark: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One ready file. summary: what kind of service it is for, one line."""

    name: str
    summary: str
    text: str
    numbers: tuple[Number, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """What a key of sources.yaml stands for. article: of the seeds, "S0 §3.2", else empty.

    signal, value: the signal whose default it is; warning: likewise, the early warning;
    no_slo: why it is no objective. Empty where that is not so.
    """

    says: str
    article: str = ""
    signal: str = ""
    value: str = ""
    warning: str = ""
    no_slo: str = ""


class NoSuchEntryError(SloError):
    """The catalogue has no file of that name; the text names the nearest."""


def names() -> tuple[str, ...]:
    """Names of the ready files, sorted."""
    found = (file.name for file in files(__name__).iterdir() if file.name.endswith(".yaml"))
    return tuple(sorted(name.removesuffix(".yaml") for name in found if name != "sources.yaml"))


def entry(name: str) -> Entry:
    """One ready file. Raises NoSuchEntryError."""
    if name not in names():
        raise NoSuchEntryError(f"the catalogue has no {name}{closest(name, names())}")
    text = _text(name)
    summary = text.partition("\n")[0].partition(": ")[2]
    return Entry(name, summary, text, tuple(_numbers(text)))


def sources() -> dict[str, Source]:
    """Every source but `ours`; T1 to T44 are the thresholds of the seed articles."""
    tables: dict[str, Any] = parse(_text("sources").encode(), "sources.yaml", "tables").values
    published = {key: Source(says) for key, says in tables["published"].items()}
    return published | {key: _seed(row) for key, row in tables["seeds"].items()}


def _seed(row: dict[str, Any]) -> Source:
    texts = {key: str(value) for key, value in row.items()}
    return Source(article=texts.pop("from"), **texts)


def _text(name: str) -> str:
    return (files(__name__) / f"{name}.yaml").read_text(encoding="utf-8")


def _numbers(text: str) -> Iterator[Number]:
    of = ""
    for line in text.splitlines():
        if owner := _OWNER.match(line):
            of = owner[1]
        elif number := _NUMBER.match(line):
            key, value, source, remark = number.groups(default="")
            yield Number(of, key, value, source, remark)
