"""Faults of an SLO file, gathered so that all are told at once."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import SloError
from ..yamlfile import Keys


@dataclass(frozen=True, slots=True)
class Fault:
    """what: is wrong with the value at `keys`, and how to mend it."""

    keys: Keys
    what: str


class FaultyError(SloError):
    """A spec that makes no plan."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__(
            "\n".join(f"{'.'.join(map(str, fault.keys))}: {fault.what}" for fault in faults)
        )
        self.faults = faults


@dataclass(slots=True)
class Findings:
    """What resolving a spec has found so far: faults, and notes that the user should know."""

    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def fault(self, keys: Keys, what: str) -> None:
        """One that several objectives share, as of the file's alerting, is told once."""
        if (found := Fault(keys, what)) not in self.faults:
            self.faults.append(found)
