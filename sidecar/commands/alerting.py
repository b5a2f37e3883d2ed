"""What `inferslo alerts` and `inferslo silence` do."""

from __future__ import annotations

import getpass
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import typer

from ...rules.alertmanager.api import Alert, Matcher, Silence
from ...rules.alertmanager.client import Alertmanager
from ...rules.naming import WATCHDOG
from ...slo.errors import closest
from ...slo.quantities import parse_duration
from ..printable import printable
from ..settings.load import load_target
from ..settings.values import read_token

_LONGEST = timedelta(days=7)
_ORIGINS = {"url": "--alertmanager", "bearer_token_file": "--token-file", "ca_file": "--ca-file"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A silence to be. by: who makes it, None is the user who runs the command."""

    matchers: Sequence[Matcher]
    lasts: timedelta
    comment: str
    by: str | None


def client(urls: Sequence[str], token_file: str | None, ca_file: str | None) -> Alertmanager:
    """Raises SettingsError."""
    files = {"bearer_token_file": token_file, "ca_file": ca_file}
    targets = [load_target({"url": url, **files}, _ORIGINS) for url in urls]
    token: Path | None = targets[0].bearer_token_file
    return Alertmanager(
        [target.url for target in targets],
        token=(lambda: read_token(token)) if token else None,
        ca_file=targets[0].ca_file,
    )


def matchers(written: Iterable[str]) -> list[Matcher]:
    try:
        return [Matcher.parse(text) for text in written]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def lasting(duration: str, force: bool) -> timedelta:
    """How long a silence lasts; above a week only by force."""
    try:
        lasts = timedelta(seconds=float(parse_duration(duration)))
    except ValueError as error:
        raise typer.BadParameter(f"--for {error}") from None
    if lasts > _LONGEST and not force:
        raise typer.BadParameter(
            f"--for {duration} is longer than 7d, and nobody remembers such a silence: fix the"
            " alert, or add --force"
        )
    return lasts


def firing(client: Alertmanager, matchers: Sequence[Matcher]) -> list[Alert]:
    """The first tier first, in it the oldest."""
    found = client.alerts(matchers)
    return sorted(found, key=lambda alert: (alert.labels.get("tier", "~"), alert.starts_at))


def silences(client: Alertmanager, *, over: bool) -> list[Silence]:
    found = [each for each in client.silences() if over or each.state != "expired"]
    return sorted(found, key=lambda silence: silence.ends_at)


def silence(client: Alertmanager, wanted: Wanted) -> str:
    """Makes the silence; says which and what it mutes."""
    if not wanted.comment.strip():
        raise typer.BadParameter("--comment is empty: say why, for whoever finds it at night")
    if all(map(_is_met_by_nothing, wanted.matchers)):
        raise typer.BadParameter("that would silence everything: name a service, an slo or a tier")
    now = datetime.now(UTC)
    end = now + wanted.lasts
    matchers = _sparing_the_watchdog(wanted.matchers)
    held = client.alerts()
    muted = len(client.alerts(matchers))
    id = client.silence(
        matchers,
        start=now,
        end=end,
        created_by=wanted.by or _login(),
        comment=wanted.comment,
    )
    mutes = f"mutes {muted} that fire now" if muted else "no alert that fires now is muted by it"
    lines = [f"{id} until {_time(end)}: {mutes}", *_doubts(matchers, held)]
    return "\n".join([*lines, f"to end it: inferslo silence expire {id}"])


def _is_met_by_nothing(matcher: Matcher) -> bool:
    """Whether it holds of an alert without the label, as a regular expression of anything does."""
    if not matcher.is_regex:
        return matcher.is_equal is (not matcher.value)
    try:
        return matcher.is_equal is bool(re.fullmatch(matcher.value, ""))
    except re.error:  # Alertmanager's are of another kind, and it says what is wrong
        return False


def _sparing_the_watchdog(matchers: Sequence[Matcher]) -> list[Matcher]:
    """Whoever mutes a service does not mean its dead man's switch, which would call somebody."""
    if any((each.name, each.value) == ("alertname", WATCHDOG.name) for each in matchers):
        return list(matchers)
    return [*matchers, Matcher("alertname", WATCHDOG.name, is_equal=False)]


def _doubts(matchers: Sequence[Matcher], held: Iterable[Alert]) -> Iterator[str]:
    """The watchdog of each service always fires, so that a service not among them is a slip."""
    services = {alert.labels["service"] for alert in held if "service" in alert.labels}
    named = (m.value for m in matchers if m.name == "service" and m.is_equal and not m.is_regex)
    for service in named:
        if services and service not in services:
            yield f"but no alert is of a service {service}{closest(service, services)}"


def check_ids(ids: Iterable[str]) -> None:
    """Before any silence ends: what people type where an ID belongs is a name or a matcher."""
    for id in ids:
        try:
            UUID(id)
        except ValueError:
            raise typer.BadParameter(
                f'"{id}" is not the ID of a silence: `inferslo silence list` tells them'
            ) from None


def as_json(found: Sequence[Alert | Silence]) -> str:
    return json.dumps([asdict(each) for each in found], default=datetime.isoformat, indent=2)


def alert_table(found: Sequence[Alert]) -> str:
    if not found:
        return "no alert fires"
    head = ("TIER", "SEVERITY", "SINCE", "STATE", "SERVICE", "SLO", "ALERT", "SUMMARY")
    return _table(head, map(_row, found))


def _row(alert: Alert) -> tuple[str, ...]:
    labels = (alert.labels.get(label, "-") for label in ("tier", "severity", "service", "slo"))
    tier, severity, service, slo = labels
    name, summary = alert.labels.get("alertname", "-"), alert.annotations.get("summary", "-")
    return (tier, severity, _time(alert.starts_at), _state(alert), service, slo, name, summary)


def _state(alert: Alert) -> str:
    if alert.silenced_by:
        return "silenced"
    return "inhibited" if alert.inhibited_by else alert.state


def silence_table(found: Sequence[Silence]) -> str:
    if not found:
        return "no silence"
    rows = (
        (
            silence.id,
            silence.state,
            _time(silence.ends_at),
            silence.created_by,
            " ".join(map(str, silence.matchers)),
            silence.comment,
        )
        for silence in found
    )
    return _table(("ID", "STATE", "UNTIL", "BY", "MATCHERS", "COMMENT"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns as wide as what is in them, but for the last. Labels may hold anything."""
    lines = [head, *([printable(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}Z"


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return "inferslo"
