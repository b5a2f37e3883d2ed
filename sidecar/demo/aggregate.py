"""Long healthy spans, scrape by scrape: what an interval adds is drawn from intervals that were
simulated event by event.

For a dozen levels of traffic a fleet of its own is simulated at constant load, and what each
interval added to every counter is kept, whole: so all that belongs together stays together. An
interval of a long span takes one at random, of the level below or above the day's rate, with
chances that make the mean exact. What is lost: intervals next to each other know nothing of each
other, and nothing rarer than the kept intervals show can happen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from .engine import EngineState
from .faults import HEALTHY
from .fleet import Fleet, Replica, Scenario
from .tally import Key
from .traffic import Traffic

_WARM_UP = 180.0  # seconds: longer than nearly every answer takes
_REQUESTS = 5000  # of each level, but no fewer intervals than
_INTERVALS = 25
_MOST_INTERVALS = 1000

_Gained = Mapping[Key, float]


@dataclass(frozen=True, slots=True)
class _Interval:
    """What it added: pages and probes by replica, gateway, clients; and how it ended."""

    pages: tuple[_Gained, ...]
    probes: tuple[_Gained, ...]
    gateway: _Gained
    clients: _Gained
    states: tuple[EngineState, ...]
    in_flight: int


class HealthySpans:
    """advance() does what Fleet.advance() does, cheaply, while all is well.

    interval: seconds between scrapes. levels: of traffic that are simulated.
    """

    def __init__(self, scenario: Scenario, interval: float, levels: int = 12) -> None:
        self._interval = interval
        self._random = Random(scenario.seed)  # noqa: S311 (repeatable on purpose)
        self._traffic = Traffic(scenario.rate)
        rates = [self._traffic.at(hour * 3600) for hour in range(24)]
        low, high = min(rates), max(rates)
        self._rates = [low + (high - low) * n / (levels - 1) for n in range(levels)]
        self._kept = [
            _simulated(replace(scenario, seed=scenario.seed + 1000 + n), rate, interval)
            for n, rate in enumerate(self._rates)
        ]

    def advance(self, fleet: Fleet) -> None:
        """By one interval; the fleet is healthy. What it has in flight ends meanwhile."""
        to = fleet.now + self._interval
        if not fleet.clients.idle:
            fleet.drain(self._interval)
        taken = self._draw(self._traffic.at(to - self._interval / 2))
        fleet.jump(to)
        fleet.gateway.tally.gain(taken.gateway)
        fleet.gateway.in_flight = taken.in_flight
        fleet.clients.tally.gain(taken.clients)
        for replica in fleet.replicas:
            _gain(replica, taken)
            fleet.surroundings(replica, self._interval, HEALTHY)

    def _draw(self, rate: float) -> _Interval:
        step = self._rates[1] - self._rates[0]
        place = min(max((rate - self._rates[0]) / step, 0.0), len(self._rates) - 1.001)
        level = int(place) + (self._random.random() < place % 1)
        return self._random.choice(self._kept[level])


def _gain(replica: Replica, taken: _Interval) -> None:
    replica.engine.counts.page.gain(taken.pages[replica.index])
    replica.engine.counts.probe.gain(taken.probes[replica.index])
    replica.told = taken.states[replica.index]


def _simulated(scenario: Scenario, rate: float, interval: float) -> list[_Interval]:
    """rate: requests a second, all the time."""
    fleet = Fleet(scenario, Traffic(rate * 60, shape=(1.0,)))
    fleet.advance(fleet.now + _WARM_UP)
    wanted = round(_REQUESTS / (rate * interval))
    count = min(max(wanted, _INTERVALS), _MOST_INTERVALS)
    return [_kept(fleet, interval) for _ in range(count)]


def _kept(fleet: Fleet, interval: float) -> _Interval:
    engines = [replica.engine for replica in fleet.replicas]
    pages = [dict(engine.counts.page) for engine in engines]
    probes = [dict(engine.counts.probe) for engine in engines]
    gateway, clients = dict(fleet.gateway.tally), dict(fleet.clients.tally)
    fleet.advance(fleet.now + interval)
    return _Interval(
        tuple(e.counts.page.since(before) for e, before in zip(engines, pages, strict=True)),
        tuple(e.counts.probe.since(before) for e, before in zip(engines, probes, strict=True)),
        fleet.gateway.tally.since(gateway),
        fleet.clients.tally.since(clients),
        tuple(engine.state for engine in engines),
        fleet.gateway.in_flight,
    )
