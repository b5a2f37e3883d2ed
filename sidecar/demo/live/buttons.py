"""The demo's buttons: which faults each is made of, and how fast they are played."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import yaml
from pydantic import BaseModel, ConfigDict, Field

from ....exporters.reading import InfersloError
from ....slo.errors import closest
from ....slo.quantities import format_duration
from ..faults import Effects, Fault, catalogue, parse

_HOUR = 3600


class UnknownFaultError(InfersloError):
    """There is no button of that name; names those that there are."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    fault: str
    after: float = Field(default=0.0, ge=0)
    speed: float = Field(default=1.0, ge=1)
    lasts: float | None = Field(default=None, gt=0)
    only: tuple[str, ...] = ()

    def played(self) -> Fault:
        fault = _known()[self.fault]
        effects = {
            name: _faster(name, getattr(fault.effects, name), self.speed)
            for name in fault.effects.model_fields_set
            if not self.only or name in self.only
        }
        return fault.model_copy(
            update={
                "effects": Effects.model_validate(effects),
                "start": self.after + fault.start / self.speed,
                "ramp": fault.ramp / self.speed,
                "every": fault.every and fault.every / self.speed,
                "lasting": fault.lasting and fault.lasting / self.speed,
                "duration": self.lasts or fault.duration,
            }
        )


class Button(BaseModel):
    """name: in the URL; title and says: for people."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    title: str
    says: str
    parts: tuple[_Part, ...]

    def faults(self) -> tuple[Fault, ...]:
        """To be armed together."""
        return tuple(part.played() for part in self.parts)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(part.fault for part in self.parts)

    @property
    def lasts(self) -> float:
        """Seconds until it is over by itself, and engines that it ended are back."""
        return max(
            fault.start + (math.inf if fault.duration is None else fault.duration) + _reload(fault)
            for fault in self.faults()
        )

    @property
    def pace(self) -> str:
        """What is said of its speed; empty where it is that of its files."""
        speed = max(part.speed for part in self.parts)
        return f"an hour in {format_duration(round(_HOUR / speed))}" if speed > 1 else ""

    @property
    def expect(self) -> tuple[str, ...]:
        """The alerts that name it."""
        whole = (_known()[part.fault] for part in self.parts if not part.only)
        return tuple(dict.fromkeys(name for fault in whole for name in fault.expect))


@cache
def buttons() -> Mapping[str, Button]:
    """By name, in the order in which they are shown."""
    text = files(__package__).joinpath("buttons.yaml").read_text(encoding="utf-8")
    return {each.name: each for each in map(Button.model_validate, yaml.safe_load(text))}


def button(name: str) -> Button:
    """Raises UnknownFaultError."""
    found = buttons().get(name)
    if found is None:
        raise UnknownFaultError(f'there is no fault "{name}"{closest(name, buttons())}')
    return found


@cache
def _known() -> Mapping[str, Fault]:
    own = [
        parse(file.read_text(encoding="utf-8"), file.name)
        for file in files(f"{__package__}.faults").iterdir()
        if file.name.endswith(".yaml")
    ]
    return {**catalogue(), **{fault.id: fault for fault in own}}


def _faster(name: str, value: object, speed: float) -> object:
    if not name.endswith("_per_hour"):
        return value
    if isinstance(value, Mapping):
        return {key: each * speed for key, each in value.items()}
    assert isinstance(value, float)  # noqa: S101
    return value * speed


def _reload(fault: Fault) -> float:
    return fault.effects.kill.reload if fault.effects.kill is not None else 0.0
