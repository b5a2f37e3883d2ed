"""Flags that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

TokenFile = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="File of the bearer token to send.", show_default=False),
]
CaFile = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="PEM file of the server's CA.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
