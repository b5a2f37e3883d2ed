"""The contract of published names keeps the rules that its readers rely on."""

import re
import subprocess
from collections import Counter
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from inferslo.exporters.names import FAMILIES, LABELS, PREFIX, Family, Kind

SNAKE_CASE = r"[a-z][a-z0-9]*(_[a-z0-9]+)*"
# The suffix that a unit gives a name; a family without a unit ends in none of them.
SUFFIXES = {
    "bytes": "_bytes",
    "celsius": "_celsius",
    "hertz": "_hertz",
    "joules": "_joules",
    "ratio": "_ratio",
    "ratio²": "_ratio_squared",
    "seconds": "_seconds",
    "seconds²": "_seconds_squared",
    "tokens": "_tokens",
    "watts": "_watts",
}
# `le` and `quantile` belong to types, `job` and `instance` to Prometheus, `service` and `team` to
# the rules; `type` says nothing that a name would not say better.
RESERVED_LABELS = {"le", "quantile", "job", "instance", "service", "team", "type"}
HISTOGRAM_SUFFIXES = ("_bucket", "_count", "_sum", "_created")


def base(family: Family) -> str:
    """The name without what its type adds: families must differ in it."""
    return family.name.removesuffix("_total")


def test_names_are_snake_case_under_the_prefix() -> None:
    assert [name for name in FAMILIES if not re.fullmatch(PREFIX + SNAKE_CASE, name)] == []


def test_counters_and_only_counters_end_in_total() -> None:
    ends_in_total = {name for name in FAMILIES if name.endswith("_total")}
    assert ends_in_total == {f.name for f in FAMILIES.values() if f.kind is Kind.COUNTER}


def test_no_name_ends_like_a_part_of_a_histogram() -> None:
    assert [f.name for f in FAMILIES.values() if base(f).endswith(HISTOGRAM_SUFFIXES)] == []


def test_a_name_ends_in_its_unit_and_in_no_other() -> None:
    def ends_in(family: Family) -> str:
        name = re.sub("_(lower|upper)$", "", base(family))
        return next((unit for unit, suffix in SUFFIXES.items() if name.endswith(suffix)), "")

    assert [f.name for f in FAMILIES.values() if ends_in(f) != f.unit] == []


def test_no_two_names_differ_only_by_dashes_or_type() -> None:
    spellings = Counter(base(family).replace("_", "") for family in FAMILIES.values())
    assert [spelling for spelling, times in spellings.items() if times > 1] == []


def test_help_reads_as_sentences() -> None:
    """On one line, and without the bar that would end a cell of the table in docs/metrics.md."""
    sentence = r"[A-Z0-9][^|\n]*\."
    assert [f.name for f in FAMILIES.values() if not re.fullmatch(sentence, f.help)] == []
    assert [f.name for f in FAMILIES.values() if "  " in f.help] == []


def test_labels_are_snake_case_unique_and_not_reserved() -> None:
    labels = {label for family in FAMILIES.values() for label in family.labels}
    assert [label for label in labels if not re.fullmatch(SNAKE_CASE, label)] == []
    assert labels & RESERVED_LABELS == set()
    assert [f.name for f in FAMILIES.values() if len(set(f.labels)) != len(f.labels)] == []


def test_what_is_judged_has_no_labels_that_what_is_watched_is_chosen_by() -> None:
    """`tier` or `slo` in a file's `match` are labels of scraped targets."""
    assert not LABELS & {"slo_service", "slo", "group", "tier"}
    assert {"model_name", "tenant", "engine", "gateway", "gpu"} <= LABELS


class EveryFamily:
    """A collector of one series of each family."""

    def collect(self) -> Iterable[Metric]:
        return [one_series(family) for family in FAMILIES.values()]


def one_series(family: Family) -> Metric:
    values = ["x"] * len(family.labels)
    if family.kind is Kind.HISTOGRAM:
        histogram = HistogramMetricFamily(family.name, family.help, labels=family.labels)
        histogram.add_metric(values, [("1", 1), ("+Inf", 2)], sum_value=3)
        return histogram
    made = CounterMetricFamily if family.kind is Kind.COUNTER else GaugeMetricFamily
    metric = made(family.name, family.help, labels=family.labels)
    metric.add_metric(values, 1)
    return metric


def test_promtool_finds_no_fault_in_a_page_of_all_families() -> None:
    registry = CollectorRegistry()
    registry.register(EveryFamily())
    promtool = subprocess.run(
        ["promtool", "check", "metrics"], input=generate_latest(registry), capture_output=True
    )
    assert (promtool.returncode, promtool.stderr.decode()) == (0, "")
