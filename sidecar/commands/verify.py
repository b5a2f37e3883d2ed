"""`inferslo verify`: its flags. What it does is loaded when it runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from .flags import Json


def verify(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder that `inferslo build` wrote.")
    ],
    as_json: Json = False,
) -> int:
    """Run promtool and amtool on what was built, and explain what fails.

    The rules are read, their generated tests are run (up to two minutes), the Alertmanager tree is
    read, and every alert is routed. Nothing is changed, and nothing outside this machine is asked.

    \b
    Examples:
      inferslo verify rules
      inferslo verify rules --json

    \b
    Exit codes: 0 all holds, 1 something fails, 2 no such folder, or promtool or amtool is missing.
    """
    from ...rules.verify import TREE, VerifyError
    from ...rules.verify import verify as findings_of
    from ..errors import StartError

    try:
        findings = findings_of(directory, announce=lambda step: typer.echo(f"{step} …", err=True))
    except VerifyError as error:
        raise StartError(str(error)) from error
    if as_json:
        typer.echo(json.dumps([each.as_dict() for each in findings], indent=2, ensure_ascii=False))
    else:
        for each in findings:
            typer.echo(each.text)
        typer.echo(_summary(len(findings)))
        if not (directory / TREE).is_file():
            typer.echo(
                f"not verified: who is told, as there is no {TREE}; name `receivers` in the SLO"
                " file and build again"
            )
    return int(bool(findings))


def _summary(count: int) -> str:
    if not count:
        return "all holds"
    return "1 finding" if count == 1 else f"{count} findings"
