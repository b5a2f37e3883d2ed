"""Files that a command writes for its user, who may have written there before."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from ..errors import StartError


def refuse_existing(paths: Iterable[Path]) -> None:
    """Raises StartError if anything is at one of them, be it a link that leads nowhere."""
    for path in paths:
        if os.path.lexists(path):
            raise StartError(
                f"{path} is there: write elsewhere with --out, or over it with --force"
            )


def folder(out: str) -> Path | None:
    """The folder that is meant, one that is there or ends in /; None of a file."""
    return Path(out) if out.endswith("/") or Path(out).is_dir() else None


def make_folder(path: Path) -> None:
    """With those that it lies in. Raises StartError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(f"{path} cannot be made: {error.strerror}") from None


def write_over(path: Path, text: str) -> None:
    """As write_text, where a link leads. Raises StartError."""
    write_text(Path(os.path.realpath(path)), text)


def write_text(path: Path, text: str) -> None:
    """All of it or nothing, whenever it is interrupted. A link is replaced, not followed to what
    it leads to. Raises StartError."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")  # of a name that no ruler reads
    try:
        mode = _mode(path)
        try:
            with beside.open("x", encoding="utf-8") as file:
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise StartError(f"{path} cannot be written: {error.strerror}") from None


def _mode(path: Path) -> int | None:
    """The permissions of the file there; None if there is none. Raises StartError if something else
    is in the way."""
    try:
        found = path.lstat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(found):
        return None
    if not stat.S_ISREG(found):
        raise StartError(f"{path} is a folder, pipe or device: move it away or write elsewhere")
    return stat.S_IMODE(found)
