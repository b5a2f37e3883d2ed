"""One engine in simulated time: continuous batching over a paged KV cache, as vLLM V1 schedules.

A step takes one token from each decoding request and, with what is left of the token budget, parts
of prompts (chunked prefill). Requests wait first come, first served. When the KV cache is full, the
last one admitted is put back and computes anew what it held. Times of steps are linear in what a
step does; docs/simulator.md says what is left out.

Steps in which nothing but decoding happens are done many at a time, so simulating costs by
request and not by token.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass
from random import Random

from ...exporters.names import Outcome
from .counts import Counts
from .faults import HEALTHY
from .kv import KvCache
from .request import Request

_AT_ONCE = 32  # decode steps that share one duration
_NEIGHBOUR = 0.9  # of the time that a neighbour takes from us, at its fullest


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Times in seconds. The defaults are about a 27B model in FP8 on one GPU of 141 GB."""

    model_name: str = "qwen3-27b"
    max_num_seqs: int = 128
    max_num_batched_tokens: int = 2048
    max_model_len: int = 32768
    kv_blocks: int = 20000
    block_size: int = 16
    error_share: float = 3e-4  # of requests that fail inside, in good health
    prefix_hit: float = 0.4  # share of a prompt found in the prefix cache
    frontend: float = 0.002  # API server, for one request; it does one after the other
    step: float = 0.012  # any step
    step_per_request: float = 6e-5
    step_per_prompt_token: float = 5e-5
    step_per_kv_token: float = 4e-8
    jitter: float = 0.04  # standard deviation of the logarithm of a step's time


@dataclass(frozen=True, slots=True)
class EngineState:
    """What an engine's gauges tell. tail_waste: None while no block is in use."""

    running: int = 0
    waiting: int = 0
    in_flight: int = 0  # with what is in the front end
    kv_usage: float = 0.0
    tail_waste: float | None = None


class Engine:
    """advance() moves time; submit() and abandon() happen now. What has ended is in `done`, which
    the caller empties. `effects` may be changed at any time; `counts` are those of the process
    that began at `started`."""

    def __init__(self, config: EngineConfig, random: Random, now: float = 0.0) -> None:
        self.config = config
        self.now = now
        self.effects = HEALTHY
        self.done: list[Request] = []
        self._random = random
        self.start()

    def start(self) -> None:
        """A new process, with nothing in flight and counts from zero, can serve."""
        self.down, self.started = False, self.now
        self.counts = Counts(self.config.max_model_len, self.config.prefix_hit)
        self._kv = KvCache(self.config.kv_blocks, self.config.block_size)
        self._leaked = 0.0  # blocks
        self._incoming: deque[Request] = deque()  # in the front end
        self._waiting: deque[Request] = deque()
        self._batch: dict[Request, None] = {}  # in order of admission
        self._prefilling: dict[Request, int] = {}  # those of the batch; tokens in this step
        self._decoding: dict[tuple[str, str], int] = {}  # how many, by class
        self._due: list[tuple[int, int, Request]] = []  # by decode clock; who left is still in it
        self._serial = 0
        self._frontend_free = self.now
        self._begins = self.now  # of the step under way, or the next
        self._ends: float | None = None  # None: no step is under way
        self._duration = 0.0
        self._stalled = 0.0  # seconds for which the step under way hung
        self._stuck: EngineState | None = None

    def stop(self) -> None:
        """The process ends; whatever was in flight breaks off, uncounted."""
        for request in (*self._batch, *self._waiting, *self._incoming):
            self._end(request, Outcome.ERROR, self.now)
        self.start()
        self.down = True

    @property
    def state(self) -> EngineState:
        """Of one that hangs, as it stood when it began to: its gauges are told at each step."""
        return self._stuck or self._standing()

    def _standing(self) -> EngineState:
        running, waiting = len(self._batch), len(self._waiting)
        return EngineState(
            running, waiting, running + waiting + len(self._incoming),
            self._kv.usage, self._kv.tail_waste,
        )  # fmt: skip

    def generated(self, request: Request) -> int:
        """Tokens that a request has so far."""
        if request.offset is None:
            return request.generated
        return request.output - (request.due - self._kv.clock)

    def submit(self, request: Request) -> None:
        """Now. Refused at once (see `outcome`) if the process is gone or the queue is full."""
        limit, effects = self.effects.queue_limit, self.effects
        if self.down:
            self._end(request, Outcome.ERROR, self.now)
        elif limit is not None and len(self._waiting) + len(self._incoming) >= limit:
            self.counts.page["rejected"] += 1
            self.counts.answered(request, "5xx", self.now)
            self._counted_end(request, Outcome.REJECTED, self.now)
        else:
            service = self.config.frontend * effects.frontend_factor
            request.ready = self._frontend_free = max(self.now, self._frontend_free) + service
            request.fails = self._random.random() < self.config.error_share + effects.error_share
            request.empty = self._random.random() < effects.empty_share
            if request.empty:
                request.output = 1
            request.to_prefill = request.prompt
            self._incoming.append(request)

    def abandon(self, request: Request, outcome: Outcome = Outcome.ABORTED) -> None:
        """The client is gone, now."""
        if request.outcome is None:
            request.generated = self.generated(request)
            self._remove(request)
            self.counts.answered(request, "2xx", self.now)
            self._counted_end(request, outcome, self.now)

    def advance(self, to: float) -> None:
        """to: simulated Unix time, not before now."""
        blocks, effects = self.config.kv_blocks, self.effects
        self._leaked += effects.kv_leak_per_hour * blocks * (to - self.now) / 3600
        self._kv.lost = self._leaked + (1 - effects.kv_factor) * blocks
        self._stuck = (self._stuck or self._standing()) if effects.hang else None
        if effects.hang:
            if self._ends is not None and self._ends < to:
                self._stalled += to - self._ends
                self._ends = to
        elif not self.down:
            if self._ends is None:
                self._begin(self.now, to)
            while self._ends is not None and self._ends <= to:
                self._complete(self._ends, to)
        self._take_in(to)
        self.now = to

    def _take_in(self, until: float) -> None:
        while self._incoming and self._incoming[0].ready <= until:
            self._waiting.append(self._incoming.popleft())

    def _begin(self, at: float, to: float) -> None:
        """Begins a step at `at`, or when the next request is there, if that is not after `to`."""
        self._ends = None
        self._take_in(at)
        if not self._batch and not self._waiting:
            if not self._incoming or self._incoming[0].ready > to:
                return
            at = self._incoming[0].ready
            self._take_in(at)
        self._begins = at
        self._make_room()
        self._fill()
        if self._batch:
            self._duration = self._step_time()
            self._ends = at + self._duration

    def _step_time(self) -> float:
        config, effects = self.config, self.effects
        prompt_tokens = sum(self._prefilling.values())
        work = (
            config.step
            + config.step_per_request * len(self._batch)
            + config.step_per_kv_token * self._kv.tokens
            + config.step_per_prompt_token * prompt_tokens * effects.prefill_factor
        )
        slowed = effects.step_factor / effects.clock_factor / (1 - _NEIGHBOUR * effects.neighbour)
        return work * slowed * math.exp(self._random.gauss(0.0, config.jitter))

    def _make_room(self) -> None:
        """Every decoding request needs a place for its next token."""
        while self._batch and self._kv.growth(1) > self._kv.free:
            victim = next(reversed(self._batch))
            if victim.offset is not None:
                victim.last_token = self._begins
            victim.generated = self.generated(victim)
            self._remove(victim)
            victim.preemptions += 1
            victim.to_prefill = victim.prompt + victim.generated
            self._waiting.appendleft(victim)
            self.counts.page["preemptions"] += 1

    def _fill(self) -> None:
        """Shares what is left of the token budget among prompts under way and those that wait."""
        budget = self.config.max_num_batched_tokens - (len(self._batch) - len(self._prefilling))
        for request in self._prefilling:
            self._prefilling[request] = chunk = min(budget, request.to_prefill)
            budget -= chunk
        growth = self._kv.growth(1)
        while budget > 0 and self._waiting and len(self._batch) < self.config.max_num_seqs:
            request = self._waiting[0]
            if self._kv.blocks_for(request.to_prefill) + growth > self._kv.free:
                break
            self._waiting.popleft()
            self._admit(request)
            self._prefilling[request] = chunk = min(budget, request.to_prefill)
            budget -= chunk

    def _admit(self, request: Request) -> None:
        if request.scheduled is None:
            request.scheduled = max(self._begins, request.ready)
            self.counts.page["prefix_queries"] += request.prompt
        request.held = request.to_prefill
        self._kv.reserve(request.held)
        request.to_prefill = max(1, round(request.held * (1 - self.config.prefix_hit)))
        self._batch[request] = None

    def _complete(self, ends: float, to: float) -> None:
        """The step under way is done; as many more like it as nothing would come between."""
        steps = 1 if self._prefilling or self._stalled else self._repetitions(ends, to)
        ends += (steps - 1) * self._duration
        self._kv.step(steps)
        seconds, self._stalled = self._duration + self._stalled, 0.0
        self.counts.steps(steps, seconds, sum(self._prefilling.values()), self._decoding)
        while self._due and self._due[0][0] <= self._kv.clock:
            due, _, request = heapq.heappop(self._due)
            if request.offset is not None and request.due == due:
                self._finish(request, ends)
        for request, chunk in list(self._prefilling.items()):
            request.to_prefill -= chunk
            if request.to_prefill == 0:
                self._prefilled(request, ends)
        self._begin(ends, to)

    def _repetitions(self, ends: float, to: float) -> int:
        """How many steps like this one, itself included, are done by `to`."""
        while self._due and self._due[0][2].due != self._due[0][0]:
            heapq.heappop(self._due)  # it has left
        room = min([to, *(request.ready for request in list(self._incoming)[:1])]) - ends
        steps = min(1 + int(max(room, 0.0) / self._duration), _AT_ONCE)
        steps = min(steps, self._due[0][0] - self._kv.clock) if self._due else 1
        if self._waiting or self._kv.growth(steps) > self._kv.free:
            return 1
        return max(steps, 1)

    def _prefilled(self, request: Request, at: float) -> None:
        self._prefilling.pop(request)
        self._kv.release(request.held)
        if request.fails:
            self._batch.pop(request)
            self.counts.answered(request, "5xx", at)
            self.counts.page["finished_error"] += 1
            self._counted_end(request, Outcome.ERROR, at)
            return
        request.offset = self._kv.enter(request.held)
        request.generated += 1
        self.counts.page["generation_tokens"] += 1
        if request.first_token is None:
            request.first_token = at
            self.counts.first_token(request, at)
        elif request.last_token is not None:
            self.counts.stood_still(at - request.last_token)
        request.due = self._kv.clock + request.output - request.generated
        self._decoding[request.labels] = self._decoding.get(request.labels, 0) + 1
        if request.due <= self._kv.clock:
            self._finish(request, at)
        else:
            self._serial += 1
            heapq.heappush(self._due, (request.due, self._serial, request))

    def _finish(self, request: Request, at: float) -> None:
        self._remove(request)
        request.generated, request.last_token = request.output, at
        scheduled, first = request.scheduled or at, request.first_token or at
        self.counts.last_token(request, scheduled, first, at)
        self.counts.answered(request, "2xx", at)
        self._counted_end(request, Outcome.EMPTY if request.empty else Outcome.SUCCESS, at)

    def _remove(self, request: Request) -> None:
        """Takes a live request out of wherever it is."""
        if request.offset is not None:
            self._kv.leave(request.offset)
            self._decoding[request.labels] -= 1
            request.offset, request.due = None, -1
        elif request in self._prefilling:
            self._prefilling.pop(request)
            self._kv.release(request.held)
        elif request in self._waiting:
            self._waiting.remove(request)
        elif request in self._incoming:
            self._incoming.remove(request)
        self._batch.pop(request, None)

    def _counted_end(self, request: Request, outcome: Outcome, at: float) -> None:
        self.counts.ended(request, outcome, at)
        self._end(request, outcome, at)

    def _end(self, request: Request, outcome: Outcome, at: float) -> None:
        request.outcome, request.finished = outcome, at
        self.done.append(request)
