"""A page for every alert, written for 3 a.m.

What is known of the alert itself (what users feel, what it means, what to do first) comes from
where the alert is made. The checks, the look-alikes, what not to do and when to escalate are
written by hand, one text for all alerts that are looked into alike: pages/*.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from types import MappingProxyType

from ...slo.explain import reasons
from ...slo.plan import Objective, Plan
from ...slo.quantities import format_duration
from ...slo.signals import Needs, Signal
from .. import advice, warnings
from ..causes import ENGINE_ADVICE, STALLED_ADVICE
from ..naming import (
    BUDGET_EXHAUSTED,
    ENGINE_DOWN,
    ENGINE_STALLED,
    INCIDENT_REPEATS,
    NO_DATA,
    NO_TRAFFIC,
    SIGNAL_MISSING,
    WATCHDOG,
    AlertName,
    burn_alert,
)
from ..promql import matcher

_BY_SIGNAL: Mapping[str, str] = MappingProxyType(
    {
        "availability": "errors",
        "queue": "queue",
        "gpu_utilization_cv": "gpu",
        "kv_fragmentation": "kv",
        "memory_growth": "memory",
        "context_retention": "quality",
        "check": "quality",
        "composite": "quality",
    }
)
_SECOND = 2
_UNKNOWN = "Nobody can say how users fare."


@dataclass(frozen=True, slots=True)
class _Page:
    """topic: the file in pages/. facts: lines about when it fires."""

    alert: str
    topic: str
    meaning: str
    feels: str
    first: tuple[str, ...] = ()
    facts: tuple[str, ...] = field(default=())


def pages(plan: Plan) -> dict[str, str]:
    """Markdown by file name, of every alert that the rules of the file may fire."""
    return {f"{page.alert}.md": _written(plan, page) for page in _of(plan)}


def _of(plan: Plan) -> Iterator[_Page]:
    signals = {objective.signal.name: objective.signal for objective in plan.objectives}
    for signal in signals.values():
        yield _burn(plan, signal)
    if plan.objectives:
        yield from _of_objectives()
    yield _Page(
        ENGINE_DOWN.name, "engine", ENGINE_DOWN.meaning,
        "All users, or those whose requests went there, get errors.", ENGINE_ADVICE,
        (
            "All at once, or half of them for over five minutes: a page.",
            "Any for over ten minutes: a ticket. A rolling restart is neither.",
            "While all are down, latency alerts of the service are silent: this one says it all.",
        ),
    )  # fmt: skip
    yield _Page(
        ENGINE_STALLED.name, "engine", ENGINE_STALLED.meaning,
        "An answer that does not go on, then a timeout.", STALLED_ADVICE,
        ("No token for four minutes while clients still fail or connect.",),
    )  # fmt: skip
    yield _Page(WATCHDOG.name, "watchdog", WATCHDOG.meaning, "Nothing.")
    for warning in warnings.of_plan(plan):
        yield _warning(plan, warning)


def _burn(plan: Plan, signal: Signal) -> _Page:
    about = [each for each in plan.objectives if each.signal == signal]
    facts = tuple(map(_promise, about))
    first = advice.burning(
        signal, plan.service, paged=any(each.outage is not None for each in about)
    )
    return _Page(
        burn_alert(signal), _topic(signal), f"The objective on {signal.title} is being missed.",
        _sentence(signal.feels), first, facts,
    )  # fmt: skip


def _of_objectives() -> Iterator[_Page]:
    spent = "What the objective's own alert says: too much of it, for too long."
    for name in (BUDGET_EXHAUSTED, INCIDENT_REPEATS):
        yield _Page(name.name, "budget", name.meaning, spent, advice.REVIEW)
    blind: tuple[tuple[AlertName, tuple[str, ...]], ...] = (
        (NO_DATA, advice.NO_DATA),
        (SIGNAL_MISSING, advice.SIGNAL_MISSING),
        (NO_TRAFFIC, advice.NO_TRAFFIC),
    )
    for name, first in blind:
        yield _Page(name.name, "watch", name.meaning, _UNKNOWN, first)


def _warning(plan: Plan, warning: warnings.EarlyWarning) -> _Page:
    number, facts = warnings.threshold(plan, warning), ["An early warning: it never pages."]
    if number is not None:
        facts.append(
            f"Threshold {number.normalize():f} {warning.unit} (default {warning.threshold}, source:"
            f" {warning.source}). Another one, or off: `warnings: {{{warning.name}: …}}` in the"
            " SLO file."
        )
    if warning.hold:
        facts.append(f"Fires once it has held for {format_duration(warning.hold)}.")
    if warning.faults:
        facts.append(f"Names the faults {', '.join(warning.faults)}.")
    return _Page(
        warning.alert, warning.page, _without_values(warning.summary), warning.impact,
        warning.actions, tuple(facts),
    )  # fmt: skip


def _without_values(summary: str) -> str:
    """What an alert says, N for its number and the names of labels for theirs."""
    named = re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda label: label[1].upper(), summary)
    return re.sub(r"\{\{ \$value[^}]*\}\}", "N", named)


def _topic(signal: Signal) -> str:
    if signal.name in _BY_SIGNAL:
        return _BY_SIGNAL[signal.name]
    return "agents" if signal.needs is Needs.EVENTS else "latency"


def _promise(objective: Objective) -> str:
    percent = f"{(objective.objective * 100).normalize():f}"
    threshold = f", threshold {objective.threshold}" if objective.threshold is not None else ""
    return f"`{objective.name}`: {percent} %{threshold} {objective.signal.unit}".rstrip() + "."


def _written(plan: Plan, page: _Page) -> str:
    text = (files(__package__) / "pages" / f"{page.topic}.md").read_text(encoding="utf-8")
    blocks = [
        f"# {page.alert}",
        page.meaning,
        f"## What users feel\n\n{page.feels}",
        "\n".join(f"- {fact}" for fact in page.facts),
        _do_first(page.first),
        _where(plan),
        text.replace("{match}", _match(plan)).replace("{after}", _after(plan)).rstrip(),
        _who(plan),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _do_first(actions: tuple[str, ...]) -> str:
    steps = "\n".join(f"{n}. {action}" for n, action in enumerate(actions, 1))
    return f"## Do first\n\n{steps}" if steps else ""


def _where(plan: Plan) -> str:
    return (
        "In the commands `$PROM` is the address of Prometheus, `$SIDECAR` of the sidecar beside"
        " the engine (port 9400 unless set otherwise), `$ENGINE` of the engine."
        + (f" Dashboard: {plan.dashboard_url}" if plan.dashboard_url else "")
    )


def _who(plan: Plan) -> str:
    tiers = sorted(plan.response, key=lambda tier: tier.tier)
    told = (f"tier {tier.tier} {tier.team}, when {reasons(tier)}" for tier in tiers)
    return f"Who is told of an objective without anybody's doing: {'; '.join(told)}."


def _after(plan: Plan) -> str:
    """How long tier 1 tries alone."""
    own = [tier.after for tier in plan.response if tier.tier == _SECOND and tier.after is not None]
    return format_duration(own[0]) if own else "half an hour"


def _match(plan: Plan) -> str:
    matchers = [matcher(label, values) for label, values in plan.selection.match]
    text = f"{{{','.join(matchers)}}}" if matchers else ""
    # Commands stand in a shell's single quotes, those in Markdown's backquotes: neither may end.
    return text.replace("'", r"\x27").replace("`", r"\x60")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
