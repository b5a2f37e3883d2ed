"""`inferslo up`: what it looks for or plays, what it starts beside itself, and what it says."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING

import typer

from ..exporters.http import HttpFetcher
from .discovery import USUAL_PORTS, Answer, NothingFoundError, discover
from .errors import StartError
from .interpret import LITELLM
from .printable import printable
from .settings.load import Loaded
from .settings.model import Settings
from .settings.targets import Engine, Target

if TYPE_CHECKING:
    from .beside import Beside
    from .demo.live.stage import Stage

_NAME = "inferslo"
_PATIENCE = 2.0  # seconds until a progress line
_DEADLINE = 3.0  # seconds for one port

_NOTHING = """\
no engine found on 127.0.0.1, ports {ports}
  Start one:            vllm serve MODEL --port 8000
  Or say where it is:   {inferslo} up --engine http://HOST:PORT
                        (make up ARGS="--engine http://HOST:PORT")
  Or play with one:     {inferslo} up --demo (it is simulated)
  Or read one page:     {inferslo} read http://HOST:PORT --explain"""

_NEXT = """\
Serving at {base}, which a browser shows; stop with Ctrl-C. Try:
  curl {base}/metrics
  curl {base}/v1/status
  {inferslo} status --sidecar {base}"""


_NEXT_DEMO = """\
{banner}
Break something:
  curl -X POST {base}/v1/demo/faults/queue-avalanche
  curl {base}/v1/slo
  {inferslo} watch --sidecar {base}
  curl -X DELETE {base}/v1/demo/faults
Ask a simulated engine, and feel it:
  curl -N {engine}/v1/completions -d '{{"prompt": "Hello", "stream": true}}'"""


def up(loaded: Loaded, *, demo: bool, with_prometheus: bool) -> int:
    """Runs the sidecar on what is here, or on the demo's world; the exit code of the command.

    Raises as settle() and process.run() do, and StartError for flags that cannot go together.
    """
    from .process import run

    with ExitStack() as at_end:
        stage, settings = at_end.enter_context(_stage(loaded) if demo else _found_here(loaded))
        beside = at_end.enter_context(_beside(settings)) if with_prometheus else None

        def announce(host: str, port: int) -> None:
            say_next(host, port)
            if stage is not None:
                typer.echo(_NEXT_DEMO.format(
                    banner=stage.banner, base=_base(host, port), engine=stage.engines[0].url,
                    inferslo=command(),
                ))  # fmt: skip
            if beside is not None:
                beside.start(_base(host, port))

        return run(settings, announce, stage)


_World = AbstractContextManager[tuple["Stage | None", Settings]]


def _stage(loaded: Loaded) -> _World:
    from .demo.live.stage import staged  # with its simulator, which no other command needs

    return staged(loaded)


def _found_here(loaded: Loaded) -> _World:
    from .ready import with_slo

    return nullcontext((None, with_slo(settle(loaded.settings))))


def _beside(settings: Settings) -> Beside:
    from .beside import Beside  # loads the compiler

    return Beside(settings)


def settle(settings: Settings, ports: Iterable[int] = USUAL_PORTS) -> Settings:
    """The settings, with the engines that were found if none was given. Says what it does.

    Raises NothingFoundError, and StartError if a token would go to whoever is found.
    """
    if not settings.engines and not settings.litellm:
        _refuse_tokens(settings)
        ports = tuple(ports)
        found = _search(ports)
        for answer in found:
            typer.echo(printable(_sentence(answer)))
        settings = _watching(settings, found)
        if not settings.engines and not settings.litellm:
            listed = ", ".join(map(str, ports))
            raise NothingFoundError(_NOTHING.format(ports=listed, inferslo=command()))
    return settings


def say_next(host: str, port: int) -> None:
    """Says where it serves, and what to try; once it listens, since the port may be in use."""
    typer.echo(_NEXT.format(base=_base(host, port), inferslo=command()))


def command() -> str:
    """What to type for `inferslo`: the path that was typed, where a virtual environment is not on
    PATH."""
    if shutil.which(_NAME):
        return _NAME
    if Path(sys.argv[0]).name == _NAME:
        return shlex.quote(sys.argv[0])
    return f"{shlex.quote(sys.executable)} -m inferslo.sidecar"


def _base(host: str, port: int) -> str:
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _refuse_tokens(settings: Settings) -> None:
    # Anybody on this machine may listen on a usual port: a token goes to named servers only.
    for flag, file in (
        ("--engine", settings.engine_token_file),
        ("--litellm", settings.litellm_token_file),
    ):
        if file is not None:
            raise StartError(
                f"{flag}-token-file: whoever listens on a usual port would be sent the token:"
                f" name its server, {flag} http://HOST:PORT"
            )


def _search(ports: tuple[int, ...]) -> list[Answer]:
    progress = Timer(_PATIENCE, lambda: typer.echo("Still waiting for an answer …", err=True))
    progress.start()
    try:
        return discover(ports, lambda: HttpFetcher(deadline=_DEADLINE))
    finally:
        progress.cancel()


def _sentence(answer: Answer) -> str:
    if not answer.type:
        return f"{answer.url}  not watched: {answer.detail}"
    return f"{answer.url}  {answer.type} {answer.version}".rstrip()


def _watching(settings: Settings, found: list[Answer]) -> Settings:
    engines = [Engine(url=a.url) for a in found if a.type not in ("", LITELLM)]
    gateways = [Target(url=a.url) for a in found if a.type == LITELLM]
    return settings.model_copy(update={"engines": tuple(engines), "litellm": tuple(gateways)})
