"""Faults as data: a file beside this one for each fault of our catalogue that metrics can show.

README.md says why the others are not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import yaml
from pydantic import ValidationError

from ....exporters.reading import InfersloError
from .model import HEALTHY, Effects, Fault, Kill, combined

__all__ = ["HEALTHY", "Effects", "Fault", "FaultError", "Kill", "catalogue", "combined", "parse"]


class FaultError(InfersloError):
    """A fault file cannot be used; says what is wrong and what to do."""


@cache
def catalogue() -> Mapping[str, Fault]:
    """The faults that we ship, by id, in order. Raises FaultError."""
    found = [
        parse(file.read_text(encoding="utf-8"), file.name)
        for file in files(__package__).iterdir()
        if file.name.endswith(".yaml")
    ]
    return {fault.id: fault for fault in sorted(found, key=lambda fault: int(fault.id[1:]))}


def parse(text: str, name: str) -> Fault:
    """name: of the file, for errors. Raises FaultError, one line for each thing that is wrong."""
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise FaultError(f"{name}: not YAML: {' '.join(str(error).split())}") from None
    try:
        return Fault.model_validate(data)
    except ValidationError as invalid:
        wrong = [
            f"{name}: {'.'.join(map(str, each['loc'])) or 'the file'}: {each['msg']}"
            for each in invalid.errors()
        ]
        raise FaultError("\n".join(wrong)) from None
