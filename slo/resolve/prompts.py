"""Prompt lengths: how the ranges of an SLO file divide them, and what is left for the rest.

Long requests are never averaged with short ones: where one objective claims a range, an objective
of the same signal that names none speaks of the lengths that are left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..plan import PromptRange


def partition(ranges: Iterable[PromptRange]) -> tuple[PromptRange, ...]:
    """The coarsest division of all lengths in which every range is a union of parts; () if no
    range is bounded."""
    bounds = sorted({b for r in ranges for b in (r.above, r.upto) if b is not None})
    if not bounds:
        return ()
    return tuple(PromptRange(a, b) for a, b in zip([None, *bounds], [*bounds, None], strict=True))


def within(parts: Sequence[PromptRange], range_: PromptRange) -> tuple[PromptRange, ...]:
    """The parts that lie in a range of which the partition was made."""
    return tuple(part for part in parts if _holds(range_, part))


def rest(
    parts: Sequence[PromptRange], claimed: Iterable[PromptRange]
) -> tuple[PromptRange, ...] | None:
    """The parts that no range claims: () if none is claimed, hence all lengths; None if all are."""
    ranges = list(claimed)
    if not ranges:
        return ()
    left = tuple(part for part in parts if not any(_holds(r, part) for r in ranges))
    return left or None


def _holds(range_: PromptRange, part: PromptRange) -> bool:
    low = range_.above is None or (part.above is not None and part.above >= range_.above)
    high = range_.upto is None or (part.upto is not None and part.upto <= range_.upto)
    return low and high
