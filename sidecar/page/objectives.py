"""Each objective: how it stands, what was promised, what is left of its budget, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...rules import advice
from ...slo.budget import State
from ...slo.plan import Objective
from ...slo.quantities import format_duration, format_percent
from ...slo.signals import Shape
from ..judge.gauges import group_text
from ..judge.levels import Level, standing
from ..judge.recent import Recent
from .html import Content, Html, join, row, table, tag
from .svg import bar, spark, state
from .told import Told, told
from .watch import Facts
from .words import ident, percent, span, times

if TYPE_CHECKING:
    from ..judge.judge import Judgement
    from ..judge.verdict import Verdict

_MOST = 60
_LITTLE = 0.25  # of the budget left
_COLUMNS = ("State", "Objective", "Budget left", "Burn rate, 1 h", "What to do")
_BLIND = {
    State.NO_DATA: advice.NO_DATA,
    State.SIGNAL_MISSING: advice.SIGNAL_MISSING,
    State.NO_TRAFFIC: advice.NO_TRAFFIC,
}


def objectives(facts: Facts, judgement: Judgement) -> Html:
    assert facts.judging is not None  # noqa: S101
    recent = Recent(facts.judging.judge.history_file, judgement.at)
    service = facts.judging.judge.plan.service
    firing = told(judgement.alerts)
    worst = sorted(judgement.verdicts, key=lambda verdict: standing(verdict)[0].rank)
    rows = [_row(each, recent, firing, service) for each in worst[:_MOST]]
    more = len(worst) - _MOST
    return join(
        tag("h2", "Objectives", id="objectives-h"),
        table("objectives-h", _COLUMNS, rows),
        tag("p", f"And {more} more, none of them worse: /v1/slo has all.") if more > 0 else None,
    )


def _row(verdict: Verdict, recent: Recent, firing: Sequence[Told], service: str) -> Html:
    objective, group = verdict.objective, group_text(verdict)
    level, word = standing(verdict)
    name = f"{objective.name} {group}".rstrip()
    burn = verdict.burn_rate
    line = recent.burn(objective, verdict.group)
    cells: tuple[Content, ...] = (
        state(level, word),
        (
            tag("span", name, class_="name"),
            tag("span", objective.description, class_="small") if objective.description else None,
            tag("span", promise(objective), class_="small"),
        ),
        _budget(verdict),
        (
            tag("span", "no traffic" if burn is None else times(burn), class_="number"),
            spark(line, _burned(name, line), limit=1.0),
        ),
        _what_to_do(verdict, level, firing, service),
    )
    return row(_COLUMNS, cells, head=1, id=ident("objective", objective.name, verdict.group))


def promise(objective: Objective) -> str:
    """Time to first token within 2s for 99 % of requests, over 30d."""
    signal, share = objective.signal, format_percent(objective.objective)
    calendar = objective.window.calendar
    over = f"each {calendar}" if calendar else f"over {format_duration(objective.window.seconds)}"
    title = signal.title[:1].upper() + signal.title[1:]
    if signal.shape is Shape.LATENCY and objective.threshold is not None:
        within = format_duration(objective.threshold)
        return f"{title} within {within} for {share} {signal.bad}, {over}"
    if signal.shape is Shape.VALUE and objective.threshold is not None:
        return f"{title} at most {objective.threshold:f} for {share} of the time, {over}"
    return f"{title}: {share}, {over}"


def _budget(verdict: Verdict) -> Content:
    spent, objective = verdict.spent, verdict.objective
    if spent.remaining is None:
        least = percent(float(objective.min_coverage))
        covered = (
            percent(int(spent.coverage * 100) / 100) if spent.coverage >= 0.01 else "under 1 %"
        )
        known = f"{covered} of the period is known; {least} is needed"
        return tag("span", "not claimed", class_="number"), tag("span", known, class_="small")
    level = Level.PAGE if spent.remaining <= 0 else Level.OK
    level = Level.TICKET if 0 < spent.remaining < _LITTLE else level
    over = tag("span", "overspent", class_="small") if spent.remaining < 0 else None
    return tag("span", percent(spent.remaining), class_="number"), bar(spent.remaining, level), over


def _burned(name: str, line: Sequence[float | None]) -> str:
    known = [burn for burn in line if burn is not None]
    if not known:
        return ""
    ago = span(60 * (len(line) - 1 - line.index(max(known))))
    most = f"at most {times(max(known))}, {ago} ago" if max(known) else "none"
    return (
        f"Burn rate of {name} in the last hour, a point a minute: {most}. The dashed line is 1x, at"
        " which the budget lasts its period."
    )


def _what_to_do(verdict: Verdict, level: Level, firing: Sequence[Told], service: str) -> Content:
    objective = verdict.objective
    own = {"slo": objective.name, **dict(verdict.group)}
    mine = [one for one in firing if own.items() <= one.firing[0].labels.items()]
    if mine:
        where = tag("a", "What to do first", href=f"#{mine[0].id}", id=f"{mine[0].id}-row")
        return where, " stands with its alert."
    if level in (Level.PAGE, Level.TICKET):
        spent = verdict.spent.remaining is not None and verdict.spent.remaining <= 0
        return advice.REVIEW[0] if spent else advice.burning(objective.signal, service)[0]
    if verdict.state is State.NO_TRAFFIC and not objective.expect_traffic:
        return "Nothing, unless clients should be here now."
    if verdict.state in _BLIND:
        return _BLIND[verdict.state][0]
    if verdict.spent.remaining is not None and verdict.spent.remaining < _LITTLE:
        return advice.REVIEW[0]
    return "Nothing."
