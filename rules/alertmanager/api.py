"""What Alertmanager's API v2 speaks of. https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml

Each class reads itself from JSON, raising KeyError, TypeError or ValueError if that is something
else; what is sent also writes itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

_MATCHER = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*("?)(.*)\3', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert that Alertmanager holds. state: active, suppressed (silenced or inhibited) or
    unprocessed. receivers: whom its routes name, notified or not."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    starts_at: datetime
    ends_at: datetime
    state: str
    silenced_by: tuple[str, ...]
    inhibited_by: tuple[str, ...]
    receivers: tuple[str, ...]
    fingerprint: str
    generator_url: str

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Self:
        return cls(
            labels=_texts(data["labels"]),
            annotations=_texts(data["annotations"]),
            starts_at=_time(data["startsAt"]),
            ends_at=_time(data["endsAt"]),
            state=str(data["status"]["state"]),
            silenced_by=tuple(map(str, data["status"]["silencedBy"])),
            inhibited_by=tuple(map(str, data["status"]["inhibitedBy"])),
            receivers=tuple(str(receiver["name"]) for receiver in data["receivers"]),
            fingerprint=str(data["fingerprint"]),
            generator_url=str(data.get("generatorURL", "")),
        )


@dataclass(frozen=True, slots=True)
class Group:
    """Alerts that are told to a receiver together, and the labels that they share."""

    labels: Mapping[str, str]
    receiver: str
    alerts: tuple[Alert, ...]

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Self:
        alerts = tuple(Alert.read(alert) for alert in data["alerts"])
        return cls(_texts(data["labels"]), str(data["receiver"]["name"]), alerts)


@dataclass(frozen=True, slots=True)
class Report:
    """An alert to post. ends_at in the past resolves it; without one Alertmanager holds it for its
    resolve_timeout, 5 minutes, after which it ends unless it was posted again."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    generator_url: str = ""

    def written(self) -> dict[str, Any]:
        times = {"startsAt": self.starts_at, "endsAt": self.ends_at}
        return {
            "labels": dict(self.labels),
            "annotations": dict(self.annotations),
            "generatorURL": self.generator_url,
            **{key: _written(time) for key, time in times.items() if time},
        }


@dataclass(frozen=True, slots=True)
class Matcher:
    """A condition on a label. A label that is missing counts as empty."""

    name: str
    value: str
    is_regex: bool = False
    is_equal: bool = True

    @classmethod
    def parse(cls, text: str) -> Self:
        """Of name=value, name!=value, name=~regex or name!~regex, the value in quotes or not.
        Raises ValueError."""
        if not (found := _MATCHER.fullmatch(text.strip())):
            raise ValueError(f'"{text}" is not a matcher: write service=chat or slo=~"ttft.*"')
        name, operator, _, value = found.groups()
        return cls(name, value, operator.endswith("~"), operator.startswith("="))

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Self:
        regex, equal = bool(data["isRegex"]), bool(data.get("isEqual", True))
        return cls(str(data["name"]), str(data["value"]), regex, equal)

    def written(self) -> dict[str, Any]:
        named = {"name": self.name, "value": self.value}
        return named | {"isRegex": self.is_regex, "isEqual": self.is_equal}

    def __str__(self) -> str:
        operator = ("=" if self.is_equal else "!") + ("~" if self.is_regex else "=")
        operator = operator.replace("==", "=")
        escaped = self.value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'{self.name}{operator}"{escaped}"'


@dataclass(frozen=True, slots=True)
class Silence:
    """state: active, pending (begins later) or expired."""

    id: str
    matchers: tuple[Matcher, ...]
    starts_at: datetime
    ends_at: datetime
    created_by: str
    comment: str
    state: str

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Self:
        return cls(
            id=str(data["id"]),
            matchers=tuple(Matcher.read(matcher) for matcher in data["matchers"]),
            starts_at=_time(data["startsAt"]),
            ends_at=_time(data["endsAt"]),
            created_by=str(data["createdBy"]),
            comment=str(data["comment"]),
            state=str(data["status"]["state"]),
        )


@dataclass(frozen=True, slots=True)
class Status:
    """cluster: ready, settling or disabled. peers: addresses of the cluster, its own among them.
    config: the configuration as loaded, secrets hidden."""

    version: str
    started_at: datetime
    cluster: str
    peers: tuple[str, ...]
    config: str

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Self:
        cluster = data["cluster"]
        return cls(
            version=str(data["versionInfo"]["version"]),
            started_at=_time(data["uptime"]),
            cluster=str(cluster["status"]),
            peers=tuple(peer["address"] for peer in cluster.get("peers") or ()),
            config=str(data["config"]["original"]),
        )


def _texts(data: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in data.items()}


def _time(text: str) -> datetime:
    """In UTC, so that any two can be compared and written."""
    return datetime.fromisoformat(text).astimezone(UTC)


def _written(time: datetime) -> str:
    return time.astimezone(UTC).isoformat()
