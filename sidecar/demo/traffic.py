"""Who asks for what, and when: Poisson arrivals over a day's shape, and a mix of requests.

Lengths are lognormal, as they are in published traces of chat, and of long documents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from .faults import Effects
from .request import Request

DAY = 86400.0
LONG = 8000  # tokens: a longer prompt is of the class gt_8000


@dataclass(frozen=True, slots=True)
class Kind:
    """Median lengths in tokens; spread: standard deviation of their logarithm."""

    name: str
    weight: float
    prompt: float
    prompt_spread: float
    output: float
    output_spread: float
    sla_class: str = "default"


MIX = (
    Kind("chat", 0.80, 600, 0.7, 170, 0.45),
    Kind("routing decision", 0.10, 300, 0.5, 12, 0.4, "S"),
    Kind("document", 0.07, 4000, 0.4, 220, 0.4),
    Kind("long context", 0.03, 12000, 0.25, 260, 0.4),
)
# Share of the mean rate at each full hour, from midnight UTC.
SHAPE = (
    0.40, 0.32, 0.28, 0.26, 0.28, 0.38, 0.60, 0.92, 1.30, 1.62, 1.72, 1.60,
    1.38, 1.42, 1.55, 1.62, 1.54, 1.36, 1.20, 1.12, 1.06, 0.95, 0.76, 0.56,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Traffic:
    """rate: requests a minute, mean over the day. shape: of the day, by hour."""

    rate: float
    mix: Sequence[Kind] = MIX
    shape: Sequence[float] = SHAPE
    max_model_len: int = 32768

    def at(self, time: float) -> float:
        """Requests a second at a Unix time."""
        hour = time % DAY / DAY * len(self.shape)
        below = int(hour)
        low, high = self.shape[below], self.shape[(below + 1) % len(self.shape)]
        level = low + (high - low) * (hour - below)
        return self.rate / 60 * level * len(self.shape) / math.fsum(self.shape)

    def request(self, time: float, random: Random, effects: Effects) -> Request:
        """One that arrives now."""
        [kind] = random.choices(self.mix, [kind.weight for kind in self.mix])
        prompt = _length(random, kind.prompt, kind.prompt_spread)
        if effects.long_share and random.random() < effects.long_share:
            prompt = effects.long_tokens
        output = _length(random, kind.output * effects.output_factor, kind.output_spread)
        if effects.slow_share and random.random() < effects.slow_share:
            output *= 8
        prompt = min(prompt, self.max_model_len - 1024)
        output = min(output, self.max_model_len - prompt)
        prompt_class = f"gt_{LONG}" if prompt > LONG else f"le_{LONG}"
        # Most answers end by themselves, well before their limit.
        return Request(prompt, output, time, kind.sla_class, prompt_class, max_tokens=4096)


def _length(random: Random, median: float, spread: float) -> int:
    return max(1, round(random.lognormvariate(math.log(median), spread)))
