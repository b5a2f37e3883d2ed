"""Errors of the room `slo`: mistakes of the user, in lines that say where, what and how to mend."""

from __future__ import annotations

from collections.abc import Sequence


class SloError(Exception):
    """Base of every error that the room raises on purpose."""


class SpecError(SloError):
    """An SLO file is wrong; `problems` holds one line each, all that were found."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)
