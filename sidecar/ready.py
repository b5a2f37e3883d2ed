"""The SLO file of `inferslo up` where none is named: ./slo.yaml, else one that fits the engine."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from ..exporters.reading import SourceError
from ..slo.errors import SloError
from ..slo.init import Answers, Strictness, write
from .commands.first_file import find_engine
from .commands.newfile import write_over
from .errors import StartError
from .printable import printable
from .settings.model import Settings, default_state
from .sources import reads_gpu

_HERE = Path("slo.yaml")
_NAME = "up.slo.yaml"
# Beside one engine a judgement every five seconds costs nothing, and is seen at once.
_QUICK = "\nevaluation: {scrape_interval: 5s, interval: 5s, base: 1m}\n"


def with_slo(settings: Settings) -> Settings:
    """The settings with an SLO file, if there is none; says which. Without an engine that answers
    there is none."""
    if settings.slo is not None:
        return settings
    if os.path.lexists(_HERE):  # whatever it is: what is wrong with it is said
        typer.echo(f"Judging by {_HERE}")
        return settings.model_copy(update={"slo": _HERE})
    if not settings.engines:
        return settings
    try:
        path = _fitted(settings)
    except (SourceError, SloError, StartError) as error:
        typer.echo(f"Not judging: {printable(str(error))}; name an SLO file with --slo", err=True)
        return settings
    typer.echo(
        f"Judging by the catalogue's objectives for chat, fitted to this engine: {path}\n"
        "  Your own: inferslo init, then inferslo up"
    )
    return settings.model_copy(update={"slo": path})


def _fitted(settings: Settings) -> Path:
    engine = settings.engines[0]
    token = settings.token_file(engine)
    ca_file = engine.ca_file
    found = find_engine(
        engine.url, None, str(token) if token else None, str(ca_file) if ca_file else None
    )
    gpu = reads_gpu(settings)
    answers = Answers("chat", Strictness.NORMAL, "on-call", "chat", events=True, gpu=gpu)
    path = default_state(_NAME)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(f"cannot make {path.parent}: {error.strerror}") from error
    write_over(path, write(answers, found.page) + _QUICK)
    return path
