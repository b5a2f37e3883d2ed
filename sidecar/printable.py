"""What others wrote, made safe to print: a terminal obeys escapes, and lines can be forged."""

from __future__ import annotations

from ..slo.errors import printable

__all__ = ["printable", "printable_lines"]


def printable_lines(text: str) -> str:
    """As `printable`, of a text whose line ends are its own."""
    return "\n".join(map(printable, text.split("\n")))
