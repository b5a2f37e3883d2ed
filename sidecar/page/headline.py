"""How all stands, in one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..judge.levels import Level, standing
from .told import Told, told
from .watch import Facts
from .words import moment, several

if TYPE_CHECKING:
    from ..judge.loop import Judging
    from ..judge.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Headline:
    """title: for the browser's tab."""

    level: Level
    text: str
    title: str


def headline(facts: Facts) -> Headline:
    judging = facts.judging
    if judging is None:
        return Headline(Level.IDLE, "Not judged: no SLO file is given.", "not judged")
    found = _judged(judging, facts)
    if fault := judging.judge.history_fault:
        return replace(found, text=f"{found.text} {fault}.")
    return found


def _judged(judging: Judging, facts: Facts) -> Headline:
    judgement = judging.latest
    if judgement is None:
        return _nothing_yet(judging)
    if why := judging.doubt(facts.at):
        seen = moment(judgement.at, facts.at)
        text = f"Judging fails: {why}. What is said of objectives is of {seen}."
        return Headline(Level.UNKNOWN, text, "judging fails")
    if alerts := told(judgement.alerts):
        return _alerting(alerts)
    return _calm(judgement.verdicts)


def _nothing_yet(judging: Judging) -> Headline:
    why = judging.fault and f"judging fails: {judging.fault}"
    text = why or f"the first judgement comes within {judging.interval} s"
    return Headline(Level.UNKNOWN, f"Nothing judged yet: {text}.", "nothing judged yet")


def _alerting(alerts: Sequence[Told]) -> Headline:
    paged = sorted({tier for alert in alerts for tier in alert.tiers("page")})
    first, more = alerts[0], len(alerts) - 1
    rest = f", and {several(more, 'more alert')}" if more else ""
    what = f"{first.about}: {first.feels}{rest}."
    if not paged:
        return Headline(Level.TICKET, f"Nobody is paged. Ticket for {what}", "ticket")
    if len(paged) == 1:
        who = f"Tier {paged[0]} is told"
    else:
        who = f"Tiers {', '.join(paged[:-1])} and {paged[-1]} are told"
    return Headline(Level.PAGE, f"{who}: {what}", f"PAGE {first.about}")


def _calm(verdicts: Sequence[Verdict]) -> Headline:
    stands = [standing(verdict) for verdict in verdicts]
    words = Counter(word for _, word in stands)
    level = min((level for level, _ in stands), key=lambda level: level.rank, default=Level.UNKNOWN)
    if not stands:
        return Headline(Level.UNKNOWN, "No objective can be judged here.", "nothing judged")
    if level is not Level.OK:
        each = ", ".join(f"{word}: {number}" for word, number in words.most_common())
        text = f"Nobody is told. {each} of {several(len(stands), 'objective')}."
        return Headline(level, text, words.most_common(1)[0][0])
    met = "The objective is met" if len(stands) == 1 else f"All {len(stands)} objectives are met"
    unknown = sum(verdict.spent.remaining is None for verdict in verdicts)
    of_late = f" now; {unknown} budgets are not yet known" if unknown else ""
    return Headline(level, f"{met}{of_late}{_burning(verdicts)}.", "OK")


def _burning(verdicts: Sequence[Verdict]) -> str:
    """What nobody is told of yet. Without the number, which a screen reader would say each time."""
    fast = [v for v in verdicts if v.burn_rate is not None and v.burn_rate > 1]
    if not fast:
        return ""
    worst = max(fast, key=lambda verdict: verdict.burn_rate or 0.0)
    return f", but the budget of {worst.objective.name} burns too fast"
