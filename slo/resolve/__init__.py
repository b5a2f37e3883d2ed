"""Makes a Plan of an SLO file: every default filled in, every contradiction found."""

from __future__ import annotations

from collections import Counter

from ..plan import (
    Canary,
    ClassTarget,
    Evaluation,
    Objective,
    OfficeHours,
    Plan,
    Selection,
    Tier,
    Window,
)
from ..quantities import format_duration
from ..signals import Needs
from ..spec import Spec
from .case import Context
from .faults import FaultyError, Findings
from .objective import resolve_objective
from .prompts import partition
from .response import default_response, receivers, response
from .selection import check_match, match_of

PERIOD = Window(30 * 86400)
# What alerts that belong to no objective carry as their label `slo`.
RESERVED = ("early-warning", "engine", "watchdog")
_LEAST_SCRAPES = 4  # in a base window, so that one that is lost leaves a rate
_MOST_INTERVAL = 60
_MOST_BASE = 3600


def resolve(spec: Spec) -> Plan:
    """Raises FaultyError with everything that is wrong."""
    found = Findings()
    context = _context(spec, found)
    _check_names(spec, found)
    _check_classes(spec, found)
    check_match(spec, found)
    resolved = [resolve_objective(i, context, found) for i in range(len(spec.objectives))]
    if found.faults:
        raise FaultyError(tuple(found.faults))
    objectives = tuple(o for o in resolved if o is not None)
    _note_needs(objectives, found)
    return _plan(spec, context, objectives, found)


def _plan(spec: Spec, context: Context, objectives: tuple[Objective, ...], found: Findings) -> Plan:
    extra = {} if spec.runbook_url is None else {"runbook_url": spec.runbook_url}
    hours = spec.office_hours
    return Plan(
        service=spec.service,
        owner=spec.owner or spec.service,
        selection=Selection(match=match_of(spec)),
        objectives=objectives,
        response=context.response,
        evaluation=context.evaluation,
        classes=tuple(context.classes.values()),
        class_header=spec.classes.header if spec.classes else None,
        prompt_classes=context.prompt_classes,
        receivers=receivers(spec.receivers or {}),
        office_hours=OfficeHours(hours.weekdays, hours.start, hours.end, hours.location),
        dashboard_url=spec.dashboard_url,
        warnings=tuple(sorted(spec.warnings.items())),
        canary=Canary(**spec.canary.model_dump()) if spec.canary else None,
        notes=tuple(found.notes),
        **extra,
    )


def _context(spec: Spec, found: Findings) -> Context:
    named = spec.classes.named if spec.classes else {}
    classes = {
        name: ClassTarget(name, c.ttft, c.tpot, c.e2e, c.urgency) for name, c in named.items()
    }
    ranges = [o.prompt_tokens for o in spec.objectives if o.prompt_tokens is not None]
    return Context(
        spec=spec,
        window=spec.window or PERIOD,
        evaluation=_evaluation(spec, found),
        response=_response(spec, found),
        classes=classes,
        prompt_classes=partition(ranges),
    )


def _evaluation(spec: Spec, found: Findings) -> Evaluation:
    given = spec.evaluation
    if given.base < _LEAST_SCRAPES * given.scrape_interval:
        least = format_duration(_LEAST_SCRAPES * given.scrape_interval)
        found.fault(
            ("evaluation", "base"),
            f"{format_duration(given.base)} is less than four scrape intervals, so a lost scrape"
            f" would leave no rate: write at least {least}, or scrape more often",
        )
    if given.interval > given.base:
        found.fault(
            ("evaluation", "interval"),
            f"{format_duration(given.interval)} is longer than the base window"
            f" {format_duration(given.base)}: events between would be lost",
        )
    if given.interval > _MOST_INTERVAL:
        found.fault(
            ("evaluation", "interval"),
            f"{format_duration(given.interval)} is too long: long windows are looked at every four"
            f" intervals, and Prometheus forgets a series after 5m; write at most"
            f" {format_duration(_MOST_INTERVAL)}",
        )
    if given.base > _MOST_BASE:
        found.fault(
            ("evaluation", "base"),
            f"{format_duration(given.base)} is too long: every alert would be as late; write at"
            f" most {format_duration(_MOST_BASE)}",
        )
    return Evaluation(given.scrape_interval, given.interval, given.base)


def _response(spec: Spec, found: Findings) -> tuple[Tier, ...]:
    if spec.response is not None:
        return response(spec.response, spec, ("response",), found)
    tiers = default_response(spec.owner or spec.service)
    names = ", ".join(tier.receiver for tier in tiers)
    if spec.receivers is not None and not {tier.receiver for tier in tiers} <= set(spec.receivers):
        found.fault(
            ("receivers",), f"`response` is missing: say who acts, or name the receivers {names}"
        )
    found.notes.append(f"nobody is named in `response`: the owner acts, at receivers {names}")
    return tiers


def _check_names(spec: Spec, found: Findings) -> None:
    seen = Counter(objective.name for objective in spec.objectives)
    for index, objective in enumerate(spec.objectives):
        if seen[objective.name] > 1:
            found.fault(
                ("objectives", index, "name"),
                f'"{objective.name}" is the name of {seen[objective.name]} objectives: a name is'
                " unique in its file",
            )
        elif objective.name in RESERVED:
            found.fault(
                ("objectives", index, "name"),
                f'"{objective.name}" is the label `slo` of alerts of our own: choose another',
            )


def _check_classes(spec: Spec, found: Findings) -> None:
    named = spec.classes.named if spec.classes else {}
    for name in named:
        if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
            found.fault(("classes", name), f'"{name}" is no name of a class: letters, digits, - _')


def _note_needs(objectives: tuple[Objective, ...], found: Findings) -> None:
    """Signals for which a plain scrape of the engine does not do."""
    for objective in objectives:
        selection, signal = objective.selection, objective.signal
        by_class = signal.classed and (selection.sla_class or selection.prompts)
        if by_class or signal.needs is Needs.PROBE:
            found.notes.append(f"{objective.name}: needs the in-engine probe")
        elif signal.needs is Needs.EVENTS:
            found.notes.append(f"{objective.name}: needs business events or a gateway")
        elif signal.needs is Needs.GPU:
            found.notes.append(f"{objective.name}: needs the GPU to be read")
