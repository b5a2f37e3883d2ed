"""Causes that page by themselves: engines that are gone, and one that has stopped.

While all engines are gone every symptom has that one cause: `all_down` is what symptom alerts are
muted by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ..slo.plan import Plan, Severity, When
from . import carried
from .model import Alert, Group
from .naming import ENGINE_DOWN, ENGINE_STALLED
from .template import ON_ENGINE, expand, of_engines

SLO = "engine"  # the label `slo` of all of them
# The faults of docs/faults.md that they name.
FAULTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {ENGINE_DOWN.name: ("F3", "F15", "F35"), ENGINE_STALLED.name: ("F10", "F14")}
)
_INTERVAL = 30
_HOLD = 60  # with a scrape and an evaluation before it, a page within two minutes

_SEEN = "last_over_time(ENGINE_UP[1h])"
# The sidecar does not answer and is still to be scraped: not one that was scaled away.
_SILENT = "((last_over_time(ENGINE_UP[1h]) unless ENGINE_UP) and on (job, instance) up == 0)"

# No token for four minutes, and not for want of work. vLLM's gauges stand still once it has
# nothing to do, so `running` may tell of requests that were aborted hours ago: others that fail
# meanwhile, or connections that pile up, prove that somebody still waits. Two minutes would do but
# for one long prompt, which is read in without a token.
_STALLED = """
    min_over_time(REQUESTS_RUNNING[4m]) > 0
    and increase(GENERATION_TOKENS[4m]) == 0
    and increase(PROMPT_TOKENS[4m]) == 0
    and on (job, instance, engine) (
      sum by (job, instance, engine) (increase(REQUESTS{outcome!~"success|invalid"}[2m])) > 0
      or sum by (job, instance, engine) (delta(HOST_SOCKETS{state="established"}[3m])) > 3
    )
"""

ENGINE_ADVICE = (
    "See whether the engine's process lives, and read the end of its log.",
    "Ask the engine's /health and the sidecar's /v1/status from beside it.",
    "Send traffic to another service or the fallback until it is back.",
)
STALLED_ADVICE = (
    "Take a stack of the engine's processes before anything else (py-spy dump).",
    "Take the engine out of the load balancer.",
    "Then restart it.",
)


def all_down(plan: Plan) -> str:
    """PromQL without labels that has a value while engines were there within the last hour and
    none answers now: `symptom unless on () all_down`."""
    return f"({_count(plan, _SEEN)} unless {_count(plan, 'ENGINE_UP == 1')})"


def groups(plan: Plan) -> tuple[Group, ...]:
    """Engines down: all, or half of them, is a page; fewer is a ticket. Pages go to whoever the
    response calls in an incident, at once or after a while."""
    failed = _count(plan, f"(ENGINE_UP == 0 or {_SILENT})")
    share = f"({failed} / {_count(plan, f'(ENGINE_UP or {_SILENT})')})"
    most = f"({all_down(plan)} or {share} >= 0.5)"
    rules = [_down(plan, f"({share} < 0.5)", 1, Severity.TICKET, _HOLD)]
    for tier, after in _called(plan):
        rules.append(_down(plan, most, tier, Severity.PAGE, max(after, _HOLD)))
        rules.append(_stalled(plan, tier, after))
    return (Group(f"inferslo-{plan.service}-causes", _INTERVAL, tuple(rules)),)


def _called(plan: Plan) -> list[tuple[int, int]]:
    """The tiers that an incident calls, and after how many seconds."""
    at_once = [(tier.tier, 0) for tier in plan.response if When.INCIDENT in tier.when]
    later = [
        (tier.tier, tier.after)
        for tier in plan.response
        if tier.after is not None and When.INCIDENT not in tier.when
    ]
    return [*at_once, *later] or [(carried.tier_of(plan, 1).tier, 0)]


def _count(plan: Plan, text: str) -> str:
    # An engine that has been down for hours is still known by what it was called before.
    expr = expand(text, plan.selection)
    return f"count({of_engines(expr, text, plan.selection, ON_ENGINE, within='1d')})"


def _down(plan: Plan, expr: str, tier: int, severity: Severity, hold: int) -> Alert:
    impact = {
        Severity.PAGE: "Nobody, or at most half of the users, is served.",
        Severity.TICKET: "The others carry its load; users wait longer at peaks.",
    }
    summary = {
        Severity.PAGE: f"Engines of {plan.service} are down: half of them, or all.",
        Severity.TICKET: f"Some engines of {plan.service} are down, less than half.",
    }
    return _alert(
        plan, ENGINE_DOWN.name, expr, tier, severity, hold,
        summary[severity], impact[severity], ENGINE_ADVICE,
    )  # fmt: skip


def _stalled(plan: Plan, tier: int, hold: int) -> Alert:
    return _alert(
        plan, ENGINE_STALLED.name, expand(_STALLED, plan.selection), tier, Severity.PAGE, hold,
        "{{ $labels.engine }} has requests and has not made a token for minutes.",
        "Its users see an answer that does not go on, then a timeout.", STALLED_ADVICE,
    )  # fmt: skip


def _alert(
    plan: Plan, name: str, expr: str, tier: int, severity: Severity, hold: int,
    summary: str, impact: str, actions: Sequence[str],
) -> Alert:  # fmt: skip
    return Alert(
        alert=name,
        expr=expr,
        labels=carried.labels(plan, SLO, tier, severity),
        annotations=carried.annotations(plan, name, summary, impact, actions),
        hold=hold,
    )
