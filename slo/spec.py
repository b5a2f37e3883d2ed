"""The SLO file as it is written: what may stand where, before any default is filled in.

What the keys mean together (slo.resolve) and how the faults of a file are told (slo.load) lie
elsewhere; docs/slo.md and the JSON Schema follow from the fields here.
"""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator

from .plan import Budgeting, Severity, Urgency
from .values import (
    LabelName,
    Match,
    Name,
    ObjectivePercent,
    PageUrl,
    Percent,
    Period,
    Positive,
    Prompts,
    Seconds,
    Text,
    Threshold,
    Time,
    Url,
    WarningThreshold,
    Weekdays,
    Whens,
    WholeSeconds,
)


class Part(BaseModel):
    """A mapping of the file. Unknown keys are faults."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ClassSpec(Part):
    """What a class of requests is promised. Goodput asks for all its targets together."""

    ttft: Seconds | None = Field(default=None, description="Time to first token.")
    tpot: Seconds | None = Field(default=None, description="Time per output token.")
    e2e: Seconds | None = Field(default=None, description="End-to-end latency.")
    urgency: Urgency = Field(
        default=Urgency.ALWAYS,
        description="When its alerts may wake somebody: always, or office-hours.",
    )


class ClassesSpec(Part):
    """What a request is worth to the business: a class a key, and how they are told apart."""

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, ClassSpec] = Field(init=False)

    header: Text = Field(
        default="x-sla-class",
        description="HTTP header by which the probe tells them apart; without it, `default`.",
    )

    @property
    def named(self) -> dict[str, ClassSpec]:
        return self.__pydantic_extra__


class BurnSpec(Part):
    """A burn-rate condition of one's own, in place of the defaults."""

    name: Name = Field(description="For alerts and annotations: fast, slow.")
    long: WholeSeconds = Field(description="Long window.")
    short: WholeSeconds = Field(description="Short window, which ends the alert.")
    budget: Percent = Field(description="Percent of the budget spent within the long window.")
    severity: Severity = Field(description="page or ticket.")
    min_bad: Decimal | None = Field(
        default=None, gt=0, description="Least bad events in the long window. Default: 5."
    )
    min_total: Decimal | None = Field(
        default=None, gt=0, description="Least events there. Default: 10 to page, 20 to ticket."
    )


class OutageSpec(Part):
    """Nearly everything fails: pages within minutes at every objective."""

    ratio: Percent | None = Field(
        default=None, description="Percent bad. Default: 50, more where the budget is large."
    )
    window: WholeSeconds | None = Field(default=None, description="Default: the base window.")
    min_bad: Decimal | None = Field(
        default=None, gt=0, description="Least bad events in the window. Default: 3."
    )
    min_total: Decimal | None = Field(
        default=None, gt=0, description="Least events there. Default: min_bad."
    )


class AlertingSpec(Part):
    burns: tuple[BurnSpec, ...] | None = Field(
        default=None, min_length=1, description="Burn-rate conditions, in place of the defaults."
    )
    outage: OutageSpec | None = Field(default=None, description="The outage condition.")


class EvaluationSpec(Part):
    """How Prometheus scrapes and runs the rules."""

    scrape_interval: WholeSeconds = Field(default=15, description="Of the sidecar's page.")
    interval: WholeSeconds = Field(default=30, description="Between two runs of the rules.")
    base: WholeSeconds = Field(
        default=300, description="Window of the base rates; at least four scrape intervals."
    )


class TierSpec(Part):
    """Who acts, and when."""

    tier: int = Field(ge=1, le=3, description="1 acts at once, 3 reviews.")
    team: Text = Field(description="Who acts; a label of its alerts.")
    receiver: Name = Field(description="Where its alerts go.")
    tickets: Name | None = Field(
        default=None, description="Where its tickets go. Default: the same receiver."
    )
    when: Whens | None = Field(
        default=None,
        description="What sets it off. Default: incident (1), fast burn and slow burn (2), budget"
        " exhausted and repeated (3).",
    )
    after: WholeSeconds | None = Field(
        default=None,
        description="Also an incident that has lasted this long. Default: 30m for tier 2 without"
        " `when`.",
    )
    times: PositiveInt | None = Field(
        default=None, ge=2, description="Incidents that make `repeated`. Default: 3."
    )
    within: WholeSeconds | None = Field(default=None, description="… in so long. Default: 7d.")


class PromqlSpec(Part):
    """One's own query; `$window` stands for the base window."""

    bad: Text | None = Field(default=None, description="Bad events a second.")
    total: Text | None = Field(default=None, description="All events a second.")
    value: Text | None = Field(
        default=None, description="A value that is bad while above `threshold`."
    )

    @model_validator(mode="after")
    def _is_one_of_two(self) -> Self:
        given = {name for name in ("bad", "total", "value") if getattr(self, name)}
        if given not in ({"bad", "total"}, {"value"}):
            raise ValueError("write either bad and total, or value alone")
        return self


class ObjectiveSpec(Part):
    """One SLO."""

    name: Name = Field(description="Unique in the file; the label `slo` of its series.")
    signal: Text | None = Field(
        default=None,
        description="What it is about, see the table of signals. Default: check, composite or"
        " promql where that key is given.",
    )
    objective: ObjectivePercent = Field(description="Percent that is to be good: 99.5.")
    description: Text | None = Field(default=None, description="For people; in annotations.")
    threshold: Threshold | None = Field(
        default=None,
        description="What is slower or more is bad: a duration for latencies, else a number."
        " Default: the class's target, or that of the signal.",
    )
    over: WholeSeconds | None = Field(
        default=None, description="Window of a value. Default: that of the signal."
    )
    class_: Name | None = Field(default=None, alias="class", description="One class. Default: all.")
    tenant: Text | None = Field(default=None, description="One tenant. Default: all.")
    prompt_tokens: Prompts | None = Field(
        default=None,
        description="Lengths of the prompt. Default: those that no other objective of the same"
        " signal, class and tenant claims.",
    )
    per: tuple[LabelName, ...] = Field(
        default=(), description="Labels by which it is split, with a budget for each value."
    )
    budgeting: Budgeting | None = Field(
        default=None,
        description="occurrences (bad events of all) or timeslices (bad slices of time). Default:"
        " occurrences; timeslices for values.",
    )
    slice_target: Percent | None = Field(
        default=None, description="Under timeslices: percent of a slice's events to be good."
    )
    window: Period | None = Field(default=None, description="Default: that of the file.")
    urgency: Urgency | None = Field(default=None, description="Default: that of the class.")
    pages: bool | None = Field(
        default=None, description="Whether it may page. Default: as the signal."
    )
    bad_outcomes: tuple[Text, ...] | None = Field(
        default=None,
        description="Outcomes of a request that are bad. Default: error, timeout, aborted,"
        " rejected, empty; of latencies, aborted and timeout.",
    )
    check: Name | None = Field(default=None, description="Name of a quality check.")
    composite: dict[Name, Positive] | None = Field(
        default=None, min_length=2, description="Quality checks and their weights, in all 1."
    )
    promql: PromqlSpec | None = Field(default=None, description="One's own query.")
    response: tuple[TierSpec, ...] | None = Field(
        default=None, min_length=1, description="In place of the file's."
    )
    alerting: AlertingSpec | None = Field(default=None, description="In place of the file's.")
    min_coverage: Percent = Field(
        default=Decimal("0.5"),
        description="Percent of the period that must have data before a budget is claimed.",
    )
    expect_traffic: bool = Field(
        default=False, description="Whether no traffic is itself worth a ticket."
    )


class PagerdutySpec(Part):
    """PagerDuty, Events API v2."""

    routing_key_file: Text = Field(description="File that holds the integration key.")


class SlackSpec(Part):
    api_url_file: Text = Field(description="File that holds the webhook's URL.")
    channel: Text = Field(description='As in "#ops".')


class WebhookSpec(Part):
    url: Url = Field(description="Where Alertmanager posts.")


class EmailSpec(Part):
    to: Text = Field(description="Address.")
    from_: Text | None = Field(default=None, alias="from", description="Sender.")
    smarthost: Text | None = Field(default=None, description="HOST:PORT of the mail server.")
    auth_username: Text | None = Field(default=None, description="User there.")
    auth_password_file: Text | None = Field(default=None, description="File of the password.")


class ReceiverSpec(Part):
    """Where notifications go: one of the four. Secrets are only ever named by their file."""

    KINDS: ClassVar[tuple[str, ...]] = ("pagerduty", "slack", "webhook", "email")

    pagerduty: PagerdutySpec | None = Field(default=None, description="PagerDuty.")
    slack: SlackSpec | None = Field(default=None, description="Slack.")
    webhook: WebhookSpec | None = Field(default=None, description="Any HTTP endpoint.")
    email: EmailSpec | None = Field(default=None, description="Mail.")

    @model_validator(mode="after")
    def _is_one_of_four(self) -> Self:
        if sum(getattr(self, kind) is not None for kind in self.KINDS) != 1:
            raise ValueError(f"write one of {', '.join(self.KINDS)}")
        return self


class OfficeHoursSpec(Part):
    """When urgency office-hours notifies, and tier 3."""

    weekdays: Weekdays = Field(default="monday:friday", description="As Alertmanager's.")
    start: Time = Field(default="09:00", description="HH:MM.")
    end: Time = Field(default="18:00", description="HH:MM, not included.")
    location: Text = Field(default="UTC", description="Time zone, as in Europe/Berlin.")

    @model_validator(mode="after")
    def _is_a_day(self) -> Self:
        if self.start >= self.end:
            raise ValueError(f"{self.start} to {self.end} is no time: start comes before end")
        return self


class CanarySpec(Part):
    """Targets to compare: a canary with what it replaces."""

    label: LabelName = Field(description="Label of the targets that tells them apart.")
    canary: Text = Field(description="Its value at the canary.")
    baseline: Text = Field(description="Its value at what the canary replaces.")


class Spec(Part):
    """An SLO file."""

    service: Name = Field(description="What the objectives are about; the label `service`.")
    owner: Text | None = Field(default=None, description="The team. Default: the service.")
    description: Text | None = Field(default=None, description="For people.")
    match: Match = Field(
        default_factory=dict,
        description="Which series the file speaks of: label to value, or to a list of values.",
    )
    classes: ClassesSpec | None = Field(default=None, description="Classes of requests.")
    window: Period | None = Field(
        default=None,
        description="Period of the budgets: rolling, or {calendar: month} or {calendar: week}."
        " Default: 30d.",
    )
    objectives: tuple[ObjectiveSpec, ...] = Field(min_length=1, description="The SLOs.")
    response: tuple[TierSpec, ...] | None = Field(
        default=None, min_length=1, description="Who acts, and when."
    )
    receivers: dict[Name, ReceiverSpec] | None = Field(
        default=None, min_length=1, description="Receivers of the response, by name."
    )
    office_hours: OfficeHoursSpec = Field(
        default_factory=OfficeHoursSpec, description="When office-hours is."
    )
    evaluation: EvaluationSpec = Field(
        default_factory=EvaluationSpec, description="How the rules are run."
    )
    alerting: AlertingSpec | None = Field(
        default=None, description="Burn-rate and outage conditions, in place of the defaults."
    )
    runbook_url: PageUrl | None = Field(
        default=None, description="Of the runbooks; {alert} is the name of the alert."
    )
    dashboard_url: Url | None = Field(default=None, description="Of the dashboard.")
    warnings: dict[str, WarningThreshold] = Field(
        default_factory=dict, description="Early warnings: another threshold, or off."
    )
    canary: CanarySpec | None = Field(default=None, description="A canary and its baseline.")
