"""The files that the page loads: a stylesheet, a script, an icon."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2s
from importlib.metadata import version
from importlib.resources import files

_TYPES = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Assets:
    """files: content and media type by name. edition: changes when a page that is open should be
    loaded anew."""

    files: Mapping[str, tuple[bytes, str]]
    version: str
    edition: str


def assets() -> Assets:
    folder, own = files(__package__), version("inferslo")
    found = {name: (folder.joinpath(name).read_bytes(), type) for name, type in _TYPES.items()}
    edition = blake2s(own.encode() + b"".join(body for body, _ in found.values()), digest_size=8)
    return Assets(found, own, edition.hexdigest())
