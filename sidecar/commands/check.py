"""`inferslo check`: its flags. What it does is loaded when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .flags import CaFile, Json, TokenFile


def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="SLO files.")],
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Print everything that was filled in, and when it pages."),
    ] = False,
    as_json: Json = False,
    engine: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Ask this engine, too.", show_default=False),
    ] = None,
    capture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Ask a page saved from one.", show_default=False),
    ] = None,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
) -> int:
    """Check SLO files: every problem as FILE:LINE:COLUMN, what is wrong, how to mend it.

    With --engine or --capture also whether the engine's histograms have the thresholds as bounds,
    and whether it tells what the objectives ask for. Which outcomes of requests it does not tell
    is in `inferslo read URL --explain`: those count as others do, or not at all.

    \b
    Examples:
      inferslo check slo.yaml
      inferslo check slo.yaml --explain
      inferslo check slo.yaml --engine http://127.0.0.1:8000

    \b
    Exit codes: 0 fine, 1 problems were found, or the engine cannot be read, 2 no such file. The
    worst of all files.
    """
    from ...slo.errors import UnreadableError
    from .checking import as_json as json_of
    from .checking import as_text, check_file, page_of

    page = page_of(engine, capture, token_file, ca_file)
    checked = [check_file(file, page) for file in files]
    if as_json:
        typer.echo(json_of(checked))
    else:
        texts = (as_text(each, explained=explain) for each in checked if not each.unreadable)
        typer.echo("".join(texts), nl=False)
    if missing := [problem for each in checked if each.unreadable for problem in each.problems]:
        raise UnreadableError(missing)
    return int(any(each.problems for each in checked))
