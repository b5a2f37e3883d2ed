"""`inferslo init`: its flags. What it does is loaded when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .flags import CaFile, TokenFile


def init(
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Kind of service, as `inferslo catalogue` lists them."),
    ] = None,
    strictness: Annotated[
        str | None,
        typer.Option(
            metavar="relaxed|normal|strict", help="How many users wait, and at what cost."
        ),
    ] = None,
    on_call: Annotated[
        str | None, typer.Option(metavar="TEAM", help="The team that is called.")
    ] = None,
    service: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the service. Default: its kind.")
    ] = None,
    events: Annotated[
        bool,
        typer.Option("--events", help="Business events are posted, or a gateway is watched."),
    ] = False,
    gpu: Annotated[
        bool | None,
        typer.Option(
            "--gpu/--no-gpu",
            help="Whether the sidecar will read GPUs. Default: whether it could here.",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        str | None, typer.Option(metavar="URL", help="The engine. Default: the one found here.")
    ] = None,
    capture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="… or a page saved from it.")
    ] = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    out: Annotated[
        str, typer.Option(metavar="FILE|DIR/", help="Where to write; a directory takes slo.yaml.")
    ] = "slo.yaml",
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> int:
    """Write a first SLO file: three questions, and a look at the engine.

    The thresholds are those of the catalogue, moved to bounds that the engine's histograms have;
    what nothing here can judge yet is in the file as a comment. It passes `inferslo check`.

    \b
    Examples:
      inferslo init
      inferslo init --kind chat --strictness normal --on-call platform
      inferslo init --kind agents --strictness strict --on-call platform \\
        --engine http://127.0.0.1:8000 --events --out agents.yaml

    \b
    Exit codes: 0 written, 1 no engine, or it cannot be read, 2 wrong usage, or the file is there.
    """
    from ..errors import StartError
    from .first_file import Wanted, ask, check, find_engine, write_file
    from .newfile import folder, make_folder, refuse_existing

    directory = folder(out)
    file = directory / "slo.yaml" if directory else Path(out)
    # Before anything is asked: nobody is to answer in vain.
    if not force:
        refuse_existing([file])
    if directory is None and not file.parent.is_dir():
        raise StartError(f"{file} cannot be written: there is no folder {file.parent}/")
    wanted = Wanted(kind, strictness, on_call, service, events, gpu)
    check(wanted)
    found = find_engine(engine, capture, token_file, ca_file)
    answers = ask(wanted)
    if directory is not None:
        make_folder(directory)
    typer.echo(write_file(answers, found, file))
    return 0
