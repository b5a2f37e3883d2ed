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

_REFUSED = "APIConnectionError"
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
        """The engine that has it; None if none has, and then `outcome` says whether the backup
        answered."""
        if self._random.random() < self.effects.gateway_error_share:
            self._answer("503")
            request.outcome = Outcome.ERROR
            return None
        self._next += 1
        failed = False
        for n in range(len(self._engines)):
            index = (self._next + n) % len(self._engines)
            if self._cooling[index] > now:
                continue
            self.tally[names.GATEWAY_UPSTREAM_ATTEMPTS.name, self.model] += 1
            engine = self._engines[index]
            if not engine.down:
                self.in_flight += 1
                engine.submit(request)
                return engine
            self._cool_down(index, now)
            if not failed:  # LiteLLM counts one for a request, however often it failed
                self._upstream_failed(_REFUSED)
            failed = True
        answered = self._fall_back(_REFUSED if failed else "RouterRateLimitError")
        request.outcome = Outcome.SUCCESS if answered else Outcome.ERROR
        return None

    def _cool_down(self, index: int, now: float) -> None:
        self._cooling[index] = now + _COOLDOWN
        self.tally[names.GATEWAY_COOLDOWNS.name, self.model, _REFUSED] += 1

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
            return self._fall_back(_REASONS[outcome])
        if self._random.random() < _FALLBACK_SHARE + self.effects.fallback_share:
            return self._fall_back("ContextWindowExceededError")
        self._answer("200")
        return True

    def _fall_back(self, reason: str) -> bool:
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
