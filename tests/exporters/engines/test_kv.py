"""KV cache: capacity only where it is right, and a bound of tail waste that holds."""

from __future__ import annotations

import pytest
from vllm_pages import capture, gaps, observe, page, read

from inferslo.exporters.exposition import Page

BOUND = ("kv_tail_waste_upper_bound_ratio", "m", "derived")


def kv_page(
    *,
    running: float = 0,
    used_blocks: float = 0,
    blocks: int = 1001,
    block_size: int | str = 16,
    tokens: int | str | None = None,
) -> Page:
    labels = f'block_size="{block_size}",num_gpu_blocks="{blocks}"'
    if tokens is not None:
        labels += f',kv_cache_size_tokens="{tokens}"'
    usage = used_blocks / (blocks - 1)
    return page(
        f'vllm:num_requests_running{{engine="0",model_name="m"}} {running}',
        f'vllm:kv_cache_usage_perc{{engine="0",model_name="m"}} {usage}',
        f'vllm:cache_config_info{{engine="0",{labels}}} 1.0',
    )


@pytest.mark.parametrize(
    ("block_size", "prompt", "waste"),
    [
        (16, 17, 1 - 17 / 32),  # vLLM issue 57336: 0.47 of the live slots
        (32, 33, 1 - 33 / 64),  # measured inside a real vLLM: 0.484
        (32, 400, 1 - 400 / 416),
        (16, 400, 0.0),
    ],
)
def test_the_bound_is_never_below_the_waste(block_size: int, prompt: int, waste: float) -> None:
    running = 16
    used = running * -(-prompt // block_size)
    found = read(
        kv_page(running=running, used_blocks=used, block_size=block_size, tokens=1001 * block_size)
    )
    bound = found[BOUND]
    assert isinstance(bound, float)
    assert bound >= waste - 1e-12
    if prompt % block_size == 1:
        assert bound == pytest.approx(waste)  # one token in the last block: as bad as can be


def test_the_bound_is_absent_while_nothing_is_in_use() -> None:
    observation = observe(kv_page(tokens=16016))
    assert not any("tail_waste" in point.family.name for point in observation.points)
    assert "kv_tail_waste" not in gaps(observation)


def test_the_bound_is_a_share() -> None:
    assert read(kv_page(running=50, used_blocks=2, tokens=16016))[BOUND] == 1


def test_each_group_has_a_last_block_of_its_own() -> None:
    found = read(kv_page(running=1, used_blocks=100, tokens=9000), kv_cache_groups=3)
    assert found[BOUND] == pytest.approx(3 * 15 / (100 * 16))


def test_without_the_number_of_groups_there_is_no_bound() -> None:
    observation = observe(kv_page(running=1, used_blocks=100, tokens=9000))
    in_the_file = "--config file: engines: [{url: …, kv_cache_groups: 1}]"
    assert in_the_file in gaps(observation)["kv_tail_waste"].remedy
    assert in_the_file in gaps(observe(kv_page()))["kv_capacity"].remedy


def test_the_bound_is_over_all_data_parallel_engines() -> None:
    found = read(capture("vllm-made__dp2.prom"))
    assert found[BOUND] == pytest.approx((12 + 9) * 15 / ((250 + 500) * 16))


def test_rays_copies_cannot_be_matched_engine_by_engine() -> None:
    observation = observe(capture("vllm-made__ray.prom"))
    assert "engine by engine" in gaps(observation)["kv_tail_waste"].reason


def test_capacity_is_what_vllm_tells_even_if_blocks_say_otherwise() -> None:
    """Hybrid models: blocks x block size is wrong, and the block size may be stale."""
    found = read(kv_page(tokens=9000))
    assert found["kv_cache_capacity_tokens", "m"] == 9000
    assert found["kv_cache_blocks", "m"] == 1001
    assert ("kv_cache_block_size_tokens", "m") not in found


def test_older_versions_tell_no_capacity_and_none_is_made_up() -> None:
    observation = observe(kv_page())
    assert "0.24" in gaps(observation)["kv_capacity"].reason
    assert not any("capacity" in point.family.name for point in observation.points)


def test_older_versions_with_one_group_hold_blocks_times_size() -> None:
    found = read(kv_page(), kv_cache_groups=1)
    assert found["kv_cache_capacity_tokens", "m"] == 16016
    assert found["kv_cache_block_size_tokens", "m"] == 16


@pytest.mark.parametrize("text", ["None", "", "many"])
def test_a_size_that_is_not_told_is_a_gap(text: str) -> None:
    observation = observe(kv_page(block_size=text))
    assert "kv_capacity" in gaps(observation)
    assert not any("kv_cache_blocks" in point.family.name for point in observation.points)
