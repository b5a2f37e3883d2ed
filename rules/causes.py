"""Causes that page by themselves: engines that are gone, and one that has stopped.

While all engines are gone every symptom has that one cause: `all_down` is what symptom alerts are
muted by. Which engines there were is asked of a day in steps of ten minutes: of a fleet that is
much to read, and no engine is lost that was not there for that long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ..slo.plan import Plan, Severity, When
from . import carried
from .model import Alert, Group, Recording
from .naming import ENGINE_DOWN, ENGINE_STALLED, ENGINES_DOWN
from .promql import matcher, series
from .template import ON_ENGINE, expand, of_engines

SLO = "engine"  # the label `slo` of all of them
# The faults of docs/faults.md that they name.
FAULTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {ENGINE_DOWN.name: ("F3", "F15", "F35"), ENGINE_STALLED.name: ("F10", "F14")}
)
_INTERVAL = 15
_HOLD = 60  # with a scrape and two evaluations before it, a page within two minutes

# An engine that restarts is away for minutes. Half of them may be, in a rollout; beyond that it is
# none. One that has not answered yet, as one that was just added, is not counted as lost at once.
HALF_AFTER, ONE_AFTER = 300, 600

_SEEN = "last_over_time(ENGINE_UP[1h])"
_LOST = f"(max_over_time(ENGINE_UP[{HALF_AFTER}s]) == 0 and max_over_time(ENGINE_UP[1d:10m]) == 1)"
_AWAY = f"(max_over_time(ENGINE_UP[{ONE_AFTER}s]) == 0 and ENGINE_UP offset {ONE_AFTER}s)"
# The sidecar does not answer and is still to be scraped: not one that was scaled away.
_SILENT = "((last_over_time(ENGINE_UP[1d:10m]) unless ENGINE_UP) and on (job, instance) {up} == 0)"

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
    "Send a request through the gateway: are users served? If not, switch the fallback on.",
    "Ask the engine's /health past the gateway: if it answers, only its sidecar is gone.",
    "Save the end of the engine's log (kubectl logs POD --previous) before anything is restarted.",
)
STALLED_ADVICE = (
    "Take the engine out of the load balancer, and leave it running.",
    "Save its log and a stack (kubectl exec POD -- py-spy dump --pid 1).",
    "Only then restart it.",
)


def all_down(plan: Plan) -> str:
    """PromQL that has a value while engines were there within the last hour and none answers now:
    `symptom unless on () all_down`."""
    return f"{_recorded(plan)} == 1"


def groups(plan: Plan) -> tuple[Group, ...]:
    """Engines down: all at once, or half of them for longer than a restart takes, is a page; a
    ticket is any that stays away. Pages go to whoever the response calls in an incident, at once
    or after a while. The value is the share that is down, which is recorded once: every symptom
    asks for it."""
    most = f"{_recorded(plan)} >= 0.5"
    some = f"{_share(plan, _AWAY, ONE_AFTER)} unless on () {most}"
    alerts = [_down(plan, some, 1, Severity.TICKET, _HOLD)]
    for tier, after in _called(plan):
        alerts.append(_down(plan, most, tier, Severity.PAGE, max(after, _HOLD)))
        alerts.append(_stalled(plan, tier, after))
    name = f"inferslo-{plan.service}"
    return (
        Group(f"{name}-engines", _INTERVAL, (_engines_down(plan),)),
        Group(f"{name}-causes", _INTERVAL, tuple(alerts)),
    )


def _engines_down(plan: Plan) -> Recording:
    none_up = f"({_count(plan, _SEEN)} unless {_count(plan, 'ENGINE_UP == 1')})"
    share = _share(plan, _LOST, HALF_AFTER)
    labels = {"service": plan.service, "slo": SLO}
    return Recording(ENGINES_DOWN.name, f"{none_up} * 0 + 1 or {share}", labels)


def _recorded(plan: Plan) -> str:
    return series(ENGINES_DOWN.name, [matcher("service", [plan.service])])


def _share(plan: Plan, down: str, after: int) -> str:
    """Of the engines: those down so long, or whose sidecar is."""
    silent = _SILENT.format(up=f"max_over_time(up[{after}s])")
    known = _SILENT.format(up="up")
    return f"({_count(plan, f'({down} or {silent})')} / {_count(plan, f'(ENGINE_UP or {known})')})"


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
    others = "The others carry the load of these; answers are late, and some requests fail."
    nobody = f"{{{{ if ge $value 1.0 }}}}Nobody is served.{{{{ else }}}}{others}{{{{ end }}}}"
    impact = nobody if severity is Severity.PAGE else others
    return _alert(
        plan, ENGINE_DOWN.name, expr, tier, severity, hold,
        f"{{{{ $value | humanizePercentage }}}} of the engines of {plan.service} do not answer,"
        " or only the sidecars beside them do not.",
        impact, ENGINE_ADVICE,
    )  # fmt: skip


def _stalled(plan: Plan, tier: int, hold: int) -> Alert:
    return _alert(
        plan, ENGINE_STALLED.name, expand(_STALLED, plan.selection), tier, Severity.PAGE, hold,
        "{{ $labels.engine }} on {{ $labels.instance }} has requests and has made no token for four"
        " minutes.",
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
