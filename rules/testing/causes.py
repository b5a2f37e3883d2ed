"""Stories of engines that are gone or stand still, and of one in which nothing at all is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...exporters import names
from ...exporters.names import Family, Kind, Outcome
from ...slo.plan import Objective, Severity, When
from ..alerts import is_muted
from ..causes import HALF_AFTER, ONE_AFTER
from ..causes import SLO as ENGINE
from ..model import Alert
from ..naming import BAD, ENGINE_DOWN, ENGINE_STALLED
from ..warnings import SLO as WARNINGS
from .case import Case, Check, fires, quiet, silent, who
from .labels import labels_of
from .series import Series, Span, counter, gauge
from .stage import RATE, Stage, pages_within
from .traffic import Phase, families_of, series_of
from .world import identity

_MINUTE = 60
_ENGINES = tuple(
    {"instance": f"10.0.2.{n}:9400", "engine": f"10.0.2.{n}:8000"} for n in range(1, 5)
)


@dataclass(frozen=True, slots=True)
class _Times:
    """Seconds at which things happen: one engine of four goes (and another stands still), then all
    but the one that stands still, then that too."""

    one: int
    most: int
    all: int
    end: int


def engines(stage: Stage) -> Iterator[Case]:
    """While every request fails, engines go one after the other. That some are gone explains
    nothing; that all are mutes what only repeats it."""
    times = _times(stage)
    checks = [*_gone(stage, times), *_stalled(stage, times), *_symptoms(stage, times)]
    made: dict[str, Series] = {}
    for own, down in zip(_ENGINES, (times.one, times.most, times.most, times.all), strict=True):
        made |= {each.selector: each for each in _engine(stage, own, down, times.end)}
    made |= {each.selector: each for each in _standing(stage, times)}
    phases = [Phase(times.one, RATE), Phase(times.end - times.one, RATE, 1.0)]
    for objective in stage.objectives:
        failing = series_of(objective, phases, stage.scene(own=_ENGINES[1]))
        made |= {each.selector: each for each in failing}
    yield Case("engines go", stage.step, list(made.values()), checks)


def _times(stage: Stage) -> _Times:
    told = [*_causes(stage, ENGINE_DOWN.name), *_causes(stage, ENGINE_STALLED.name)]
    longest = max((alert.hold for alert in told), default=0)
    one = max(stage.even(5 * _MINUTE), stage.warm)
    soon = max((pages_within(each, stage.base, stage.lag) for each in _paging(stage)), default=0)
    most = one + stage.even(max(ONE_AFTER + 2 * _MINUTE, soon) + 2 * stage.lag)
    all_ = most + stage.even(longest + HALF_AFTER + 2 * _MINUTE + 2 * stage.lag)
    return _Times(one, most, all_, all_ + stage.even(5 * stage.lag))


def _causes(stage: Stage, name: str) -> list[Alert]:
    return [alert for alert in stage.alerts.get(ENGINE, ()) if alert.alert == name]


def _gone(stage: Stage, times: _Times) -> Iterator[Check]:
    for alert in _causes(stage, ENGINE_DOWN.name):
        is_ticket = alert.labels["severity"] == Severity.TICKET
        away = ONE_AFTER if is_ticket else HALF_AFTER
        late = stage.even(away + alert.hold + 2 * stage.lag)
        if is_ticket:
            yield quiet(alert, alert.alert, times.one - stage.step, "all engines answer")
            says = f"{who(alert)} gets a ticket of one engine in four"
            yield fires(alert, alert.alert, times.one + late, says)
        else:
            says = f"{who(alert)} is not woken for one engine in four"
            yield quiet(alert, alert.alert, times.most - stage.step, says)
            says = f"{who(alert)} is paged when most engines are gone"
            yield fires(alert, alert.alert, times.most + late, says)


def _stalled(stage: Stage, times: _Times) -> Iterator[Check]:
    for alert in _causes(stage, ENGINE_STALLED.name):
        yield quiet(alert, alert.alert, times.one - stage.step, "tokens are made")
        at = times.one + stage.even(5 * _MINUTE + alert.hold + 2 * stage.lag)
        yield fires(alert, alert.alert, at, f"{who(alert)} is paged of an engine that stands still")


def _symptoms(stage: Stage, times: _Times) -> Iterator[Check]:
    for each in _paging(stage):
        soon = stage.even(pages_within(each, stage.base, stage.lag))
        for alert in stage.paging(each, When.INCIDENT):
            says = f"{who(alert)} is paged although one engine is gone"
            yield fires(alert, each.name, times.one + soon, says)
            after = times.end - stage.step
            if is_muted(each):
                yield quiet(alert, each.name, after, f"{who(alert)} hears it of the engines alone")
            else:
                yield fires(alert, each.name, after, f"{who(alert)} still hears what users feel")


def _paging(stage: Stage) -> list[Objective]:
    return [each for each in stage.objectives if each.outage is not None]


def _engine(stage: Stage, own: Mapping[str, str], down: int, end: int) -> Iterator[Series]:
    """A sidecar that answers all the time, and its engine that does until `down`."""
    selections = [stage.plan.selection, *stage.selections]
    yield from identity(selections, [Span(end, 1)], stage.step, **own)
    for selection in selections:
        labels = labels_of(names.ENGINE_UP, selection, **own)
        yield gauge(names.ENGINE_UP.name, labels, [Span(down, 1), Span(end - down, 0)], stage.step)


def _standing(stage: Stage, times: _Times) -> Iterator[Series]:
    """The last engine makes tokens, until it has requests that time out instead."""
    growth = {
        names.GENERATION_TOKENS: (RATE, 0.0), names.PROMPT_TOKENS: (RATE, 0.0),
        names.REQUESTS: (0.0, RATE),
    }  # fmt: skip
    for family, (before, after) in growth.items():
        labels = labels_of(family, stage.plan.selection, outcome=Outcome.TIMEOUT, **_ENGINES[-1])
        spans = [Span(times.one, before), Span(times.end - times.one, after)]
        yield counter(family.name, labels, spans, stage.step)
    running = labels_of(names.REQUESTS_RUNNING, stage.plan.selection, **_ENGINES[-1])
    yield gauge(names.REQUESTS_RUNNING.name, running, [Span(times.end, 4)], stage.step)


# Gauges that are not 0 while all is well; those of which there is none then.
_LEVELS: Mapping[Family, float] = {
    names.ENGINE_UP: 1, names.ENGINE_INFO: 1, names.ENGINE_STATS_ENABLED: 1, names.ENGINE_AWAKE: 1,
    names.BUILD_INFO: 1, names.GPU_UP: 1, names.GPU_INFO: 1, names.GATEWAY_UP: 1,
    names.SOURCE_UP: 1, names.SIGNAL_AVAILABLE: 1, names.REQUESTS_RUNNING: 4,
    names.KV_USAGE: 0.4, names.KV_USAGE_MAX: 0.4, names.KV_CAPACITY: 100_000,
    names.KV_BLOCKS: 6250, names.KV_BLOCK_SIZE: 16, names.KV_TAIL_WASTE: 0.02,
    names.KV_TAIL_WASTE_UPPER_BOUND: 0.02, names.ALLOCATOR_RESERVED: 70e9,
    names.GPU_VISIBLE: 1, names.GPU_EXPECTED: 1, names.GPU_MEMORY_TOTAL: 80e9,
    names.GPU_MEMORY_USED: 72e9, names.GPU_MEMORY_FREE: 8e9, names.GPU_UTILIZATION: 0.9,
    names.GPU_TEMPERATURE: 60, names.GPU_TEMPERATURE_LIMIT: 90, names.GPU_TEMPERATURE_MARGIN: 27,
    names.GPU_POWER: 400, names.GPU_POWER_LIMIT: 700, names.GPU_CLOCK: 1.7e9,
    names.HOST_SOCKETS: 8, names.HOST_OPEN_FDS: 100, names.HOST_MAX_FDS: 65536,
    names.HOST_THREADS: 60, names.CONTAINER_MEMORY: 10e9, names.CONTAINER_MEMORY_LIMIT: 100e9,
    names.GPU_CALL_SECONDS: 0.01, names.SOURCE_READ_SECONDS: 0.01,
}  # fmt: skip
_NEVER = frozenset({names.GPU_XID_LAST, names.SOURCE_LAST_SUCCESS, names.ENGINE_START_TIME})
# Counters that grow while all is well, a second.
_GROWTH: Mapping[Family, float] = {
    names.PROMPT_TOKENS: 1000, names.GENERATION_TOKENS: 1000,
    names.PREFIX_CACHE_QUERIES: 1000, names.PREFIX_CACHE_HITS: 500,
    names.GPU_UTILIZATION_N: 1, names.GPU_UTILIZATION_SUM: 0.9,
    names.GPU_UTILIZATION_SQUARES: 0.82, names.CONTAINER_CPU: 2, names.GPU_ENERGY: 400,
    names.HOST_TCP_SEGMENTS: 1000, names.GATEWAY_UPSTREAM_ATTEMPTS: RATE,
}  # fmt: skip


def healthy(stage: Stage, watchdogs: Sequence[Alert]) -> Iterator[Case]:
    """Every family that there is, and all is well: only the watchdog is heard."""
    lasts = stage.even(max(12 * _MINUTE, 2.4 * stage.base))
    well = stage.case("", lambda _: [Phase(lasts, RATE)], ())
    series = {each.selector: each for each in (*_levels(stage, lasts), *well.series)}
    at = lasts - stage.step
    checks = [fires(alert, alert.alert, at, "the watchdog always barks") for alert in watchdogs]
    told = [each.name for each in stage.objectives] + [ENGINE, WARNINGS]
    checks += [silent(stage.plan, slo, at, "nobody is told while all is well") for slo in told]
    for each in stage.objectives:
        bad = f"sum({stage.recorded(each, BAD)})"
        checks.append(Check(each.name, "no failure yet is 0, not unknown", bad, at, 0))
    yield Case("all is well", stage.step, list(series.values()), checks)


def _levels(stage: Stage, lasts: int) -> Iterator[Series]:
    fed = {one for each in stage.objectives for one in families_of(each)}
    for family in names.FAMILIES.values():
        if family.name in fed or family in _NEVER or family.kind is Kind.HISTOGRAM:
            continue
        labels = labels_of(family, stage.plan.selection)
        if family.kind is Kind.COUNTER:
            growth = [Span(lasts, _GROWTH.get(family, 0.0))]
            yield counter(family.name, labels, growth, stage.step)
        else:
            yield gauge(family.name, labels, [Span(lasts, _LEVELS.get(family, 0.0))], stage.step)
