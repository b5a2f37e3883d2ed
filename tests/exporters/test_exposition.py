"""Held against prometheus_client's two parsers, and against promtool for what is valid."""

import re
import shutil
import subprocess
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as text_format

from inferslo.exporters.exposition import ExpositionError, Page, Parser, parse
from inferslo.exporters.reading import ErrorKind

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "tests" / "captures"
THIRD_PARTY = ROOT.parent / "shared" / "captures" / "third-party"
DAMAGED = {  # the first line that is wrong
    "kong__docs-odd__1": 147,
    "litellm-tools-malformed__2026-07__1": 7,
    "litellm__1.72-2025-06__1": 443,
    "nonprom__html-body__1": 1,
    "vllm__0.11-2025-11-mlcommons-curl-mixed__1": 1,
    "vllm__ray-2.32-2024-12__1": 197,
}

Told = dict[str, tuple[str, str, str, list[Any]]]


def number(value: Any) -> str | None:
    """NaN equals NaN, and 1 equals 1.0."""
    return None if value is None else repr(float(value))


def plain(name: str, sample: Any) -> tuple[Any, ...]:
    exemplar = sample.exemplar and (
        dict(sample.exemplar.labels),
        number(sample.exemplar.value),
        number(sample.exemplar.timestamp),
    )
    return name, dict(sample.labels), number(sample.value), number(sample.timestamp), exemplar


def told(page: Page) -> Told:
    return {
        name: (f.type, f.help, f.unit, [plain(s.name, s) for s in f.samples])
        for name, f in page.families.items()
    }


def told_by_reference(page: str) -> Told:
    """The same from prometheus_client, without the `_total` that it adds to a text page's
    counters."""
    is_openmetrics = page.endswith("# EOF\n")
    bare = set() if is_openmetrics else set(re.findall(r"#\s+TYPE\s+(\S+)\s+counter", page))
    families: Told = {}
    for metric in (openmetrics if is_openmetrics else text_format)(page):
        about = (metric.type, metric.documentation, metric.unit, [])
        samples = families.setdefault(metric.name, about)[3]
        for sample in metric.samples:
            name = sample.name
            samples.append(
                plain(name.removesuffix("_total") if metric.name in bare else name, sample)
            )
    return families


def third_party(name: str) -> bytes:
    if not THIRD_PARTY.is_dir():
        pytest.skip(f"no third-party captures at {THIRD_PARTY}")
    return (THIRD_PARTY / f"{name}.prom").read_bytes()


def fault(page: bytes) -> ExpositionError:
    with pytest.raises(ExpositionError) as caught:
        parse(page)
    assert "\n" not in caught.value.detail
    return caught.value


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(CAPTURES.rglob("*.prom")) if path.stem != "curl-spliced"],
    ids=lambda path: path.stem,
)
def test_every_capture_reads_as_prometheus_client_reads_it(path: Path) -> None:
    page = path.read_bytes()
    assert told(parse(page)) == told_by_reference(page.decode())


@pytest.mark.parametrize(
    "name", sorted({path.stem for path in THIRD_PARTY.glob("*.prom")} - DAMAGED.keys()) or ["none"]
)
def test_every_valid_third_party_capture_reads_as_prometheus_client_reads_it(name: str) -> None:
    page = third_party(name)
    assert told(parse(page)) == told_by_reference(page.decode())


@pytest.mark.parametrize(("name", "line"), DAMAGED.items())
def test_a_damaged_third_party_capture_is_refused_at_its_first_wrong_line(
    name: str, line: int
) -> None:
    assert fault(third_party(name)).line == line


def test_what_is_odd_but_valid_is_read() -> None:
    page = parse((CAPTURES / "exposition" / "odd-but-valid.prom").read_bytes())
    (connected,) = page.samples("odd_connected")
    assert connected.labels == {"instance": "localhost:8100", "job": "kong"}
    assert connected.value == 1
    assert [s.labels["le"] for s in page.samples("odd_latency_bucket")] == ["00001.0", "+Inf"]
    assert page.families["odd_stream_event_count"].type == "counter"
    assert page.samples("odd_busy_slots")[0].value != page.samples("odd_busy_slots")[0].value
    assert page.samples("odd_memory_bytes")[0].value == 11615625216
    (config,) = page.samples("odd_config_info")
    assert config.labels == {"overrides": '{"a": [1, 2]} # \\ \n = }', "dtype": "auto"}
    assert page.families["odd_unannounced"].type == "unknown"


def test_openmetrics_is_known_by_its_end_and_gives_exemplars_and_times_in_seconds() -> None:
    page = parse((CAPTURES / "exposition" / "openmetrics.prom").read_bytes())
    assert page.openmetrics
    (requests,) = page.samples("om_requests_total")
    assert requests.exemplar is not None
    assert requests.exemplar.labels == {"trace_id": "4bf92f35 }, #"}
    assert requests.exemplar.timestamp == 1520879607.789
    assert page.samples("om_temperature")[0].timestamp == 1520879607.25
    assert page.families["om_ttft_seconds"].unit == "seconds"
    assert parse(b"a 1 1500\n").samples("a")[0].timestamp == 1.5


def test_a_family_without_samples_is_declared_and_has_none() -> None:
    text = parse(b"# TYPE a_total counter\n# HELP b seen\n# TYPE h histogram\n")
    assert text.samples("a_total") == []
    assert [text.declared(name) for name in ("a_total", "b", "h", "h_bucket")] == [True] * 4
    assert [text.declared(name) for name in ("c", "h_total", "b_bucket")] == [False] * 3
    assert list(text.families) == ["a", "b", "h"]
    assert not text.names
    assert parse(b"# TYPE a counter\n# EOF\n").declared("a_total")


def test_a_name_is_known_by_its_beginning_with_a_sample_or_without() -> None:
    page = parse(b"# TYPE a_total counter\nb_total 1\n")
    assert [page.has_prefix(start) for start in ("a_", "b_", "total")] == [True, True, False]
    assert page.has_prefix("x", "b_")


def test_values_of_a_label_are_of_all_names() -> None:
    page = parse(b'a{x="1"} 1\nb{x="2",y="3"} 1\na{x="1",y="4"} 1\n')
    assert page.label_values("x") == {"1", "2"}
    assert page.label_values("z") == set()


def test_a_sample_joins_its_family_wherever_it_stands() -> None:
    page = parse(b"h_sum 1\nother 2\n# TYPE h histogram\nh_count 3\nh 4\n")
    assert [s.name for s in page.families["h"].samples] == ["h_sum", "h_count", "h"]
    assert page.families["other"].type == "unknown"


def test_the_samples_of_a_family_stand_in_the_order_of_the_page() -> None:
    page = parse(b'# TYPE h summary\nh_sum{e="0"} 1\nh_count{e="0"} 2\nh_sum{e="1"} 3\n')
    assert [sample.value for sample in page.families["h"].samples] == [1, 2, 3]


def test_help_escapes_quotes_in_openmetrics_only() -> None:
    page = r"# HELP a say \"hi\" \\ \n \t" + "\n"
    assert parse(page.encode()).families["a"].help == 'say \\"hi\\" \\ \n \\t'
    assert parse(f"{page}# EOF\n".encode()).families["a"].help == 'say "hi" \\ \n \\t'


def test_a_counter_keeps_its_suffix_where_the_short_name_is_taken() -> None:
    page = parse(b"# TYPE a gauge\na 1\n# TYPE a_total counter\na_total 2\n")
    assert {name: family.type for name, family in page.families.items()} == {
        "a": "gauge",
        "a_total": "counter",
    }


def test_of_a_series_given_twice_the_first_is_kept_as_prometheus_keeps_it() -> None:
    page = parse(b'a{x="1",y="2"} 1\na{ y="2", x="1" } 2\na{x="2",y="1"} 3\na{x="1",y="2"} 4 5\n')
    assert [s.value for s in page.samples("a")] == [1, 3, 4]


def test_labels_are_read_only_because_pages_share_them() -> None:
    labels: Any = parse(b'a{x="1"} 1\n').samples("a")[0].labels
    with pytest.raises(TypeError):
        labels["x"] = "2"


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("a", "no value"),
        ('a{x="1"}', "no value"),
        ('{x="1"} 1', "no metric name"),
        ("this is not a metric at all", "expected a number, found 'is'"),
        ("12345", "no metric name"),
        ("a 1 2 3", "unexpected after the value: '3'"),
        ("a 1 1.5", "expected a timestamp, found '1.5'"),
        ("a 1 99999999999999999999", "expected a timestamp"),
        ("a 0x10", "expected a number"),
        ("a 1_000", "expected a number"),
        ("a ١", "expected a number"),
        ("a 1e400", "out of range"),
        ("a {count:1,sum:2,schema:0}", "expected a label and its quoted value"),
        ('a{x="1} 1', "expected a label and its quoted value"),
        ('a{x="1" y="2"} 1', "expected a label and its quoted value"),
        ('a{x="1",,y="2"} 1', "expected a label and its quoted value"),
        ("a{x=1} 1", "expected a label and its quoted value"),
        ("a{x} 1", "label without value"),
        ('a{x="1",x="2"} 1', "given twice: 'x'"),
        ('a{__name__="b"} 1', "reserved"),
        ('a{"b"} 1', "two metric names"),
        ('a{le="0.', "expected a label and its quoted value"),
        ('a 1 # {trace="x"} 1', "OpenMetrics cut short"),
        ("# TYPE a", "unknown type: ''"),
        ("# TYPE a info", "unknown type: 'info'"),
        ("# TYPE a-b counter", "without a valid metric name"),
        ("# HELP 1a help", "without a valid metric name"),
        ("# EOF", "goes on after # EOF"),
        ("\x0b", "no metric name"),
    ],
)
def test_a_malformed_line_gives_up_the_page_and_is_named(line: str, wrong: str) -> None:
    error = fault(f"first 1\n# fine\n{line}\nlast 1\n".encode())
    assert (error.kind, error.line) == (ErrorKind.MALFORMED, 3)
    assert error.detail.startswith("line 3 of the page: ")
    assert wrong in error.detail


@pytest.mark.parametrize(
    "line",
    [
        "a 1 Inf",
        'a 1 # {x="1"}',
        'a 1 # {"b"} 1',
        'a 1 # {x="1"} 1 2 3',
        'a 1 # {x="1"} 1 # {x="1"} 1',
        'a 1 #{x="1" 1',
        "# TYPE a untyped",
    ],
)
def test_a_malformed_openmetrics_line_is_named(line: str) -> None:
    assert fault(f"first 1\n{line}\n# EOF\n".encode()).line == 2


def test_a_last_line_without_line_feed_is_never_half_read() -> None:
    error = fault(b"a 1\na_total 12")
    assert (error.line, error.kind) == (2, ErrorKind.MALFORMED)
    assert "cut short" in error.detail
    parser = Parser()
    parser.parse(b"a 1\na_total 1234\n")
    with pytest.raises(ExpositionError):
        parser.parse(b"a 1\na_total 12")


def test_the_first_wrong_line_is_named_even_if_the_last_is_torn_too() -> None:
    assert fault((CAPTURES / "exposition" / "curl-spliced.prom").read_bytes()).line == 1


def test_openmetrics_without_its_end_is_refused_if_the_server_called_it_so() -> None:
    content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert Parser().parse(b"a 1\n# EOF\n", content_type).openmetrics
    with pytest.raises(ExpositionError, match="line 2 of the page: no # EOF"):
        Parser().parse(b"a 1\n", content_type)
    assert parse(b"# EOF").openmetrics


def test_bytes_that_are_not_utf_8_are_named_by_line() -> None:
    error = fault(b'a 1\nb{x="caf\xe9"} 1\n')
    assert (error.line, error.kind) == (2, ErrorKind.MALFORMED)


@pytest.mark.parametrize(
    "page",
    [
        b"<!DOCTYPE html>\n<html></html>\n",
        b"\n  <html>nope</html>",
        b"\xef\xbb\xbf<html>",
        b'{"error": {"code": 404}}',
        b'{\n  "error": "x"\n}\n',
        b"[]",
        b"{}",
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03",
        "<html>".encode("utf-16"),
    ],
)
def test_what_is_no_page_of_metrics_is_told_from_a_damaged_one(page: bytes) -> None:
    error = fault(page)
    assert error.kind is ErrorKind.NOT_METRICS
    assert "is the address right?" in error.detail


@pytest.mark.parametrize("page", [b"404 page not found\n", b"Not Found", b'{"a b", x="1"} y\n'])
def test_prose_and_a_quoted_name_are_malformed_metrics(page: bytes) -> None:
    assert fault(page).kind is ErrorKind.MALFORMED


@pytest.mark.parametrize("page", [b"", b"\n", b" \t\n", b"# a comment only\n", b"#HELP a\n"])
def test_a_page_may_be_empty(page: bytes) -> None:
    assert not parse(page).families


def test_a_page_that_would_take_too_much_memory_is_refused_before_it_is_read() -> None:
    parser = Parser(max_memory=10_000)
    parser.parse(b'a{x="1"} 1\n' * 5)
    with pytest.raises(ExpositionError, match="above the limit") as caught:
        parser.parse(b'a{x="1"} 1\n' * 6)
    assert caught.value.kind is ErrorKind.TOO_LARGE


@pytest.mark.parametrize(
    "page",
    [
        "".join(f"a{i} 1\n" for i in range(10_000)),
        "".join(f"a{i} 1 # {{}} 1 1\n" for i in range(10_000)) + "# EOF\n",
        "a{" + ",".join(f'b{i}="{i}"' for i in range(10_000)) + "} 1\n",
    ],
    ids=["names", "exemplars", "labels"],
)
def test_memory_stays_below_what_a_page_is_refused_by(page: str) -> None:
    limit = 1300 * page.count("\n") + 200 * page.count('"')
    encoded, parser = page.encode(), Parser(max_memory=limit)
    tracemalloc.start()
    try:
        parser.parse(encoded)
        assert tracemalloc.get_traced_memory()[1] < limit + 4 * len(encoded)
    finally:
        tracemalloc.stop()


def test_a_great_page_leaves_nothing_behind() -> None:
    page = "".join(f'a{{b="{i}"}} 1\n' for i in range(10_000)).encode()
    parser = Parser()
    tracemalloc.start()
    try:
        parser.parse(b"a 1\n")
        before = tracemalloc.get_traced_memory()[0]
        assert len(parser.parse(page).samples("a")) == 10_000
        assert tracemalloc.get_traced_memory()[0] - before < 1 << 20  # of 6 MiB
        assert len(parser.parse(page).samples("a")) == 10_000
    finally:
        tracemalloc.stop()


def test_a_hostile_page_is_refused_by_default() -> None:
    with pytest.raises(ExpositionError, match="above the limit"):
        parse(b"".join(b'm{a="%d"} 1\n' % i for i in range(110_000)))


@pytest.mark.timeout(60)  # quadratic work on a megabyte takes hours
@pytest.mark.parametrize(
    ("before", "repeated", "after"),
    [
        ('a{x="', "\\", ""),
        ('a{x="', '\\"', '"'),
        ('a{x="', "a", ""),
        ("a{", 'x="",', ""),
        ("a{", " ", ""),
        ("a{x", " ", "="),
        ("", "a", ""),
        ("a ", "1", "x"),
        ("a ", "1", ""),
        ("a ", "1e", ""),
        ("a 1 ", "9", ""),
        ("a", " \t", ""),
        ("a 1", " ", "#"),
        ("# TYPE a", " ", "counter"),
        ("# HELP a ", "\\", ""),
        ("", "{", ""),
        ("", " ", "<"),
        ("", '"', ""),
        ('{"', "{", '": '),
    ],
)
def test_a_hostile_line_costs_no_more_than_its_length(
    before: str, repeated: str, after: str
) -> None:
    line = before + repeated * (400_000 // len(repeated)) + after
    parser = Parser(max_memory=1 << 40)
    for page in (f"{line}\n", f"a 1\n{line}\n# EOF\n", line):
        assert len(str(outcome(parser, page.encode()))) < 3 * len(line)


def test_the_memory_between_pages_is_of_the_last_page_only() -> None:
    parser = Parser()
    for number in range(50):
        parser.parse(f'a{{request="{number}"}} 1\n'.encode())
    assert list(parser._layout.known) == ['a{request="49"}']


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ('a{x="b c"} 1\n', 'a{x="b  c"} 2\n'),
        ('a{x="1",y="2"} 1\n', 'a{x="1", y="2"} 2\n'),
        ("a 1\n", "a  2\n"),
        ("a 1\n", "a 1 2\n"),
        ("a 1\n", "a 1\t2\n"),
        ("a 1\t5\na 2\t6\n", "a 1\na 2\n"),
        ("a 1\n", 'a {x="1"} 2\n'),
        ("a 1\n", "a 1 # x\n"),
        ("a 1\n", "\n"),
        ("\n", "a\n"),
        ("a 1\n", "a +Inf\n"),
        ("a 1\n", "a 1e400\n"),
        ("a 1\n", "a 1_0\n"),
        ("# TYPE a gauge\na 1\n", "# TYPE a counter\na 1\n"),
        ("a 1 5\n", "a 1\n# EOF\n"),
        ("a 1 5\n# EOF\n", "a 1 5\n"),
        ("# TYPE a info\n# EOF\n", "# TYPE a info\n"),
    ],
)
def test_what_is_remembered_of_a_page_never_shows_on_the_next(first: str, second: str) -> None:
    parser = Parser()
    parser.parse(first.encode())
    assert outcome(parser, second.encode()) == outcome(Parser(), second.encode())


def outcome(parser: Parser, page: bytes) -> object:
    try:
        return told(parser.parse(page))
    except ExpositionError as error:
        return error.kind, error.line, error.detail


# A machine under load is slow, and that proves nothing.
untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

NAMES = st.text("aZ_:7", max_size=5).map("m{}_z".format)
KEYS = st.text("aZ_7", max_size=3).map("k{}".format)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.text(
    '{}",=\\# \tn\n', max_size=12
)
HELPS = WORDS.map(str.strip)
LABELS = st.dictionaries(KEYS, WORDS, max_size=3)
NUMBERS = st.one_of(
    st.floats().map(repr),
    st.integers().map(str),
    st.sampled_from(["NaN", "-nan", "+Inf", "-Inf", "inf", "1.5e+010", "1.", ".5", "1E3", "-0.0"]),
)
BOUNDS = st.sampled_from(["1", "1.0", "0.1", "00001.0", "1e-05", "+Inf"])


def escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def series(name: str, labels: Mapping[str, str], comma: str = ",") -> str:
    inside = comma.join(f'{key}="{escaped(value)}"' for key, value in labels.items())
    return f"{name}{{{inside}}}" if labels else name


@st.composite
def text_families(draw: st.DrawFn, name: str) -> list[str]:
    """The lines of one family, written as loosely as the text format allows."""
    kind = draw(st.sampled_from(["counter", "gauge", "histogram", "summary", "untyped"]))
    lines = [
        f"# HELP {name} {draw(HELPS)}".replace("\\", r"\\").replace("\n", r"\n"),
        f"#\tTYPE {name}  {kind}",
    ]
    suffixes = {"histogram": ["_bucket", "_sum", "_count"], "summary": ["_sum", "_count", ""]}
    labels = st.lists(LABELS, max_size=3, unique_by=lambda labels: str(sorted(labels.items())))
    for suffix in suffixes.get(kind, [""]):
        for key in draw(labels):
            key |= {"le": draw(BOUNDS)} if suffix == "_bucket" else {}
            written = series(name + suffix, key, draw(st.sampled_from([",", ", ", " , "])))
            time = draw(st.just("") | st.integers(-(2**53), 2**53).map(str))
            blank = draw(st.sampled_from([" ", "\t", "  "]))
            lines.append(blank.join([written, draw(NUMBERS), time]).rstrip(" \t"))
    return draw(st.sampled_from([lines, lines[1:], [*lines, "", "# a comment"]]))


@st.composite
def openmetrics_families(draw: st.DrawFn, name: str) -> list[str]:
    """The lines of one family that prometheus_client's strict OpenMetrics parser accepts."""
    labels = {f"l_{key}": value for key, value in draw(LABELS).items()}
    kind = draw(st.sampled_from(["counter", "gauge", "histogram", "info", "unknown"]))
    lines = [f"# TYPE {name} {kind}", f"# HELP {name} {escaped(draw(HELPS))}"]
    time = draw(st.sampled_from(["", " 1520879607.789", " 1520879607"]))
    # The reference takes an escaped quote in an exemplar for the end of it.
    word = escaped(draw(WORDS.filter(lambda text: '"' not in text)))
    exemplar = draw(st.sampled_from(["", f' # {{t="{word}"}} 0.5', ' # {t="x"} 1 1520879607.5']))
    if kind == "counter":
        lines.append(f"{series(name + '_total', labels)} 17{time}{exemplar}")
        lines.append(f"{series(name + '_created', labels)} 1520430000.5{time}")
    elif kind == "histogram":
        for le, count in [("0.1", 1), ("1.0", 2), ("+Inf", 3)]:
            lines.append(f"{series(name + '_bucket', labels | {'le': le})} {count}{time}{exemplar}")
        lines.append(f"{series(name + '_count', labels)} 3{time}")
        lines.append(f"{series(name + '_sum', labels)} {draw(st.floats(0, 1e9))}{time}")
    else:
        written = series(name + ("_info" if kind == "info" else ""), labels)
        lines.append(f"{written} {1 if kind == 'info' else draw(NUMBERS)}{time}")
    return lines


@st.composite
def text_pages(draw: st.DrawFn) -> str:
    names = draw(st.lists(NAMES, max_size=4, unique=True))
    lines = [line for name in names for line in draw(text_families(name))]
    return "".join(line + "\n" for line in lines)


@st.composite
def openmetrics_pages(draw: st.DrawFn) -> str:
    names = draw(st.lists(NAMES, max_size=4, unique=True))
    lines = [line for name in names for line in draw(openmetrics_families(name))]
    return "".join(line + "\n" for line in [*lines, "# EOF"])


@untimed
@given(text_pages(), st.sampled_from(["\n", "\r\n"]))
def test_any_text_page_reads_as_prometheus_client_reads_it(page: str, end: str) -> None:
    read = parse(page.replace("\n", end).encode())
    assert told(read) == told_by_reference(page)


@untimed
@given(openmetrics_pages())
def test_any_openmetrics_page_reads_as_prometheus_client_reads_it(page: str) -> None:
    assert told(parse(page.encode())) == told_by_reference(page)


EDITS = st.lists(
    st.tuples(st.integers(0, 2000), st.text('{}",=\\# \t\n\ra1.N', max_size=2)), max_size=3
)


def edited(page: str, edits: list[tuple[int, str]]) -> str:
    for at, text in edits:
        at %= len(page) + 1
        page = page[:at] + text + page[at + 1 :]
    return page


@untimed
@given(text_pages() | openmetrics_pages(), st.lists(EDITS, min_size=1, max_size=4))
def test_a_parser_with_a_past_reads_every_page_as_a_new_one_does(
    page: str, steps: list[list[tuple[int, str]]]
) -> None:
    parser = Parser()
    for edits in [[], *steps, []]:
        changed = edited(re.sub(r" [0-9]+\n", f" {len(edits)}\n", page), edits).encode()
        assert outcome(parser, changed) == outcome(Parser(), changed)


@untimed
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_with_one_line(page: bytes) -> None:
    try:
        parse(page)
    except ExpositionError:
        assert fault(page).line <= page.count(b"\n") + 1


@pytest.fixture(scope="session")
def promtool() -> str:
    found = shutil.which("promtool")
    assert found, "no promtool: it comes with Prometheus (make system)"
    return found


def refused(promtool: str, page: str) -> str:
    """What promtool holds against the page's syntax; "" if nothing (it lints style besides)."""
    run = subprocess.run(
        [promtool, "check", "metrics"], input=page.encode(), capture_output=True, timeout=30
    )
    return "".join(re.findall("error while linting: (.*)", run.stderr.decode()))


@settings(untimed, max_examples=50)
@given(page=text_pages(), edits=EDITS)
@example(page="# TYPE a counter\na 1\n", edits=[])
def test_whatever_promtool_accepts_is_read(promtool: str, page: str, edits: Any) -> None:
    page = edited(page.replace("-nan", "NaN"), edits)
    if not refused(promtool, page):
        parse(page.encode())


@pytest.mark.parametrize(
    "line",
    [
        "a 1e400",
        "a 1_0",
        "a 0x10",
        "a 0x1p4",
        "a 1 1.5",
        "a 1 2 3",
        'a{x="1",x="2"} 1',
        'a{x="1" y="2"} 1',
        'a{__name__="b"} 1',
        "a{,} 1",
        "# TYPE a info",
        "# HELP 1a x",
    ],
)
def test_what_is_refused_here_promtool_refuses_too(promtool: str, line: str) -> None:
    for page in (f"{line}\n", "a 1"):
        fault(page.encode())
        assert refused(promtool, page)
