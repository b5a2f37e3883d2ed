"""How the business does, by the events that were posted; and who is told of anything now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...exporters import names
from ...exporters.names import Family
from ...slo.explain import reasons
from ...slo.plan import Plan, Tier
from ..judge.levels import Level
from .html import Content, Html, join, row, table, tag
from .svg import state
from .told import Told, told, who
from .trends import Trends
from .watch import Facts
from .words import count, moment, percent, span

if TYPE_CHECKING:
    from ..judge.judge import Judgement

_FULL = 3500  # seconds of the hour that are known
_MOST = 12
_COLUMNS = ("What", "How many", "Good", "What was not")
_FORGETS = "context_retention"
_BAD_SESSIONS = ("interrupted", "escalated")


def business(facts: Facts) -> Html:
    heading = tag("h2", "Business health", id="business-h")
    taken = facts.status["events"]["state"]
    rows = list(_rows(facts.trends))
    if rows:
        period = _period(facts)
        drawn = table("business-h", _COLUMNS, [row(_COLUMNS, each) for each in rows])
        return join(heading, tag("p", f"Events of the {period}.", class_="small"), drawn)
    text = "No event was posted yet: " if taken != "off" else "Events are switched off: "
    how = "POST /v1/events tells of agent turns, sessions, fallbacks and quality checks."
    return join(heading, tag("p", text, how))


def _period(facts: Facts) -> str:
    since = facts.trends.since or facts.at
    if facts.at - since >= _FULL:
        return "last hour"
    return (
        f"last {span(facts.at - since)}, since {moment(since, facts.at)}, when this process began"
    )


def _rows(trends: Trends) -> Iterator[tuple[Content, ...]]:
    known = {key[0] for key in trends.known()}
    if names.AGENT_TURNS.name in known:
        yield _shares("Agent turns", _gained(trends, names.AGENT_TURNS), "success")
    if names.SESSIONS.name in known:
        yield _sessions(_gained(trends, names.SESSIONS))
    if names.FALLBACKS.name in known:
        fallbacks = _gained(trends, names.FALLBACKS)
        yield "Fallbacks", count(fallbacks.total()), "–", _said(_by_reason(fallbacks))
    yield from _checks(_gained(trends, names.QUALITY_CHECKS))
    for title, family in (
        ("Regenerated answers", names.REGENERATIONS),
        ("Schema failures", names.SCHEMA_FAILURES),
    ):
        if family.name in known:
            number = _gained(trends, family)
            yield title, count(number.total()), "–", _said(number)


def _gained(trends: Trends, family: Family) -> Counter[tuple[str, ...]]:
    keys = [key for key in trends.known() if key[0] == family.name]
    return Counter({key[1:]: round(trends.gained(key)) for key in keys})


def _shares(title: str, number: Counter[tuple[str, ...]], good: str) -> tuple[Content, ...]:
    all_of_them = number.total()
    share = percent(number[good,] / all_of_them) if all_of_them else "no traffic"
    bad = Counter({key: n for key, n in number.items() if key != (good,)})
    return title, count(all_of_them), share, _said(bad)


def _sessions(number: Counter[tuple[str, ...]]) -> tuple[Content, ...]:
    ended = sum(n for (name,), n in number.items() if name != "started")
    share = percent(number["completed",] / ended) if ended else "none ended"
    bad: Counter[tuple[str, ...]] = Counter({(name,): number[name,] for name in _BAD_SESSIONS})
    begun = f"{count(number['started',])} started, {count(ended)} ended"
    return "Sessions", begun, share, _said(bad)


def _by_reason(number: Counter[tuple[str, ...]]) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()
    for (level, reason), n in number.items():
        found[(f"{reason or 'no reason given'} (level {level})" if level else reason,)] += n
    return found


def _checks(number: Counter[tuple[str, ...]]) -> Iterator[tuple[Content, ...]]:
    """Context retention first, then the other checks, the worst first."""
    found: dict[str, Counter[tuple[str, ...]]] = {}
    for (check, result), n in number.items():
        found.setdefault(check, Counter())[(result,)] += n
    worst = sorted(found, key=lambda check: (check != _FORGETS, -found[check]["failed",], check))
    for check in worst[:_MOST]:
        title = "Context retention" if check == _FORGETS else f"Check {check}"
        yield _shares(title, found[check], "passed")


def _said(number: Counter[tuple[str, ...]]) -> str:
    worst = [(" ".join(key) or "all", n) for key, n in number.most_common(4) if n]
    return ", ".join(f"{name} {count(n)}" for name, n in worst) or "nothing"


def tiers(plan: Plan, judgement: Judgement) -> Html:
    """Who acts, when, and who is told of what now."""
    firing = told(judgement.alerts)
    columns = ("Tier", "Now", "Called by")
    rows = [
        (f"{tier.tier}, {tier.team}", _now(firing, tier), reasons(tier))
        for tier in sorted(plan.response, key=lambda tier: tier.tier)
    ]
    drawn = table("tiers-h", columns, [row(columns, each) for each in rows])
    return join(tag("h2", "Who is told", id="tiers-h"), drawn)


def _now(firing: Sequence[Told], tier: Tier) -> Content:
    links = who(firing, tier.tier)
    if not links:
        return state(Level.OK, "not told")
    paged = any(str(tier.tier) in alert.tiers("page") for alert in firing)
    level, word = (Level.PAGE, "paged: ") if paged else (Level.TICKET, "has tickets: ")
    return state(level, word), [(", " if n else "", link) for n, link in enumerate(links)]
