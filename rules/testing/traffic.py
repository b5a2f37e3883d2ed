"""The raw series of an objective under traffic of which a known share is bad.

Only families of `exporters.names`. What a real sidecar publishes beside them (that an engine is
there, and what it is) is in `world`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from ...exporters import names
from ...exporters.names import Family, Outcome
from ...slo.plan import Budgeting, Objective
from ...slo.signals import Shape
from ..naming import BAD, TOTAL
from ..promql import born_late
from ..sources import counted, requests
from .labels import labels_of, recorded
from .series import Series, Span, counter, gauge


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of traffic: `rate` events a second, of which the share `bad` is bad. A signal that
    is a number is over its threshold where any is bad. rate None: the series are gone."""

    seconds: int
    rate: float | None
    bad: float = 0.0
    reset: bool = False


Phases = Sequence[Phase]


def spelled(bound: Decimal) -> str:
    """A bucket's bound as Python's client writes it."""
    return str(float(bound))


@dataclass(frozen=True, slots=True)
class Scene:
    """How traffic becomes samples.

    step: seconds between them. own: labels that are not the usual ones. le: how the bounds of
    buckets are written. past: bad events that counters begin with. gave_up: bad requests of a
    latency are not late ones but ones that no histogram shows.
    """

    service: str
    step: int
    own: Mapping[str, str] = field(default_factory=dict)
    le: Callable[[Decimal], str] = spelled
    past: float = 0.0
    gave_up: bool = False


@dataclass(frozen=True, slots=True)
class _Line:
    """One series before it is written. past: whether it counts bad events."""

    family: Family
    spans: Sequence[Span]
    labels: Mapping[str, str] = field(default_factory=dict)
    part: str = ""
    level: bool = False  # a gauge that stays where it is, in place of a growing number
    past: bool = False


def series_of(objective: Objective, phases: Phases, scene: Scene) -> list[Series]:
    """What this traffic looks like on the page of the sidecar."""
    if objective.query is not None:
        return _recorded(objective, phases, scene)
    lines = _lines(objective, phases, scene)
    return [
        _written(line, objective, scene)
        for line in lines
        if scene.past or any(span.value is not None for span in line.spans)
    ]


def families_of(objective: Objective) -> frozenset[str]:
    """What an objective is fed with: two that share one cannot fail each in its own way. Quality
    checks are told apart by their names."""
    if objective.query is not None:
        return frozenset({objective.name})
    lines = _lines(objective, [Phase(60, 1.0)], Scene("", 30))
    return frozenset(line.family.name + line.labels.get("check", "") for line in lines)


def _written(line: _Line, objective: Objective, scene: Scene) -> Series:
    labels = {**labels_of(line.family, objective.selection, **scene.own), **line.labels}
    name = line.family.name + line.part
    if line.level:
        return gauge(name, labels, line.spans, scene.step)
    start = scene.past if line.past else scene.past / 10
    lived = [replace(span, value=span.value or 0.0) if start else span for span in line.spans]
    return counter(name, labels, lived, scene.step, start)


def _recorded(objective: Objective, phases: Phases, scene: Scene) -> list[Series]:
    """What a user's own query would have recorded: only they know what its series look like."""
    labels = recorded(scene.service, objective.name, objective.selection)
    sliced = objective.budgeting is Budgeting.TIMESLICES
    bad = _any(phases, 0, 1, each=False) if sliced else _share(phases, bad=True)
    total = _any(phases, 1, 1, each=not sliced)
    return [
        gauge(BAD.name, labels, bad, scene.step),
        gauge(TOTAL.name, labels, total, scene.step),
    ]


def _share(phases: Phases, *, bad: bool) -> list[Span]:
    """The bad events of each phase, or the good ones."""

    def part(phase: Phase) -> float | None:
        if phase.rate is None:
            return None
        return phase.rate * (phase.bad if bad else 1 - phase.bad)

    return [Span(phase.seconds, part(phase), phase.reset) for phase in phases]


def _failures(phases: Phases, family: Family) -> list[Span]:
    """The bad events. A counter with open labels is born with the first of them, others are there
    before; none at all has no counter, so that its absence is tried too."""
    born = next((n for n, phase in enumerate(phases) if phase.bad), len(phases))
    there = born < len(phases) and not born_late(family)
    early = [Span(phase.seconds, 0.0 if there else None) for phase in phases[:born]]
    return early + _share(phases[born:], bad=True)


def _any(phases: Phases, good: float, bad: float, *, each: bool = True) -> list[Span]:
    """One number while all is well and another while anything is bad; each: for each event."""

    def value(phase: Phase) -> float | None:
        if phase.rate is None:
            return None
        return (bad if phase.bad else good) * (phase.rate if each else 1)

    return [Span(phase.seconds, value(phase), phase.reset) for phase in phases]


def _all(phases: Phases) -> list[Span]:
    return _any(phases, 1, 1)


_Maker = Callable[[Objective, Phases], Iterator[_Line]]


def _lines(objective: Objective, phases: Phases, scene: Scene) -> Iterator[_Line]:
    if objective.signal.shape is Shape.LATENCY:
        return _latency(objective, phases, scene)
    return _MAKERS[objective.signal.name](objective, phases)


def _events(of: Callable[[Objective], Family], label: str, good: str, bad: str) -> _Maker:
    """Events told apart by one label."""

    def lines(objective: Objective, phases: Phases) -> Iterator[_Line]:
        worst = objective.bad_outcomes[0] if objective.bad_outcomes else bad
        yield _Line(of(objective), _share(phases, bad=False), {label: good})
        failures = _failures(phases, of(objective))
        yield _Line(of(objective), failures, {label: worst}, past=True)

    return lines


def _checks(objective: Objective, phases: Phases) -> Iterator[_Line]:
    for check in [name for name, _ in objective.checks] or [objective.signal.name]:
        passed = {"check": check, "result": "passed"}
        failed = {"check": check, "result": "failed"}
        yield _Line(names.QUALITY_CHECKS, _share(phases, bad=False), passed)
        failures = _failures(phases, names.QUALITY_CHECKS)
        yield _Line(names.QUALITY_CHECKS, failures, failed, past=True)


def _latency(objective: Objective, phases: Phases, scene: Scene) -> Iterator[_Line]:
    """A bucket at the threshold, one below and one above it."""
    family, threshold = counted(objective), objective.threshold or Decimal(1)
    good = _share(phases, bad=False)
    seen = good if scene.gave_up else _all(phases)
    for le in (scene.le(threshold / 2), scene.le(threshold)):
        yield _Line(family, good, {"le": le}, "_bucket")
    for le in (scene.le(threshold * 2), "+Inf"):
        yield _Line(family, seen, {"le": le}, "_bucket", past=True)
    yield _Line(family, seen, part="_count", past=True)
    if scene.gave_up and objective.bad_outcomes:
        gone = {"outcome": objective.bad_outcomes[0]}
        counted_apart = requests(objective.selection)
        yield _Line(counted_apart, _failures(phases, counted_apart), gone)


def _tail_ratio(objective: Objective, phases: Phases) -> Iterator[_Line]:
    """Answers take 1 to 2 s; while it is bad, a tenth of them some hundred times the threshold."""
    longest = 100.0 * float(objective.threshold or 1)
    most = _any(phases, 1, 0.9)
    buckets = {1.0: _any(phases, 0, 0), 2.0: most, longest: most, 2 * longest: _all(phases)}
    for bound, spans in buckets.items():
        yield _Line(names.E2E, spans, {"le": str(bound)}, "_bucket")
    yield _Line(names.E2E, _all(phases), {"le": "+Inf"}, "_bucket")
    yield _Line(names.E2E, _all(phases), part="_count")


def _variation(n: Family, sum_: Family, squares: Family, mean: float) -> _Maker:
    """Moments whose coefficient of variation is half the threshold, or twice it."""

    def lines(objective: Objective, phases: Phases) -> Iterator[_Line]:
        threshold = float(objective.threshold or 1)
        well, badly = (mean**2 * (1 + cv**2) for cv in (threshold / 2, threshold * 2))
        yield _Line(n, _all(phases))
        yield _Line(sum_, _any(phases, mean, mean))
        yield _Line(squares, _any(phases, well, badly))

    return lines


def _fragmentation(objective: Objective, phases: Phases) -> Iterator[_Line]:
    threshold = float(objective.threshold or 1)
    spans = _any(phases, threshold / 2, (1 + threshold) / 2, each=False)
    yield _Line(names.KV_TAIL_WASTE, spans, level=True)


def _memory(objective: Objective, phases: Phases) -> Iterator[_Line]:
    """Memory grows three times as fast as the threshold allows while it is bad."""
    limit = 100e9
    leak = 3 * float(objective.threshold or 1) * limit / 3600
    yield _Line(names.CONTAINER_MEMORY, _any(phases, 0, leak, each=False))
    yield _Line(names.CONTAINER_MEMORY_LIMIT, _any(phases, limit, limit, each=False), level=True)


def _fallback_storm(objective: Objective, phases: Phases) -> Iterator[_Line]:
    """While it is bad, half the usual base window has as many fallbacks as the threshold."""
    storm = float(objective.threshold or 1) / 150
    yield _Line(names.FALLBACKS, _any(phases, 0, storm, each=False))


def _fallback_rate(_: Objective, phases: Phases) -> Iterator[_Line]:
    """The application falls back by itself: the gateway sees only the others."""
    yield _Line(names.GATEWAY_REQUESTS, _share(phases, bad=False), {"status": "200"})
    yield _Line(names.FALLBACKS, _failures(phases, names.FALLBACKS), past=True)


def _family(family: Family) -> Callable[[Objective], Family]:
    return lambda _: family


_TPOT = names.TPOT_MOMENTS
_GPU = (names.GPU_UTILIZATION_N, names.GPU_UTILIZATION_SUM, names.GPU_UTILIZATION_SQUARES)
_MAKERS: Mapping[str, _Maker] = {
    "availability": _events(counted, "outcome", Outcome.SUCCESS, Outcome.ERROR),
    "goodput": _events(counted, "result", "good", "bad"),
    "tail_ratio": _tail_ratio,
    "tpot_cv": _variation(_TPOT.n, _TPOT.sum, _TPOT.squares, 0.05),
    "gpu_utilization_cv": _variation(*_GPU, 0.5),
    "kv_fragmentation": _fragmentation,
    "memory_growth": _memory,
    "agent_turn_success": _events(_family(names.AGENT_TURNS), "outcome", "success", "error"),
    "session_completion": _events(_family(names.SESSIONS), "state", "completed", "interrupted"),
    "session_interruption": _events(_family(names.SESSIONS), "state", "completed", "interrupted"),
    "context_retention": _checks,
    "check": _checks,
    "composite": _checks,
    "fallback_rate": _fallback_rate,
    "fallback_count": _fallback_storm,
}
