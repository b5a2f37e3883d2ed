"""Bounds of real vLLM pages, live and saved, and what a plan makes of them."""

from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest
from metrics_server import serving
from plans import objective, plan
from vllm_pages import CAPTURES

from inferslo.exporters.http import HttpFetcher
from inferslo.exporters.reading import SourceError
from inferslo.sidecar.commands.bounds import page_at, page_of_capture
from inferslo.sidecar.errors import StartError
from inferslo.sidecar.settings.targets import Target
from inferslo.slo.buckets import Kind, check
from inferslo.slo.plan import Selection

LOADED = CAPTURES / "vllm-0.32.0__3-requests.prom"

ALL = Selection()  # whatever the model is


def problems(capture: Path, **thresholds: str) -> list[tuple[str, Kind, str]]:
    objectives = [objective(name, threshold=Decimal(value)) for name, value in thresholds.items()]
    found = check(plan(*objectives, selection=ALL), page_of_capture(capture))
    return [(each.objective, each.kind, each.text) for each in found]


def test_bounds_are_those_of_the_page() -> None:
    page = page_of_capture(LOADED)
    assert (page.engine_type, page.version, page.missing) == ("vllm", "", {})
    assert page.bounds["ttft"][8:14] == (0.25, 0.5, 0.75, 1.0, 2.5, 5.0)
    assert page.bounds["queue"] == page.bounds["e2e"]
    assert page.bounds["queue"][0] == 0.3
    assert page.bounds["tpot"] == page.bounds["itl"]


def test_vllm_has_2_5_seconds_of_ttft_and_not_2() -> None:
    assert problems(LOADED, ttft="2.5") == []
    ((_, kind, text),) = problems(LOADED, ttft="2")
    assert kind is Kind.BOUND
    assert text == (
        "2s is not a bucket bound of vLLM: use 1s or 2.5s; or start vLLM 0.32 or newer with"
        ' --custom-histogram-buckets \'{"time_to_first_token": [0.001, 0.005, 0.01, 0.02, 0.04,'
        " 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,"
        " 160.0, 640.0, 2560.0]}'"
    )


def test_a_short_queue_wait_is_below_all_of_vllm() -> None:
    ((_, _, text),) = problems(LOADED, queue="0.2")
    assert text.startswith("200ms is below the first bucket bound of vLLM: use 300ms; or start")


def test_a_page_without_statistics_says_why_for_each_signal() -> None:
    capture = CAPTURES / "vllm-0.32.0__disable-log-stats.prom"
    found = check(
        plan(objective("ttft"), objective("availability"), objective("tpot_cv"), selection=ALL),
        page_of_capture(capture),
    )
    assert [(each.objective, each.kind) for each in found] == [
        ("ttft", Kind.MISSING), ("availability", Kind.MISSING), ("tpot-cv", Kind.MISSING),
    ]  # fmt: skip
    assert all(
        each.text.endswith(
            "vLLM runs with --disable-log-stats: it publishes no statistics of its own; start vLLM"
            " without --disable-log-stats"
        )
        for each in found
    )


def test_a_live_engine_tells_its_version() -> None:
    pages = {"/metrics": LOADED.read_bytes(), "/version": b'{"version": "0.32.0"}'}
    with serving(pages) as url, closing(HttpFetcher()) as fetcher:
        page = page_at(Target(url=url), fetcher)
    assert page.version == "0.32.0"
    assert page.bounds == page_of_capture(LOADED).bounds


def test_bounds_of_several_models_are_those_that_all_have(tmp_path: Path) -> None:
    def histogram(model: str, *bounds: str) -> str:
        name = "vllm:time_to_first_token_seconds"
        of = f'model_name="{model}",engine="0"'
        rows = [f'{name}_bucket{{{of},le="{bound}"}} 1' for bound in (*bounds, "+Inf")]
        rows += [f"{name}_sum{{{of}}} 0.1", f"{name}_count{{{of}}} 1"]
        rows.append(f"vllm:num_requests_running{{{of}}} 0")
        return "\n".join(rows) + "\n"

    capture = tmp_path / "two.prom"
    capture.write_text(histogram("a", "0.5", "1.0", "2.0") + histogram("b", "1.0", "2.0", "4.0"))
    assert page_of_capture(capture).bounds["ttft"] == (1.0, 2.0)


def test_a_gateway_is_refused_in_one_line() -> None:
    with pytest.raises(StartError, match="is litellm, a gateway: name the engine behind it"):
        page_of_capture(CAPTURES / "litellm-1.108.7__fresh.prom")


def test_a_page_of_no_engine_and_a_file_that_is_not_there(tmp_path: Path) -> None:
    other = tmp_path / "other.prom"
    other.write_text("up 1\n")
    with pytest.raises(SourceError, match="no engine that inferslo knows"):
        page_of_capture(other)
    with pytest.raises(StartError, match="cannot be read"):
        page_of_capture(tmp_path / "none.prom")
