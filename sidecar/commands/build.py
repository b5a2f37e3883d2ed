"""`inferslo build`: its flags. What it does is loaded when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...rules.model import Format


def build(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="SLO files.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where to write.")],
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; say what would change.")
    ] = False,
    format: Annotated[
        Format, typer.Option("--format", help="Whose form the rules have, beside rules.yaml.")
    ] = Format.PROMETHEUS,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Name each file, however many.")
    ] = False,
) -> int:
    """Make rules, their tests, the Alertmanager tree and runbooks of SLO files.

    The same files make the same bytes, so that the folder can be committed and --check finds what
    is out of date. A file in it that was not made here is never touched.

    \b
    Examples:
      inferslo build slo.yaml --out rules
      inferslo build slo.yaml --out rules --check
      inferslo build *.yaml --out rules --format operator

    \b
    Exit codes: 0 done, or nothing would change; 1 --check found that something would;
    2 an SLO file is wrong, or the folder cannot be written.
    """
    from .building import check_folder, compiled, summary, write_folder

    built = compiled(files, format)
    changes = check_folder(built, out) if check else write_folder(built, out)
    for line in summary(changes, built, out, verbose=verbose):
        typer.echo(line)
    for note in built.notes:
        typer.echo(f"note: {note}", err=True)
    return int(check and bool(changes))
