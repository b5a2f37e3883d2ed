"""The flags of the command line, made from the settings: none can be forgotten or misspelt."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer

from .load import CONFIG_FLAG, CONFIG_VARIABLE, load
from .model import FIELDS, default_text, flag, metavar


def with_settings(command: Callable[..., int]) -> Callable[..., int]:
    """Gives a typer command every setting as a flag; its parameter `loaded` gets the outcome."""
    own = [
        p
        for p in inspect.signature(command, eval_str=True).parameters.values()
        if p.name != "loaded"
    ]
    parameters = [*own, *_flags()]

    @functools.wraps(command)
    def run(config: Path | None, **values: Any) -> int:
        given = {name: values.pop(name) for name in FIELDS}
        flags = {name: value for name, value in given.items() if value not in (None, [])}
        return command(loaded=load(flags, config), **values)

    # What typer reads; the signature in the code above is the same for every command.
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _flags() -> Iterator[inspect.Parameter]:
    yield _parameter(
        "config",
        CONFIG_FLAG,
        Path | None,
        "FILE",
        f"YAML file of settings [env: {CONFIG_VARIABLE}]",
    )
    for name, field in FIELDS.items():
        several = metavar(name) == "[NAME=]URL"
        default = default_text(name)
        shown = f" [default: {default}]" if default else ""
        annotation = list[str] | None if several else str | None
        yield _parameter(name, flag(name), annotation, metavar(name), f"{field.description}{shown}")


def _parameter(
    name: str, flag: str, annotation: object, metavar: str, help: str
) -> inspect.Parameter:
    option = typer.Option(None, flag, metavar=metavar, help=help, show_default=False)
    keyword_only = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword_only, default=option, annotation=annotation)
