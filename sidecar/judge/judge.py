"""Judges an SLO file from what the sidecar publishes, as a Prometheus with its rules would.

What is counted is asked in the compiled rules' own PromQL, over the last hour of samples
(counting.py, promql.py); windows, budgets and tiers are slo's maths over a history that outlives
the process (verdict.py, history.py). Where that differs from Prometheus, docs/judge.md says so.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...exporters.names import ENGINE_INFO, ENGINE_UP, FAMILIES, LABELS
from ...exporters.reading import Point
from ...rules.compile import slow_interval
from ...rules.naming import WATCHDOG
from ...slo.budget import State, burn_rate
from ...slo.plan import Objective, Plan, Selection, Severity
from ..log import fields
from .counting import Counting, counting
from .firing import Alarms, Firing
from .gravity import gravest_first
from .history import SEEN_FOR, GroupLabels, History, Key, Row
from .page import samples_of
from .promql import Engine, FailedError, UnsupportedError
from .samples import Labels, Samples
from .verdict import Spent, Verdict, Verdicts, paging

_REMEMBER = 3600 + 600  # seconds of samples; what looks back further finds nothing there
_ENGINES = dict.fromkeys((ENGINE_INFO.name, ENGINE_UP.name), SEEN_FOR)  # but for which there were
_MOST_GROUPS = 200  # that one objective is split into
_GAP = 2.5  # evaluations that may be missing before nobody can say that an incident went on
_THIN_EVERY = 60  # seconds
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Judgement:
    """How all stands at a time. unjudged: objectives that cannot be counted here, and why."""

    at: float
    verdicts: Sequence[Verdict] = ()
    firing: Sequence[Firing] = ()
    unjudged: Mapping[str, str] = field(default_factory=dict)

    @property
    def alerts(self) -> list[Firing]:
        """What fires, the gravest first; but for the watchdog, which always does."""
        told = (one for one in self.firing if one.alert.alert != WATCHDOG.name)
        return gravest_first(told, self.verdicts)


@dataclass(frozen=True, slots=True)
class _Slow:
    """What is looked at seldom."""

    tickets: Mapping[str, bool | None]
    ratio: float | None
    incidents: Mapping[int, int]
    spent: Spent


class Judge:
    """To be stepped at every interval of the plan's evaluation, by one thread.

    slow: evaluations from one look at budgets and tickets to the next. closed: as of Engine.
    """

    def __init__(
        self, plan: Plan, history: History, *, slow: int | None = None, closed: bool = False
    ) -> None:
        self.plan = here(plan)
        self._history = history
        self._closed = closed
        self._every = slow or max(1, round(slow_interval(plan) / plan.evaluation.interval))
        self._verdicts = Verdicts(self.plan, history)
        self._last = history.newest() or -math.inf
        self._begin()

    @property
    def history_file(self) -> Path | None:
        """For judge.recent; None where the history is not in a file."""
        return self._history.path

    @property
    def history_fault(self) -> str:
        """Why the history is not kept in its file; empty while it is."""
        return self._history.fault

    def _begin(self) -> None:
        """As after a start: nothing is known of the last hour but the history, and of engines what
        they were called."""
        self._samples = Samples(_REMEMBER, _ENGINES)
        self._steps = 0
        self._thinned = -math.inf
        self._slow: dict[Key, _Slow] = {}
        self._unjudged: dict[str, str] = {}
        self._failing: dict[str, str] = {}
        self._countings: list[Counting] = []
        engine = Engine(self._samples, closed=self._closed)
        for objective in self.plan.objectives:
            try:
                self._countings.append(counting(self.plan, objective, engine))
            except UnsupportedError as error:
                self._unjudged[objective.name] = str(error)
        self._alarms = Alarms(self.plan, self._samples, engine)
        texts = [text for one in self._countings for text in one.texts] + self._alarms.texts
        for labels, at in self._history.seen():
            self._samples.append(labels, at, [(ENGINE_INFO.name, labels, 1.0)])
        self._needed = frozenset(name for name in FAMILIES if any(name in text for text in texts))

    def step(self, points: Iterable[Point], at: float) -> Judgement:
        """The judgement at a time, of what is published then."""
        if at < self._last:
            _log.warning("the clock was set back", extra=fields(seconds=round(self._last - at)))
            self._history.rewind(at)
            self._begin()
        self._last = at
        samples = list(samples_of(points, self._needed))
        engines = [labels for name, labels, _ in samples if name == ENGINE_INFO.name]
        self._samples.append("page", at, samples)
        self._alarms.record(at)
        found = self._history.written(lambda: self._evaluated(engines, at))
        self._steps += 1
        if at - self._thinned >= _THIN_EVERY:
            self._thinned = at
            self._history.thin(at)
        firing = self._alarms.firing(found, at)
        verdicts = [verdict for _, each in found for verdict in each]
        return Judgement(at, verdicts, firing, {**self._unjudged, **self._failing})

    def _evaluated(
        self, engines: Iterable[Labels], at: float
    ) -> list[tuple[Counting, list[Verdict]]]:
        self._history.saw(engines, at)
        return [(one, self._judged(one, at)) for one in self._countings]

    def _judged(self, one: Counting, at: float) -> list[Verdict]:
        rows, objective = self._rows(one, at), one.objective
        self._history.count(rows[:_MOST_GROUPS], at)
        groups = self._history.groups(objective.name) or [()]
        pages = {g: self._verdicts.burns(objective, g, at, Severity.PAGE) for g in groups}
        if one.is_at_once:
            incidents = one.over_now(rows)
        else:
            judged = {group: paging(objective, pages[group]) for group in groups}
            incidents = {group: on for group, on in judged.items() if on is not None}
        for group, on in incidents.items():
            gap = _GAP * self.plan.evaluation.interval
            self._history.mark(Key(objective.name, group), at, on, gap)
        one.record_incidents(self._samples, at, incidents)
        states = one.states(at)
        return [
            self._verdict(objective, group, at, states, pages[group], incidents.get(group))
            for group in groups
        ]

    def _rows(self, one: Counting, at: float) -> list[Row]:
        name = one.objective.name
        try:
            rows = one.count(self._samples, at)
        except FailedError as error:  # a query of the user's own
            if name not in self._failing:
                _log.warning("cannot count", extra=fields(slo=name, error=str(error)))
            self._failing[name] = str(error)
            return []
        self._failing.pop(name, None)
        return rows

    def _verdict(
        self, objective: Objective, group: GroupLabels, at: float,
        states: Mapping[GroupLabels, State], pages: Mapping[str, bool | None],
        incident: bool | None,
    ) -> Verdict:  # fmt: skip
        said, slow = self._verdicts, self._seldom(objective, group, at)
        hour = said.ratio(objective, group, at, 3600)
        return Verdict(
            objective=objective,
            group=group,
            state=states.get(group, states.get(())),
            ratio=said.ratio(objective, group, at, self.plan.evaluation.base),
            burn_rate=burn_rate(hour, objective.budget),
            shown=said.shown(objective, group, at),
            burns={**pages, **slow.tickets},
            slowly=slow.ratio,
            incident=incident,
            lasting=said.lasting(objective, group, at),
            incidents=slow.incidents,
            spent=slow.spent,
        )

    def _seldom(self, objective: Objective, group: GroupLabels, at: float) -> _Slow:
        key, said = Key(objective.name, group), self._verdicts
        if key not in self._slow or self._steps % self._every == 0:
            tickets = said.burns(objective, group, at, Severity.TICKET)
            self._slow[key] = _Slow(
                tickets,
                said.slowly(objective, group, at, tickets),
                said.incidents(objective, group, at),
                said.spent(objective, group, at),
            )
        return self._slow[key]


def here(plan: Plan) -> Plan:
    """The plan of one sidecar, to which the labels of scraped targets mean nothing: all that it
    publishes is the service's."""
    objectives = tuple(
        replace(objective, selection=_here(objective.selection)) for objective in plan.objectives
    )
    return replace(plan, selection=_here(plan.selection), objectives=objectives)


def _here(selection: Selection) -> Selection:
    match = tuple(each for each in selection.match if each[0] in LABELS)
    per = tuple(label for label in selection.per if label in LABELS)
    return replace(selection, match=match, per=per)
