"""Files that a command writes for its user, who may have written there before."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..errors import StartError


def refuse_existing(paths: Iterable[Path]) -> None:
    """Raises StartError if anything is at one of them."""
    for path in paths:
        if path.exists():
            raise StartError(
                f"{path} is there: write elsewhere with --out, or over it with --force"
            )


def write_text(path: Path, text: str) -> None:
    """Raises StartError."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StartError(f"{path} cannot be written: {error.strerror}") from None
