"""How soon does the demo's tier 1 hear of each fault, and when is it quiet again? Prints a table.

    .venv/bin/python bench/demo.py [--faults queue-avalanche …] [--seeds 1 2 3]

The demo is played by a driven clock (sidecar/demo/live/rehearsal.py), with the sidecar's own
sources, events and judge: pressed after so many seconds in good health, recovered five minutes
later. Seconds are the demo's, so the machine does not matter; the least and most of all seeds. Of
good health first: what fired in an hour.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from inferslo.sidecar.demo.live.buttons import buttons
from inferslo.sidecar.demo.live.rehearsal import rehearsal
from inferslo.sidecar.judge.judge import Judgement

START = 1_767_571_200.0
HEALTHY, PRESSED, AFTER, HOUR = 200.0, 300.0, 300.0, 3600.0  # seconds
HEAD = (
    "| fault | tier 1 is told after, s | by | also at tier 1 | quiet after recovery, s |\n"
    "|---|---|---|---|---|"
)


@dataclass(frozen=True, slots=True)
class Played:
    """first: objective → seconds from the press to its first call of tier 1. last: seconds from
    recovery to the last call; -1 where all was quiet by then."""

    first: dict[str, float]
    last: float


def calls(judgement: Judgement) -> set[str]:
    """Whom tier 1 is called for now: alert and objective."""
    return {
        f"{one.alert.alert} ({one.labels['slo']})"
        for one in judgement.alerts
        if one.labels["tier"] == "1"
    }


def play(name: str, seed: int) -> Played:
    with tempfile.TemporaryDirectory() as folder, rehearsal(Path(folder), START, seed) as played:
        world, first, last = played.world, {}, -1.0
        for judgement in played.advance(HEALTHY):
            if calls(judgement):
                raise RuntimeError(f"{name}: tier 1 is called in good health")
        world.arm(buttons()[name])
        pressed = world.now
        for judgement in played.advance(PRESSED):
            for call in calls(judgement):
                first.setdefault(call, judgement.at - pressed)
        world.recover()
        recovered = world.now
        for judgement in played.advance(AFTER):
            if calls(judgement):
                last = judgement.at - recovered
        return Played(first, last)


def row(name: str, seeds: Sequence[int]) -> str:
    all_ = [play(name, seed) for seed in seeds]
    told = [min(each.first.values(), default=None) for each in all_]
    by = {min(each.first, key=each.first.__getitem__) for each in all_ if each.first}
    others = {call for each in all_ for call in each.first} - by
    missed = "**missed** " if None in told else ""
    times = _range([each for each in told if each is not None])
    quiet = _range([max(each.last, 0.0) for each in all_])
    return (
        f"| {buttons()[name].title} | {missed}{times} | {_list(by)} | {_list(others)} | {quiet} |"
    )


def _range(values: Sequence[float]) -> str:
    if not values:
        return ""
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return low if low == high else f"{low} to {high}"


def _list(calls: Iterable[str]) -> str:
    return ", ".join(f"`{call.replace(' (', '` (')}" for call in sorted(calls))


def healthy(seed: int) -> str:
    with tempfile.TemporaryDirectory() as folder, rehearsal(Path(folder), START, seed) as played:
        fired = {one.alert.alert for each in played.advance(HOUR) for one in each.alerts}
    return f"an hour in good health, seed {seed}: {', '.join(sorted(fired)) or 'nothing fired'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", nargs="*", default=list(buttons()))
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    args = parser.parse_args()
    for seed in args.seeds:
        print(healthy(seed), flush=True)
    print("\n" + HEAD)
    for name in args.faults:
        print(row(name, args.seeds), flush=True)


if __name__ == "__main__":
    main()
