"""Counting blocks by remainders gives what a table of blocks gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inferslo.sidecar.demo.kv import KvCache

BLOCK = 16


def blocks(tokens: int) -> int:
    return -(-tokens // BLOCK)


@given(
    st.lists(st.tuples(st.integers(1, 500), st.integers(0, 40)), max_size=12),
    st.lists(st.integers(1, 500), max_size=3),
)
def test_held_blocks_are_those_of_each_request(
    decoding: list[tuple[int, int]], prefilling: list[int]
) -> None:
    """decoding: tokens that a request enters with, and steps until the next one enters."""
    cache, held = KvCache(10_000, BLOCK), list[int]()
    for tokens in prefilling:
        cache.reserve(tokens)
    for tokens, steps in decoding:
        cache.enter(tokens)
        held.append(tokens)
        growth = sum(blocks(each + steps) - blocks(each) for each in held)
        assert cache.growth(steps) == growth
        cache.step(steps)
        held = [each + steps for each in held]
    everything = held + prefilling
    assert cache.used == sum(map(blocks, everything))
    assert cache.tokens == sum(everything)
    assert cache.free == 9_999 - cache.used


def test_what_leaves_leaves_nothing_behind() -> None:
    cache = KvCache(100, BLOCK)
    offset = cache.enter(17)
    cache.step(40)
    cache.leave(offset)
    cache.reserve(5)
    cache.release(5)
    assert (cache.used, cache.tokens, cache.tail_waste) == (0, 0, None)


def test_tail_waste_is_the_empty_part_of_what_is_held() -> None:
    cache = KvCache(100, BLOCK)
    cache.enter(17)
    assert cache.tail_waste == 1 - 17 / 32
