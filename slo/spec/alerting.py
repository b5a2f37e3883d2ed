"""Burn-rate and outage conditions as they are written, and who acts on them."""

from __future__ import annotations

from pydantic import Field, field_validator

from ..plan import Severity
from .part import Part
from .values import Count, Name, Percent, Plain, TierNumber, Times, Whens, WholeSeconds


class BurnSpec(Part):
    """A burn-rate condition of one's own, in place of the defaults."""

    name: Name = Field(description="For alerts and annotations: fast, slow.")
    long: WholeSeconds = Field(description="Long window.")
    short: WholeSeconds = Field(description="Short window, which ends the alert.")
    budget: Percent = Field(description="Percent of the budget spent within the long window.")
    severity: Severity = Field(description="page or ticket.")
    min_bad: Count | None = Field(
        default=None, description="Least bad events in the long window. Default: 5."
    )
    min_total: Count | None = Field(
        default=None, description="Least events there. Default: 10 to page, 20 to ticket."
    )


class OutageSpec(Part):
    """Nearly everything fails: pages within minutes at every objective."""

    ratio: Percent | None = Field(
        default=None, description="Percent bad. Default: 50, more where the budget is large."
    )
    window: WholeSeconds | None = Field(default=None, description="Default: the base window.")
    min_bad: Count | None = Field(
        default=None, description="Least bad events in the window. Default: 3."
    )
    min_total: Count | None = Field(
        default=None, description="Least events there. Default: min_bad."
    )


class AlertingSpec(Part):
    burns: tuple[BurnSpec, ...] | None = Field(
        default=None, min_length=1, description="Burn-rate conditions, in place of the defaults."
    )
    outage: OutageSpec | None = Field(default=None, description="The outage condition.")

    @field_validator("burns")
    @classmethod
    def _names_are_unique(cls, burns: tuple[BurnSpec, ...]) -> tuple[BurnSpec, ...]:
        names = [burn.name for burn in burns]
        if len(set(names)) < len(names):
            raise ValueError(f"a name is there twice among {', '.join(names)}: write each once")
        return burns


class TierSpec(Part):
    """Who acts, and when."""

    tier: TierNumber = Field(description="1 acts at once, 3 reviews.")
    team: Plain = Field(description="Who acts; a label of its alerts.")
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
    times: Times | None = Field(
        default=None, description="Incidents that make `repeated`. Default: 3."
    )
    within: WholeSeconds | None = Field(default=None, description="… in so long. Default: 7d.")
