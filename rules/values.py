"""Signals that are a number: the number itself as PromQL, before its threshold makes slices of it.

Where too little was seen for the number to mean anything there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ..exporters.names import (
    BUILD_INFO,
    CONTAINER_MEMORY,
    CONTAINER_MEMORY_LIMIT,
    E2E,
    FALLBACKS,
    GATEWAY_FALLBACKS,
    GPU_MEMORY_TOTAL,
    GPU_MEMORY_USED,
    GPU_UTILIZATION_N,
    GPU_UTILIZATION_SQUARES,
    GPU_UTILIZATION_SUM,
    KV_TAIL_WASTE,
    TPOT_MOMENTS,
    Family,
)
from ..slo.plan import Evaluation, Objective, Selection
from ..slo.quantities import format_duration
from .promql import aggregate, any_model, newborn, of_service, ratio, select, sum_by
from .sources import NOT_SELF

# Of fewer requests a P95 is the slowest one, and a spread is chance.
LEAST_REQUESTS = 20
LEAST_GPU_SAMPLES = 10
# A GPU that is mostly idle flips between 0 and 1: its spread says nothing of batching.
LEAST_UTILIZATION = 0.2


def tail_ratio(objective: Objective, evaluation: Evaluation) -> str:
    """P95 / P50, of buckets summed before the quantiles are taken."""
    per, window = objective.selection.per, _window(objective, evaluation)
    span = format_duration(window)
    buckets = select(E2E, objective.selection, part="_bucket")
    count = select(E2E, objective.selection, part="_count")
    summed = sum_by([*per, "le"], f"rate({buckets}[{span}])")
    enough = f"{sum_by(per, f'rate({count}[{span}])')} * {window} >= {LEAST_REQUESTS}"
    quantiles = (f"histogram_quantile({q}, {summed})" for q in ("0.95", "0.5"))
    return f"{ratio(*quantiles)} and {enough}"


def tpot_cv(objective: Objective, evaluation: Evaluation) -> str:
    moments = (TPOT_MOMENTS.n, TPOT_MOMENTS.sum, TPOT_MOMENTS.squares)
    n, total, squares = (_rate(moment, objective, evaluation) for moment in moments)
    enough = f"{n} * {_window(objective, evaluation)} >= {LEAST_REQUESTS}"
    return f"{_variation(n, total, squares)} and {enough}"


def gpu_utilization_cv(objective: Objective, evaluation: Evaluation) -> str:
    """Over the samples of all GPUs together, so that an uneven load between them shows too."""
    moments = (GPU_UTILIZATION_N, GPU_UTILIZATION_SUM, GPU_UTILIZATION_SQUARES)
    n, total, squares = (_rate(moment, objective, evaluation) for moment in moments)
    enough = f"{n} * {_window(objective, evaluation)} >= {LEAST_GPU_SAMPLES}"
    busy = f"{ratio(total, n)} >= {LEAST_UTILIZATION}"
    return f"{_variation(n, total, squares)} and {enough} and {busy}"


def _variation(n: str, total: str, squares: str) -> str:
    """sqrt(Q/n - (S/n)²) / (S/n), written so that each is read once: sqrt(nQ/S² - 1)."""
    return f"sqrt(clamp_min({n} * {squares} / ({total} ^ 2 > 0) - 1, 0))"


def _rate(family: Family, objective: Objective, evaluation: Evaluation) -> str:
    span = format_duration(_window(objective, evaluation))
    selection = objective.selection
    rate = f"rate({select(family, selection)}[{span}])"
    return sum_by(selection.per, of_service(rate, family, selection))


def kv_fragmentation(objective: Objective, evaluation: Evaluation) -> str:
    """Of the worst engine."""
    span = format_duration(_window(objective, evaluation))
    waste = f"avg_over_time({select(KV_TAIL_WASTE, objective.selection)}[{span}])"
    return aggregate("max", objective.selection.per, waste)


def memory_growth(objective: Objective, evaluation: Evaluation) -> str:
    """Of the container or GPU that fills up fastest; least squares (deriv), an hour's worth."""
    span = format_duration(_window(objective, evaluation))
    growths = (
        of_service(f"deriv({used}[{span}]) * 3600 / {most}", family, objective.selection)
        for used, most, family in (
            (
                select(CONTAINER_MEMORY, objective.selection, NOT_SELF),
                select(CONTAINER_MEMORY_LIMIT, objective.selection, NOT_SELF),
                CONTAINER_MEMORY,
            ),
            (
                select(GPU_MEMORY_USED, objective.selection),
                select(GPU_MEMORY_TOTAL, objective.selection),
                GPU_MEMORY_USED,
            ),
        )
    )
    return aggregate("max", objective.selection.per, " or ".join(growths))


def fallback_count(objective: Objective, evaluation: Evaluation) -> str:
    """Increase, and the first values of counters born meanwhile. None at all is 0 where a sidecar
    answers: fallback counters are born with the first fallback."""
    per, window = objective.selection.per, _window(objective, evaluation)
    span = format_duration(window)
    counters = fallbacks(objective.selection)
    grown = " or ".join(f"increase({counter}[{span}])" for counter, _ in counters)
    since = format_duration(max(window - evaluation.base, 60))  # a counter is new for a base window
    born = " or ".join(
        f"min_over_time({newborn(counter, family, evaluation.base)}[{since}:1m])"
        for counter, family in counters
    )
    known = " or ".join(counter for counter, _ in counters)
    if not per:
        known += f" or {select(BUILD_INFO, objective.selection)}"
    none = f"0 * {sum_by(per, known)}"
    return f"({sum_by(per, grown)} or {none}) + ({sum_by(per, born)} or {none})"


def fallbacks(selection: Selection) -> tuple[tuple[str, Family], ...]:
    """The counters of fallbacks: the application's own and the gateway's. A gateway's names of
    models are not the engine's; `from_model` in the file's match narrows both down."""
    return (
        (select(FALLBACKS, selection), FALLBACKS),
        (select(GATEWAY_FALLBACKS, any_model(selection)), GATEWAY_FALLBACKS),
    )


def _window(objective: Objective, evaluation: Evaluation) -> int:
    return objective.over or evaluation.base


VALUES: Mapping[str, Callable[[Objective, Evaluation], str]] = MappingProxyType(
    {
        "tail_ratio": tail_ratio,
        "tpot_cv": tpot_cv,
        "gpu_utilization_cv": gpu_utilization_cv,
        "kv_fragmentation": kv_fragmentation,
        "memory_growth": memory_growth,
        "fallback_count": fallback_count,
    }
)
