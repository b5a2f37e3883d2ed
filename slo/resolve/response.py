"""Who acts and when: the response of a file or of an objective, and the receivers it names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ..errors import closest
from ..plan import Receiver, Tier, When
from ..quantities import format_duration
from ..spec import ReceiverSpec, Spec, TierSpec
from ..yamlfile import Keys
from .faults import Findings

_WHEN: Mapping[int, frozenset[When]] = {
    1: frozenset({When.INCIDENT}),
    2: frozenset({When.FAST_BURN, When.SLOW_BURN}),
    3: frozenset({When.BUDGET_EXHAUSTED, When.REPEATED}),
}
_AFTER = 30 * 60  # of tier 2
_TIMES, _WITHIN = 3, 7 * 86400


def default_response(team: str) -> tuple[Tier, ...]:
    """Where a file names nobody: its owner acts in every tier, and each has its own receiver."""
    return tuple(
        _tier(TierSpec(tier=tier, team=team, receiver=f"tier-{tier}")) for tier in (1, 2, 3)
    )


def response(tiers: Sequence[TierSpec], spec: Spec, at: Keys, found: Findings) -> tuple[Tier, ...]:
    """The tiers in order, checked. at: where they stand."""
    seen = Counter(tier.tier for tier in tiers)
    for index, tier in enumerate(tiers):
        keys = (*at, index)
        if seen[tier.tier] > 1:
            found.fault((*keys, "tier"), f"tier {tier.tier} is there twice: write each once")
        _check_receivers(tier, spec, keys, found)
        _check_when(tier, keys, found)
        _check_times(tier, spec, keys, found)
    resolved = tuple(sorted(map(_tier, tiers), key=lambda tier: tier.tier))
    if not any(When.INCIDENT in tier.when for tier in resolved):
        found.fault(at, "nobody acts on an incident: give one tier `when: incident`")
    heard = {when for tier in resolved for when in tier.when}
    for when in (When.SLOW_BURN, When.BUDGET_EXHAUSTED):
        if when not in heard:
            found.notes.append(f"{'.'.join(map(str, at))}: no tier acts on: {when}")
    return resolved


def _tier(spec: TierSpec) -> Tier:
    after = _AFTER if spec.tier == 2 and spec.when is None else None
    return Tier(
        tier=spec.tier,
        team=spec.team,
        receiver=spec.receiver,
        tickets=spec.tickets or spec.receiver,
        when=spec.when or _WHEN[spec.tier],
        after=spec.after or after,
        times=spec.times or _TIMES,
        within=spec.within or _WITHIN,
    )


def _check_receivers(tier: TierSpec, spec: Spec, keys: Keys, found: Findings) -> None:
    if spec.receivers is None:
        return
    for key in ("receiver", "tickets"):
        name = getattr(tier, key)
        if name is not None and name not in spec.receivers:
            hint = closest(name, spec.receivers)
            found.fault((*keys, key), f'"{name}" is not among `receivers`{hint}')


def _check_when(tier: TierSpec, keys: Keys, found: Findings) -> None:
    when = tier.when or _WHEN[tier.tier]
    if When.INCIDENT in when and tier.after is not None:
        found.fault(
            (*keys, "after"),
            "this tier acts on an incident at once: leave `after` out, or say in `when` what else"
            " sets it off",
        )
    if When.REPEATED not in when:
        for key in ("times", "within"):
            if getattr(tier, key) is not None:
                found.fault((*keys, key), "this belongs to `when: repeated`, which is not there")


def _check_times(tier: TierSpec, spec: Spec, keys: Keys, found: Findings) -> None:
    """What no evaluation could see would never alert."""
    least = 2 * spec.evaluation.interval
    if tier.after is not None and tier.after < least:
        found.fault(
            (*keys, "after"),
            f"{format_duration(tier.after)} is less than two evaluations: write at least"
            f" {format_duration(least)}",
        )
    least = (tier.times or _TIMES) * spec.evaluation.base
    if tier.within is not None and tier.within < least:
        found.fault(
            (*keys, "within"),
            f"{tier.times or _TIMES} incidents do not fit into {format_duration(tier.within)}: each"
            f" lasts a base window; write at least {format_duration(least)}",
        )


def receivers(spec: Mapping[str, ReceiverSpec]) -> tuple[Receiver, ...]:
    """By name; the settings as Alertmanager names them."""
    return tuple(_receiver(name, spec[name]) for name in sorted(spec))


def _receiver(name: str, spec: ReceiverSpec) -> Receiver:
    [(kind, settings)] = spec.model_dump(exclude_none=True, by_alias=True).items()
    return Receiver(name, kind, tuple(sorted(settings.items())))
