"""vLLM's KV cache: use, size, and the most that partly filled last blocks can waste."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..exposition import Sample
from ..names import (
    KV_BLOCK_SIZE,
    KV_BLOCKS,
    KV_CAPACITY,
    KV_TAIL_WASTE_UPPER_BOUND,
    KV_USAGE,
    KV_USAGE_MAX,
    Origin,
)
from ..reading import Gap
from .draft import Draft
from .series import Found, UnusableError, VllmPage

USAGE = ("kv_cache_usage_perc", "gpu_cache_usage_perc")  # 0..1 despite the name
_CONFIG = "cache_config_info"
_RUNNING = "num_requests_running"
_DIGITS = 18  # no cache has more blocks or tokens than fit

_IN_THE_FILE = "say in the --config file: engines: [{url: …, kv_cache_groups: 1}]"
_NO_MODEL = (
    "several models share the page, and the cache config does not say of which it is",
    "read each engine's own page",
)
_NO_CAPACITY = (
    "vLLM before 0.24 does not tell it, and blocks x block size is wrong for hybrid models",
    f"use vLLM 0.24 or newer, or, if all layers have one kind of attention, {_IN_THE_FILE}",
)
_NO_GROUPS = (
    "the number of KV cache groups is not on the page",
    f"if all layers have one kind of attention, {_IN_THE_FILE}, else the number in vLLM's log",
)
_NO_MATCH = (
    "running requests, KV use and cache config are not told engine by engine",
    "read vLLM's own page, not Ray's",
)


@dataclass(frozen=True, slots=True)
class KvConfig:
    """One data-parallel engine's cache. None: not told.

    tokens: capacity, right for hybrid models too (vLLM 0.24 or newer). groups: of layers that
    have block tables of their own; each running request has a last block in each.
    """

    blocks: int
    block_size: int
    tokens: int | None
    groups: int | None

    @property
    def capacity(self) -> int | None:
        """Blocks x size is right for one group only; for hybrid models the size may be stale."""
        if self.tokens is None and self.groups == 1:
            return self.blocks * self.block_size
        return self.tokens

    def live_slots(self, usage: float) -> float:
        """Tokens that the blocks in use could hold. Block 0 is vLLM's own and never used."""
        return usage * (self.blocks - 1) * self.block_size


def observe(page: VllmPage, models: Sequence[str], groups: int | None, draft: Draft) -> None:
    """groups: from the settings; vLLM does not tell it. The cache config names no model."""
    with draft.gap_if_unusable("kv_usage"):
        _usage(page, draft)
    configs = _configs(page, groups)
    if configs and len(models) == 1:
        _capacity(configs, models[0], draft)
        with draft.gap_if_unusable("kv_tail_waste"):
            _tail_waste(page, configs, models[0], draft)
        return
    for signal in ("kv_capacity", "kv_tail_waste"):
        if configs:
            draft.missing(Gap(signal, *_NO_MODEL))
        else:
            draft.missing(page.gap(signal, [_CONFIG], "use vLLM's Python front end"))


def _usage(page: VllmPage, draft: Draft) -> None:
    found = page.find(*USAGE)
    if not found.samples:
        draft.missing(page.gap("kv_usage", USAGE, "use vLLM 0.8.5 or newer"))
        return
    _refuse_above_one(found)
    for model, shares in found.values().items():
        draft.add(KV_USAGE, math.fsum(shares) / len(shares), model, origin=found.origin)
        draft.add(KV_USAGE_MAX, max(shares), model, origin=found.origin)
    draft.available("kv_usage", Origin.ENGINE)


def _capacity(configs: Mapping[str, KvConfig], model: str, draft: Draft) -> None:
    origin = f"{_CONFIG} ({len(configs)} series)"
    draft.add(KV_BLOCKS, float(sum(c.blocks for c in configs.values())), model, origin=origin)
    sizes = {config.block_size for config in configs.values() if config.groups == 1}
    if len(sizes) == 1:
        draft.add(KV_BLOCK_SIZE, float(sizes.pop()), model, origin=origin)
    capacities = [config.capacity for config in configs.values()]
    if None in capacities:
        draft.missing(Gap("kv_capacity", *_NO_CAPACITY))
        return
    draft.add(KV_CAPACITY, float(sum(filter(None, capacities))), model, origin=origin)
    draft.available("kv_capacity", Origin.ENGINE)


def _tail_waste(page: VllmPage, configs: Mapping[str, KvConfig], model: str, draft: Draft) -> None:
    """running x groups x (block size - 1) / live slots; absent while nothing is in use."""
    used = page.find(*USAGE)
    _refuse_above_one(used)
    running, usage = _by_engine(page.find(_RUNNING)), _by_engine(used)
    if running.keys() != configs.keys() or usage.keys() != configs.keys():
        draft.missing(Gap("kv_tail_waste", *_NO_MATCH))
        return
    if any(config.groups is None for config in configs.values()):
        draft.missing(Gap("kv_tail_waste", *_NO_GROUPS))
        return
    live = math.fsum(config.live_slots(usage[engine]) for engine, config in configs.items())
    if live > 0:
        tails = math.fsum(
            running[engine] * (config.groups or 0) * (config.block_size - 1)
            for engine, config in configs.items()
        )
        origin = f"{_RUNNING}, {USAGE[0]}, {_CONFIG}"
        bound = min(tails / live, 1.0)
        draft.add(KV_TAIL_WASTE_UPPER_BOUND, bound, model, Origin.DERIVED, origin=origin)
    draft.available("kv_tail_waste", Origin.DERIVED)


def _refuse_above_one(shares: Found) -> None:
    if any(sample.value > 1 for sample in shares.samples):
        raise UnusableError(f"{shares.name} is no share: it is above 1")


def _configs(page: VllmPage, groups: int | None) -> dict[str, KvConfig]:
    """By data-parallel engine. vLLM tells every field as text, `None` if it is not set."""
    found = {}
    for sample in page.find(_CONFIG).samples:
        blocks = _number(sample, "num_gpu_blocks")
        size = _number(sample, "effective_attention_block_size") or _number(sample, "block_size")
        if blocks and size:
            tokens = _number(sample, "kv_cache_size_tokens")
            one = _has_one_group(sample, blocks * size, size)
            found[_engine_of(sample)] = KvConfig(
                blocks, size, tokens, groups or (1 if one else None)
            )
    return found


def _has_one_group(sample: Sample, slots: int, block_size: int) -> bool:
    """If all blocks together hold the capacity that vLLM tells. Before it had the label `engine`
    it had no groups at all."""
    tokens = _number(sample, "kv_cache_size_tokens")
    if tokens is None:
        return "engine" not in sample.labels
    return abs(tokens - slots) <= block_size


def _number(sample: Sample, label: str) -> int | None:
    text = sample.labels.get(label, "")
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else None


def _engine_of(sample: Sample) -> str:
    return sample.labels.get("engine", "")


def _by_engine(found: Found) -> dict[str, float]:
    """Empty where the label `engine` does not tell the series apart. Raises UnusableError."""
    values = found.by(_engine_of)
    if any(len(several) > 1 for several in values.values()):
        return {}
    return {engine: value for engine, (value,) in values.items()}
