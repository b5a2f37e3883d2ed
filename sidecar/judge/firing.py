"""Which alerts fire: the compiled ones, with their labels, annotations and waits."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...rules import causes
from ...rules.alerts import Because, Told, is_muted, of_engine, patient, urgent
from ...rules.compile import watchdog
from ...rules.conditions import Conditions
from ...rules.model import Alert, Recording
from ...slo.budget import State
from ...slo.plan import Objective, Plan, Tier, When
from ..log import fields
from .counting import Counting, group_of
from .history import GroupLabels
from .promql import Engine, FailedError, Query
from .samples import Labels, Samples, Vector
from .verdict import Verdict

_log = logging.getLogger(__name__)
_STATES = {
    Because.NO_DATA: State.NO_DATA,
    Because.SIGNAL_MISSING: State.SIGNAL_MISSING,
    Because.NO_TRAFFIC: State.NO_TRAFFIC,
}


@dataclass(frozen=True, slots=True)
class Firing:
    """An alert that fires. labels: the rule's, and of what it is about. since: Unix time."""

    alert: Alert
    labels: Mapping[str, str]
    value: float
    since: float


class Alarms:
    """What holds becomes an alert, once it has held as long as its rule says."""

    def __init__(self, plan: Plan, samples: Samples, engine: Engine) -> None:
        self._plan = plan
        self._samples = samples
        self._told = {
            objective.name: (*urgent(plan, objective), *patient(plan, objective))
            for objective in plan.objectives
        }
        rules = [rule for group in causes.groups(plan) for rule in group.rules]
        self._recordings = [
            (rule, engine.query(rule.expr)) for rule in rules if isinstance(rule, Recording)
        ]
        self._causes = [
            (rule, engine.query(rule.expr)) for rule in rules if isinstance(rule, Alert)
        ]
        self._watchdog = watchdog(plan)
        self._all_down = engine.query(causes.all_down(plan))
        self._active: dict[tuple[str, Labels], float] = {}
        self._failing: set[str] = set()
        self.texts = [rule.expr for rule in rules]

    def record(self, at: float) -> None:
        """What the causes record; before anything is judged."""
        for rule, query in self._recordings:
            vector = {
                frozenset({**dict(labels), **rule.labels}.items()): value
                for labels, value in self._answer(query, at, rule.record).items()
            }
            recorded = ((rule.record, labels, value) for labels, value in vector.items())
            self._samples.append(("causes", rule.record), at, recorded)

    def firing(
        self, found: Iterable[tuple[Counting, Sequence[Verdict]]], at: float
    ) -> list[Firing]:
        """Of all that holds now, what has held long enough."""
        holding = [*self._caused(at), *self._of_objectives(found, at)]
        holding.append((self._watchdog, frozenset(self._watchdog.labels.items()), 1.0))
        kept: dict[tuple[str, Labels], float] = {}
        firing = []
        for alert, labels, value in holding:
            key = (alert.alert, labels)
            since = kept[key] = self._active.get(key, at)
            if at - since >= alert.hold:
                firing.append(Firing(alert, dict(sorted(labels)), value, since + alert.hold))
        self._active = kept
        return firing

    def _answer(self, query: Query, at: float, rule: str) -> Vector:
        """Nothing where Prometheus's evaluation would fail."""
        try:
            answer = query(at)
        except FailedError as error:
            if rule not in self._failing:
                _log.warning(
                    "a rule cannot be evaluated", extra=fields(rule=rule, error=str(error))
                )
            self._failing.add(rule)
            return {}
        self._failing.discard(rule)
        return answer

    def _caused(self, at: float) -> Iterator[tuple[Alert, Labels, float]]:
        for alert, query in self._causes:
            for labels, value in self._answer(query, at, alert.alert).items():
                yield alert, frozenset({**dict(labels), **alert.labels}.items()), value

    def _of_objectives(
        self, found: Iterable[tuple[Counting, Sequence[Verdict]]], at: float
    ) -> Iterator[tuple[Alert, Labels, float]]:
        down = bool(self._all_down(at))
        for one, verdicts in found:
            fast = _groups(one.fast(at)) if one.fast is not None else None
            states = one.states(at)
            for told in self._told[one.objective.name]:
                if down and _is_silenced(told, one.objective):
                    continue
                if told.because in _STATES:
                    values = {
                        group: float(state)
                        for group, state in states.items()
                        if state is _STATES[told.because]
                    }
                else:
                    values = _values(told, verdicts, fast, self._plan)
                for group, value in values.items():
                    labels = {**dict(one.labels(group)), **told.alert.labels}
                    yield told.alert, frozenset(labels.items()), value


def _is_silenced(told: Told, objective: Objective) -> bool:
    """Whether all engines being down says it all."""
    if told.because in (Because.INCIDENT, Because.SLOW_BURN):
        return is_muted(objective)
    return told.because is Because.NO_DATA and of_engine(objective)


def _groups(vector: Vector) -> set[GroupLabels]:
    own = ("service", "slo")
    return {tuple(pair for pair in group_of(labels) if pair[0] not in own) for labels in vector}


def _values(
    told: Told, verdicts: Iterable[Verdict], fast: set[GroupLabels] | None, plan: Plan
) -> dict[GroupLabels, float]:
    """The value of the alert by group, where it holds."""
    found = {}
    for verdict in verdicts:
        value = _value(told, verdict, fast, plan)
        if value is not None:
            found[verdict.group] = value
    return found


def _value(told: Told, verdict: Verdict, fast: set[GroupLabels] | None, plan: Plan) -> float | None:
    tier, spent = told.tier, verdict.spent
    if told.because is Because.INCIDENT and tier is not None:
        return verdict.shown if _calls(tier, verdict, fast, plan) else None
    if told.because is Because.SLOW_BURN:
        return verdict.slowly
    if told.because is Because.BUDGET_EXHAUSTED:
        gone = spent.remaining is not None and spent.remaining <= 0
        return spent.remaining if gone and spent.failures >= verdict.objective.chance else None
    if told.because is Because.REPEATED and tier is not None and verdict.incident is not None:
        times = verdict.incidents[tier.tier]
        return float(times) if times >= tier.times else None
    return None


def _calls(tier: Tier, verdict: Verdict, fast: set[GroupLabels] | None, plan: Plan) -> bool:
    if When.INCIDENT in tier.when:
        return verdict.incident is True
    if tier.tier in verdict.lasting:
        return True
    if When.FAST_BURN not in tier.when:
        return False
    if fast is not None:
        return verdict.group in fast
    fastest = Conditions(plan, verdict.objective).fastest()
    return fastest is not None and bool(verdict.burns[fastest.name])
