"""What is counted for one objective, asked in the PromQL of its compiled rules."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...rules import recording
from ...rules.conditions import Conditions
from ...rules.model import Recording
from ...rules.naming import BAD, INCIDENT, STATE, TOTAL
from ...slo.budget import State
from ...slo.plan import Budgeting, Objective, Plan
from .history import GroupLabels, Key, Row
from .promql import Engine, Query
from .samples import Labels, Samples

Recorded = tuple[str, Labels, float]
_COUNTED = (BAD.name, TOTAL.name)


@dataclass(frozen=True, slots=True)
class Counting:
    """The queries of an objective. is_at_once: a number over its threshold is an incident by
    itself; fast: what then calls the next tier at once."""

    plan: Plan
    objective: Objective
    base: tuple[tuple[Recording, Query], ...]
    state: Query
    is_at_once: bool
    fast: Query | None
    texts: tuple[str, ...]

    def count(self, samples: Samples, at: float) -> list[Row]:
        """The rows of this evaluation; the samples then have the recorded pair, too.

        Raises FailedError. What is no number, as a query of the user's own may give, is no count.
        """
        counted: dict[tuple[str, GroupLabels, str], float] = {}
        for rule, query in self.base:
            component = rule.labels.get("component", "")
            numbers = ((k, v) for k, v in query(at).items() if math.isfinite(v))
            for labels, value in numbers:
                counted[rule.record, group_of(labels), component] = value
        samples.append((self.objective.name, BAD.name), at, self._recorded(counted))
        occurrences = self.objective.budgeting is Budgeting.OCCURRENCES
        each = self.plan.evaluation.interval if occurrences else 1
        return [
            Row(
                Key(self.objective.name, group, component),
                each * counted.get((BAD.name, group, component), 0.0),
                each * total,
            )
            for (name, group, component), total in counted.items()
            if name == TOTAL.name
        ]

    def _recorded(self, counted: dict[tuple[str, GroupLabels, str], float]) -> Iterator[Recorded]:
        for (name, group, component), value in counted.items():
            part = {"component": component} if component else {}
            yield name, self.labels(group, **part), value

    def over_now(self, rows: Iterable[Row]) -> dict[GroupLabels, bool]:
        """Of a number: whether it is over its threshold, by group."""
        return {row.key.group: row.bad == 1 for row in rows}

    def record_incidents(
        self, samples: Samples, at: float, incidents: dict[GroupLabels, bool]
    ) -> None:
        recorded = ((INCIDENT.name, self.labels(g), float(on)) for g, on in incidents.items())
        samples.append((self.objective.name, INCIDENT.name), at, recorded)

    def states(self, at: float) -> dict[GroupLabels, State]:
        """By group; under () where it is said of the objective as a whole."""
        own = {"service", "slo", "component"}
        return {
            tuple(pair for pair in group_of(labels) if pair[0] not in own): State(int(value))
            for labels, value in self.state(at).items()
        }

    def labels(self, group: GroupLabels, **more: str) -> Labels:
        own = {"service": self.plan.service, "slo": self.objective.name}
        return frozenset({**dict(group), **own, **more}.items())


def counting(plan: Plan, objective: Objective, engine: Engine) -> Counting:
    """Raises UnsupportedError where a query of the user's own cannot be evaluated here."""
    rules = [rule for rule in recording.base(plan, objective) if rule.record in _COUNTED]
    [state] = [rule for rule in recording.derived(plan, objective) if rule.record == STATE.name]
    conditions = Conditions(plan, objective)
    fast = conditions.burns_fast() if conditions.at_once else None
    return Counting(
        plan,
        objective,
        tuple((rule, engine.query(rule.expr)) for rule in rules),
        engine.query(state.expr),
        conditions.at_once,
        engine.query(fast) if fast is not None else None,
        tuple(text for text in (*(rule.expr for rule in rules), state.expr, fast) if text),
    )


def group_of(labels: Labels) -> GroupLabels:
    return tuple(sorted(labels))
