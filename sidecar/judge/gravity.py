"""Which alert is the gravest: the one order of the page, of /v1/slo and of `inferslo status`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...rules.causes import FAULTS
from ...slo.budget import burn_rate
from ...slo.plan import Severity
from .firing import Firing
from .verdict import Verdict

_OF_TIER = ("tier", "team", "severity", "urgency")
_AVAILABILITY = "availability"  # the name of the signal: to those it counts, nothing came at all


def about(alert: str, labels: Mapping[str, str]) -> tuple[str, ...]:
    """What an alert is about: the same for all tiers that are told of it."""
    own = (f"{k}={v}" for k, v in sorted(labels.items()) if k not in _OF_TIER)
    return (alert, *own)


def gravest_first(firing: Iterable[Firing], verdicts: Sequence[Verdict]) -> list[Firing]:
    """Pages before tickets; of each what names a cause, then requests that fail, then what is the
    furthest over its objective, then what is the oldest."""

    stands = {(v.objective.name, frozenset(v.group)): v for v in verdicts}
    split = {v.objective.name: [label for label, _ in v.group] for v in verdicts}

    def gravity(one: Firing) -> tuple[object, ...]:
        labels, name = one.labels, one.labels["slo"]
        group = frozenset((label, labels.get(label, "")) for label in split.get(name, ()))
        verdict = stands.get((name, group))
        fails = verdict is not None and verdict.objective.signal.name == _AVAILABILITY
        return (
            labels["severity"] != Severity.PAGE, one.alert.alert not in FAULTS, not fails,
            -_burn(verdict), one.since, labels["tier"],
        )  # fmt: skip

    return sorted(firing, key=gravity)


def _burn(verdict: Verdict | None) -> float:
    rate = None if verdict is None else burn_rate(verdict.shown, verdict.objective.budget)
    return rate or 0.0
