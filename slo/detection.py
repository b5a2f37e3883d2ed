"""Whether an alert condition can ever hold, and how soon it does."""

from __future__ import annotations

import math
from decimal import Decimal

from .plan import Burn, Outage


def reachable(factor: Decimal, budget: Decimal) -> bool:
    """Whether a total outage burns the budget faster than `factor`."""
    return factor * budget < 1


def unreachable_at(factor: Decimal) -> Decimal:
    """The highest objective at which not even a total outage exceeds `factor`: 1 - 1/factor."""
    return 1 - 1 / factor


def seconds_to_alert(condition: Burn | Outage, bad_ratio: float, base: int = 0) -> float:
    """Seconds from a step to `bad_ratio`, after clean history at even traffic, until the condition
    holds in all its windows; infinity if it never does. Floors, scrapes and evaluations come on
    top.

    base: seconds of the base rates that the windows add up, which blunts the step; a window no
    longer than that reads the rate itself. 0 where events or slices are added up.
    """
    threshold, *windows = (
        (condition.ratio, condition.window)
        if isinstance(condition, Outage)
        else (condition.threshold, condition.long, condition.short)
    )
    return max(
        _crossing(float(threshold), bad_ratio, window, base if window > base else 0)
        for window in windows
    )


def _crossing(threshold: float, bad_ratio: float, window: int, base: int) -> float:
    """When the mean over `window` of a ramp of `base` seconds up to `bad_ratio` is `threshold`."""
    if bad_ratio < threshold:
        return math.inf
    needed = threshold / bad_ratio * window  # seconds at the full ratio
    if needed < base / 2:  # still on the ramp: t² / 2 base = needed
        return math.sqrt(2 * base * needed)
    if needed <= window - base / 2:
        return needed + base / 2
    # The window's own tail is still on the ramp.
    return window + base - math.sqrt(2 * base * (window - needed))
