"""One objective of an SLO file, every default filled in and everything checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from .burn import BurnError, BurnRule, OutageRule, burns_for, outage_for
from .errors import closest
from .faults import Findings, Keys
from .plan import (
    Budgeting,
    Burn,
    ClassTarget,
    Evaluation,
    Objective,
    Outage,
    PromptRange,
    Query,
    Selection,
    Tier,
    Urgency,
    Window,
)
from .prompts import rest, within
from .quantities import format_duration, parse_duration, parse_number
from .response import response
from .signals import SIGNALS, Needs, Shape, Signal
from .spec import AlertingSpec, ObjectiveSpec, Spec

# What may become of a request (exporters.names.Outcome), success apart.
OUTCOMES = ("error", "timeout", "aborted", "rejected", "empty", "invalid")
FAILED = ("error", "timeout", "aborted", "rejected", "empty")
# Requests that gave up are in no histogram: left out, a slow engine would look the faster.
GAVE_UP = ("aborted", "timeout")
_HOUR = 3600
_OVER = {"fallback_count": _HOUR, "memory_growth": _HOUR}  # others: the base window
_OWN_LABELS = ("service", "slo", "component", "tier", "team", "severity", "urgency", "alertname")
_BY_KEY = ("check", "composite", "promql")  # keys that are also the signal


@dataclass(frozen=True, slots=True)
class Context:
    """What an objective takes from its file."""

    spec: Spec
    window: Window
    evaluation: Evaluation
    response: tuple[Tier, ...]
    classes: Mapping[str, ClassTarget]
    prompt_classes: tuple[PromptRange, ...]


def signal_of(spec: ObjectiveSpec) -> str:
    """The name of the signal that is written, or that follows from another key; "" if none."""
    return spec.signal or next((key for key in _BY_KEY if getattr(spec, key) is not None), "")


def resolve_objective(index: int, context: Context, found: Findings) -> Objective | None:
    """None if there is no telling what it means; every fault is among the findings."""
    spec = context.spec.objectives[index]
    signal = SIGNALS.get(signal_of(spec))
    if signal is None:
        what = f'"{spec.signal}" is not a signal' if spec.signal else "`signal` is missing"
        found.fault(("objectives", index, "signal"), what + closest(spec.signal or "", SIGNALS))
        return None
    if spec.promql is not None and spec.promql.value is not None:
        signal = replace(signal, shape=Shape.VALUE)
    return _Resolver(spec, signal, ("objectives", index), context, found).objective()


@dataclass(frozen=True, slots=True)
class _Resolver:
    spec: ObjectiveSpec
    signal: Signal
    at: Keys
    context: Context
    found: Findings

    def objective(self) -> Objective:
        spec, budgeting = self.spec, self._budgeting()
        pages = self.signal.pages if spec.pages is None else spec.pages
        budget = 1 - spec.objective
        burns, outage = self._conditions(budget, budgeting, pages=pages)
        return Objective(
            name=spec.name,
            signal=self.signal,
            objective=spec.objective,
            budget=budget,
            budgeting=budgeting,
            window=self._window(),
            selection=self._selection(),
            burns=burns,
            outage=outage,
            response=self._response(),
            urgency=self._urgency(),
            description=spec.description or "",
            threshold=self._threshold(),
            over=self._over(),
            bad_outcomes=self._bad_outcomes(),
            checks=self._checks(),
            query=self._query(),
            slice_target=self._slice_target(budgeting),
            min_coverage=spec.min_coverage,
            expect_traffic=spec.expect_traffic,
        )

    def _fault(self, key: str, what: str) -> None:
        self.found.fault((*self.at, key), what)

    def _refuse(self, key: str, why: str) -> None:
        """A fault if the key is there."""
        if getattr(self.spec, "class_" if key == "class" else key) not in (None, ()):
            self._fault(key, f"this means nothing here: {why}")

    # --- what is bad ---

    def _threshold(self) -> Decimal | None:
        if self.signal.shape is Shape.EVENTS:
            self._refuse("threshold", f"{self.signal.name} counts events that are good or bad")
            return None
        if self.spec.threshold is None:
            return self._default_threshold()
        try:
            number = self._parse_threshold(self.spec.threshold)
        except ValueError as error:
            return self._fault("threshold", str(error))
        if number <= 0:
            self._fault("threshold", f'"{self.spec.threshold}" must be above 0')
        return number

    def _parse_threshold(self, value: Any) -> Decimal:
        return parse_duration(value) if self.signal.unit == "seconds" else parse_number(value)

    def _default_threshold(self) -> Decimal | None:
        target = self.context.classes.get(self.spec.class_ or "")
        of_class = getattr(target, self.signal.name, None)
        default = self.signal.default if of_class is None else of_class
        if default is None:
            example = "2s" if self.signal.unit == "seconds" else "0.5"
            self._fault("threshold", f"this is missing: write what is too much, as {example}")
        return default

    def _over(self) -> int | None:
        if self.signal.shape is not Shape.VALUE:
            return self._refuse("over", "only a value is taken over a window")
        base = self.context.evaluation.base
        over = self.spec.over or max(base, _OVER.get(self.signal.name, 0))
        if over < base:
            self._fault("over", f"shorter than the base window, {format_duration(base)}")
        return over

    def _bad_outcomes(self) -> tuple[str, ...]:
        given = self.spec.bad_outcomes
        is_latency = self.signal.shape is Shape.LATENCY
        if self.signal.name != "availability" and not is_latency:
            self._refuse("bad_outcomes", f"{self.signal.name} knows no outcomes of requests")
            return ()
        if given is None:
            return GAVE_UP if is_latency else FAILED
        if not given and not is_latency:
            self._fault("bad_outcomes", "no outcome would be bad: name at least one")
        for outcome in given:
            if outcome not in OUTCOMES:
                self._fault(
                    "bad_outcomes", f'"{outcome}" is no outcome{closest(outcome, OUTCOMES)}'
                )
        return tuple(outcome for outcome in OUTCOMES if outcome in given)

    def _checks(self) -> tuple[tuple[str, Decimal], ...]:
        name, composite = self.spec.check, self.spec.composite
        for key in _BY_KEY:
            if key != self.signal.name:
                self._refuse(key, f"the signal is {self.signal.name}")
            elif getattr(self.spec, key) is None:
                self._fault("signal", f"{key} needs the key `{key}`")
        if self.signal.name == "check" and name:
            return ((name, Decimal(1)),)
        if self.signal.name != "composite" or not composite:
            return ()
        if (weights := sum(composite.values())) != 1:
            self._fault("composite", f"the weights add up to {weights}, not to 1")
        return tuple(composite.items())

    def _query(self) -> Query | None:
        query = self.spec.promql
        return query and Query(query.bad, query.total, query.value)

    # --- what is counted ---

    def _budgeting(self) -> Budgeting:
        given = self.spec.budgeting
        if self.signal.shape is not Shape.VALUE:
            return given or Budgeting.OCCURRENCES
        if given is Budgeting.OCCURRENCES:
            self._fault(
                "budgeting",
                f"{self.signal.name} is a value, of which only bad time can be counted: write"
                " timeslices or leave the key out",
            )
        return Budgeting.TIMESLICES

    def _slice_target(self, budgeting: Budgeting) -> Decimal | None:
        given = self.spec.slice_target
        if budgeting is Budgeting.OCCURRENCES:
            return self._refuse("slice_target", "it belongs to `budgeting: timeslices`")
        if self.signal.shape is Shape.VALUE:
            return self._refuse("slice_target", "a slice is bad while the value is above threshold")
        if not given:
            self._fault(
                "slice_target",
                "`slice_target` is missing: write which percentage of its events makes a slice"
                " good, as 95",
            )
        return given

    def _window(self) -> Window:
        window = self.spec.window or self.context.window
        if window.seconds <= self.context.evaluation.base:
            base = format_duration(self.context.evaluation.base)
            keys = (*self.at, "window") if self.spec.window else ("window",)
            self.found.fault(keys, f"the period must be longer than the base window, {base}")
        return window

    # --- of which it speaks ---

    def _selection(self) -> Selection:
        spec = self.spec
        self._check_class()
        if spec.tenant and self.signal.needs is not Needs.EVENTS:
            self._refuse("tenant", "only business events tell tenants apart")
        if spec.prompt_tokens and not self.signal.classed:
            self._refuse("prompt_tokens", f"{self.signal.name} is not known by prompt length")
        for label in spec.per:
            if label in _OWN_LABELS:
                self._fault("per", f"{label} is a label of the rules' own: choose another")
        if len(set(spec.per)) < len(spec.per):
            self._fault("per", "a label is there twice: write each once")
        return Selection(
            match=match_of(self.context.spec),
            sla_class=spec.class_,
            tenant=spec.tenant,
            prompts=self._prompts() if self.signal.classed else (),
            per=tuple(sorted(spec.per)),
        )

    def _check_class(self) -> None:
        name, classes = self.spec.class_, self.context.classes
        if name is not None and not self.signal.classed and self.signal.needs is not Needs.EVENTS:
            self._refuse("class", f"{self.signal.name} is not known by class")
        elif name is not None and name not in {*classes, "default"}:
            self._fault("class", f'"{name}" is not among `classes`{closest(name, classes)}')
        elif self.signal.name == "goodput":
            self._check_targets(name)

    def _check_targets(self, name: str | None) -> None:
        """Goodput is to meet all targets of a class, so there have to be some."""
        classes = self.context.classes
        of = [classes[name]] if name in classes else [] if name else list(classes.values())
        if not any(c.ttft or c.tpot or c.e2e for c in of):
            which = f"class {name}" if name else "any class"
            self._fault("signal", f"goodput needs a target of {which}: ttft, tpot or e2e")

    def _prompts(self) -> tuple[PromptRange, ...]:
        parts, own = self.context.prompt_classes, self.spec.prompt_tokens
        if own is not None:
            return within(parts, own)
        others = [other for other in self.context.spec.objectives if self._is_of_a_kind(other)]
        claimed = [other.prompt_tokens for other in others if other.prompt_tokens is not None]
        left = rest(parts, claimed)
        if left is None:
            names = ", ".join(other.name for other in others if other.prompt_tokens)
            self._fault("prompt_tokens", f"every length is claimed by {names}: name a range too")
        return left or ()

    def _is_of_a_kind(self, other: ObjectiveSpec) -> bool:
        mine = (self.signal.name, self.spec.class_, self.spec.tenant)
        return (signal_of(other), other.class_, other.tenant) == mine

    # --- who hears of it ---

    def _urgency(self) -> Urgency:
        target = self.context.classes.get(self.spec.class_ or "")
        return self.spec.urgency or (target.urgency if target else Urgency.ALWAYS)

    def _response(self) -> tuple[Tier, ...]:
        if self.spec.response is None:
            return self.context.response
        return response(self.spec.response, self.context.spec, (*self.at, "response"), self.found)

    def _conditions(
        self, budget: Decimal, budgeting: Budgeting, *, pages: bool
    ) -> tuple[tuple[Burn, ...], Outage | None]:
        own, shared = self.spec.alerting, self.context.spec.alerting
        evaluation, window = self.context.evaluation, self.spec.window or self.context.window
        at: Keys = self.at if own else ()
        alerting = own or shared or AlertingSpec()
        burns: tuple[Burn, ...] = ()
        outage = None
        try:
            rules = burn_rules(alerting)
            burns, notes = burns_for(
                budget, window, budgeting, evaluation, pages=pages, rules=rules
            )
            self.found.notes += [f"{self.spec.name}: {note}" for note in notes]
        except BurnError as error:
            self.found.fault((*at, "alerting", "burns"), str(error))
        try:
            if pages:
                outage = outage_for(budget, budgeting, evaluation, outage_rule(alerting))
        except BurnError as error:
            self.found.fault((*at, "alerting", "outage"), str(error))
        return burns, outage


def match_of(spec: Spec) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """In one order, so that equal files make equal plans."""
    return tuple((label, tuple(sorted(set(spec.match[label])))) for label in sorted(spec.match))


def burn_rules(alerting: AlertingSpec) -> tuple[BurnRule, ...] | None:
    """None takes the defaults. Raises BurnError."""
    if alerting.burns is None:
        return None
    return tuple(
        BurnRule(b.name, b.long, b.short, b.budget, b.severity, b.min_bad, b.min_total)
        for b in alerting.burns
    )


def outage_rule(alerting: AlertingSpec) -> OutageRule:
    outage = alerting.outage
    if outage is None:
        return OutageRule()
    return OutageRule(outage.ratio, outage.window, outage.min_bad, outage.min_total)
