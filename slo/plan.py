"""What an SLO file means once every default is filled in.

The seam between `slo` and its readers: rules, dashboards and the judge read a Plan and nothing
else, so that all of them judge the same thing. Everything here is immutable and validated;
`slo.resolve` is the only maker.

Numbers are Decimal (99.9 % leaves a budget of exactly 0.001), durations are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from .signals import Signal

# Where runbooks are if the file does not say: a host that is nobody's (RFC 2606).
NO_RUNBOOKS = "https://inferslo.example/runbooks/{alert}"


class Budgeting(StrEnum):
    """What the budget counts: events, or slices of time that were bad (OpenSLO's names)."""

    OCCURRENCES = "occurrences"
    TIMESLICES = "timeslices"


class Severity(StrEnum):
    PAGE = "page"
    TICKET = "ticket"


class Urgency(StrEnum):
    ALWAYS = "always"
    OFFICE_HOURS = "office-hours"


class Calendar(StrEnum):
    MONTH = "month"
    WEEK = "week"


@dataclass(frozen=True, slots=True)
class Window:
    """The period of a budget. seconds: its length (nominal, 30 d, for a calendar month).
    calendar: None if rolling; else the budget starts anew with each month or week, UTC."""

    seconds: int
    calendar: Calendar | None = None


@dataclass(frozen=True, slots=True)
class Floor:
    """An alert needs at least so many events in its longest window, so that one failure at 3 a.m.
    pages nobody. Under timeslices the events are slices."""

    bad: Decimal
    total: Decimal


@dataclass(frozen=True, slots=True)
class Burn:
    """One multi-window burn-rate condition: the budget burns `factor` times too fast over both
    windows. threshold = factor x budget < 1, else it could never hold and is not in the plan."""

    name: str  # fast, medium, slow, creeping
    long: int
    short: int
    factor: Decimal
    threshold: Decimal  # the bad ratio at which it holds
    severity: Severity
    floor: Floor


@dataclass(frozen=True, slots=True)
class Outage:
    """Pages within minutes at every objective: nearly all that is asked for fails."""

    ratio: Decimal
    window: int
    floor: Floor


@dataclass(frozen=True, slots=True)
class PromptRange:
    """Prompt lengths in tokens: above < length ≤ upto. None is no bound."""

    above: int | None = None
    upto: int | None = None

    @property
    def label(self) -> str:
        """The value of the label `prompt_class` for exactly this range: "", "gt_8000", "le_8000",
        "gt_2000_le_8000"."""
        parts = []
        if self.above is not None:
            parts.append(f"gt_{self.above}")
        if self.upto is not None:
            parts.append(f"le_{self.upto}")
        return "_".join(parts)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which events an objective speaks of.

    match: labels of the service's own series (model_name, job, namespace, app, …) → the values
    allowed. sla_class, tenant: None is all. prompts: the prompt classes of the file that belong
    to it, () is all lengths. per: labels that split the objective into one budget each.
    """

    match: tuple[tuple[str, tuple[str, ...]], ...] = ()
    sla_class: str | None = None
    tenant: str | None = None
    prompts: tuple[PromptRange, ...] = ()
    per: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """The user's own PromQL; `$window` stands for the base window. Either bad and total (events a
    second), or value, which is bad while above the objective's threshold."""

    bad: str | None = None
    total: str | None = None
    value: str | None = None


class When(StrEnum):
    """What sets off a tier of the response."""

    INCIDENT = "incident"  # any paging condition: outage, fast or medium burn, threshold crossed
    FAST_BURN = "fast burn"
    SLOW_BURN = "slow burn"  # the ticket conditions
    BUDGET_EXHAUSTED = "budget exhausted"
    REPEATED = "repeated"  # `times` incidents within `within` seconds


@dataclass(frozen=True, slots=True)
class Tier:
    """Who acts and when. after: seconds that an incident has lasted, None if that is no reason.
    receiver and tickets: names of receivers; tickets get what is not urgent."""

    tier: int
    team: str
    receiver: str
    tickets: str
    when: frozenset[When]
    after: int | None = None
    times: int = 3
    within: int = 7 * 86400


@dataclass(frozen=True, slots=True)
class Objective:
    """One SLO. budget = 1 - objective, exact.

    threshold: of a LATENCY (seconds) or VALUE signal. bad_outcomes: outcomes of a request that
    are bad: for availability what fails; for latency those that gave up and are in no histogram,
    hence late. over: the window of a VALUE, seconds. checks: name → weight, for `check` (one of
    weight 1) and `composite` (weights add up to 1).
    slice_target: under timeslices, the good ratio that a slice of events needs to be good.
    """

    name: str
    signal: Signal
    objective: Decimal  # 0 < objective < 1
    budget: Decimal
    budgeting: Budgeting
    window: Window
    selection: Selection
    burns: tuple[Burn, ...]
    outage: Outage | None  # None where the objective never pages
    response: tuple[Tier, ...]
    urgency: Urgency
    description: str
    threshold: Decimal | None = None
    over: int | None = None
    bad_outcomes: tuple[str, ...] = ()
    checks: tuple[tuple[str, Decimal], ...] = ()
    query: Query | None = None
    slice_target: Decimal | None = None
    min_coverage: Decimal = Decimal("0.5")  # no budget is claimed below it
    expect_traffic: bool = False  # no traffic is itself worth a ticket

    @property
    def chance(self) -> Decimal:
        """Fewer bad events than this may be chance, however small the budget: the floor of the
        condition that looks back longest."""
        floors = [(burn.long, burn.floor.bad) for burn in self.burns]
        floors += [(self.outage.window, self.outage.floor.bad)] if self.outage else []
        return max(floors)[1] if floors else Decimal(0)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How rules are run, seconds. base: the window of the base rates, and of a timeslice."""

    scrape_interval: int = 15
    interval: int = 30
    base: int = 300


@dataclass(frozen=True, slots=True)
class ClassTarget:
    """Targets of a class of requests that goodput asks for together. Seconds; None is no target."""

    name: str
    ttft: Decimal | None = None
    tpot: Decimal | None = None
    e2e: Decimal | None = None
    urgency: Urgency = Urgency.ALWAYS


@dataclass(frozen=True, slots=True)
class Receiver:
    """Where notifications go. kind: pagerduty, slack, webhook, email. settings: as Alertmanager
    names them; a secret is only ever the name of a file (keys that end in _file)."""

    name: str
    kind: str
    settings: tuple[tuple[str, str | bool], ...]


@dataclass(frozen=True, slots=True)
class OfficeHours:
    """weekdays: as Alertmanager writes them, "monday:friday"; times "09:00", "18:00"."""

    weekdays: str = "monday:friday"
    start: str = "09:00"
    end: str = "18:00"
    location: str = "UTC"


@dataclass(frozen=True, slots=True)
class Canary:
    """A label of the targets and its two values, to compare a canary with what it replaces."""

    label: str
    canary: str
    baseline: str


@dataclass(frozen=True, slots=True)
class Plan:
    """One SLO file, every default filled in. warnings: early warnings by name → threshold,
    those switched off left out (rules/warnings.yaml has the defaults)."""

    service: str
    owner: str
    selection: Selection  # what the file as a whole matches
    objectives: tuple[Objective, ...]
    response: tuple[Tier, ...]
    evaluation: Evaluation = Evaluation()
    classes: tuple[ClassTarget, ...] = ()
    class_header: str | None = None
    prompt_classes: tuple[PromptRange, ...] = ()  # every length falls into exactly one; () if none
    receivers: tuple[Receiver, ...] = ()
    office_hours: OfficeHours = OfficeHours()
    runbook_url: str = NO_RUNBOOKS
    dashboard_url: str | None = None
    warnings: tuple[tuple[str, Decimal | None], ...] = ()  # overrides: None switches one off
    canary: Canary | None = None
    notes: tuple[str, ...] = ()  # what the user should know: replaced tiers, needs of signals
