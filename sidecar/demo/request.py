"""One request of the simulation, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass

from ...exporters.names import Outcome


@dataclass(eq=False, slots=True)
class Request:
    """Lengths in tokens, times in simulated Unix seconds.

    max_tokens: 0 if `output` is where it stops by itself. What follows `outcome` is the engine's.
    """

    prompt: int
    output: int
    arrived: float
    sla_class: str = ""
    prompt_class: str = ""
    max_tokens: int = 0
    outcome: Outcome | None = None
    ready: float = 0.0  # through the front end
    scheduled: float | None = None
    first_token: float | None = None
    last_token: float | None = None
    finished: float | None = None
    preemptions: int = 0
    fails: bool = False
    empty: bool = False
    held: int = 0  # tokens reserved in prefill
    to_prefill: int = 0  # of these, left to compute before it can decode
    generated: int = 0  # tokens, while it does not decode
    offset: int | None = None  # in the KV cache, while it decodes
    due: int = 0  # decode clock at which its last token comes

    @property
    def labels(self) -> tuple[str, str]:
        """As the probe tells requests apart."""
        return self.sla_class, self.prompt_class
