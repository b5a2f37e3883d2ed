"""A plan in words: everything that was filled in, when each alert would come, what to know."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from .detection import seconds_to_alert
from .plan import (
    NO_RUNBOOKS,
    Budgeting,
    Burn,
    ClassTarget,
    Objective,
    Outage,
    Plan,
    PromptRange,
    Receiver,
    Selection,
    Tier,
    When,
    Window,
)
from .quantities import format_duration, format_percent, format_prompt_range
from .signals import Shape

_OUTAGE = "outage"


def explain(plan: Plan) -> str:
    """Text for people; every line that a file could have set says what holds."""
    sections = (_file(plan), _objectives(plan), _table(plan), _response(plan), _notes(plan))
    return "\n".join("".join(f"{line}\n" for line in section) for section in sections)


def _file(plan: Plan) -> Iterator[str]:
    evaluation, hours = plan.evaluation, plan.office_hours
    yield f"service {plan.service}, owned by {plan.owner}"
    yield f"  series: {_match(plan.selection)}"
    if plan.classes:
        yield f"  classes by the header {plan.class_header}, the rest is `default`:"
        yield from (f"    {_class(target)}" for target in plan.classes)
    if plan.prompt_classes:
        yield f"  prompt lengths, in tokens: {_lengths(plan.prompt_classes)}"
    yield (
        f"  rules: run every {format_duration(evaluation.interval)} over rates of"
        f" {format_duration(evaluation.base)}, scraped every"
        f" {format_duration(evaluation.scrape_interval)}"
    )
    yield f"  office hours: {hours.weekdays} {hours.start} to {hours.end}, {hours.location}"
    runbooks = "nowhere that is known: write runbook_url"
    yield f"  runbooks: {runbooks if plan.runbook_url == NO_RUNBOOKS else plan.runbook_url}"
    yield f"  dashboard: {plan.dashboard_url or 'none'}"
    for name, threshold in plan.warnings:
        yield f"  early warning {name}: {'off' if threshold is None else f'above {threshold:f}'}"
    if plan.canary:
        canary = plan.canary
        yield f"  canary: {canary.label}={canary.canary} against {canary.baseline}"


def _match(selection: Selection) -> str:
    labels = (f"{label}={'|'.join(values)}" for label, values in selection.match)
    return ", ".join(labels) or "all that there are"


def _class(target: ClassTarget) -> str:
    named = (("ttft", target.ttft), ("tpot", target.tpot), ("e2e", target.e2e))
    targets = [f"{name} {format_duration(value)}" for name, value in named if value is not None]
    return f"{target.name}: {', '.join([*targets, f'urgency {target.urgency}'])}"


def _lengths(ranges: Iterable[PromptRange]) -> str:
    return " | ".join(map(format_prompt_range, ranges))


def _objectives(plan: Plan) -> Iterator[str]:
    for objective in plan.objectives:
        yield f"{objective.name}: {format_percent(objective.objective)} {_good(objective)}"
        if objective.description:
            yield f"  {' '.join(objective.description.split())}"
        yield from (f"  {line}" for line in _details(objective, plan))


def _good(objective: Objective) -> str:
    """What is counted, and when it is good."""
    signal, threshold = objective.signal, objective.threshold
    if signal.shape is Shape.LATENCY and threshold is not None:
        return f"of requests with {signal.title} within {format_duration(threshold)}"
    if signal.shape is Shape.VALUE and threshold is not None:
        over = f" over {format_duration(objective.over)}" if objective.over else ""
        return f"of the time with {signal.title}{over} at most {threshold:f}"
    if objective.checks:
        checks = " + ".join(f"{weight:f} {name}" for name, weight in objective.checks)
        return f"of checks passed: {checks}"
    return signal.title


def _details(objective: Objective, plan: Plan) -> Iterator[str]:
    budgeting = f"{objective.budgeting}"
    if objective.slice_target is not None:
        budgeting += f", a slice is good with {format_percent(objective.slice_target)} good"
    yield (
        f"budget: {format_percent(objective.budget)} of {_period(objective.window)}, {budgeting};"
        f" claimed from a coverage of {format_percent(objective.min_coverage)}"
    )
    yield f"  spent: told of from {objective.chance:f} bad on"
    yield f"speaks of: {_selected(objective.selection)}"
    if objective.bad_outcomes:
        late = ", which are in no histogram" if objective.signal.shape is Shape.LATENCY else ""
        yield f"bad outcomes: {', '.join(objective.bad_outcomes)}{late}"
    yield f"urgency: {objective.urgency}; {'pages' if objective.outage else 'only tickets'}"
    if objective.outage:
        yield f"  {_OUTAGE}: {_outage(objective.outage)}"
    yield from (f"  {burn.name}: {_burn(burn)}" for burn in objective.burns)
    if objective.expect_traffic:
        yield "no traffic: a ticket"
    if objective.response != plan.response:
        yield "response of its own:"
        yield from (f"  {_tier(tier)}" for tier in objective.response)


def _period(window: Window) -> str:
    if window.calendar is not None:
        return f"each calendar {window.calendar} (UTC)"
    return f"a rolling {format_duration(window.seconds)}"


def _selected(selection: Selection) -> str:
    parts = [
        f"class {selection.sla_class}" if selection.sla_class else "all classes",
        f"tenant {selection.tenant}" if selection.tenant else "",
        f"prompts {_lengths(selection.prompts)}" if selection.prompts else "all lengths",
        f"one budget for each {', '.join(selection.per)}" if selection.per else "",
    ]
    return ", ".join(filter(None, parts))


def _outage(outage: Outage) -> str:
    return (
        f"page, {format_percent(outage.ratio)} bad over {format_duration(outage.window)};"
        f" at least {outage.floor.bad} bad of {outage.floor.total}"
    )


def _burn(burn: Burn) -> str:
    return (
        f"{burn.severity}, {format_percent(burn.threshold)} bad ({burn.factor:f} times too fast)"
        f" over {format_duration(burn.long)} and {format_duration(burn.short)};"
        f" at least {burn.floor.bad} bad of {burn.floor.total}"
    )


def _table(plan: Plan) -> Iterator[str]:
    """Minutes of total outage, after clean history at even traffic, until each condition holds."""
    names = list(dict.fromkeys(burn.name for o in plan.objectives for burn in o.burns))
    rows = [("", _OUTAGE, *names)]
    for objective in plan.objectives:
        conditions: dict[str, Burn | Outage] = {burn.name: burn for burn in objective.burns}
        if objective.outage:
            conditions[_OUTAGE] = objective.outage
        # Slices are bad from the first on; rates see a fault as it fills their window.
        is_sliced = objective.budgeting is Budgeting.TIMESLICES
        base = 0 if is_sliced else plan.evaluation.base
        cells = (_minutes(conditions.get(name), base) for name in (_OUTAGE, *names))
        rows.append((objective.name, *cells))
    yield "minutes from the start of a total outage to each alert (scrapes and evaluations on top):"
    yield from _aligned(rows)


def _minutes(condition: Burn | Outage | None, base: int) -> str:
    if condition is None:
        return "-"
    seconds = seconds_to_alert(condition, 1.0, base)
    return "never" if math.isinf(seconds) else f"{seconds / 60:.1f}"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *rest in rows:
        cells = (cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
        yield "  ".join(["  " + first.ljust(widths[0]), *cells])


def _response(plan: Plan) -> Iterator[str]:
    yield "response:"
    yield from (f"  {_tier(tier)}" for tier in plan.response)
    yield from (f"  receiver {_receiver(receiver)}" for receiver in plan.receivers)
    if not plan.receivers:
        yield "  receivers: none declared, so no alertmanager.yaml can be written"


def _tier(tier: Tier) -> str:
    to = tier.receiver
    if tier.tickets != tier.receiver:
        to += f" (tickets: {tier.tickets})"
    return f"tier {tier.tier}: {tier.team} at {to}, when {reasons(tier)}"


def reasons(tier: Tier) -> str:
    """What sets the tier off, in words."""
    repeated = f"{tier.times} incidents in {format_duration(tier.within)}"
    when = [repeated if why is When.REPEATED else str(why) for why in sorted(tier.when)]
    if tier.after is not None:
        when.append(f"an incident of {format_duration(tier.after)}")
    return " or ".join(when)


def _receiver(receiver: Receiver) -> str:
    settings = ", ".join(f"{key} {_setting(value)}" for key, value in receiver.settings)
    return f"{receiver.name}: {receiver.kind}, {settings}"


def _setting(value: str | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else value


def _notes(plan: Plan) -> Iterator[str]:
    if plan.notes:
        yield "notes:"
        yield from (f"  {note}" for note in plan.notes)
