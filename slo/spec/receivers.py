"""Where notifications go, and when."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import Field, model_validator

from .part import Part
from .values import HookUrl, HostPort, Location, Plain, SecretFile, Time, Weekdays


class PagerdutySpec(Part):
    """PagerDuty, Events API v2."""

    routing_key_file: SecretFile = Field(description="File that holds the integration key.")


class SlackSpec(Part):
    api_url_file: SecretFile = Field(description="File that holds the webhook's URL.")
    channel: Plain = Field(description='As in "#ops".')


class WebhookSpec(Part):
    url: HookUrl = Field(description="Where Alertmanager posts.")


class EmailSpec(Part):
    to: Plain = Field(description="Address.")
    from_: Plain = Field(alias="from", description="Sender.")
    smarthost: HostPort = Field(description="HOST:PORT of the mail server.")
    auth_username: Plain | None = Field(default=None, description="User there.")
    auth_password_file: SecretFile | None = Field(default=None, description="File of the password.")
    require_tls: bool | None = Field(
        default=None, description="Refuse a server without TLS. Alertmanager's default: true."
    )


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
    location: Location = Field(default="UTC", description="Time zone, as in Europe/Berlin.")

    @model_validator(mode="after")
    def _is_a_day(self) -> Self:
        if self.start >= self.end:
            raise ValueError(f"{self.start} to {self.end} is no time: start comes before end")
        return self
