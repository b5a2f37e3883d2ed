"""Writes the pages of docs/ that are made from code: `make docs`. A test holds them to it."""

from __future__ import annotations

import json
import math
import typing
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from inferslo.exporters.names import FAMILIES, Family, Feed
from inferslo.rules import naming
from inferslo.rules import warnings as early_warnings
from inferslo.sidecar.events.model import json_schema
from inferslo.sidecar.settings import model as settings
from inferslo.sidecar.settings.targets import Engine, Target
from inferslo.slo import catalogue
from inferslo.slo import schema as slo_schema
from inferslo.slo.buckets import BUCKET_FLAGS
from inferslo.slo.burn import burns_for, outage_for
from inferslo.slo.detection import seconds_to_alert
from inferslo.slo.plan import Budgeting, Burn, Evaluation, Floor, Outage, Window
from inferslo.slo.quantities import format_duration
from inferslo.slo.signals import SIGNALS
from inferslo.slo.spec import AlertingSpec, ClassesSpec, ClassSpec, Spec, TierSpec

HEADER = """\
# Metrics

<!-- Made by `make docs` from exporters/names.py; change it there. -->

Every family that inferslo publishes. A family without a value is absent, never 0;
`inferslo_signal_available` and `/v1/status` say what is missing and how to get it.

The label `source` says how a value was obtained: `engine` (the engine says so), `probe` (measured
inside the engine), `gateway`, `event`, or `derived` (computed from other series, an estimate where
the meaning says so).
"""

SECTIONS = {
    Feed.ENGINE: "Engine: read from the engine's own metrics",
    Feed.PROBE: "In-engine probe: planned, nothing publishes it yet",
    Feed.GPU: "GPU: read from the driver (NVML)",
    Feed.HOST: "Host: read from /proc and cgroup v2",
    Feed.GATEWAY: "Gateway: read from the gateway's own metrics",
    Feed.EVENTS: "Business events: posted by the application",
    Feed.JUDGE: "The judge: with an SLO file (`--slo`)",
    Feed.SIDECAR: "The sidecar itself",
}


def metrics_page() -> str:
    """docs/metrics.md: one table a feed, in the order of exporters/names.py."""
    return HEADER + "".join("\n" + "\n".join(_section(feed)) + "\n" for feed in Feed)


def _section(feed: Feed) -> Iterator[str]:
    yield f"## {SECTIONS[feed]}\n"
    yield "| name | type | unit | labels | meaning |"
    yield "|---|---|---|---|---|"
    yield from (_row(family) for family in FAMILIES.values() if family.feed is feed)


def _row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels)
    return f"| `{family.name}` | {family.kind} | {family.unit} | {labels} | {family.help} |"


def configuration_page() -> str:
    """docs/configuration.md: its tables; the text around them is written by hand."""
    page = (Path(__file__).parent / "configuration.md").read_text(encoding="utf-8")
    return _between(_between(page, "settings", _settings()), "targets", _targets())


def _between(page: str, marker: str, lines: Iterator[str]) -> str:
    head, _, rest = page.partition(f"<!-- {marker}:")
    opening, _, rest = rest.partition("\n")
    tail = rest.partition(f"<!-- end of {marker} -->")[2]
    table = "\n".join(lines)
    return f"{head}<!-- {marker}:{opening}\n{table}\n<!-- end of {marker} -->{tail}"


def _settings() -> Iterator[str]:
    yield "| key | flag | variable | default | meaning |"
    yield "|---|---|---|---|---|"
    for name, field in settings.FIELDS.items():
        default = settings.default_text(name)
        shown = f"`{default}`" if default else ""
        value = settings.metavar(name).replace("|", "\\|")
        option = f"`{settings.flag(name)} {value}`"
        variable = f"`{settings.variable(name)}`"
        yield f"| `{name}` | {option} | {variable} | {shown} | {field.description} |"


def _targets() -> Iterator[str]:
    yield "| key | of | meaning |"
    yield "|---|---|---|"
    for name, field in Engine.model_fields.items():
        of = "both" if name in Target.model_fields else "engines"
        yield f"| `{name}` | {of} | {field.description} |"


def events_schema() -> str:
    """docs/schema/events.schema.json: for whoever posts events, and their tools."""
    return json.dumps(json_schema(), indent=2) + "\n"


def slo_page() -> str:
    """docs/slo.md: its tables; the text around them is written by hand."""
    page = (Path(__file__).parent / "slo.md").read_text(encoding="utf-8")
    return _between(_between(page, "keys", _keys()), "signals", _signals())


def _keys() -> Iterator[str]:
    yield "| key | default | meaning |"
    yield "|---|---|---|"
    yield from _keys_of(Spec, "")


def _keys_of(model: type[BaseModel], prefix: str) -> Iterator[str]:
    """A row for each key, followed by those of the mapping that it holds."""
    for name, field in model.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        yield f"| `{key}` | {_default(field)} | {field.description} |"
        inner, form = _mapping_in(field.annotation)
        is_shared = prefix and inner in (AlertingSpec, TierSpec)  # told where the file has them
        if inner is not None and not is_shared:
            yield from _keys_of(inner, key + form)
    if model is ClassesSpec:
        yield from _keys_of(ClassSpec, f"{prefix}CLASS.")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "needed"
    extra = field.json_schema_extra
    default = extra["default"] if isinstance(extra, dict) else field.default
    if isinstance(default, bool):
        return f"`{json.dumps(default)}`"
    return f"`{default}`" if isinstance(default, (str, int)) else ""


def _mapping_in(annotation: object) -> tuple[type[BaseModel] | None, str]:
    """The model that a key holds, and how its own keys are reached: `.`, `[].` or `.NAME.`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, "."
    outer = typing.get_origin(annotation)
    for inner in typing.get_args(annotation):
        found, form = _mapping_in(inner)
        if found is not None:
            return found, {tuple: "[].", dict: ".NAME."}.get(outer, form)
    return None, ""


def _signals() -> Iterator[str]:
    yield "| signal | what | counts | needs | by class | threshold | pages |"
    yield "|---|---|---|---|---|---|---|"
    for signal in SIGNALS.values():
        default = f", `{signal.default}` by default" if signal.default is not None else ""
        yield (
            f"| `{signal.name}` | {signal.title} | {signal.shape} | {signal.needs} |"
            f" {'yes' if signal.classed else ''} | {signal.unit}{default} |"
            f" {'yes' if signal.pages else ''} |"
        )


def slo_schema_text() -> str:
    """docs/schema/slo.schema.json, and the same in the package: for editors."""
    return json.dumps(slo_schema.json_schema(), indent=2) + "\n"


_MONTH = Window(30 * 86400)
_TIERS = ("fast", "medium", "slow", "creeping")


def maths_page() -> str:
    """docs/maths.md: its tables; the text around them is written by hand."""
    page = (Path(__file__).parent / "maths.md").read_text(encoding="utf-8")
    tables = {
        "factors": _factors(), "outage": _minutes(1.0), "tenth": _minutes(0.1),
        "floors": _floors(), "buckets": _bucket_flags(),
    }  # fmt: skip
    for marker, lines in tables.items():
        page = _between(page, marker, lines)
    return page


def _burns(budget: Decimal, window: Window = _MONTH) -> dict[str, Burn]:
    found, _ = burns_for(budget, window, Budgeting.OCCURRENCES, Evaluation(), pages=True)
    return {burn.name: burn for burn in found}


def _factors() -> Iterator[str]:
    yield f"| period | {' | '.join(_TIERS)} |"
    yield "|---|---|---|---|---|"
    for days in (1, 7, 14, 28, 30, 90):
        burns = _burns(Decimal("0.001"), Window(days * 86400))
        cells = (f"{burns[t].factor}, {burns[t].severity}" if t in burns else "-" for t in _TIERS)
        yield f"| {days} d | {' | '.join(cells)} |"


def _minutes(bad_ratio: float) -> Iterator[str]:
    yield f"| objective | outage | {' | '.join(_TIERS)} |"
    yield "|---|---|---|---|---|---|"
    for objective in ("99.9", "99.5", "99", "98", "95", "90"):
        budget = 1 - Decimal(objective) / 100
        outage = outage_for(budget, Budgeting.OCCURRENCES, Evaluation())
        burns = _burns(budget)
        cells = (_soon(each, bad_ratio) for each in (outage, *map(burns.get, _TIERS)))
        yield f"| {objective} % | {' | '.join(cells)} |"


def _soon(condition: Burn | Outage | None, bad_ratio: float) -> str:
    if condition is None:
        return "left out"
    seconds = seconds_to_alert(condition, bad_ratio, Evaluation().base)
    return "never" if math.isinf(seconds) else f"{seconds / 60:.1f}"


def _floors() -> Iterator[str]:
    burns = _burns(Decimal("0.001"))
    outage = outage_for(Decimal("0.001"), Budgeting.OCCURRENCES, Evaluation())
    yield "| alert | window | bad | total | needs an hour | one failure |"
    yield "|---|---|---|---|---|---|"
    yield _floor("outage", outage.window, outage.ratio, outage.floor)
    yield from (_floor(name, burn.long, burn.threshold, burn.floor) for name, burn in burns.items())


def _floor(name: str, window: int, threshold: Decimal, floor: Floor) -> str:
    hours = window / 3600
    needs, alone = float(max(floor.bad, floor.total)) / hours, 1 / float(threshold) / hours
    cells = (name, format_duration(window), floor.bad, floor.total, f"{needs:.3g}", f"{alone:.3g}")
    return f"| {' | '.join(map(str, cells))} |"


def _bucket_flags() -> Iterator[str]:
    yield "| engine | from | signal | flag, with bounds for example |"
    yield "|---|---|---|---|"
    for engine in BUCKET_FLAGS.values():
        since = ".".join(map(str, engine.since))
        for signal, name in engine.lists.items():
            flag = engine.flags({name: (0.5, 1.0)})
            yield f"| {engine.title} | {since} | `{signal}` | `{flag}` |"


CATALOGUE_HEADER = """\
# Catalogue of SLO files

<!-- Made by `make docs` from slo/catalogue/; change it there. -->

Ready files for kinds of services, each number with its source. `inferslo catalogue` lists them,
`inferslo catalogue NAME` prints one, and `inferslo init` fits one to your engine: a histogram can
only be asked about its own bucket bounds, and vLLM's of TTFT has 1 s and 2.5 s and not the 2 s of
T1. In the files the thresholds stand as their sources have them; `inferslo check --engine URL`
names those that your engine does not have, and the flag that adds them.

`ours` is a number chosen here: look at it with your own traffic. Where sources differ (T1 asks for
2 s to the first token, T41 for 800 ms to the last), `chat` follows the one and `strict` the other.
"""

SEEDS_HEADER = """
## The thresholds T1 to T44

Every threshold in the three articles on the stability of inference that this project began with
(S0, S1, S3; § their sections), and where it went. T41 to T44 are what a vendor claims of itself.
"""


def catalogue_page() -> str:
    """docs/catalogue.md: every number of the catalogue, and where every threshold went."""
    parts = ["\n".join(_entry(catalogue.entry(name))) for name in catalogue.names()]
    return "\n".join([
        CATALOGUE_HEADER, *parts, "\n".join(_published()), SEEDS_HEADER, *_seeds(), ""
    ])  # fmt: skip


def _entry(entry: catalogue.Entry) -> Iterator[str]:
    yield f"## {entry.name}\n\n{entry.summary[:1].upper()}{entry.summary[1:]}\n"
    yield "| of | key | value | source | |"
    yield "|---|---|---|---|---|"
    for number in entry.numbers:
        value = number.value.strip('"')
        yield f"| {number.of} | `{number.key}` | {value} | {number.source} | {number.remark} |"
    yield ""


def _published() -> Iterator[str]:
    yield "## Published sources\n"
    yield "| source | what it is |"
    yield "|---|---|"
    for key, source in catalogue.sources().items():
        if not source.article:
            yield f"| {key} | {source.says} |"


def _seeds() -> Iterator[str]:
    yield "| | article | says | where it is |"
    yield "|---|---|---|---|"
    for key, source in catalogue.sources().items():
        if source.article:
            yield f"| {key} | {source.article} | {source.says} | {_whereabouts(key, source)} |"


def _whereabouts(key: str, source: catalogue.Source) -> str:
    files = [n for n in catalogue.names() if key in {x.source for x in catalogue.entry(n).numbers}]
    places = [f"`{name}`" for name in files]
    if source.signal:
        places.append(f"default of the signal `{source.signal}`")
    if source.warning:
        places.append(f"early warning `{source.warning}`")
    return ", ".join(places) or f"no SLO: {source.no_slo}"


def rules_page() -> str:
    """docs/rules.md: its tables; the text around them is written by hand."""
    page = (Path(__file__).parent / "rules.md").read_text(encoding="utf-8")
    tables = {"series": _recorded(), "alerts": _alerts(), "warnings": _early_warnings()}
    for marker, lines in tables.items():
        page = _between(page, marker, lines)
    return page


def _recorded() -> Iterator[str]:
    yield "| series | further labels | meaning |"
    yield "|---|---|---|"
    for series in naming.SERIES:
        yield f"| `{series.name}` | {', '.join(series.labels)} | {series.meaning} |"


def _alerts() -> Iterator[str]:
    yield "| alert | meaning |"
    yield "|---|---|"
    yield from (f"| `{alert.name}` | {alert.meaning} |" for alert in naming.ALERTS)


def _early_warnings() -> Iterator[str]:
    yield "| name | alert | threshold | what users feel if nobody acts |"
    yield "|---|---|---|---|"
    for warning in early_warnings.catalogue():
        threshold = "" if warning.threshold is None else f"{warning.threshold:f} {warning.unit}"
        yield f"| `{warning.name}` | `{warning.alert}` | {threshold} | {warning.impact} |"


PAGES = {
    "catalogue.md": catalogue_page,
    "configuration.md": configuration_page,
    "maths.md": maths_page,
    "metrics.md": metrics_page,
    "rules.md": rules_page,
    "schema/events.schema.json": events_schema,
    "schema/slo.schema.json": slo_schema_text,
    "slo.md": slo_page,
    "../slo/slo.schema.json": slo_schema_text,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (Path(__file__).parent / name).write_text(page(), encoding="utf-8")
