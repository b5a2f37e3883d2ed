"""What the parts of resolving an objective share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..plan import ClassTarget, Evaluation, PromptRange, Tier, Window
from ..signals import Signal
from ..spec import ObjectiveSpec, Spec
from ..yamlfile import Keys
from .faults import Findings

_BY_KEY = ("check", "composite", "promql")  # keys that are also the signal


@dataclass(frozen=True, slots=True)
class Context:
    """What an objective takes from its file."""

    spec: Spec
    window: Window
    evaluation: Evaluation
    response: tuple[Tier, ...]
    classes: Mapping[str, ClassTarget]
    prompt_classes: tuple[PromptRange, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One objective as it is written, what it is about, and where it stands in the file."""

    spec: ObjectiveSpec
    signal: Signal
    at: Keys
    context: Context
    found: Findings

    @property
    def target(self) -> ClassTarget | None:
        """Of the class that it speaks of."""
        return self.context.classes.get(self.spec.class_ or "")

    def fault(self, key: str, what: str) -> None:
        self.found.fault((*self.at, key), what)

    def refuse(self, key: str, why: str) -> None:
        """A fault if the key is there."""
        field = "class_" if key == "class" else key
        if field in self.spec.model_fields_set:
            self.fault(key, f"this means nothing here: {why}")


def signal_name(spec: ObjectiveSpec) -> str:
    """The signal that is written, or that follows from another key; "" if none."""
    return spec.signal or next((key for key in _BY_KEY if getattr(spec, key) is not None), "")
