"""The application: sends requests through the gateway, waits, gives up, tries again, and reports
what became of turns and sessions as business events.

One request is one turn of an agent; a turn may be tried again, and ends its session now and then.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from ...exporters import names
from ...exporters.names import Outcome
from ...exporters.reading import Observation, Point
from .engine import Engine
from .faults import HEALTHY
from .gateway import Gateway
from .request import Request
from .tally import Tally
from .traffic import Traffic

PATIENCE = 120.0  # seconds
_BACKOFF = 1.0  # seconds before the first repetition; twice as long before each further one
_TURNS = 4  # of a session, on average
_HEALTHY_SHARES = {
    "leave": 0.001, "format": 0.003, "interrupt": 0.002, "escalate": 0.02, "regenerate": 0.01,
    "tool_error": 0.002,
}  # fmt: skip
CHECKED = 0.05  # share of turns on which quality is checked
CHECKS: Mapping[str, float] = {
    "context_retention": 0.02, "negation": 0.03, "vague_request": 0.04, "fixed_prompts": 0.01,
}  # fmt: skip
_EVENTS = {family.name: family for family in (
    names.AGENT_TURNS, names.SESSIONS, names.FALLBACKS, names.REGENERATIONS,
    names.SCHEMA_FAILURES, names.QUALITY_CHECKS,
)}  # fmt: skip


@dataclass(eq=False, slots=True)
class _Attempt:
    request: Request
    number: int  # 0 is the first
    engine: Engine | None = None
    leaves: float = 0.0  # when its client gives up
    left: bool = False  # in mid-answer, of its own will


class Clients:
    """due(): when something is to be done next; act(): does it. tally: (family, its labels)."""

    def __init__(self, traffic: Traffic, gateway: Gateway, random: Random, app: str) -> None:
        self.traffic = traffic
        self.effects = HEALTHY
        self.tally = Tally()
        self.sending = True
        self._gateway = gateway
        self._random = random
        self._app = app
        self._model = gateway.model
        self._next = 0.0  # arrival; 0: not drawn yet
        self._live: dict[Request, _Attempt] = {}
        self._leaving: list[tuple[float, int, _Attempt]] = []
        self._again: list[tuple[float, int, _Attempt]] = []
        self._for_connection: deque[_Attempt] = deque()
        self._serial = 0

    @property
    def idle(self) -> bool:
        """Nobody waits for anything."""
        return not (self._live or self._again or self._for_connection)

    def begin_again(self) -> None:
        """Time has jumped, with nobody waiting: the next arrival is drawn anew."""
        self._next = 0.0
        self._leaving.clear()

    def due(self, now: float) -> float:
        if not self._next:
            self._draw(now)
        while self._leaving and self._leaving[0][2].request.outcome is not None:
            heapq.heappop(self._leaving)
        heads = [queue[0][0] for queue in (self._leaving, self._again) if queue]
        return min(heads + ([self._next] if self.sending else []), default=float("inf"))

    def _draw(self, now: float) -> None:
        effects = self.effects
        rate = self.traffic.at(now) * effects.arrival_factor * effects.turns_factor
        self._next = now + self._random.expovariate(rate)

    def act(self, now: float) -> None:
        while self._leaving and self._leaving[0][0] <= now:
            self._give_up(heapq.heappop(self._leaving)[2], now)
        while self._again and self._again[0][0] <= now:
            self._send(heapq.heappop(self._again)[2], now)
        if self.sending and self._next <= now:
            request = self.traffic.request(now, self._random, self.effects)
            self._send(_Attempt(request, 0), now)
            self._draw(now)

    def _send(self, attempt: _Attempt, now: float) -> None:
        effects, request = self.effects, attempt.request
        if not attempt.leaves:
            attempt.leaves = now + (effects.patience or PATIENCE)
            self._push(self._leaving, attempt.leaves, attempt)
        pool = effects.pool_size
        if pool is not None and len(self._live) >= pool:
            self._for_connection.append(attempt)
            return
        request.arrived = now
        leave = _HEALTHY_SHARES["leave"] + effects.leave_share
        if self._random.random() < leave:
            attempt.left = True
            self._push(self._leaving, now + self._random.uniform(0.5, 4.0), attempt)
        attempt.engine = self._gateway.send(request, now)
        if attempt.engine is None and request.outcome is Outcome.SUCCESS:
            self._turn(self._quality())
        elif attempt.engine is None:
            self._failed(attempt, "error", now)
        else:
            self._live[request] = attempt

    def _give_up(self, attempt: _Attempt, now: float) -> None:
        request = attempt.request
        if request.outcome is not None:
            return
        if attempt.engine is None:  # it still waits for a connection
            self._for_connection.remove(attempt)
            request.outcome = Outcome.TIMEOUT
            self._failed(attempt, "timeout", now)
        else:
            timed_out = now >= attempt.leaves
            attempt.engine.abandon(request, Outcome.TIMEOUT if timed_out else Outcome.ABORTED)

    def ended(self, request: Request, now: float) -> None:
        """An engine is done with it."""
        attempt = self._live.pop(request, None)
        if attempt is None:
            return
        answered = self._gateway.ended(request)
        if answered and request.outcome is not Outcome.EMPTY:
            self._turn(self._quality())
        elif request.outcome is Outcome.ABORTED:
            self._turn("aborted")
        else:
            self._failed(attempt, "timeout" if request.outcome is Outcome.TIMEOUT else "error", now)
        while self._for_connection and len(self._live) < (self.effects.pool_size or 10**9):
            self._send(self._for_connection.popleft(), now)

    def _failed(self, attempt: _Attempt, outcome: str, now: float) -> None:
        if attempt.number >= self.effects.retries:
            self._turn(outcome)
            return
        old = attempt.request
        again = Request(
            old.prompt, old.output, now, old.sla_class, old.prompt_class, old.max_tokens
        )
        wait = _BACKOFF * 2**attempt.number * self._random.uniform(0.5, 1.5)
        self._push(self._again, now + wait, _Attempt(again, attempt.number + 1))

    def _push(self, queue: list[tuple[float, int, _Attempt]], at: float, what: _Attempt) -> None:
        self._serial += 1
        heapq.heappush(queue, (at, self._serial, what))

    def _quality(self) -> str:
        """Outcome of a turn that got an answer; counts what else is reported of it."""
        effects, chance = self.effects, self._random.random
        if chance() < CHECKED:
            for check, fails in CHECKS.items():
                failed = chance() < min(fails + effects.failed_checks.get(check, 0.0), 1.0)
                self._event(names.QUALITY_CHECKS.name, check, "failed" if failed else "passed")
        if chance() < _HEALTHY_SHARES["regenerate"] + effects.regeneration_share:
            self._event(names.REGENERATIONS.name)
        if chance() < _HEALTHY_SHARES["format"] + effects.format_error_share:
            self._event(names.SCHEMA_FAILURES.name, "order")
            return "format_error"
        return "tool_error" if chance() < _HEALTHY_SHARES["tool_error"] else "success"

    def _turn(self, outcome: str) -> None:
        effects, chance = self.effects, self._random.random
        self._event(names.AGENT_TURNS.name, outcome)
        if chance() >= 1 / (_TURNS * effects.turns_factor):
            return
        self._event(names.SESSIONS.name, "started")
        broken = outcome in ("error", "timeout", "aborted")
        interrupted = _HEALTHY_SHARES["interrupt"] + effects.interruption_share
        if broken or chance() < interrupted:
            self._event(names.SESSIONS.name, "interrupted")
        elif chance() < _HEALTHY_SHARES["escalate"]:
            self._event(names.SESSIONS.name, "escalated")
        else:
            self._event(names.SESSIONS.name, "completed")

    def _event(self, family: str, *labels: str) -> None:
        self.tally[(family, *labels)] += 1

    def observation(self) -> Observation:
        own = (self._app, self._model, "", "")
        return Observation(tuple(
            Point(_EVENTS[family], (*own, *labels), count)
            for (family, *labels), count in self.tally.items()
        ))  # fmt: skip
