"""What `inferslo init` does: asks, looks at the engine, writes the file."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import typer

from ...exporters.http import HttpFetcher
from ...slo import catalogue
from ...slo.buckets import EnginePage
from ...slo.errors import SloError, among
from ...slo.init import Answers, Strictness, check_name, write
from ..discovery import USUAL_PORTS, NothingFoundError, discover
from ..errors import StartError
from ..interpret import LITELLM, Interpretation, interpret_file, interpret_url
from ..printable import printable
from ..reach import reach
from ..sources import driver_is_here
from .bounds import page_of
from .newfile import write_over

_DEADLINE = 3.0  # seconds for one port

_KIND = "What kind of service is it?"
_HOW_STRICT = "How strict is it to be?"
_STRICTNESS: Mapping[str, str] = {
    Strictness.RELAXED: "few users wait; the next morning is soon enough",
    Strictness.NORMAL: "users wait and are annoyed",
    Strictness.STRICT: "users wait, and each failure costs money",
}
_ON_CALL = "Who is on call? (name of the team)"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the flags say; None is to be asked, or for `gpu` to be looked at."""

    kind: str | None
    strictness: str | None
    on_call: str | None
    service: str | None
    events: bool
    gpu: bool | None


@dataclass(frozen=True, slots=True)
class Found:
    """The engine, and the flag by which `inferslo check` finds it again."""

    page: EnginePage
    flag: str


def check(wanted: Wanted) -> None:
    """Before anything is asked. Raises StartError if what no flag says cannot be asked, and it and
    SloError if what one says is no answer."""
    checks = {
        "--kind": (wanted.kind, catalogue.entry),
        "--strictness": (wanted.strictness, _check_strictness),
        "--on-call": (wanted.on_call, _check_team),
    }
    for value, check in checks.values():
        if value is not None:
            check(value)
    if wanted.service is not None:
        check_name("service", wanted.service)
    missing = [flag for flag, (value, _) in checks.items() if value is None]
    if missing and not sys.stdin.isatty():
        raise StartError(f"nobody can be asked, this is no terminal: give {', '.join(missing)}")


def ask(wanted: Wanted) -> Answers:
    """Asks what no flag says, each until the answer is one."""
    kinds = {name: catalogue.entry(name).summary for name in catalogue.names()}
    kind = wanted.kind or _answer(_KIND, kinds, catalogue.entry)
    strictness = wanted.strictness or _answer(_HOW_STRICT, _STRICTNESS, _check_strictness)
    on_call = wanted.on_call or _answer(_ON_CALL, {}, _check_team)
    gpu = driver_is_here() if wanted.gpu is None else wanted.gpu
    return Answers(
        kind, Strictness(strictness), on_call, wanted.service or kind, wanted.events, gpu
    )


def _answer(question: str, answers: Mapping[str, str], check: Callable[[str], object]) -> str:
    typer.echo(question)
    for name, what in answers.items():
        typer.echo(f"  {name}: {what}")
    while True:
        answer: str = typer.prompt("", prompt_suffix="> ", default="", show_default=False).strip()
        try:
            check(answer)
        except (SloError, StartError) as error:
            typer.echo(printable(str(error)) if answer else "An answer is needed; Ctrl-C leaves.")
        else:
            return answer


def _check_strictness(word: str) -> None:
    known = [each.value for each in Strictness]
    if word not in known:
        raise StartError(f'"{word}" is no strictness{among(word, known)}')


def _check_team(name: str) -> None:
    check_name("on-call team", name)


def find_engine(
    url: str | None, capture: Path | None, token_file: str | None, ca_file: str | None
) -> Found:
    """The engine that is named, else the only one that answers on a usual port of this machine.

    Raises SourceError, StartError, and NothingFoundError.
    """
    if url is not None and capture is not None:
        raise StartError("--engine and --capture say the same thing twice: give one")
    if capture is not None:
        return _found(interpret_file(capture), f"--capture {shlex.quote(str(capture))}")
    url = url or _only_engine()
    return _found(interpret_url(*reach(url, "--engine", token_file, ca_file)), f"--engine {url}")


def _only_engine() -> str:
    answers = discover(USUAL_PORTS, lambda: HttpFetcher(deadline=_DEADLINE))
    urls = [answer.url for answer in answers if answer.type not in ("", LITELLM)]
    if not urls:
        ports = ", ".join(map(str, USUAL_PORTS))
        raise NothingFoundError(
            f"no engine found on 127.0.0.1, ports {ports}: say --engine http://HOST:PORT, or"
            " --capture FILE for a page saved from one"
        )
    if len(urls) > 1:
        raise StartError(f"there are {len(urls)} engines here: give --engine, {' or '.join(urls)}")
    return urls[0]


def _found(read: Interpretation, flag: str) -> Found:
    return Found(page_of(read), flag)


def write_file(answers: Answers, found: Found, out: Path) -> str:
    """Writes it; returns what to tell. Raises StartError, InitError."""
    text = write(answers, found.page)
    write_over(out, text)
    name = printable(str(out))
    count, waiting = text.count("\n  - name:"), text.count("\n  # - name:")
    later = f", and {waiting} as comments, with what they need" if waiting else ""
    return (
        f"Wrote {name}: {count} objectives{later}. Try:\n"
        f"  inferslo check {name} {found.flag}\n"
        f"  inferslo check {name} --explain"
    )
