"""SLO files of other tools, read into ours: OpenSLO v1, and Sloth as file and as Kubernetes object.

What has no counterpart is listed with its line and the reason. Nothing is dropped silently: every
key that the importers did not read is found and listed too. docs/import.md has the mapping.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..errors import SpecError
from ..load import load_text
from .draft import Draft, render
from .openslo import read_openslo
from .reading import Node, Remark, documents
from .sloth import read_sloth

__all__ = ["Imported", "Remark", "ServiceFile", "import_slos"]


@dataclass(frozen=True, slots=True)
class ServiceFile:
    """text: an SLO file of ours; what was left out is listed at its top. faults: what must still be
    mended by hand before it is right, one line each; seldom anything."""

    service: str
    text: str
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Imported:
    """files: one for each service that has an objective left. remarks: what was left out or
    changed, in the order of the lines."""

    files: tuple[ServiceFile, ...]
    remarks: tuple[Remark, ...]

    @property
    def lost(self) -> bool:
        """Whether anything was left out, or must be mended."""
        faulty = any(file.faults for file in self.files)
        return faulty or any(remark.lost for remark in self.remarks)


_Reader = Callable[[Sequence[Node]], list[Draft]]
# The values of `version` or `apiVersion` → what it is called, and who reads it.
_FORMATS: dict[str, tuple[str, _Reader]] = {
    "prometheus/v1": ("Sloth", read_sloth),
    "sloth.slok.dev/v1": ("Sloth", read_sloth),
    "openslo/v1": ("OpenSLO", read_openslo),
}


def import_slos(sources: Iterable[tuple[str, bytes]]) -> Imported:
    """The SLO files that files of another tool (name, content) come to.

    References from one document to another are followed through all of them. Raises SpecError if
    one cannot be read or is of no known format.
    """
    roots = [root for name, body in sources for root in _documents(name, body)]
    title, reader = _format(roots)
    drafts = reader(roots)
    _check_services(drafts)
    remarks = tuple(remark for root in roots for remark in root.remarks())
    files = (_file(draft, render(draft, title, remarks)) for draft in drafts if draft.objectives)
    return Imported(tuple(files), remarks)


def _documents(name: str, body: bytes) -> Sequence[Node]:
    if roots := documents(name, body):
        return roots
    raise SpecError([f"{name}: the file is empty: name a file of Sloth or OpenSLO"])


def _check_services(drafts: Iterable[Draft]) -> None:
    counts = Counter(draft.service for draft in drafts)
    if several := [service for service, count in counts.items() if count > 1]:
        raise SpecError(
            [f"{counts[name]} services would be called {name}: rename one" for name in several]
        )


def _file(draft: Draft, text: str) -> ServiceFile:
    try:
        load_text(text, f"{draft.service}.yaml")
    except SpecError as error:
        return ServiceFile(draft.service, text, error.problems)
    return ServiceFile(draft.service, text, ())


def _format(roots: Sequence[Node]) -> tuple[str, _Reader]:
    found = {}
    for root in roots:
        version = root.text("apiVersion") or root.text("version")
        if version not in _FORMATS:
            if {"service", "objectives"} <= set(root.fields()):
                raise SpecError(
                    [f"{root.place()}: this is an SLO file of inferslo already: see inferslo check"]
                )
            known = ", ".join(_FORMATS)
            what = f'"{version}" is no known version' if version else "there is no version"
            raise SpecError(
                [f"{root.place()}: {what}: `version` or `apiVersion` is one of {known}"]
            )
        found[_FORMATS[version][0]] = _FORMATS[version]
    if len(found) != 1:
        raise SpecError(["these are files of two formats: import those of each alone"])
    return found.popitem()[1]
