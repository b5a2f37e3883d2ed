"""What the engine's process counts, and when: vLLM's habits, survivorship included.

TTFT and ITL are observed as they happen; all else only when the last token is out. A client that
is gone leaves an HTTP 2xx and no other trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...exporters.names import Outcome
from .buckets import LATENCIES, OTHERS, PROBE, lengths
from .request import Request
from .tally import Tally

# Seconds to the first and to the last token that a class is promised.
TARGETS: Mapping[str, tuple[float, float]] = {"S": (0.8, 1.2), "default": (2.0, 30.0)}


@dataclass(slots=True)
class Counts:
    """page: by the keys of vllm-0.32.0.page, and busy_seconds. probe: the same requests as the
    in-engine probe would count them, by (what, sla_class, prompt_class)."""

    max_model_len: int
    prefix_hit: float
    page: Tally = field(default_factory=Tally)
    probe: Tally = field(default_factory=Tally)

    def steps(
        self, n: int, seconds: float, prompt_tokens: int, decoding: Mapping[tuple[str, str], int]
    ) -> None:
        """n steps of so many seconds each; decoding: requests that got a token, by class."""
        page, tokens = self.page, sum(decoding.values())
        page["busy_seconds"] += n * seconds
        page["cpu_seconds"] += 0.4 * n * seconds
        page["generation_tokens"] += n * tokens
        page.observe("step_tokens", OTHERS["step_tokens"], tokens + prompt_tokens, n)
        if tokens:
            page.observe("itl", LATENCIES["itl"], seconds, n * tokens)
        for labels, count in decoding.items():
            if count:
                self.probe.observe(("itl", *labels), PROBE["itl"], seconds, n * count)

    def stood_still(self, seconds: float) -> None:
        """A stream that went on after it had been preempted."""
        self.page.observe("itl", LATENCIES["itl"], seconds)

    def first_token(self, request: Request, at: float) -> None:
        page, hits = self.page, round(request.prompt * self.prefix_hit)
        page["prompt_tokens"] += request.prompt
        page["prefix_hits"] += hits
        page["computed_tokens"] += request.prompt - hits
        page.observe("ttft", LATENCIES["ttft"], at - request.arrived)
        if not request.empty:
            self.probe.observe(("ttft", *request.labels), PROBE["ttft"], at - request.arrived)

    def last_token(self, request: Request, scheduled: float, first: float, at: float) -> None:
        times = {
            "e2e": at - request.arrived, "queue": scheduled - request.ready,
            "inference": at - scheduled, "prefill": first - scheduled, "decode": at - first,
            "tpot": (at - first) / (request.output - 1) if request.output > 1 else 0.0,
        }  # fmt: skip
        for key, seconds in times.items():
            self.page.observe(key, LATENCIES[key], seconds)
        for key in ("e2e", "queue", "tpot")[: 3 if request.output > 1 else 2]:
            self.probe.observe((key, *request.labels), PROBE[key], times[key])
        self._lengths(request)

    def _lengths(self, request: Request) -> None:
        limit = request.max_tokens or request.output
        numbers = {
            "prompt": request.prompt, "output": request.output, "max_output": request.output,
            "max_tokens": limit, "computed": round(request.prompt * (1 - self.prefix_hit)),
        }  # fmt: skip
        bounds = lengths(self.max_model_len)
        for key, number in numbers.items():
            self.page.observe(key, bounds, number)
        self.page.observe("n", OTHERS["n"], 1)
        self.page.observe(
            "preemptions_of_request", OTHERS["preemptions_of_request"], request.preemptions
        )
        self.page["finished_length" if limit == request.output else "finished_stop"] += 1

    def answered(self, request: Request, status: str, at: float) -> None:
        """status: 2xx, 4xx, 5xx."""
        self.page[f"http_{status}"] += 1
        self.page["http_count"] += 1
        for key in ("http_duration", "http_duration_coarse"):
            self.page.observe(key, OTHERS[key], at - request.arrived)

    def ended(self, request: Request, outcome: Outcome, at: float) -> None:
        self.probe["requests", *request.labels, outcome] += 1
        if outcome is not Outcome.INVALID:
            good = outcome is Outcome.SUCCESS and _met_targets(request, at)
            self.probe["goodput", *request.labels, "good" if good else "bad"] += 1


def _met_targets(request: Request, at: float) -> bool:
    ttft, e2e = TARGETS.get(request.sla_class, TARGETS["default"])
    first = request.first_token
    return first is not None and first - request.arrived <= ttft and at - request.arrived <= e2e
