"""`inferslo status` and `inferslo watch`: their flags. What they do is loaded when they run."""

from __future__ import annotations

from typing import Annotated

import typer

from .flags import CaFile, Json, TokenFile

Sidecar = Annotated[
    str, typer.Option("--sidecar", metavar="URL", help="The sidecar that is asked.")
]
_HERE = "http://127.0.0.1:9400"


def status(
    sidecar: Sidecar = _HERE,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: Json = False,
) -> int:
    """Show how the SLOs of a running sidecar stand, in one screenful.

    \b
    Examples:
      inferslo status
      inferslo status --sidecar http://10.0.0.7:9400
      inferslo status --json

    \b
    Exit codes: 0 nobody is called, 1 somebody is, or that cannot be known.
    """
    from .standing import asked, is_calm, show

    standing = asked(sidecar, token_file, ca_file)
    typer.echo(standing.as_json() if as_json else show(standing), nl=as_json)
    return int(not is_calm(standing))


def watch(
    sidecar: Sidecar = _HERE,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", help="Between two looks.", min=0.5)
    ] = 2.0,
) -> int:
    """The same, live, until Ctrl-C.

    \b
    Examples:
      inferslo watch
      inferslo watch --every 10

    \b
    Exit codes: 130 after Ctrl-C.
    """
    from .standing import follow

    return follow(sidecar, token_file, ca_file, every)
