"""What the demo says of itself, wherever it says something."""

from __future__ import annotations

SIMULATED = (
    "engines, GPUs, traffic and faults are a simulation that inferslo --demo plays; nothing here is"
    " a measurement"
)
BANNER = f"SIMULATED: {SIMULATED}"
HEADER = ("x-inferslo-simulated", "true")
ANSWER = "This is simulated text of inferslo's demo; no model wrote it."
