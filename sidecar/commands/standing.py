"""What `inferslo status` and `inferslo watch` do: ask a sidecar, and say how all stands."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from ...exporters.reading import ErrorKind, SourceError
from ...slo.quantities import format_duration
from ..demo.live.texts import BANNER
from ..judge.gravity import about
from ..judge.levels import Level
from ..page.words import percent, times
from ..printable import printable
from ..reach import reach

_BAR = 10
_LEAST_NAME = 8
_CLEAR = "\x1b[H\x1b[J"


@dataclass(frozen=True, slots=True)
class Standing:
    """The documents of /v1/status and /v1/slo; slo is None where no SLO file is judged."""

    url: str
    status: Mapping[str, Any]
    slo: Mapping[str, Any] | None

    def as_json(self) -> str:
        return json.dumps({"status": self.status, "slo": self.slo}, indent=2)


def asked(url: str, token_file: str | None, ca_file: str | None) -> Standing:
    """Raises SourceError, SettingsError."""
    target, fetcher = reach(url, "--sidecar", token_file, ca_file)

    def document(path: str, key: str) -> Any:
        body = fetcher.get(f"{target.url}{path}").body
        try:
            found = json.loads(body)
        except ValueError:
            found = None
        if not isinstance(found, dict) or key not in found:
            raise SourceError(
                ErrorKind.NOT_METRICS, f"{target.url} is no sidecar: {path} is not as one gives it"
            )
        return found

    try:
        status = document("/v1/status", "sources")
        try:
            slo = document("/v1/slo", "objectives")
        except SourceError as error:
            if error.kind is not ErrorKind.STATUS:
                raise
            slo = None
    except SourceError as error:
        if error.kind is not ErrorKind.REFUSED:
            raise
        hint = f"{error.detail} If a sidecar is elsewhere: --sidecar http://HOST:PORT"
        raise SourceError(error.kind, hint) from None
    finally:
        fetcher.close()
    return Standing(target.url, status, slo)


def is_calm(standing: Standing) -> bool:
    """Nobody is called, and that is known."""
    slo = standing.slo
    return slo is None or (_is_known(slo) and not slo["alerts"])


def _is_known(slo: Mapping[str, Any]) -> bool:
    return slo["judged_at"] is not None and not slo["fault"]


def follow(url: str, token_file: str | None, ca_file: str | None, every: float) -> int:
    """Shows it again and again; a sidecar that does not answer is waited for."""
    clear = _CLEAR if sys.stdout.isatty() else ""
    while True:
        try:
            text = show(asked(url, token_file, ca_file))
        except SourceError as error:
            text = f"{printable(error.detail)}\n"
        typer.echo(f"{clear}{text}", nl=False)
        time.sleep(every)


def show(standing: Standing) -> str:
    """One screenful of text."""
    return "".join(f"{line}\n" for line in _lines(standing))


def _lines(standing: Standing) -> Iterator[str]:
    slo = standing.slo
    if slo is None:
        yield f"{standing.url}: no SLO file is judged; start the sidecar with --slo FILE"
    else:
        yield from _judged(slo, standing.url)
    yield ""
    yield from _sources(standing.status)


def _judged(slo: Mapping[str, Any], url: str) -> Iterator[str]:
    at = slo["judged_at"]
    age = "not yet judged" if at is None else f"judged {max(0.0, time.time() - at):.0f} s ago"
    yield f"{_bold(printable(slo['service']))}  {age}"
    if slo.get("simulated"):
        yield _bold(BANNER)
    if slo["fault"]:
        yield _red(f"cannot judge: {printable(slo['fault'])}")
    if slo["history"]["fault"]:
        yield _red(printable(slo["history"]["fault"]))
    yield ""
    rows = [_row(objective) for objective in sorted(slo["objectives"], key=_rank)]
    good = f"GOOD {format_duration(slo['base_seconds']).upper()}"
    yield from _table([("", "STATE", good, "OF", "BUDGET LEFT", "", "BURN 1H"), *rows])
    for name, why in slo["not_judged"].items():
        yield f"{printable(name)}: not judged here: {printable(why)}"
    yield ""
    if not slo["alerts"]:
        yield "nobody is called" if _is_known(slo) else "whether anybody is called is not known"
    for number, told in enumerate(_told(slo["alerts"])):
        yield from _alert(told, url, full=not number)


def _row(objective: Mapping[str, Any]) -> tuple[str, ...]:
    budget, burn = objective["budget"]["remaining"], objective["burn_rate"]
    name = printable(" ".join(filter(None, [objective["name"], objective["group_text"]])))
    return (
        name, _state(objective),
        _percent(objective["good_ratio"]), f"{objective['objective'] * 100:g} %",
        _percent(budget) if budget is not None else _covered(objective),
        _bar(budget), "-" if burn is None else times(burn),
    )  # fmt: skip


def _rank(objective: Mapping[str, Any]) -> int:
    return Level(objective["standing"]["level"]).rank


def _state(objective: Mapping[str, Any]) -> str:
    """The page's word; loud where there is work."""
    word: str = objective["standing"]["word"]
    return word.upper() if objective["standing"]["level"] in (Level.PAGE, Level.TICKET) else word


def _covered(objective: Mapping[str, Any]) -> str:
    return f"(knows {objective['budget']['coverage']:.0%})"


def _percent(share: float | None) -> str:
    return "-" if share is None else percent(share)


def _bar(share: float | None) -> str:
    if share is None:
        return ""
    full = round(_BAR * min(1.0, max(0.0, share)))
    return "#" * full + "." * (_BAR - full)


def _told(alerts: Iterable[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Those of all tiers that are told of the same thing, in the order of the sidecar."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for alert in alerts:
        groups.setdefault(about(alert["alert"], alert["labels"]), []).append(alert)
    return [sorted(each, key=_who) for each in groups.values()]


def _who(alert: Mapping[str, Any]) -> tuple[object, ...]:
    return alert["labels"]["severity"] != "page", alert["labels"]["tier"]


def _is_page(told: Iterable[Mapping[str, Any]]) -> bool:
    return any(alert["labels"]["severity"] == "page" for alert in told)


def _alert(told: Sequence[Mapping[str, Any]], url: str, *, full: bool) -> Iterator[str]:
    """full: with what to do, which one alert is enough for: a screen is no longer."""
    labels, texts, runbook = told[0]["labels"], told[0]["annotations"], told[0]["runbook"]
    teams = dict.fromkeys(f"tier {a['labels']['tier']} {a['labels']['team']}" for a in told)
    head = printable(f"{' and '.join(teams)}, {labels['severity']}: {texts['summary']}")
    yield _red(head) if _is_page(told) else head
    if described := texts.get("description"):
        yield f"  {printable(described)}"
    if full:
        yield f"  {printable(texts['impact'])}"
        yield from (f"  {printable(action)}" for action in texts["actions"].splitlines())
    yield f"  {printable(url + runbook if runbook.startswith('/') else runbook)}"


def _sources(status: Mapping[str, Any]) -> Iterator[str]:
    for source in status["sources"]:
        why = f": {source['error']['detail']}" if "error" in source else ""
        yield printable(f"{source['name']}: {source['state']}{why}")
    for gap in status["not_watched"]:
        yield printable(f"{gap['signal']}: not watched, {gap['reason']}; {gap['remedy']}")


def _table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """On a terminal names give way, so that a row is a line where that can be."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if sys.stdout.isatty():
        room = shutil.get_terminal_size().columns - sum(widths[1:]) - len("  ") * (len(widths) - 1)
        widths[0] = min(widths[0], max(_LEAST_NAME, room))
    for row in rows:
        name = row[0] if len(row[0]) <= widths[0] else f"{row[0][: widths[0] - 1]}…"
        cells = (cell.ljust(wide) for cell, wide in zip((name, *row[1:]), widths, strict=True))
        line = "  ".join(cells).rstrip()
        yield _red(line) if "INCIDENT" in row else line


def _bold(text: str) -> str:
    return typer.style(text, bold=True) if _coloured() else text


def _red(text: str) -> str:
    return typer.style(text, fg="red", bold=True) if _coloured() else text


def _coloured() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
