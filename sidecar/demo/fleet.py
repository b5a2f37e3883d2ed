"""The whole service in simulated time: engines with their GPUs and hosts, gateway, clients, and
the faults that are armed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from .clients import Clients
from .engine import Engine, EngineConfig, EngineState
from .faults import HEALTHY, Effects, Fault, Kill, combined
from .gateway import Gateway
from .gpu import Gpu
from .host import Host
from .traffic import Traffic

_CONTROL = 5.0  # seconds between two looks at faults, GPUs and hosts
_APP = "checkout"
GATEWAY = "gateway:4000"


@dataclass(frozen=True, slots=True)
class Scenario:
    """rate: requests a minute, mean of the day. replicas: engines; None is as many as the rate
    needs: one takes some 600 a minute, and the peak is 1.7 times the mean. per_host: engines that
    share a sidecar, and a GPU as far as heat goes. prefix: of the names of engines and gateway."""

    rate: float = 30.0
    replicas: int | None = None
    per_host: int = 1
    config: EngineConfig = field(default_factory=EngineConfig)
    seed: int = 1
    start: float = 1_767_571_200.0  # Monday 2026-01-05 00:00 UTC
    prefix: str = ""

    @property
    def engines(self) -> int:
        return self.replicas or max(min(2, 1 + int(self.rate / 10)), math.ceil(self.rate / 250))


@dataclass(slots=True)
class Replica:
    """An engine with what is around it. name: the label `engine`; instance: its sidecar's."""

    index: int
    name: str
    instance: str
    engine: Engine
    gpu: Gpu
    host: Host
    back_at: float | None = None  # when the process serves again
    busy: float = 0.0  # of `counts`, when last looked at
    answers: float = 0.0
    told: EngineState | None = None  # in an aggregated span: what its gauges would tell

    @property
    def state(self) -> EngineState:
        return self.told or self.engine.state


@dataclass(slots=True)
class _Armed:
    fault: Fault
    since: float
    kills: set[tuple[int, int]] = field(default_factory=set)  # done, by number and replica


class Fleet:
    """advance() to any later time; arm() and disarm() faults at any time."""

    def __init__(self, scenario: Scenario, traffic: Traffic | None = None) -> None:
        self.scenario = scenario
        self.now = scenario.start
        random = Random(scenario.seed)  # noqa: S311 (repeatable on purpose)
        self.replicas = [
            self._replica(index, random.getrandbits(64)) for index in range(scenario.engines)
        ]
        self.gateway = Gateway(
            scenario.prefix + GATEWAY, scenario.config.model_name,
            [replica.engine for replica in self.replicas], Random(random.getrandbits(64)),  # noqa: S311
        )  # fmt: skip
        traffic = traffic or Traffic(scenario.rate, max_model_len=scenario.config.max_model_len)
        chance = Random(random.getrandbits(64))  # noqa: S311
        self.clients = Clients(traffic, self.gateway, chance, _APP)
        self._armed: list[_Armed] = []
        self._looked = self.now

    def _replica(self, index: int, seed: int) -> Replica:
        scenario, random = self.scenario, Random(seed)  # noqa: S311
        name = f"{scenario.prefix}qwen-{index}:8000"
        instance = f"qwen-{index // scenario.per_host}:9108"
        engine = Engine(scenario.config, Random(random.getrandbits(64)), scenario.start)  # noqa: S311
        return Replica(index, name, instance, engine, Gpu(index, random), Host(name))

    def arm(self, fault: Fault) -> None:
        """From now on, after its own `start`."""
        self._armed.append(_Armed(fault, self.now))

    def disarm(self, fault: Fault) -> None:
        self._armed = [armed for armed in self._armed if armed.fault is not fault]
        self.look()

    def mend(self) -> None:
        """What operators do: nothing is armed any more, engines that are gone serve again at once,
        and what had grown or failed on GPUs and hosts is as new."""
        self._armed.clear()
        for replica in self.replicas:
            replica.gpu.replaced()
            replica.host.restarted()
            if replica.back_at is not None:
                replica.back_at = self.now
        self.look()

    def advance(self, to: float) -> None:
        for replica in self.replicas:
            replica.told = None
        while self.now < to:
            control = self._looked + _CONTROL
            moment = max(min(to, control, self.clients.due(self.now)), self.now)
            for replica in self.replicas:
                replica.engine.advance(moment)
            self.now = moment
            self._settle()
            self.clients.act(moment)
            self._settle()
            if moment >= control:
                self.look()

    def drain(self, most: float) -> bool:
        """Lets what is in flight end, without new arrivals, for no longer than `most` seconds."""
        self.clients.sending = False
        until = self.now + most
        while self.now < until and not self.clients.idle:
            self.advance(min(self.now + 1.0, until))
        self.clients.sending = True
        return self.clients.idle

    @property
    def healthy(self) -> bool:
        """Nothing is armed, and every engine serves with nothing waiting."""
        return not self._armed and all(
            not replica.engine.down and not replica.engine.state.waiting
            for replica in self.replicas
        )

    def jump(self, to: float) -> None:
        """Moves an idle fleet to a later time; what happens meanwhile comes from elsewhere."""
        for replica in self.replicas:
            replica.engine.advance(to)
        self.now = self._looked = to
        self.clients.begin_again()

    def _settle(self) -> None:
        for replica in self.replicas:
            done = replica.engine.done
            while done:
                self.clients.ended(done.pop(0), self.now)

    def look(self) -> None:
        """Faults come and go; GPUs and hosts have moved on. By itself it happens every few
        seconds."""
        seconds = self.now - self._looked
        self._looked = self.now
        self.gateway.effects = self.clients.effects = self.effects(None)
        for replica in self.replicas:
            effects = self.effects(replica.index)
            self.surroundings(replica, seconds, effects)
            clock = replica.gpu.clock
            replica.engine.effects = (
                effects
                if clock == effects.clock_factor
                else effects.model_copy(update={"clock_factor": clock})
            )
            if replica.back_at is not None and replica.back_at <= self.now:
                replica.back_at = None
                replica.engine.start()
        for armed in self._armed:
            self._kill(armed)

    def effects(self, replica: int | None) -> Effects:
        """What is wrong now, for one replica, or for clients and gateway."""
        return combined(
            (armed.fault.effects, armed.fault.strength(self.now - armed.since))
            for armed in self._armed
            if armed.fault.replica is None or armed.fault.replica == replica
        ) if self._armed else HEALTHY  # fmt: skip

    def surroundings(self, replica: Replica, seconds: float, effects: Effects) -> None:
        """Moves GPU and host by so many seconds, by what the engine has counted in them."""
        if seconds <= 0:
            return
        page = replica.engine.counts.page
        busy, answers = page["busy_seconds"], page["http_count"]
        use = min(max(busy - replica.busy, 0.0) / seconds, 1.0)
        replica.gpu.advance(seconds, use, self.now, effects)
        replica.host.advance(
            seconds, replica.state.in_flight, max(answers - replica.answers, 0.0), effects
        )
        replica.busy, replica.answers = busy, answers

    def _kill(self, armed: _Armed) -> None:
        fault, kill = armed.fault, armed.fault.effects.kill
        age = self.now - armed.since - fault.start
        if kill is None or age < 0 or (fault.duration is not None and age >= fault.duration):
            return
        number = int(age / kill.every) if kill.every else 0
        for replica in self._victims(fault, kill, age):
            if (number, replica.index) not in armed.kills and replica.back_at is None:
                armed.kills.add((number, replica.index))
                self._stop(replica, kill, fault.effects.xid)

    def _victims(self, fault: Fault, kill: Kill, age: float) -> Iterator[Replica]:
        for replica in self.replicas:
            if fault.replica not in (None, replica.index):
                continue
            # The next one goes once the one before has been back for a minute.
            if kill.rolling and age < replica.index * (kill.reload + 60):
                continue
            yield replica

    def _stop(self, replica: Replica, kill: Kill, xid: int | None) -> None:
        if kill.oom:
            replica.host.killed_for_memory()
        if xid is not None:
            replica.gpu.failed(xid, self.now)
        replica.engine.stop()
        self._settle()
        replica.busy = replica.answers = 0.0
        replica.gpu.restarted()
        replica.host.restarted()
        replica.back_at = self.now + kill.reload
