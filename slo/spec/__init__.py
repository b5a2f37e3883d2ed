"""The SLO file as it is written: what may stand where, before any default is filled in.

What the keys mean together (slo.resolve) and how the faults of a file are told (slo.load) lie
elsewhere; docs/slo.md and the JSON Schema follow from the fields here.
"""

from __future__ import annotations

from pydantic import ConfigDict, Field

from ..plan import Urgency
from .alerting import AlertingSpec, BurnSpec, OutageSpec, TierSpec
from .objective import ObjectiveSpec, PromqlSpec
from .part import Part
from .receivers import OfficeHoursSpec, ReceiverSpec
from .values import (
    LabelName,
    Line,
    Match,
    Name,
    PageUrl,
    Period,
    Plain,
    Seconds,
    Text,
    Url,
    WarningThreshold,
    WholeSeconds,
)

__all__ = [
    "AlertingSpec",
    "BurnSpec",
    "ClassSpec",
    "ClassesSpec",
    "ObjectiveSpec",
    "OfficeHoursSpec",
    "OutageSpec",
    "Part",
    "PromqlSpec",
    "ReceiverSpec",
    "Spec",
    "TierSpec",
]


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

    header: Line = Field(
        default="x-sla-class",
        description="HTTP header by which the probe tells them apart; without it, `default`.",
    )

    @property
    def named(self) -> dict[str, ClassSpec]:
        return self.__pydantic_extra__


class EvaluationSpec(Part):
    """How Prometheus scrapes and runs the rules."""

    scrape_interval: WholeSeconds = Field(
        default=15, json_schema_extra={"default": "15s"}, description="Of the sidecar's page."
    )
    interval: WholeSeconds = Field(
        default=30,
        json_schema_extra={"default": "30s"},
        description="Between two runs of the rules.",
    )
    base: WholeSeconds = Field(
        default=300,
        json_schema_extra={"default": "5m"},
        description="Window of the base rates; at least four scrape intervals.",
    )


class CanarySpec(Part):
    """Targets to compare: a canary with what it replaces."""

    label: LabelName = Field(description="Label of the targets that tells them apart.")
    canary: Line = Field(description="Its value at the canary.")
    baseline: Line = Field(description="Its value at what the canary replaces.")


class Spec(Part):
    """An SLO file."""

    service: Name = Field(description="What the objectives are about; the label `service`.")
    owner: Plain | None = Field(default=None, description="The team. Default: the service.")
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
        default=None, description="Of the runbooks; {alert} and {service} are filled in."
    )
    dashboard_url: Url | None = Field(default=None, description="Of the dashboard.")
    warnings: dict[str, WarningThreshold] = Field(
        default_factory=dict, description="Early warnings: another threshold, or off."
    )
    canary: CanarySpec | None = Field(default=None, description="A canary and its baseline.")
