"""The routing tree: which receiver an alert reaches, when, and together with what.

    alertname = watchdog         → the receiver "watchdog", over and over
    service                      → one branch for each SLO file
      slo                        → where an objective has a response of its own
        tier, severity           → the tier's receiver for pages, its `tickets` for the rest
          urgency office-hours   → the same, held back until somebody is there

An alert of a service that no branch knows reaches the tickets of its first tier; what is no
service's ends in the default receiver, which is empty.

Nothing is inhibited, here or anywhere: Alertmanager drops a resolve that happens meanwhile, and
so it does outside `active_time_intervals`. Receivers of held-back routes therefore get no
resolves at all: to close what was opened is left to people, always, rather than at times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...slo.errors import closest
from ...slo.plan import OfficeHours, Plan, Receiver, Severity, Tier, Urgency
from ..naming import WATCHDOG
from .api import Matcher
from .errors import NoReceiversError, TreeError
from .messages import configs

DEFAULT = "unclaimed"
WATCHDOG_RECEIVER = "watchdog"
_OFFICE = "/office-hours"
_RESERVED = {DEFAULT: "what nobody claims", WATCHDOG_RECEIVER: "the dead man's switch"}
_REVIEW_TIER = 3  # its tickets ask what to promise, which nobody decides at night


@dataclass(frozen=True, slots=True)
class Timing:
    """How long Alertmanager waits, in its notation.

    wait: for what fires together. interval: between notifications of one group. page, ticket,
    office: until a group that still fires is told again. office is shorter than a night, because
    an alert that ended at night, unheard, and fires again in the morning counts as a repetition.
    """

    wait: str = "30s"
    interval: str = "5m"
    page: str = "4h"
    ticket: str = "24h"
    office: str = "12h"
    watchdog: str = "1m"


def tree(plans: Sequence[Plan], timing: Timing = Timing()) -> dict[str, Any]:
    """The content of alertmanager.yaml for these services.

    Raises NoReceiversError if a file describes no receivers, TreeError if the files contradict
    each other or a receiver cannot work.
    """
    _check_services(plans)
    known = _receivers(plans)
    branches = [_branch(plan, timing) for plan in plans]
    for plan, branch in zip(plans, branches, strict=True):
        _check_described(plan, branch, known)
    intervals = {_interval(plan.office_hours): plan.office_hours for plan in plans}
    return {
        # Of alerts that are posted without an end; Prometheus always gives one.
        "global": {"resolve_timeout": "5m"},
        "route": _root([_watchdog(timing), *branches], timing),
        "time_intervals": [_time_interval(name, hours) for name, hours in intervals.items()],
        "receivers": list(_described(branches, known)),
    }


def doubts(plans: Sequence[Plan]) -> Iterator[str]:
    """What is odd about the receivers of files that describe some, a line each."""
    described = {receiver.name for plan in plans for receiver in plan.receivers}
    branches = (_branch(plan, Timing()) for plan in plans)
    reached = {name.removesuffix(_OFFICE) for branch in branches for name in _named(branch)}
    for name in sorted(described - reached - {WATCHDOG_RECEIVER}):
        hint = closest(name, (reached | {WATCHDOG_RECEIVER}) - (described - {name}))
        yield f"no alert reaches receiver {name}{hint}"
    if described and WATCHDOG_RECEIVER not in described:
        yield (
            f"nobody hears {WATCHDOG.name}, which tells that alerting works: describe the receiver"
            f" {WATCHDOG_RECEIVER}, at a service that calls you when it no longer hears it"
        )


def receiver_of(tier: Tier, severity: str, urgency: str) -> str:
    """Name of the receiver, as the tree calls it, that alerts with these labels reach."""
    name = tier.receiver if severity == Severity.PAGE else tier.tickets
    held_back = _is_review(tier, severity) or urgency == Urgency.OFFICE_HOURS
    return name + _OFFICE if held_back else name


def _is_review(tier: Tier, severity: str) -> bool:
    return tier.tier >= _REVIEW_TIER and severity == Severity.TICKET


def fallback_of(plan: Plan) -> str:
    """Name of the receiver of the service's alerts that belong to none of its tiers."""
    return min(plan.response, key=lambda tier: tier.tier).tickets


def _root(routes: list[dict[str, Any]], timing: Timing) -> dict[str, Any]:
    return {
        "receiver": DEFAULT,
        # One outage burns several SLOs at once, and is one page.
        "group_by": ["service", "tier", "severity"],
        "group_wait": timing.wait,
        "group_interval": timing.interval,
        "repeat_interval": timing.page,
        "routes": routes,
    }


def _watchdog(timing: Timing) -> dict[str, Any]:
    return {
        "matchers": [_is("alertname", WATCHDOG.name)],
        "receiver": WATCHDOG_RECEIVER,
        "group_by": ["service"],
        "group_wait": "0s",
        "group_interval": timing.watchdog,
        "repeat_interval": timing.watchdog,
    }


def _branch(plan: Plan, timing: Timing) -> dict[str, Any]:
    if not plan.response:
        raise TreeError(f"service {plan.service} has no `response`: name who acts on its alerts")
    hours = _interval(plan.office_hours)
    own = [
        _route(
            [_is("slo", objective.name)],
            routes=list(_tiers(objective.response, hours, timing)),
        )
        for objective in plan.objectives
        if objective.response != plan.response
    ]
    return _route(
        [_is("service", plan.service)],
        receiver=fallback_of(plan),
        repeat_interval=timing.ticket,
        routes=[*own, *_tiers(plan.response, hours, timing)],
    )


def _tiers(response: Sequence[Tier], hours: str, timing: Timing) -> Iterator[dict[str, Any]]:
    for tier in sorted(response, key=lambda tier: tier.tier):
        for severity, repeat in ((Severity.PAGE, timing.page), (Severity.TICKET, timing.ticket)):
            held_back: dict[str, Any] = {
                "receiver": receiver_of(tier, severity, Urgency.OFFICE_HOURS),
                "repeat_interval": timing.office,
                "active_time_intervals": [hours],
            }
            matchers = [_is("tier", str(tier.tier)), _is("severity", severity)]
            if _is_review(tier, severity):
                yield _route(matchers, **held_back)
                continue
            later = _route([_is("urgency", Urgency.OFFICE_HOURS)], **held_back)
            receiver = receiver_of(tier, severity, Urgency.ALWAYS)
            yield _route(matchers, receiver=receiver, repeat_interval=repeat, routes=[later])


def _is(label: str, value: str) -> str:
    return str(Matcher(label, value))


def _route(matchers: list[str], **rest: Any) -> dict[str, Any]:
    return {"matchers": matchers, **rest}


def _interval(hours: OfficeHours) -> str:
    # Named by what it says, so that services with the same hours share it.
    return f"{hours.weekdays} {hours.start}-{hours.end} {hours.location}"


def _time_interval(name: str, hours: OfficeHours) -> dict[str, Any]:
    times = [{"start_time": hours.start, "end_time": hours.end}]
    once = {"weekdays": [hours.weekdays], "times": times, "location": hours.location}
    return {"name": name, "time_intervals": [once]}


def _described(
    branches: Iterable[dict[str, Any]], known: dict[str, Receiver]
) -> Iterator[dict[str, Any]]:
    yield {"name": DEFAULT}
    watchdog = known.get(WATCHDOG_RECEIVER)
    yield {
        "name": WATCHDOG_RECEIVER,
        **(configs(watchdog, send_resolved=False) if watchdog else {}),
    }
    for name in sorted({name for branch in branches for name in _named(branch)}):
        receiver = known[name.removesuffix(_OFFICE)]
        yield {"name": name, **configs(receiver, send_resolved=not name.endswith(_OFFICE))}


def _named(route: dict[str, Any]) -> Iterator[str]:
    if "receiver" in route:
        yield route["receiver"]
    for child in route.get("routes", ()):
        yield from _named(child)


def _check_services(plans: Sequence[Plan]) -> None:
    services = [plan.service for plan in plans]
    for service in services:
        if services.count(service) > 1:
            raise TreeError(f"two files are about service {service}: make them one file")


def _receivers(plans: Sequence[Plan]) -> dict[str, Receiver]:
    known: dict[str, tuple[str, Receiver]] = {}
    for plan in plans:
        for receiver in plan.receivers:
            first, other = known.setdefault(receiver.name, (plan.service, receiver))
            if other != receiver:
                raise TreeError(
                    f"receiver {receiver.name} is described differently by {first} and by"
                    f" {plan.service}: write the same settings in both, or rename one"
                )
            _check_complete(receiver)
    return {name: receiver for name, (_, receiver) in known.items()}


def _check_complete(receiver: Receiver) -> None:
    if receiver.kind != "email":
        return
    missing = [key for key in ("from", "smarthost") if key not in dict(receiver.settings)]
    if missing:
        raise TreeError(
            f"receiver {receiver.name} cannot send mail without {' and '.join(missing)}: write"
            ' from: slo@example.com and smarthost: "mail.example.com:587"'
        )


def _check_described(plan: Plan, branch: dict[str, Any], known: dict[str, Receiver]) -> None:
    named = {name.removesuffix(_OFFICE) for name in _named(branch)}
    for name in named & {DEFAULT, WATCHDOG_RECEIVER}:
        raise TreeError(
            f"receiver {name} of {plan.service} cannot act on alerts: it is that of"
            f" {_RESERVED[name]}; rename it"
        )
    if missing := sorted(named - known.keys()):
        raise NoReceiversError(
            f"alertmanager.yaml needs `receivers` in the file of {plan.service}: how to reach"
            f" {', '.join(missing)} is nowhere said"
        )
