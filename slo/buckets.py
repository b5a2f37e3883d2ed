"""Whether an engine's own histograms can answer the latency objectives of a plan.

A histogram knows how many were within one of its bounds and nothing in between, so a threshold
that is no bound has no data at all. How a bound is added is the engine's business: BUCKET_FLAGS.
"""

from __future__ import annotations

import json
import re
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType

from .plan import Objective, Plan
from .quantities import format_duration
from .signals import Needs, Shape

Bounds = Sequence[float]
MODEL = "model_name"  # the label by which a plan chooses models


@dataclass(frozen=True, slots=True)
class EnginePage:
    """What one page of an engine says of itself. Keys are names of signals.

    version: "" if it is not told. bounds: finite upper bounds of latency histograms, seconds,
    ascending. missing: why a signal cannot be had from this page, and what to do. probed: series of
    the in-engine probe are on it. models: that it serves, () if it does not tell.
    """

    engine_type: str
    version: str
    bounds: Mapping[str, Bounds]
    missing: Mapping[str, str] = field(default_factory=dict)
    probed: bool = False
    models: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        engine = BUCKET_FLAGS.get(self.engine_type)
        return f"{engine.title if engine else self.engine_type} {self.version}".rstrip()


class Kind(StrEnum):
    BOUND = "bound"  # the threshold is no bound of the histogram
    MISSING = "missing"  # the page has no such signal
    MATCH = "match"  # the page has no such model


@dataclass(frozen=True, slots=True)
class Problem:
    """One line about one objective, "" for all: what is wrong and how to mend it."""

    objective: str
    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class BucketFlags:
    """How an engine is given other bounds. since: its first version that can be. lists: signal →
    the list of bounds that its histogram has, which is replaced as a whole and may be shared.
    flags: the command line for such lists."""

    title: str
    since: tuple[int, ...]
    lists: Mapping[str, str]
    flags: Callable[[Mapping[str, Bounds]], str]


def _vllm(lists: Mapping[str, Bounds]) -> str:
    return f"--custom-histogram-buckets '{json.dumps(lists)}'"


def _sglang(lists: Mapping[str, Bounds]) -> str:
    return " ".join(
        f"--bucket-{name} {' '.join(json.dumps(bound) for bound in bounds)}"
        for name, bounds in lists.items()
    )


# vllm/v1/metrics/buckets.py and loggers.py of vLLM 0.32.0; TokenizerMetricsCollector of SGLang,
# which has no flag for the bounds of its queue time.
BUCKET_FLAGS: Mapping[str, BucketFlags] = MappingProxyType({
    "vllm": BucketFlags(
        "vLLM",
        (0, 32),
        {
            "ttft": "time_to_first_token",
            "itl": "inter_token_latency", "tpot": "inter_token_latency",
            "e2e": "request_latency", "queue": "request_latency",
        },
        _vllm,
    ),
    "sglang": BucketFlags(
        "SGLang",
        (0, 4, 9),
        {
            "ttft": "time-to-first-token", "itl": "inter-token-latency",
            "e2e": "e2e-request-latency",
        },
        _sglang,
    ),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Misfit:
    """An objective whose threshold lies between the bounds of its histogram, or beyond them."""

    objective: Objective
    threshold: Decimal
    bounds: Bounds


def check(plan: Plan, page: EnginePage) -> tuple[Problem, ...]:
    """What keeps objectives from being judged by this page, in the order of the plan.

    What engines do not publish (events, GPU, the user's own queries) is not looked for: that is
    what not_asked() names.
    """
    missing = {each.name: _missing(each, page) for each in plan.objectives}
    found = (_misfit(each, page) for each in plan.objectives if not missing[each.name])
    misfits = {each.objective.name: each for each in found if each}
    problems = list(_unmatched(plan, page))
    for name, why in missing.items():
        if why:
            problems.append(Problem(name, Kind.MISSING, why))
        elif misfit := misfits.get(name):
            text = f"{_off_bound(misfit, page)}; {_remedy(misfit, list(misfits.values()), page)}"
            problems.append(Problem(name, Kind.BOUND, text))
    return tuple(problems)


def not_asked(plan: Plan) -> Mapping[Needs, tuple[str, ...]]:
    """Objectives that no engine's page can answer, by what they need in its place."""
    others = (need for need in Needs if need not in (Needs.SCRAPE, Needs.PROBE))
    by_need = {
        need: tuple(each.name for each in plan.objectives if each.signal.needs is need)
        for need in others
    }
    return {need: names for need, names in by_need.items() if names}


def _unmatched(plan: Plan, page: EnginePage) -> Iterator[Problem]:
    wanted = dict(plan.selection.match).get(MODEL, ())
    if wanted and page.models and not set(wanted) & set(page.models):
        names = f"{' or '.join(wanted)}: it serves {', '.join(page.models)}"
        yield Problem("", Kind.MATCH, f"{page.title} serves no {MODEL} {names}")


def _by_probe(objective: Objective) -> bool:
    selection = objective.selection
    classed = selection.sla_class is not None or bool(selection.prompts)
    return objective.signal.needs is Needs.PROBE or (objective.signal.classed and classed)


def _missing(objective: Objective, page: EnginePage) -> str:
    """Why the page cannot give the objective's signal; empty if it can."""
    signal = objective.signal
    if _by_probe(objective):
        split = "" if signal.needs is Needs.PROBE else " by class or prompt length"
        why = f"the page lacks {signal.title}{split}: only the in-engine probe measures it"
        return "" if page.probed else why
    if signal.needs is not Needs.SCRAPE:
        return ""
    told = page.missing.get(signal.name)
    if told is None and signal.shape is Shape.LATENCY and not page.bounds.get(signal.name):
        told = "it has no such histogram"
    return f"the page lacks {signal.title}: {told}" if told else ""


def _misfit(objective: Objective, page: EnginePage) -> _Misfit | None:
    threshold, bounds = objective.threshold, page.bounds.get(objective.signal.name, ())
    if objective.signal.shape is not Shape.LATENCY or _by_probe(objective) or threshold is None:
        return None
    return None if float(threshold) in bounds else _Misfit(objective, threshold, bounds)


def _off_bound(misfit: _Misfit, page: EnginePage) -> str:
    threshold, engine = format_duration(misfit.threshold), page.title
    at = bisect(misfit.bounds, float(misfit.threshold))
    near = [format_duration(Decimal(repr(b))) for b in misfit.bounds[max(at - 1, 0) : at + 1]]
    if at == 0:
        return f"{threshold} is below the first bucket bound of {engine}: use {near[0]}"
    if at == len(misfit.bounds):
        return f"{threshold} is above the last bucket bound of {engine}: use {near[0]}"
    return f"{threshold} is not a bucket bound of {engine}: use {near[0]} or {near[1]}"


def _remedy(misfit: _Misfit, misfits: Sequence[_Misfit], page: EnginePage) -> str:
    """How the engine is given the bound: by one command line for all that the plan misses, since
    each flag replaces what was set before."""
    engine = BUCKET_FLAGS.get(page.engine_type)
    if engine is None or misfit.objective.signal.name not in engine.lists:
        return "no flag of the engine is known that adds a bound"
    lists: dict[str, set[float]] = {}
    for each in misfits:
        if name := engine.lists.get(each.objective.signal.name):
            lists.setdefault(name, set()).update(each.bounds, [float(each.threshold)])
    flags = engine.flags({name: sorted(bounds) for name, bounds in lists.items()})
    numbers = tuple(int(part) for part in re.findall(r"\d{1,9}", page.version))
    if page.version and numbers >= engine.since:
        return f"or start it with {flags}"
    first = ".".join(str(part) for part in engine.since)
    return f"or start {engine.title} {first} or newer with {flags}"
