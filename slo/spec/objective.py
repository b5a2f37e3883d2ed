"""An objective as it is written."""

from __future__ import annotations

from decimal import Decimal
from typing import Self

from pydantic import Field, model_validator

from ..plan import Budgeting, Urgency
from .alerting import AlertingSpec, TierSpec
from .part import Part
from .values import (
    LabelName,
    Line,
    Name,
    ObjectivePercent,
    Percent,
    Period,
    Positive,
    Prompts,
    QueryText,
    Text,
    Threshold,
    WholeSeconds,
)


class PromqlSpec(Part):
    """One's own query; `$window` stands for the base window."""

    bad: QueryText | None = Field(default=None, description="Bad events a second.")
    total: QueryText | None = Field(default=None, description="All events a second.")
    value: QueryText | None = Field(
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
    tenant: Line | None = Field(default=None, description="One tenant. Default: all.")
    prompt_tokens: Prompts | None = Field(
        default=None,
        description="Lengths of the prompt. Default: those that no other objective of the same"
        " signal and class claims.",
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
        json_schema_extra={"default": 50},
        description="Percent of the period that must have data before a budget is claimed.",
    )
    expect_traffic: bool = Field(
        default=False, description="Whether no traffic is itself worth a ticket."
    )
