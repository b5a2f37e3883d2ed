"""Files that a user names, read without waiting and without end."""

from __future__ import annotations

import difflib
import os
import stat
from pathlib import Path


def read_small(path: Path, most: int) -> bytes:
    """What a regular file of at most `most` bytes holds. Raises ValueError.

    A pipe may block for ever and a device may never end.
    """
    try:
        with open(path, "rb", opener=_open_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ValueError(f"{path} is a pipe or device: a file is expected")
            body = file.read(most + 1)
    except OSError as error:
        hint = near(path) if isinstance(error, FileNotFoundError) else ""
        raise ValueError(f"{path} cannot be read: {error.strerror}{hint}") from None
    if len(body) > most:
        raise ValueError(f"{path} is larger than {format_size(most)}: is it the right file?")
    return body


def near(path: Path) -> str:
    """To add to "no such file": one beside it of a name much alike, as slo.yaml is to slo.yml."""
    try:
        names = [each.name for each in path.parent.iterdir()]
    except OSError:
        return ""
    found = difflib.get_close_matches(path.name, names, n=1, cutoff=0.8)
    return f"; there is {path.with_name(found[0])}" if found else ""


def format_size(count: int) -> str:
    """Exact, in the greatest binary unit that divides it."""
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count and count % (1 << shift) == 0:
            return f"{count >> shift}{unit}"
    return str(count)


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
