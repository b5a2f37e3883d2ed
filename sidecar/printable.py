"""What others wrote, made safe to print: a terminal obeys escapes, and lines can be forged."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text, what is not printable in it (line ends too) escaped as in Python: \\x1b."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def printable_lines(text: str) -> str:
    """As `printable`, of a text whose line ends are its own."""
    return "\n".join(map(printable, text.split("\n")))
