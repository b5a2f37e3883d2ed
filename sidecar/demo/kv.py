"""The paged KV cache: how many blocks are held, without keeping a table of them.

All decoding requests gain one token in each step, so which of them need a new block in a step
depends only on their length modulo the block size: one count per remainder is enough.
"""

from __future__ import annotations


class KvCache:
    """Counts blocks. `clock` counts decode steps; a decoding request is entered by its `offset`:
    tokens held = offset + clock."""

    def __init__(self, blocks: int, block_size: int) -> None:
        self.blocks = blocks
        self.block_size = block_size
        self.clock = 0
        self.lost = 0.0  # blocks that a fault keeps from use
        self._fixed_blocks = 0  # held by requests in prefill, whose length stands still
        self._fixed_tokens = 0
        self._decoding_blocks = 0
        self._decoding = 0
        self._offsets = 0
        self._remainders = [0] * block_size

    @property
    def used(self) -> int:
        return self._fixed_blocks + self._decoding_blocks

    @property
    def free(self) -> int:
        """Block 0 is vLLM's own and never used."""
        return int(self.blocks - 1 - self.lost) - self.used

    @property
    def usage(self) -> float:
        return min((self.used + self.lost) / (self.blocks - 1), 1.0)

    @property
    def tokens(self) -> int:
        return self._fixed_tokens + self._offsets + self._decoding * self.clock

    @property
    def tail_waste(self) -> float | None:
        """1 - tokens held / slots held; None while nothing is held."""
        return 1 - self.tokens / (self.used * self.block_size) if self.used else None

    def blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.block_size)

    def reserve(self, tokens: int) -> None:
        """For a request in prefill."""
        self._fixed_blocks += self.blocks_for(tokens)
        self._fixed_tokens += tokens

    def release(self, tokens: int) -> None:
        """Of a request in prefill."""
        self._fixed_blocks -= self.blocks_for(tokens)
        self._fixed_tokens -= tokens

    def enter(self, tokens: int) -> int:
        """A request begins to decode with so many tokens held; gives its offset."""
        offset = tokens - self.clock
        self._change(offset, 1)
        return offset

    def leave(self, offset: int) -> None:
        self._change(offset, -1)

    def _change(self, offset: int, by: int) -> None:
        self._decoding += by
        self._offsets += by * offset
        self._remainders[offset % self.block_size] += by
        self._decoding_blocks += by * self.blocks_for(offset + self.clock)

    def growth(self, steps: int) -> int:
        """Blocks that so many decode steps from now will take."""
        rounds, rest = divmod(steps, self.block_size)
        partial = sum(
            self._remainders[-(self.clock + step) % self.block_size] for step in range(rest)
        )
        return rounds * self._decoding + partial

    def step(self, steps: int) -> None:
        self._decoding_blocks += self.growth(steps)
        self.clock += steps
