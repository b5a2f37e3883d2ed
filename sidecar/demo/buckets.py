"""The bounds of vLLM 0.32's histograms, by our key of each, and those of the probe."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

_REQUEST = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0,
    240.0, 480.0, 960.0, 1920.0, 7680.0, math.inf,
)  # fmt: skip
_TOKEN_GAP = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0, math.inf,
)  # fmt: skip
LATENCIES: Mapping[str, Sequence[float]] = {
    "ttft": (
        0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
        20.0, 40.0, 80.0, 160.0, 640.0, 2560.0, math.inf,
    ),
    "itl": _TOKEN_GAP,
    "tpot": _TOKEN_GAP,
    "e2e": _REQUEST,
    "queue": _REQUEST,
    "inference": _REQUEST,
    "prefill": _REQUEST,
    "decode": _REQUEST,
}  # fmt: skip
OTHERS: Mapping[str, Sequence[float]] = {
    "preemptions_of_request": (1, 2, 3, 4, 5, 10, 20, math.inf),
    "n": (1, 2, 5, 10, 20, math.inf),
    "step_tokens": (
        1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, math.inf,
    ),
    "http_duration": (
        0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10,
        30, 60, math.inf,
    ),
    "http_duration_coarse": (0.1, 0.5, 1, math.inf),
}  # fmt: skip
LENGTHS = ("prompt", "output", "max_output", "max_tokens", "computed")
PROBE: Mapping[str, Sequence[float]] = {
    "ttft": (0.8, 2.0, 5.0, 10.0, 15.0, math.inf),
    "tpot": (0.05, 0.1, 0.2, math.inf),
    "itl": (0.05, 0.1, 0.2, 0.5, math.inf),
    "e2e": (1.2, 5.0, 15.0, 30.0, 60.0, math.inf),
    "queue": (0.3, 1.0, 5.0, 15.0, math.inf),
}


@lru_cache
def lengths(max_model_len: int) -> Sequence[float]:
    """1, 2, 5, 10, … up to the longest request, as vLLM builds them."""
    steps = [m * 10**power for power in range(12) for m in (1, 2, 5)]
    return (*(step for step in steps if step <= max_model_len), math.inf)


def bounds_of(key: str, max_model_len: int) -> Sequence[float]:
    if key in LENGTHS:
        return lengths(max_model_len)
    return LATENCIES.get(key) or OTHERS[key]
