"""docs/engines/vllm.md names every series and signal that the adapter knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferslo.exporters.engines import kv
from inferslo.exporters.engines.series import PREFIXES
from inferslo.exporters.engines.traffic import INFERENCE_HANDLERS
from inferslo.exporters.engines.vllm import AMOUNTS, LATENCIES

PAGE = (Path(__file__).parents[3] / "docs" / "engines" / "vllm.md").read_text()
NAMES = [
    *(name for latency in LATENCIES for name in latency.names),
    *(name for amount in AMOUNTS for _, names in amount.families for name in names),
    *(signal.signal for signal in (*LATENCIES, *AMOUNTS)),
    *kv.USAGE,
    *INFERENCE_HANDLERS,
    *PREFIXES,
]


@pytest.mark.parametrize("name", sorted(set(NAMES)))
def test_it_is_in_the_docs(name: str) -> None:
    assert f"`{name}`" in PAGE
