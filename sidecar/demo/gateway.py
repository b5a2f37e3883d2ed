"""The gateway in front of the engines: LiteLLM's habits and counters, in our names.

It hands each request to the next engine that is not cooling down; if none serves it, the backup
model does, which is a fallback.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ...exporters import names
from ...exporters.names import Outcome
from ...exporters.reading import Observation, Point
from .engine import Engine
from .faults import HEALTHY
from .request import Request
from .tally import Tally

_COOLDOWN = 30.0  # seconds
_BACKUP = "qwen3-4b-backup"
_BACKUP_FAILS = 0.01
_FALLBACK_SHARE = 5e-4  # in good health
_REASONS = {Outcome.ERROR: "InternalServerError", Outcome.REJECTED: "RateLimitError"}


class Gateway:
    """Routes to `engines`; tally: (family, labels behind the gateway's own) → count."""

    def __init__(self, name: str, model: str, engines: Sequence[Engine], random: Random) -> None:
        self.effects = HEALTHY
        self.tally = Tally()
        self.in_flight = 0
        self.model = model
        self._name = name
        self._engines = engines
        self._random = random
        self._next = 0
        self._cooling = [0.0] * len(engines)  # until then

    def send(self, request: Request, now: float) -> Engine | None:
        """The engine that has it, or None if the gateway itself failed."""
        if self._random.random() < self.effects.gateway_error_share:
            self._answer("503")
            return None
        order = [(self._next + n) % len(self._engines) for n in range(len(self._engines))]
        self._next += 1
        for index in sorted(order, key=lambda index: self._cooling[index] > now):
            engine = self._engines[index]
            self.tally[names.GATEWAY_UPSTREAM_ATTEMPTS.name, self.model] += 1
            if not engine.down:
                self.in_flight += 1
                engine.submit(request)
                return engine
            self._upstream_failed("APIConnectionError")
            if self._cooling[index] <= now:
                self._cooling[index] = now + _COOLDOWN
                key = (names.GATEWAY_COOLDOWNS.name, self.model, "APIConnectionError")
                self.tally[key] += 1
        return engine

    def ended(self, request: Request) -> bool:
        """What an engine made of a request; True if its client gets an answer."""
        self.in_flight = max(self.in_flight - 1, 0)
        outcome = request.outcome
        if outcome in (Outcome.ABORTED, Outcome.TIMEOUT):
            self._answer("499" if outcome is Outcome.ABORTED else "408")
            if outcome is Outcome.TIMEOUT:
                self.tally[names.GATEWAY_TIMEOUTS.name, self.model] += 1
            return False
        if outcome in _REASONS:
            self._upstream_failed(_REASONS[outcome])
            return self.fall_back(_REASONS[outcome])
        if self._random.random() < _FALLBACK_SHARE + self.effects.fallback_share:
            return self.fall_back("ContextWindowExceededError")
        self._answer("200")
        return True

    def fall_back(self, reason: str) -> bool:
        failed = self._random.random() < _BACKUP_FAILS
        key = (names.GATEWAY_FALLBACKS.name, self.model, _BACKUP, reason)
        self.tally[(*key, "failed" if failed else "succeeded")] += 1
        if failed and reason == "RateLimitError":
            self.tally[names.GATEWAY_REJECTED.name, self.model, reason] += 1
        self._answer("500" if failed else "200")
        return not failed

    def _answer(self, status: str) -> None:
        self.tally[names.GATEWAY_REQUESTS.name, self.model, status] += 1

    def _upstream_failed(self, reason: str) -> None:
        self.tally[names.GATEWAY_UPSTREAM_FAILURES.name, self.model, reason] += 1

    def observation(self, now: float) -> Observation:
        down = sum(engine.down or until > now for engine, until in zip(
            self._engines, self._cooling, strict=True))  # fmt: skip
        state = 0.0 if not down else 2.0 if down == len(self._engines) else 1.0
        points = [
            Point(names.GATEWAY_UP, (self._name,), 1.0),
            Point(names.GATEWAY_IN_FLIGHT, (self._name,), float(self.in_flight + 1)),
            Point(names.GATEWAY_DEPLOYMENT_STATE, (self._name, self.model), state),
        ]
        for (family, *labels), count in self.tally.items():
            points.append(Point(names.FAMILIES[family], (self._name, *labels), count))
        return Observation(tuple(points))
