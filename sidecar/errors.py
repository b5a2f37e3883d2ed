"""Errors of the running process; every one becomes a line on stderr and an exit code."""

from __future__ import annotations

from collections.abc import Sequence

from ..exporters.reading import InfersloError


class StartError(InfersloError):
    """The sidecar cannot start as it is told to: port in use, journal not writable, …"""


class SettingsError(StartError):
    """Settings are wrong; `problems` holds one line each, all that were found."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)
