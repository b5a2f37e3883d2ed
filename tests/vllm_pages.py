"""vLLM pages for tests: recorded ones, ones of others where they lie, and small ones made here."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferslo.exporters.engines.vllm import Vllm
from inferslo.exporters.exposition import Page, parse
from inferslo.exporters.reading import Gap, Histogram, Observation

CAPTURES = Path(__file__).parent / "captures"
THIRD_PARTY = Path(__file__).parents[2] / "shared" / "captures" / "third-party"
ENGINE = "127.0.0.1:8000"

Values = dict[tuple[str, ...], float | Histogram]


def capture(name: str) -> Page:
    return parse((CAPTURES / name).read_bytes())


def third_party(name: str) -> bytes:
    path = THIRD_PARTY / name
    if not path.exists():
        pytest.skip(f"recorded pages of others are not here: {path.parent}")
    return path.read_bytes().rstrip(b"\n") + b"\n"  # some were saved without their last one


def page(*lines: str) -> Page:
    return parse(("\n".join(lines) + "\n").encode())


def values(observation: Observation) -> Values:
    """By family name without prefix, then label values without the engine's."""
    return {
        (point.family.name.removeprefix("inferslo_"), *point.labels[1:]): point.value
        for point in observation.points
    }


def read(*pages: Page, **settings: int | bool) -> Values:
    """What is published after the last of several pages of one engine."""
    return values(observe(*pages, **settings))


def observe(*pages: Page, **settings: int | bool) -> Observation:
    engine = Vllm(ENGINE, **settings)  # type: ignore[arg-type]  # the caller names them
    return [engine.observe(page, "") for page in pages][-1]


def gaps(observation: Observation) -> dict[str, Gap]:
    return {gap.signal: gap for gap in observation.gaps}


LABELS = 'engine="0",model_name="m"'


def traffic_page(
    *,
    ok: float = 0,
    invalid: float = 0,
    failed: float = 0,
    stop: float = 0,
    abort: float = 0,
    error: float = 0,
    rejected: float = 0,
    running: float = 0,
    waiting: float = 0,
    extra_choices: float = 0,
    started: float = 1.79e9,
    http: bool = True,
) -> Page:
    """A page of which only requests matter. extra_choices: Σ(n - 1) over requests with n > 1."""
    lines = [
        f"process_start_time_seconds {started}",
        f"vllm:num_requests_running{{{LABELS}}} {running}",
        f"vllm:num_requests_waiting{{{LABELS}}} {waiting}",
        f'vllm:request_success_total{{{LABELS},finished_reason="stop"}} {stop}',
        f'vllm:request_success_total{{{LABELS},finished_reason="abort"}} {abort}',
        f'vllm:request_success_total{{{LABELS},finished_reason="error"}} {error}',
        f'vllm:admission_rejections_total{{model_name="m",reason="any"}} {rejected}',
        f"vllm:request_params_n_sum{{{LABELS}}} {stop}",
        f"vllm:request_params_n_count{{{LABELS}}} {stop - extra_choices}",
    ]
    if http:
        lines += [
            f'http_requests_total{{handler="/v1/completions",method="POST",status="{status}"}} {n}'
            for status, n in (("2xx", ok), ("4xx", invalid), ("5xx", failed))
        ]
    return page(*lines)
