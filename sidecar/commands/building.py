"""What `inferslo build` does: SLO files in, a folder out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ...rules.build import Built, build, drift, is_made
from ...rules.model import Format
from ...slo.errors import SpecError
from ...slo.load import load
from ...slo.plan import Plan
from ..errors import StartError
from .newfile import write_text

# Where made files are looked for; nothing else in the folder is read.
_PLACES = ("*.yaml", "runbooks/*.md", "runbooks/*/*.md")


def compiled(files: Sequence[Path], format: Format) -> Built:
    """Raises SpecError with the problems of all files."""
    plans: list[Plan] = []
    problems: list[str] = []
    for file in files:
        try:
            plans.append(load(file))
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)
    return build(plans, format)


def check_folder(built: Built, out: Path) -> list[str]:
    """What would change, a line each. Raises StartError."""
    return [f"{out / path}: {what}" for path, what in drift(built, _found(out)).items()]


def write_folder(built: Built, out: Path) -> Iterator[str]:
    """Writes what is new or differs and removes what is no longer made; says what it did.

    Raises StartError before it has changed anything if a file of somebody else is in the way.
    """
    found = _found(out)
    for path in built.files:
        if path in found and not is_made(found[path]):
            raise StartError(
                f"{out / path} was not made by inferslo build: move it away or choose another --out"
            )
        _refuse_odd(out / path)
    for path in drift(built, found):
        _replace(out / path, built.files.get(path))
        yield f"{'wrote' if path in built.files else 'removed'} {out / path}"


def _refuse_odd(path: Path) -> None:
    """What is neither a file nor nothing is somebody else's, and what a link leads to too."""
    if os.path.lexists(path) and not _is_plain(path):
        raise StartError(f"{path} is no plain file: move it away or choose another --out")


def _found(out: Path) -> Mapping[str, str]:
    try:
        paths = sorted(path for place in _PLACES for path in out.glob(place) if _is_plain(path))
        return {
            path.relative_to(out).as_posix(): path.read_text(encoding="utf-8", errors="replace")
            for path in paths
        }
    except OSError as error:
        raise StartError(f"{error.filename} cannot be read: {error.strerror}") from None


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _replace(path: Path, text: str | None) -> None:
    try:
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(f"{path} cannot be written: {error.strerror}") from None
    if text is not None:
        write_text(path, text)
