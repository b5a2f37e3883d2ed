"""`inferslo import`: SLO files of other tools become ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import StartError
from ..printable import printable
from .newfile import folder, make_folder, refuse_existing, write_over

if TYPE_CHECKING:
    from ...slo.importing import Imported

_MAX_BYTES = 256 << 10


def import_files(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Files of one format.")],
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|DIR/", help="Where to write; a directory takes SERVICE.yaml of each."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files.")] = False,
    allow_loss: Annotated[
        bool, typer.Option("--allow-loss", help="Exit 0 though something was left out.")
    ] = False,
) -> int:
    """Read SLO files of Sloth (prometheus/v1, PrometheusServiceLevel) or OpenSLO v1 into ours.

    What they are is found from `version` or `apiVersion`. What has no counterpart is left out, and
    each such line is told on stderr and at the top of the new file.

    \b
    Examples:
      inferslo import sloth.yaml > slo.yaml
      inferslo import slos.yaml slis.yaml --out slo/
      inferslo import sloth.yaml --out slo.yaml --allow-loss

    \b
    Exit codes: 0 all of it was carried over, 1 something was left out (0 with --allow-loss, unless
    no objective is left), 2 a file cannot be read or is of no known format.
    """
    from ...slo.errors import SpecError
    from ...slo.files import read_small
    from ...slo.importing import import_slos

    try:
        sources = [(str(file), read_small(file, _MAX_BYTES)) for file in files]
    except ValueError as error:
        raise SpecError([str(error)]) from None
    imported = import_slos(sources)
    _write(imported, out, force=force)
    if not imported.files:
        typer.echo("no objective can be imported", err=True)
    for remark in imported.remarks:
        typer.echo(
            f"{'left out' if remark.lost else 'changed'}: {printable(str(remark))}", err=True
        )
    for problem in (fault for file in imported.files for fault in file.faults):
        typer.echo(f"to mend: {printable(problem)}", err=True)
    return int(not imported.files or (imported.lost and not allow_loss))


def _write(imported: Imported, out: str | None, *, force: bool) -> None:
    """To files, or to stdout. Raises StartError, and writes nothing then."""
    directory = folder(out) if out is not None else None
    if len(imported.files) > 1 and directory is None:
        names = ", ".join(file.service for file in imported.files)
        raise StartError(f"there are several services, {names}: name a directory with --out DIR/")
    if out is None:
        return typer.echo("".join(file.text for file in imported.files), nl=False)
    places = {
        directory / f"{f.service}.yaml" if directory else Path(out): f for f in imported.files
    }
    if not force:
        refuse_existing(places)
    if directory is not None:
        make_folder(directory)
    for path, file in places.items():
        write_over(path, file.text)
    return None
