"""The engine's /metrics as vLLM 0.32 writes it: names, labels, help and order from a recorded page.

vllm-0.32.0.page is that page with keys in place of values. `histogram:KEY` stands for all series
of a histogram. HTTP series are there only once their status was answered, as in vLLM.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.resources import files
from string import Template

from .buckets import bounds_of
from .engine import EngineConfig, EngineState
from .tally import SUM, Tally

_Part = Callable[[Tally, Mapping[str, float]], str]
_SERIES = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
_CREATED = re.compile(r"http_requests_created\{.*status=\"(.)xx\"")


class EnginePage:
    """Writes the pages of one engine, as it would answer them."""

    def __init__(self, config: EngineConfig) -> None:
        template = files(__package__).joinpath("vllm-0.32.0.page").read_text(encoding="utf-8")
        page = Template(template).substitute(
            model=config.model_name,
            block_size=config.block_size,
            blocks=config.kv_blocks,
            tokens=config.kv_blocks * config.block_size,
        )
        self._parts: list[str | _Part] = []
        for line in page.splitlines():
            part = _part(line, config)
            if isinstance(part, str) and self._parts and isinstance(self._parts[-1], str):
                self._parts[-1] += part
            else:
                self._parts.append(part)

    def text(self, tally: Tally, state: EngineState, started: float) -> bytes:
        """started: Unix time at which the process began, from which the tally counts."""
        gauges = {
            "running": state.running,
            "waiting": state.waiting,
            "kv_usage": state.kv_usage,
            "started": started,
            "open_fds": 35 + state.in_flight,
            "resident_bytes": 2.1e9,
        }
        return "".join(
            [part if isinstance(part, str) else part(tally, gauges) for part in self._parts]
        ).encode()


def _part(line: str, config: EngineConfig) -> str | _Part:
    """A line whose value never changes, or what writes it."""
    found = None if line.startswith("#") else _SERIES.fullmatch(line)
    if found is None or found[3][0].isdigit():
        return line + "\n"
    name, labels, key = found.groups()
    series = line.rpartition(" ")[0]
    if key.startswith("histogram:"):
        key = key.removeprefix("histogram:")
        return _histogram(name, labels or "", key, bounds_of(key, config.max_model_len))
    if (created := _CREATED.match(line)) is not None:
        return partial(_if_answered, series, key, f"http_{created[1]}xx")
    if name == "http_requests_total":
        return partial(_if_answered, series, key, key)
    return partial(_value, series, key)


def _value(series: str, key: str, tally: Tally, gauges: Mapping[str, float]) -> str:
    value = gauges[key] if key in gauges else tally.get(key, 0.0)
    return f"{series} {float(value)!r}\n"


def _if_answered(
    series: str, key: str, answers: str, tally: Tally, gauges: Mapping[str, float]
) -> str:
    return _value(series, key, tally, gauges) if tally.get(answers) else ""


def _histogram(name: str, labels: str, key: str, bounds: Sequence[float]) -> _Part:
    pairs = labels.split(",") if labels else []
    buckets = []
    for index, bound in enumerate(bounds):
        le = "+Inf" if math.isinf(bound) else repr(float(bound))
        inside = ",".join(sorted([*pairs, f'le="{le}"']))
        buckets.append(((key, index), f"{name}_bucket{{{inside}}}"))
    own = f"{{{labels}}}" if labels else ""
    return partial(_buckets, buckets, f"{name}_count{own}", f"{name}_sum{own}", (key, SUM))


def _buckets(
    buckets: Sequence[tuple[tuple[str, int], str]],
    count: str,
    sum: str,
    sum_key: tuple[str, str],
    tally: Tally,
    gauges: Mapping[str, float],  # noqa: ARG001 (one shape)
) -> str:
    lines, total = [], 0.0
    for key, series in buckets:
        total += tally.get(key, 0.0)
        lines.append(f"{series} {total!r}\n")
    return f"{''.join(lines)}{count} {total!r}\n{sum} {tally.get(sum_key, 0.0)!r}\n"
