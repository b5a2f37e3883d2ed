"""Which events an objective speaks of: labels, class, tenant, prompt lengths."""

from __future__ import annotations

from ..errors import closest
from ..plan import PromptRange, Selection
from ..signals import Needs, Signal
from ..spec import ObjectiveSpec, Spec
from .case import Case, signal_name
from .faults import Findings
from .prompts import rest, within

# What became of an event: they tell good from bad, so that to choose or split by them is to judge
# each part by what it was chosen for.
_VERDICTS = ("outcome", "result", "state", "check", "status", "finished_reason")
_OF_PROBE = ("sla_class", "prompt_class")
_OF_EVENTS = ("app", "tenant")
OWN_LABELS = ("service", "slo", "component", "tier", "team", "severity", "urgency", "alertname")


def check_match(spec: Spec, found: Findings) -> None:
    for label in spec.match:
        if label in _VERDICTS:
            found.fault(
                ("match", label),
                f"{label} says what became of an event, not whose it is: the rules tell good from"
                " bad by it",
            )
        elif label in _OF_PROBE:
            found.fault(
                ("match", label), f"{label} belongs to objectives: write `class` or `prompt_tokens`"
            )


def match_of(spec: Spec) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """In one order, so that equal files make equal plans."""
    return tuple((label, tuple(sorted(set(spec.match[label])))) for label in sorted(spec.match))


def selection(case: Case) -> Selection:
    spec, signal = case.spec, case.signal
    _check_class(case)
    if signal.needs is not Needs.EVENTS:
        case.refuse("tenant", "only business events tell tenants apart")
    if not signal.classed:
        case.refuse("prompt_tokens", f"{signal.name} is not known by prompt length")
    _check_per(case)
    return Selection(
        match=match_of(case.context.spec),
        sla_class=spec.class_,
        tenant=spec.tenant,
        prompts=_prompts(case) if signal.classed else (),
        per=tuple(sorted(spec.per)),
    )


def _check_class(case: Case) -> None:
    name, classes, signal = case.spec.class_, case.context.classes, case.signal
    if not signal.classed and signal.needs is not Needs.EVENTS:
        case.refuse("class", f"{signal.name} is not known by class")
    elif name is not None and not classes:
        case.fault("class", f'"{name}": the file has no `classes`: declare it there')
    elif name is not None and name not in {*classes, "default"}:
        case.fault("class", f'"{name}" is not among `classes`{closest(name, classes)}')
    elif signal.name == "goodput":
        _check_targets(case)


def _check_targets(case: Case) -> None:
    """Goodput is to meet all targets of a class, so there have to be some."""
    name, classes = case.spec.class_, case.context.classes
    asked = [target for target in classes.values() if name in (None, target.name)]
    if not any(target.ttft or target.tpot or target.e2e for target in asked):
        which = f"class {name}" if name else "any class"
        case.fault("signal", f"goodput asks for targets, and `classes` has none of {which}")


def _check_per(case: Case) -> None:
    signal = case.signal
    for label in case.spec.per:
        if label in OWN_LABELS:
            case.fault("per", f"{label} is a label of the rules' own: choose another")
        elif label in _VERDICTS and signal.needs is not Needs.PROMETHEUS:
            case.fault("per", f"{label} tells good from bad: each part would be wholly one of both")
        elif why := _lacks(label, signal):
            case.fault("per", f"{signal.name} is not known by {label}: {why}")
    if len(set(case.spec.per)) < len(case.spec.per):
        case.fault("per", "a label is there twice: write each once")


def _lacks(label: str, signal: Signal) -> str:
    """Why no series of the signal has the label; "" if they may."""
    events = signal.needs is Needs.EVENTS
    if signal.needs is Needs.PROMETHEUS or (label == "sla_class" and events):
        return ""
    if label in _OF_PROBE:
        return "write an objective for each, with `class` or `prompt_tokens`"
    return "only business events are" if label in _OF_EVENTS and not events else ""


def _prompts(case: Case) -> tuple[PromptRange, ...]:
    parts, own = case.context.prompt_classes, case.spec.prompt_tokens
    if own is not None:
        return within(parts, own)
    claims = {
        other.name: other.prompt_tokens
        for other in case.context.spec.objectives
        if other.prompt_tokens is not None and _is_of_a_kind(other, case)
    }
    left = rest(parts, claims.values())
    if left is None:
        case.fault(
            "prompt_tokens",
            f"{', '.join(claims)} claim every length, so none is left: name a range, or remove"
            " the objective",
        )
    return left or ()


def _is_of_a_kind(other: ObjectiveSpec, case: Case) -> bool:
    mine = (case.signal.name, case.spec.class_)
    return (signal_name(other), other.class_) == mine
