"""Clients in front of the gateway: patience, repetitions, pools, and what they report."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from inferslo.exporters import names
from inferslo.exporters.names import Family
from inferslo.sidecar.demo.faults import Effects, Fault, Kill
from inferslo.sidecar.demo.fleet import Fleet, Scenario

MINUTE = 60.0
TEN = Scenario(rate=120, replicas=1, start=1_767_571_200.0 + 10 * 3600)


def fault(effects: Effects, **more: object) -> Fault:
    fields = {"id": "F1", "name": "made", "title": "", "expect": (), "duration": None}
    return Fault.model_validate({**fields, "effects": effects, **more})


def run(effects: Effects, minutes: float = 10, scenario: Scenario = TEN) -> Fleet:
    fleet = Fleet(scenario)
    fleet.arm(fault(effects))
    fleet.advance(fleet.now + 5)  # the fault is there from the next look on
    fleet.advance(fleet.now + minutes * MINUTE)
    return fleet


def count(fleet: Fleet, family: Family, *labels: str) -> float:
    tallies: Iterable[dict[tuple[str, ...], float]] = (fleet.clients.tally, fleet.gateway.tally)
    return sum(
        n
        for tally in tallies
        for key, n in tally.items()
        if key[0] == family.name and set(labels) <= set(key[1:])
    )


def turns(fleet: Fleet, outcome: str) -> float:
    return count(fleet, names.AGENT_TURNS, outcome) / count(fleet, names.AGENT_TURNS)


def test_healthy_clients_get_their_answers() -> None:
    fleet = run(Effects())
    assert turns(fleet, "success") > 0.98
    assert turns(fleet, "timeout") == 0
    asked = count(fleet, names.GATEWAY_UPSTREAM_ATTEMPTS)
    assert asked == pytest.approx(120 * 1.7 * 10, rel=0.1)  # of the mean, at ten o'clock
    assert count(fleet, names.GATEWAY_REQUESTS, "200") > 0.98 * asked
    sessions = count(fleet, names.SESSIONS, "started")
    assert 3.5 < count(fleet, names.AGENT_TURNS) / sessions < 4.5


def test_the_impatient_leave_and_make_the_engine_work_for_nobody() -> None:
    fleet = run(Effects(patience=1.0))
    assert turns(fleet, "timeout") > 0.3
    assert count(fleet, names.GATEWAY_TIMEOUTS) == count(fleet, names.GATEWAY_REQUESTS, "408") > 0


def test_repetitions_make_more_attempts_than_turns() -> None:
    fleet = run(Effects(patience=1.0, retries=5))
    once = count(fleet, names.GATEWAY_UPSTREAM_ATTEMPTS) / count(fleet, names.AGENT_TURNS)
    assert once > 1.5


def test_a_small_pool_starves_an_idle_engine() -> None:
    fleet = run(Effects(pool_size=1, patience=10.0))
    [replica] = fleet.replicas
    assert turns(fleet, "timeout") > 0.5
    assert replica.state.in_flight <= 1
    waits = replica.engine.counts.page["queue", 0]
    assert waits == sum(n for key, n in replica.engine.counts.page.items() if key[0] == "queue"
                        and key[1] != "sum")  # fmt: skip


def test_an_engine_that_is_gone_is_left_out_for_a_while_and_the_backup_answers() -> None:
    fleet = run(Effects(kill=Kill(reload=120.0)), minutes=1.5)
    assert count(fleet, names.GATEWAY_FALLBACKS, "succeeded") > 100
    assert count(fleet, names.GATEWAY_COOLDOWNS) >= 3
    assert turns(fleet, "success") > 0.9
    fleet.advance(fleet.now + 5 * MINUTE)
    fallbacks = count(fleet, names.GATEWAY_FALLBACKS)
    fleet.advance(fleet.now + 5 * MINUTE)
    assert count(fleet, names.GATEWAY_FALLBACKS) - fallbacks < 10


def test_a_loop_makes_more_turns_of_the_same_sessions() -> None:
    healthy, loop = run(Effects()), run(Effects(turns_factor=4.0))
    sessions = count(loop, names.SESSIONS, "started") / count(healthy, names.SESSIONS, "started")
    assert sessions == pytest.approx(1, abs=0.2)
    assert count(loop, names.AGENT_TURNS) > 3.5 * count(healthy, names.AGENT_TURNS)


@pytest.mark.parametrize(
    ("effects", "family", "labels"),
    [
        (Effects(failed_checks={"context_retention": 0.5}), names.QUALITY_CHECKS,
         ("context_retention", "failed")),
        (Effects(format_error_share=0.2), names.SCHEMA_FAILURES, ()),
        (Effects(interruption_share=0.5), names.SESSIONS, ("interrupted",)),
        (Effects(regeneration_share=0.2), names.REGENERATIONS, ()),
        (Effects(fallback_share=0.2), names.GATEWAY_FALLBACKS, ()),
        (Effects(gateway_error_share=0.2), names.GATEWAY_REQUESTS, ("503",)),
    ],
)  # fmt: skip
def test_each_share_shows_in_its_own_family(
    effects: Effects, family: Family, labels: tuple[str, ...]
) -> None:
    assert count(run(effects, 5), family, *labels) > 5 * count(run(Effects(), 5), family, *labels)
