"""What the real judge makes of the demo: quiet in good health, tier 1 when a button is pressed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from inferslo.sidecar.demo.live.buttons import buttons
from inferslo.sidecar.demo.live.rehearsal import plan, rehearsal
from inferslo.sidecar.judge.judge import Judgement
from inferslo.slo.plan import Severity

START = 1_767_571_200.0
HEALTHY = 60
# Who says so first; docs/demo.md has the seconds.
FIRST = {
    "traffic-burst": "writing", "queue-avalanche": "writing", "long-context-flood": "first-token",
    "kv-fragmentation": "allocator", "memory-leak": "memory", "slow-gpu": "gpu-cool",
    "neighbour": "writing", "dead-instance": "engines", "engine-hang": "first-token-long",
    "empty-answers": "with-text", "fallback-storm": "fallbacks", "pool-exhausted": "turns",
    "bad-canary": "fallbacks",
}  # fmt: skip


def pages(judgements: Iterable[Judgement]) -> Iterator[set[str]]:
    """Of each judgement: the objectives that page tier 1."""
    for judgement in judgements:
        yield {
            one.labels["slo"]
            for one in judgement.alerts
            if one.labels["tier"] == "1" and one.labels["severity"] == Severity.PAGE
        }


@pytest.mark.parametrize("name", buttons())
def test_a_fault_is_told_to_tier_1_and_is_over_after_recovery(name: str, tmp_path: Path) -> None:
    with rehearsal(tmp_path, START) as played:
        assert not any(pages(played.advance(HEALTHY)))
        played.world.arm(buttons()[name])
        assert any(FIRST[name] in told for told in pages(played.advance(120)))
        played.world.recover()
        assert any(not told for told in pages(played.advance(300)))


def test_a_hang_is_named_though_its_health_check_stays_green(tmp_path: Path) -> None:
    with rehearsal(tmp_path, START) as played:
        list(played.advance(HEALTHY))
        played.world.arm(buttons()["engine-hang"])
        assert any("engine" in told for told in pages(played.advance(300)))
        assert not played.world.replica(0).engine.down


def test_every_objective_is_judged_here(tmp_path: Path) -> None:
    with rehearsal(tmp_path, START) as played:
        *_, last = played.advance(HEALTHY)
    assert last.unjudged == {}
    judged = {v.objective.name for v in last.verdicts}
    assert judged == {objective.name for objective in plan().objectives}
