"""A page of metrics as it was read; `exposition` makes it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from operator import itemgetter
from types import MappingProxyType
from typing import NamedTuple

from .exposition_lines import Comment, Exemplar, Row, Series

_TEXT_SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}
_OPENMETRICS_SUFFIXES = {
    "counter": ("_total", "_created"),
    "histogram": ("_bucket", "_sum", "_count", "_created"),
    "summary": ("_sum", "_count", "_created"),
    "gaugehistogram": ("_bucket", "_gsum", "_gcount"),
    "info": ("_info",),
}


class Sample(NamedTuple):
    """One sample under its exposed name. Labels are read-only. timestamp: Unix seconds."""

    name: str
    labels: Mapping[str, str]
    value: float
    timestamp: float | None = None
    exemplar: Exemplar | None = None


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """What the page says of one family; `type` is `unknown` where it says nothing.

    name: as in OpenMetrics, so a counter's has no `_total` in either format (unless something
    else has the short name); the samples keep the names that they were exposed under.
    """

    name: str
    type: str
    help: str
    unit: str
    samples: Sequence[Sample]


@dataclass(frozen=True)
class Layout:
    """All of a page but its numbers; two pages of one target in a row mostly share it."""

    openmetrics: bool = False
    # The lines, those of samples without the value; None where more than a value may change.
    texts: Sequence[str | None] = ()
    sample_lines: Sequence[int] = ()
    # By exposed name: position among the page's samples, and labels; repetitions left out.
    series: Mapping[str, Sequence[tuple[int, Mapping[str, str]]]] = field(default_factory=dict)
    known: Mapping[str, Series] = field(default_factory=dict)
    comments: Sequence[Comment] = ()

    @cached_property
    def declarations(self) -> Mapping[str, Mapping[str, str]]:
        """By name: the texts of HELP, TYPE and UNIT."""
        found: dict[str, dict[str, str]] = {}
        for keyword, name, text in self.comments:
            found.setdefault(name, {})[keyword] = text
        return found

    def declared_as(self, sample: str) -> str:
        """The name in the TYPE line that speaks of this sample; its own if none does."""
        if sample in self.declarations:
            return sample
        base, _, suffix = sample.rpartition("_")
        suffixes = _OPENMETRICS_SUFFIXES if self.openmetrics else _TEXT_SUFFIXES
        type_ = self.declarations.get(base, {}).get("TYPE", "")
        return base if f"_{suffix}" in suffixes.get(type_, ()) else sample


class Page:
    """One page, whole."""

    def __init__(
        self,
        layout: Layout,
        values: Sequence[float],
        extras: Mapping[int, tuple[float | None, Exemplar | None]] = MappingProxyType({}),
    ) -> None:
        self._layout = layout
        self._values = values
        self._extras = extras  # by position, of the samples with a timestamp or an exemplar

    @property
    def openmetrics(self) -> bool:
        return self._layout.openmetrics

    @property
    def names(self) -> Collection[str]:
        """Exposed names that have a sample, e.g. `vllm:time_to_first_token_seconds_bucket`."""
        return self._layout.series.keys()

    def samples(self, name: str) -> Sequence[Sample]:
        """The samples exposed as `name`, in the order of the page; empty if there are none."""
        found, values, extras = self._layout.series.get(name, ()), self._values, self._extras
        if not extras:
            return [Sample(name, labels, values[at]) for at, labels in found]
        return [Sample(name, labels, values[at], *extras.get(at, ())) for at, labels in found]

    def label_values(self, label: str) -> Collection[str]:
        """All that samples of whatever name say under this label."""
        found = chain.from_iterable(self._layout.series.values())
        return {labels[label] for _, labels in found if label in labels}

    def declared(self, name: str) -> bool:
        """Whether the page knows `name`: a sample's, a family's, or one its type implies.

        True with no samples means: unknown as yet, not absent.
        """
        layout = self._layout
        return name in layout.series or layout.declared_as(name) in layout.declarations

    def has_prefix(self, *prefixes: str) -> bool:
        """Whether the page knows a name, with a sample or without, that begins with one of them."""
        layout = self._layout
        return any(name.startswith(prefixes) for name in chain(layout.series, layout.declarations))

    @cached_property
    def families(self) -> Mapping[str, MetricFamily]:
        """By family name, those without a sample too; samples in the order of the page."""
        layout = self._layout
        placed: dict[str, list[tuple[int, Sample]]] = {name: [] for name in layout.declarations}
        for name, found in layout.series.items():
            positions = [at for at, _ in found]
            family = placed.setdefault(layout.declared_as(name), [])
            family.extend(zip(positions, self.samples(name), strict=True))
        families = [
            self._family(declared, [sample for _, sample in sorted(found, key=itemgetter(0))])
            for declared, found in placed.items()
        ]
        return {family.name: family for family in families}

    def _family(self, declared: str, samples: Sequence[Sample]) -> MetricFamily:
        about = self._layout.declarations.get(declared, {})
        type_ = about.get("TYPE", "unknown").replace("untyped", "unknown")
        name = declared.removesuffix("_total") if type_ == "counter" else declared
        if self.declared(name):
            name = declared
        return MetricFamily(name, type_, about.get("HELP", ""), about.get("UNIT", ""), samples)


def layout_of(
    openmetrics: bool, lines: Sequence[str], rows: Mapping[int, Row], comments: Sequence[Comment]
) -> Layout:
    """rows: by the index of their line."""
    texts: list[str | None] = list(lines)
    for index, row in rows.items():
        plain = row.bare and row.text == lines[index].rpartition(" ")[0]
        texts[index] = row.text if plain else None
    known = {row.text: row.series for row in rows.values()}
    return Layout(openmetrics, texts, list(rows), _by_name(rows.values()), known, comments)


def _by_name(rows: Iterable[Row]) -> Mapping[str, Sequence[tuple[int, Mapping[str, str]]]]:
    found: dict[str, list[tuple[int, Mapping[str, str]]]] = {}
    seen = set()
    for position, (_, (name, labels), _, timestamp, _) in enumerate(rows):
        identity = (name, frozenset(labels.items()), timestamp)
        if identity not in seen:
            seen.add(identity)
            found.setdefault(name, []).append((position, labels))
    return found
