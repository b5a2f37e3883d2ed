"""The evaluator against a real Prometheus: same samples, same expressions, at every step."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Mapping

import httpx
import promql_parser as parser
import pytest
from e2e.processes import Server, free_port
from plans import chat_plan, composite, objective, plan

from inferslo.exporters.names import FAMILIES, Kind
from inferslo.rules.compile import compile_rules
from inferslo.sidecar.demo.record import backfill
from inferslo.sidecar.judge.promql import Engine, ManyMatchesError, UnsupportedError
from inferslo.sidecar.judge.samples import Labels, Samples, Vector
from inferslo.slo.plan import Canary
from inferslo.slo.signals import SIGNALS

SCRAPE, STEP, LASTS = 15, 60, 7500
BEGIN = 1_700_000_000 // 7200 * 7200
UNLIKE = ("composite", "promql")
EVERYTHING = plan(
    *(objective(name, name=name.replace("_", "-")) for name in SIGNALS if name not in UNLIKE),
    composite(),
    canary=Canary("track", "new", "old"),
    prompt_classes=chat_plan().prompt_classes,
)
# What no rule of ours has, and a user's own query may.
OTHERS = [
    "-a_total", "2 - a_total", "3 > g", "g > 3", "2 >= bool g", "g % 3", "g ^ 2", "g / 0",
    "a_total / on (engine) group_left (zone) info", "a_total * ignoring (zone, engine) g",
    "avg by (engine) (g)", "group without (zone) (g)", "min(g)", "changes(g[5m])",
    "delta(g[5m])", "deriv(g[10m])", "rate(a_total[1m] offset 90s)", "sqrt(g - 5)",
    "max_over_time((g > 2)[10m:1m])", "sum_over_time(rate(a_total[1m])[5m:45s] offset 1m)",
    'label_replace(g, "place", "in-$1", "zone", "z(.)")', "abs(g - 5)", "time() - g",
    "resets(g[9m])",
    "histogram_quantile(0.9, sum by (le) (rate(h_bucket[5m])))", "g == g",
    "g unless on (zone) info",
    "histogram_quantile(0.01, h_bucket)", "last_over_time(g[1m])", "avg_over_time(a_total[7m])",
    'g{zone!="z1"} or g', 'g{zone=~"z1|z3"}', 'g{zone!~"z.", nothing=""}',
]  # fmt: skip


def expressions() -> list[str]:
    rules = [rule.expr for group in compile_rules(EVERYTHING) for rule in group.rules]
    return list(dict.fromkeys([*rules, *OTHERS]))


def selectors(texts: list[str]) -> Iterator[parser.VectorSelector]:
    for text in texts:
        found: list[parser.VectorSelector] = []

        def visit(tree: parser.Expr, found: list[parser.VectorSelector] = found) -> None:
            if isinstance(tree, parser.VectorSelector):
                found.append(tree)
            if isinstance(tree, parser.MatrixSelector):
                found.append(tree.vector_selector)

        parser.walk(parser.parse(text), visit)
        yield from found


def wanted(selector: parser.VectorSelector) -> dict[str, str]:
    """Labels that it matches."""
    chosen = {}
    for one in selector.matchers.matchers:
        text = one.value.split("|")[0]
        for pattern, plain in ((r"[.]", "."), (r"([.]0*)?", ""), ("0*", ""), (r"[+]?", "")):
            text = text.replace(pattern, plain)
        negative = one.op in (parser.MatchOp.NotEqual, parser.MatchOp.NotRe)
        chosen[one.name] = "other" if negative else text
    return {label: value for label, value in chosen.items() if value}


def labelled(name: str, asked: Mapping[str, str], pick: random.Random) -> Labels:
    part = re.sub("_(bucket|count|sum)$", "", name)
    family = FAMILIES.get(part) or FAMILIES.get(name)
    if name.startswith("inferslo:"):
        own = {"service": "checkout-assistant", "slo": "availability"}
    elif family is not None:
        own = {label: f"{label}-{pick.randint(1, 2)}" for label in family.labels}
        own |= {"job": "sidecar", "instance": f"pod-{pick.randint(1, 2)}"}
    else:
        own = {"zone": f"z{pick.randint(1, 3)}", "engine": f"e{pick.randint(1, 2)}"}
    if name.endswith("_bucket"):
        own["le"] = "+Inf"
    return frozenset({**own, **asked}.items())


def series(pick: random.Random) -> dict[tuple[str, Labels], list[tuple[int, float]]]:
    made = {}
    for selector in selectors(expressions()):
        assert selector.name is not None
        asked = wanted(selector)
        for _ in range(2):
            labels = labelled(selector.name, asked, pick)
            made[selector.name, labels] = samples(selector.name, pick)
            if "le" in dict(labels):  # the others of its histogram
                for le in ("0.1", "1.0", "+Inf"):
                    others = frozenset({**dict(labels), "le": le}.items())
                    made[selector.name, others] = samples(selector.name, pick)
    for n in (1, 2):  # what many series may be joined with
        made["info", frozenset({("engine", f"e{n}"), ("zone", "z9")})] = samples("info", pick)
    return made


def samples(name: str, pick: random.Random) -> list[tuple[int, float]]:
    """Of a counter that is reset now and then, or of a gauge; some are missing, some all the way
    from or to a time."""
    family = FAMILIES.get(name)
    gauge = name == "g" or (family is not None and family.kind is Kind.GAUGE)
    gauge |= name.startswith("inferslo:")
    value, growth, found = 0.0, pick.choice([0, 0, 0.2, 3]), []
    begin, end = pick.choice([0, 0, 3000]), pick.choice([LASTS, LASTS, 6000])
    for at in range(0, LASTS, SCRAPE):
        if gauge:
            value = float(pick.choice([0, 1, 1, 1, pick.randint(0, 9)]))
        else:
            value = 0.0 if pick.random() < 0.003 else value + growth * pick.randint(0, 9)
        if begin <= at <= end and pick.random() > 0.05:
            found.append((BEGIN + at, round(value, 3)))
    return found


@pytest.fixture(scope="module")
def data() -> dict[tuple[str, Labels], list[tuple[int, float]]]:
    return series(random.Random(20261130))


@pytest.fixture(scope="module")
def url(
    data: dict[tuple[str, Labels], list[tuple[int, float]]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("prometheus")
    page = folder / "samples.txt"
    with page.open("w", encoding="utf-8") as file:
        for (name, labels), values in data.items():
            inside = ",".join(f'{k}="{v}"' for k, v in sorted(labels))
            file.writelines(f"{name}{{{inside}}} {value:g} {at}\n" for at, value in values)
        file.write("# EOF\n")
    backfill([page], folder / "tsdb")
    (folder / "prometheus.yml").write_text("{}\n", encoding="utf-8")
    listen = f"127.0.0.1:{free_port()}"
    command = ["prometheus", f"--config.file={folder / 'prometheus.yml'}"]
    command += [f"--storage.tsdb.path={folder / 'tsdb'}", f"--web.listen-address={listen}"]
    command += ["--storage.tsdb.retention.time=100y"]
    with Server(command, f"http://{listen}", "/-/ready", folder / "log") as server:
        yield server.url


@pytest.fixture(scope="module")
def engine(data: dict[tuple[str, Labels], list[tuple[int, float]]]) -> Engine:
    held = Samples(most=math.inf)
    for (name, labels), values in data.items():
        held.remember(name, math.inf)
        for at, value in values:
            held.append((name, labels), at, [(name, labels, value)])
    return Engine(held, closed=True)


def asked(url: str, text: str) -> dict[int, Vector]:
    """What Prometheus gives, by step. An error in one of them is one for all."""
    span = {"start": BEGIN + 3600, "end": BEGIN + LASTS, "step": STEP}
    answer = httpx.post(f"{url}/api/v1/query_range", data={"query": text, **span}, timeout=60)
    document = answer.json()
    if document["status"] == "error":
        assert "many-to-many" in document["error"] or "duplicate" in document["error"], document
        raise ManyMatchesError(document["error"])
    found: dict[int, Vector] = {at: {} for at in range(BEGIN + 3600, BEGIN + LASTS + 1, STEP)}
    for one in document["data"]["result"]:
        labels = frozenset((k, v) for k, v in one["metric"].items() if k != "__name__")
        for at, value in one["values"]:
            found[int(at)][labels] = float(value)
    return found


@pytest.mark.parametrize("text", expressions())
def test_it_says_what_prometheus_says(text: str, engine: Engine, url: str) -> None:
    query = engine.query(text)
    try:
        expected = asked(url, text)
    except ManyMatchesError:
        with pytest.raises(ManyMatchesError):
            [query(at) for at in range(BEGIN + 3600, BEGIN + LASTS + 1, STEP)]
        return
    for at, vector in expected.items():
        found = query(at)
        assert found.keys() == vector.keys(), at
        for labels, value in vector.items():
            assert found[labels] == pytest.approx(value, rel=1e-9, abs=1e-9, nan_ok=True), at


@pytest.mark.parametrize(
    "text",
    ["quantile(0.9, g)", "g @ 3", "holt_winters(g[5m], 0.1, 0.1)", "1 + 1 >", "x[5m]", "1 > 2"],
)
def test_what_is_not_evaluated_here_is_refused(text: str, engine: Engine) -> None:
    with pytest.raises(UnsupportedError):
        engine.query(text)(BEGIN)
