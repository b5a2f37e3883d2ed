"""What is there beside the traffic: sidecars, engines, and a neighbour who must not matter.

Objectives that read the same families cannot fail in different ways at once, so each world has
some of them; the fewer worlds, the sooner promtool is done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...exporters import names
from ...exporters.names import Family
from ...slo.plan import Objective, Plan, Selection
from .labels import labels_of
from .series import Series, Span, gauge
from .traffic import families_of

_IDENTITY: Sequence[tuple[Family, float]] = (
    (names.BUILD_INFO, 1), (names.ENGINE_INFO, 1), (names.ENGINE_UP, 1), (names.GPU_UP, 1),
    (names.GATEWAY_UP, 1),
)  # fmt: skip
_NEIGHBOUR = {"instance": "10.9.9.9:9400", "engine": "10.9.9.9:8000"}


@dataclass(frozen=True, slots=True)
class World:
    """The objectives of a plan that can be told apart from each other by their series."""

    plan: Plan
    objectives: Sequence[Objective]


def worlds(plan: Plan) -> list[World]:
    """All objectives, in as few worlds as their series allow."""
    shelves: list[tuple[set[str], list[Objective]]] = []
    for objective in plan.objectives:
        families = families_of(objective)
        free = (shelf for shelf in shelves if not families & shelf[0])
        taken, objectives = next(free, (set[str](), list[Objective]()))
        if not objectives:
            shelves.append((taken, objectives))
        taken |= families
        objectives.append(objective)
    return [World(plan, tuple(objectives)) for _, objectives in shelves]


def identity(
    selections: Iterable[Selection], spans: Sequence[Span], step: int, **own: str
) -> list[Series]:
    """Sidecars, engines, GPUs and gateways that answer for as long as a span has a value."""
    made = {}
    for selection in selections:
        for family, value in _IDENTITY:
            labels = labels_of(family, selection, **own)
            there = [Span(s.seconds, None if s.value is None else value) for s in spans]
            one = gauge(family.name, labels, there, step)
            made[one.selector] = one
    return list(made.values())


def neighbour(plan: Plan, seconds: int, step: int) -> list[Series]:
    """An engine of somebody else, always down; nothing if the plan takes whatever there is."""
    if not plan.selection.match:
        return []
    label, values = plan.selection.match[0]
    other = {**_NEIGHBOUR, label: f"not-{values[0]}"}
    made = []
    for family, value in ((names.BUILD_INFO, 1), (names.ENGINE_INFO, 1), (names.ENGINE_UP, 0)):
        labels = labels_of(family, plan.selection, **other)
        made.append(gauge(family.name, labels, [Span(seconds, value)], step))
    return made
