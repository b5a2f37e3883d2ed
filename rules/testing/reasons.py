"""What usually is behind a generated test that fails, by its case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Reason:
    """silent: why something expected does not come. noisy: why something comes that must not."""

    silent: str = "the rule's expression, or a label that it joins on, was changed"
    noisy: str = "a threshold, floor or window of the rule was changed"

    def of(self, *, expects: bool, gets: bool) -> str:
        """ "" where something else than expected comes: then both say what."""
        if expects and not gets:
            return self.silent
        return self.noisy if gets and not expects else ""


_SELECTORS = "a label in the file's `match` or the family's name is not what the sidecar publishes"

REASONS: Mapping[str, Reason] = MappingProxyType(
    {
        "outage": Reason(
            silent="the ratio is computed too low (an average, a clamped total), engines of"
            f" somebody else mute the alert, or {_SELECTORS}",
            noisy="the alert does not resolve: a short window or the incident was changed",
        ),
        "page burn": Reason(
            silent="the factor is too high for the period, or the windows carry labels that differ"
            " and `and` finds no pair",
            noisy="the next tier does not wait as long as the response says",
        ),
        "fast burn": Reason(silent="the fastest burn's factor is too high for the period"),
        "slow burn": Reason(
            silent="the factor of a ticket's burn is too high for the period",
            noisy="the factor of a page's burn is too low: what is a ticket wakes somebody",
        ),
        "creeping burn": Reason(silent="the factor of the longest burn is too high for the period"),
        "quiet night": Reason(
            silent="no traffic is taken for no data",
            noisy="the floor of events is gone, sums are rated instead of rates summed, or a factor"
            " is below 1",
        ),
        "low-traffic outage": Reason(
            silent="the total is clamped to at least 1 a second, or the floor is too high for it"
        ),
        "no traffic": Reason(silent="no traffic is not told from no data"),
        "bucket spellings": Reason(
            silent="`le` is matched in one spelling: Prometheus 2 keeps 1, 1.0 and 1e+00 apart"
        ),
        "clients give up": Reason(
            silent="requests that gave up are not counted as late, and no histogram has them"
        ),
        "budget": Reason(
            silent="the alert does not read the recorded budget",
            noisy="the threshold of the alert was changed, or the floor of failures is gone",
        ),
        "incidents": Reason(
            silent="the alert does not read the recorded incidents",
            noisy="the number of incidents was changed",
        ),
        "signal missing": Reason(
            silent="a signal that is missing counts as something else",
            noisy="a signal that is missing counts as 0 bad, which looks like success",
        ),
        "no data": Reason(
            silent="no data at all is muted, or counts as something else",
            noisy="no data counts as 0 bad or as all bad",
        ),
        "engines go": Reason(
            silent="the alert is muted too widely: by one engine, where it takes all",
            noisy="the alert is not muted by its cause, or counts engines of somebody else",
        ),
        "all is well": Reason(
            silent="what has not happened yet counts as unknown, or alerting itself is broken",
            noisy="a threshold is below what is usual, or a gap is taken for 0",
        ),
    }
)
