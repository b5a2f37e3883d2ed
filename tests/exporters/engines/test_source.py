"""One engine over HTTP: found out, asked for its version once per start, named when unknown."""

from __future__ import annotations

import pytest
from vllm_pages import CAPTURES, third_party, values

from inferslo.exporters.engines.source import EngineSource
from inferslo.exporters.exposition import ExpositionError
from inferslo.exporters.http import Response
from inferslo.exporters.reading import ErrorKind, SourceError

URL = "http://127.0.0.1:8000"
METRICS = f"{URL}/metrics"
VLLM = (CAPTURES / "vllm-0.32.0__3-requests.prom").read_bytes()


class FakeFetcher:
    """Stands in for an engine's HTTP server; `pages` by path, an exception is raised."""

    def __init__(self, **pages: bytes | SourceError) -> None:
        self.pages = pages
        self.asked: list[str] = []

    def get(self, url: str) -> Response:
        path = url.removeprefix(URL + "/")
        self.asked.append(path)
        page = self.pages.get(path, SourceError(ErrorKind.STATUS, f"{url} answered HTTP 404"))
        if isinstance(page, SourceError):
            raise page
        return Response(page, "text/plain; version=0.0.4")


def source(
    fetcher: FakeFetcher, engine_type: str | None = None, url: str = METRICS
) -> EngineSource:
    return EngineSource("e", url, fetcher, engine_type)


def version_of(engine: EngineSource) -> str:
    return next(p.labels[2] for p in engine.observe().points if p.family.name.endswith("_info"))


def test_an_engine_is_found_out_and_read() -> None:
    fetcher = FakeFetcher(metrics=VLLM, version=b'{"version":"0.32.0"}')
    found = values(source(fetcher).observe())
    assert found["engine_info", "vllm", "0.32.0", "tiny"] == 1
    assert found["requests_total", "tiny", "success", "engine"] == 3


def test_the_version_is_asked_once() -> None:
    fetcher = FakeFetcher(metrics=VLLM, version=b'{"version":"0.32.0"}')
    engine = source(fetcher)
    for _ in range(3):
        engine.observe()
    assert fetcher.asked.count("version") == 1


def test_the_version_is_asked_again_after_a_restart_and_after_a_failed_read() -> None:
    fetcher = FakeFetcher(metrics=VLLM, version=b'{"version":"0.32.0"}')
    engine = source(fetcher)
    assert version_of(engine) == "0.32.0"
    fetcher.pages["version"] = b'{"version":"0.33.0"}'
    fetcher.pages["metrics"] = VLLM.replace(b"1.79604852749e+09", b"1.79604900000e+09")
    assert version_of(engine) == "0.33.0"
    fetcher.pages["version"] = b'{"version":"0.34.0"}'
    fetcher.pages["metrics"] = SourceError(ErrorKind.REFUSED, "nobody there")
    with pytest.raises(SourceError):
        engine.observe()
    fetcher.pages["metrics"] = VLLM
    assert version_of(engine) == "0.34.0"


@pytest.mark.parametrize(
    "answer",
    [
        b"not json",
        b"[]",
        b'{"version": 3}',
        b'{"version": "%s"}' % (b"9" * 65),
        b'{"version": "0.32", "more": "%s"}' % (b"9" * 5000),
        rb'{"version": "0.32\ud800"}',
        rb'{"version": "0.32\u001b[31m"}',
        rb'{"version": "0.32\nup"}',
        rb'{"version": "0.32\u202e"}',
        b"[" * 4000,
        b"[" * 200_000,
        b"{}",
        SourceError(ErrorKind.STATUS, "404"),
        SourceError(ErrorKind.TIMEOUT, "slow"),
    ],
)
def test_a_version_that_is_not_told_is_empty_and_no_failure(answer: bytes | SourceError) -> None:
    assert version_of(source(FakeFetcher(metrics=VLLM, version=answer))) == ""


@pytest.mark.parametrize("kind", [ErrorKind.TIMEOUT, ErrorKind.REFUSED])
def test_a_version_that_was_not_answered_is_asked_again_but_not_at_every_read(
    kind: ErrorKind,
) -> None:
    fetcher = FakeFetcher(metrics=VLLM, version=SourceError(kind, "busy"))
    engine = source(fetcher)
    assert [version_of(engine) for _ in range(10)] == [""] * 10
    assert fetcher.asked.count("version") == 1
    fetcher.pages["version"] = b'{"version":"0.32.0"}'
    assert [version_of(engine) for _ in range(2)] == ["0.32.0"] * 2
    assert fetcher.asked.count("version") == 2


def test_a_version_that_the_server_does_not_have_is_not_asked_for_again() -> None:
    fetcher = FakeFetcher(metrics=VLLM)
    engine = source(fetcher)
    for _ in range(30):
        assert version_of(engine) == ""
    assert fetcher.asked.count("version") == 1


def test_the_url_is_the_page_itself_and_the_version_lies_beside_it() -> None:
    fetcher = FakeFetcher(**{"engine/metrics": VLLM, "engine/version": b'{"version":"0.32.0"}'})
    assert version_of(source(fetcher, url=f"{URL}/engine/metrics")) == "0.32.0"


def test_derived_counters_begin_with_the_first_read() -> None:
    fetcher = FakeFetcher(metrics=VLLM)
    found = values(source(fetcher).observe())
    assert found["tpot_moment_n_total", "tiny", "derived"] == 0
    whole = EngineSource("e", METRICS, fetcher, count_first=True)
    assert values(whole.observe())["tpot_moment_n_total", "tiny", "derived"] == 3


def test_disabled_statistics_before_the_first_request_are_told_by_the_version() -> None:
    page = b"# TYPE http_requests_total counter\npython_info 1.0\n"
    found = values(source(FakeFetcher(metrics=page, version=b'{"version":"0.32.0"}')).observe())
    assert found["engine_stats_enabled",] == 0


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (b"sglang:token_usage 0.5\n", "SGLang: not supported yet"),
        (b"tgi_queue_size 1\n", "TGI: not supported yet"),
        (b"litellm_requests_metric_total 1\n", "set it with --litellm"),
        (b"inferslo_build_info 1\n", "another inferslo sidecar"),
        (b"node_load1 1\n", "no series begins with vllm:"),
        (b"node_load1 1\n", r"--config file: engines: \[\{url: …, type: vllm\}\]"),
        (b"# TYPE vllm:healthy_pods_total gauge\n", "router, which re-exports its engines"),
        (b'vllm:num_requests_running{server="http://a:8000"} 3\n', "name the engines' own pages"),
        (b"# TYPE http_requests_total counter\npython_info 1.0\n", "no series begins with vllm:"),
    ],
)
def test_an_unknown_page_is_named(page: bytes, said: str) -> None:
    with pytest.raises(SourceError, match=said) as raised:
        source(FakeFetcher(metrics=page)).observe()
    assert raised.value.kind is ErrorKind.UNKNOWN_ENGINE
    assert URL in raised.value.detail


def test_a_configured_type_is_not_found_out() -> None:
    found = values(source(FakeFetcher(metrics=b"node_load1 1\n"), "vllm").observe())
    assert found["engine_stats_enabled",] == 0


def test_an_unknown_page_is_looked_at_anew_when_it_changes() -> None:
    fetcher = FakeFetcher(metrics=b"node_load1 1\n")
    engine = source(fetcher)
    with pytest.raises(SourceError):
        engine.observe()
    fetcher.pages["metrics"] = VLLM
    assert values(engine.observe())["engine_stats_enabled",] == 1


def test_a_malformed_page_is_the_parsers_error() -> None:
    with pytest.raises(ExpositionError) as raised:
        source(FakeFetcher(metrics=b"vllm:num_requests_running{ 1\n")).observe()
    assert raised.value.kind is ErrorKind.MALFORMED


def test_health_is_engine_up() -> None:
    engine = source(FakeFetcher())
    for up in (True, False):
        point = engine.up_point(up)
        assert (point.family.name, point.labels, point.value) == ("inferslo_engine_up", ("e",), up)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sglang__0.4-docs-2024-12__1.prom", "SGLang"),
        ("llamacpp__2025-06__1.prom", "llama.cpp"),
        ("dynamo-frontend__2025-11__1.prom", "Dynamo"),
        ("triton-trtllm__backend-README-2026-07__1.prom", "Triton"),
    ],
)
def test_recorded_pages_of_other_engines_are_named(name: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        source(FakeFetcher(metrics=third_party(name))).observe()
