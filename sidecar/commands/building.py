"""What `inferslo build` does: SLO files in, a folder out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ...rules.build import RUNBOOKS, Built, build, drift, is_made
from ...rules.model import Format
from ...slo.errors import SpecError
from ...slo.load import load
from ...slo.plan import Plan
from ..errors import StartError
from .newfile import write_text

_DONE = {"missing": "wrote", "differs": "changed", "no longer made": "removed"}
_FEW = 3  # files of a kind that are told one by one
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


def check_folder(built: Built, out: Path) -> Mapping[str, str]:
    """What would change: relative path → what is the matter. Raises StartError."""
    return drift(built, _found(out))


def write_folder(built: Built, out: Path) -> Mapping[str, str]:
    """Writes what is new or differs and removes what is no longer made: relative path → what was
    done.

    Raises StartError before it has changed anything if a file of somebody else is in the way.
    """
    found = _found(out)
    for path in built.files:
        if path in found and not is_made(found[path]):
            raise StartError(
                f"{out / path} was not made by inferslo build: move it away or choose another --out"
            )
        _refuse_odd(out / path)
    changes = drift(built, found)
    for path in changes:
        _replace(out / path, built.files.get(path))
    return {path: _DONE[what] for path, what in changes.items()}


def summary(changes: Mapping[str, str], built: Built, out: Path, *, verbose: bool) -> Iterator[str]:
    """What was done, or is the matter, a line each; of many files of a kind only how many, unless
    verbose."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for path, what in changes.items():
        kinds.setdefault((what, _kind(path)), []).append(path)
    for (what, kind), paths in kinds.items():
        if verbose or len(paths) <= _FEW:
            yield from (_told(what, str(out / path)) for path in paths)
        else:
            yield _told(what, f"{len(paths)} {kind} in {out}") + " (--verbose lists them)"
    if count := len(built.files.keys() - changes.keys()):
        yield f"unchanged: {'1 file' if count == 1 else f'{count} files'}"


def _told(what: str, path: str) -> str:
    return f"{what} {path}" if what in _DONE.values() else f"{path}: {what}"


def _kind(path: str) -> str:
    if path.startswith(f"{RUNBOOKS}/"):
        return "runbooks"
    return "tests" if path.endswith(".test.yaml") else "files"


def _refuse_odd(path: Path) -> None:
    """What is neither a file nor nothing is somebody else's, and what a link leads to too."""
    if os.path.lexists(path) and not _is_plain(path):
        raise StartError(f"{path} is no plain file: move it away or choose another --out")


def _found(out: Path) -> Mapping[str, str]:
    if out.exists() and not out.is_dir():
        raise StartError(f"{out} is a file, and a folder is written: name another --out")
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
