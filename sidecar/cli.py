"""The command `inferslo`.

A user's mistake costs one line on stderr and an exit code, never a traceback. What only one
command needs is imported when it runs: the sidecar's memory is shared with an engine.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Sequence
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.main import get_command

from ..exporters.reading import FatalSourceError, InfersloError
from ..rules.alertmanager.errors import AlertmanagerError
from ..slo.errors import SloError, SpecError, among
from .commands.alerts import alerts, silence_app
from .commands.build import build
from .commands.catalogue import catalogue
from .commands.check import check
from .commands.flags import CaFile, Json, TokenFile
from .commands.importing import import_files
from .commands.init import init
from .commands.status import status, watch
from .commands.verify import verify
from .errors import SettingsError, StartError
from .exits import FATAL, OK, PROBLEM, USAGE
from .printable import printable_lines
from .settings.load import Loaded
from .settings.model import Settings
from .settings.options import with_settings

if TYPE_CHECKING:
    from .interpret import Interpretation


_APP_HELP = """Watch LLM inference: one set of metrics, whatever the engine.

\b
Examples:
  inferslo up
  inferslo sidecar --engine http://127.0.0.1:8000
  inferslo read http://127.0.0.1:8000 --explain
  inferslo init
  inferslo check slo.yaml

\b
Exit codes:
  0    all is well
  1    a problem was found: no engine, unreachable, no metrics page, a wrong SLO file
  2    wrong usage or settings, or the sidecar cannot start as told to
  3    fatal at run time: only a new process can mend it, as a GPU that fell off
  130  stopped by Ctrl-C
"""

# What typer says of a word that is none of an option's.
_NO_CHOICE = re.compile(
    r"Invalid value for (.+?): (?:Value error, )?'(.*)' is not one of (.+)", re.DOTALL
)

app = typer.Typer(
    help=_APP_HELP,
    add_completion=False,
    rich_markup_mode=None,  # rich costs 5 MB of memory
    pretty_exceptions_enable=False,
)
config_app = typer.Typer(help="Look at the settings.", rich_markup_mode=None)
app.add_typer(config_app, name="config")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line, by default that of the process; returns the exit code."""
    try:
        code = get_command(app)(args=arguments, prog_name="inferslo", standalone_mode=False)
        sys.stdout.flush()
    except (SettingsError, SpecError) as error:
        return _fail(USAGE, *error.problems)
    except (StartError, SloError) as error:
        return _fail(USAGE, str(error))
    except FatalSourceError as error:
        return _fail(FATAL, error.detail)
    except (InfersloError, AlertmanagerError) as error:
        return _fail(PROBLEM, str(error))
    except typer.TyperException as error:
        return _fail(USAGE, _usage(error))
    except typer.Abort:
        raise KeyboardInterrupt from None  # Ctrl-C at a question
    except BrokenPipeError:  # `inferslo read … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PROBLEM
    return int(code or OK)


def _fail(code: int, *problems: str) -> int:
    coloured = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    prefix = (
        typer.style("inferslo: error:", fg="red", bold=True) if coloured else "inferslo: error:"
    )
    for problem in problems:
        typer.echo(f"{prefix} {printable_lines(problem)}", err=True)
    return code


def _usage(error: typer.TyperException) -> str:
    message = error.format_message().strip().rstrip(".")
    if found := _NO_CHOICE.fullmatch(message):
        option, word, words = found.groups()
        hint = among(word, [each.strip("'") for each in words.split(", ")])
        message = f"""{option.strip("'")}: there is no {word}{hint}"""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "inferslo"
    return f"{message[:1].lower()}{message[1:]}; see {command} --help"


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        raise typer.Exit(_print_version())
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(USAGE)


@app.command("sidecar")
@with_settings
def _sidecar(loaded: Loaded) -> int:
    """Watch engines, GPUs and business events, and serve what they do at /metrics.

    Every flag may also be an environment variable (--poll-interval is INFERSLO_POLL_INTERVAL,
    --engine is INFERSLO_ENGINES, comma separated) or a key in the file that --config names.

    \b
    Examples:
      inferslo sidecar --engine http://127.0.0.1:8000
      inferslo sidecar --engine a=http://10.0.0.1:8000 --engine b=http://10.0.0.2:8000
      inferslo sidecar --config /etc/inferslo/sidecar.yaml --listen :9400

    \b
    Exit codes: 0 after SIGTERM, 2 wrong settings or the port is in use,
    3 fatal at run time, 130 after Ctrl-C.
    """
    return _run(loaded.settings)


@app.command("up")
@with_settings
def _up(
    loaded: Loaded,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo", help="Watch a simulated service, with faults on buttons; nothing real."
        ),
    ] = False,
    with_prometheus: Annotated[
        bool,
        typer.Option(
            "--with-prometheus",
            help="Start Prometheus and Alertmanager too, with the compiled rules.",
        ),
    ] = False,
) -> int:
    """Find the engines on this machine, start a sidecar for them and judge their SLOs.

    Looks on the usual ports of 127.0.0.1, unless --engine or --litellm says where. Judges by
    --slo, else by ./slo.yaml, else by objectives for chat that fit the engine.

    \b
    Examples:
      inferslo up
      inferslo up --listen 127.0.0.1:9500
      inferslo up --engine http://127.0.0.1:8000
      inferslo up --demo
      inferslo up --slo slo.yaml --with-prometheus

    \b
    Exit codes: those of `inferslo sidecar`, and 1 if no engine was found.
    """
    from .up import up

    _configure_log(loaded.settings)
    return up(loaded, demo=demo, with_prometheus=with_prometheus)


def _run(settings: Settings) -> int:
    from .process import run

    _configure_log(settings)
    return run(settings)


def _configure_log(settings: Settings) -> None:
    from .log import configure

    configure(settings.log_format, settings.log_level, sys.stderr)


@app.command("read")
def _read(
    source: Annotated[str, typer.Argument(metavar="URL|FILE|-", help="Page to read; - is stdin.")],
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Add where each value came from, and what is missing."),
    ] = False,
    as_json: Json = False,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
) -> int:
    """Read one metrics page and print what the sidecar would publish from it.

    The page is an engine's or LiteLLM's; what it is is found out from the page.

    \b
    Examples:
      inferslo read http://127.0.0.1:8000
      inferslo read http://127.0.0.1:8000 --explain
      curl -s http://127.0.0.1:8000/metrics | inferslo read - --json

    \b
    Exit codes: 0 read, 1 unreachable or no page of an engine that inferslo knows.
    """
    from . import explain as form

    read = _page(source, token_file, ca_file)
    if as_json:
        typer.echo(form.as_json(read))
        return OK
    text = form.as_explained_text(read) if explain else form.as_text(read)
    # A terminal obeys what labels hold; what scripts read stays as at /metrics,
    # from which typer.echo would take some escapes.
    sys.stdout.write(printable_lines(text) if sys.stdout.isatty() else text)
    return OK


def _page(source: str, token_file: str | None, ca_file: str | None) -> Interpretation:
    from .interpret import MAX_FILE_BYTES, interpret_file, interpret_page, interpret_url
    from .reach import reach

    if source == "-":
        return interpret_page("stdin", sys.stdin.buffer.read(MAX_FILE_BYTES + 1))
    if "://" not in source:
        return interpret_file(Path(source))
    return interpret_url(*reach(source, "URL", token_file, ca_file))


app.command("status")(status)
app.command("watch")(watch)
app.command("init")(init)
app.command("catalogue")(catalogue)
app.command("import")(import_files)
app.command("check")(check)
app.command("build")(build)
app.command("verify")(verify)
app.command("alerts")(alerts)
app.add_typer(silence_app, name="silence")


@config_app.command("show")
@with_settings
def _show(
    loaded: Loaded,
    as_json: Json = False,
) -> int:
    """Print the effective settings and where each came from.

    What is printed is itself a configuration file. Tokens are never shown, only their files.

    \b
    Examples:
      inferslo config show
      inferslo config show --config sidecar.yaml --poll-interval 1s
      inferslo config show --json

    \b
    Exit codes: 0, or 2 if a setting is wrong.
    """
    from .settings import show

    typer.echo(show.as_json(loaded) if as_json else show.as_yaml(loaded), nl=as_json)
    return OK


@app.command("version")
def _version() -> int:
    """Print the version of inferslo and of Python.

    \b
    Example:
      inferslo version
    """
    return _print_version()


def _print_version() -> int:
    typer.echo(f"inferslo {version_of('inferslo')} (Python {platform.python_version()})")
    return OK
