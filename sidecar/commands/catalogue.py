"""`inferslo catalogue`: ready SLO files, listed and printed."""

from __future__ import annotations

from typing import Annotated

import typer


def catalogue(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="File to print.", show_default=False)
    ] = None,
) -> int:
    """List the ready SLO files, or print one.

    Each number in them is followed by its source, see docs/catalogue.md. `inferslo init` writes one
    of them for your engine.

    \b
    Examples:
      inferslo catalogue
      inferslo catalogue chat > slo.yaml

    \b
    Exit codes: 0, or 2 if there is no such file.
    """
    from ...slo.catalogue import entry, names

    if name is not None:
        typer.echo(entry(name).text, nl=False)
        return 0
    width = max(map(len, names()))
    for each in names():
        typer.echo(f"{each:{width}}  {entry(each).summary}")
    return 0
