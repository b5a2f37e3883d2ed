"""The base of every mapping in an SLO file."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A mapping of the file. Unknown keys are faults."""

    model_config = ConfigDict(frozen=True, extra="forbid")
