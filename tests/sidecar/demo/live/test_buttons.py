"""The buttons: made of the fault files, named by alerts that the demo's rules have."""

from __future__ import annotations

import math

import pytest

from inferslo.rules.compile import compile_rules
from inferslo.rules.model import Alert
from inferslo.sidecar.demo.faults import catalogue
from inferslo.sidecar.demo.live.buttons import Button, UnknownFaultError, button, buttons
from inferslo.sidecar.demo.live.rehearsal import plan

WANTED = {
    "traffic-burst", "queue-avalanche", "long-context-flood", "kv-fragmentation", "memory-leak",
    "slow-gpu", "neighbour", "dead-instance", "engine-hang", "empty-answers", "fallback-storm",
    "bad-canary", "pool-exhausted",
}  # fmt: skip
COMPILED = {
    rule.alert for group in compile_rules(plan()) for rule in group.rules if isinstance(rule, Alert)
}
each_button = pytest.mark.parametrize("each", buttons().values(), ids=lambda each: each.name)


def of_parts(*parts: dict[str, object]) -> Button:
    return Button.model_validate({"name": "b", "title": "t", "says": "s", "parts": parts})


def test_every_fault_that_was_asked_for_has_a_button() -> None:
    assert buttons().keys() == WANTED


@each_button
def test_a_button_is_made_of_fault_files_and_ends(each: Button) -> None:
    assert each.faults()
    assert 0 < each.lasts < math.inf


@each_button
def test_an_alert_that_names_it_is_among_the_compiled_ones(each: Button) -> None:
    assert COMPILED & set(each.expect)


@each_button
def test_what_is_played_faster_says_so(each: Button) -> None:
    faster = any(part.speed > 1 for part in each.parts)
    assert bool(each.pace) == faster


def test_a_creep_is_played_faster_and_is_else_as_its_file() -> None:
    [leak] = of_parts({"fault": "F6", "speed": 60}).faults()
    filed = catalogue()["F6"]
    assert leak.effects.memory_gib_per_hour == 60 * filed.effects.memory_gib_per_hour
    assert leak.duration == filed.duration
    [heat] = of_parts({"fault": "F29", "speed": 20}).faults()
    assert (heat.ramp, heat.effects.heat) == (60, catalogue()["F29"].effects.heat)


def test_rates_by_cause_are_played_faster_too() -> None:
    [stranded] = of_parts({"fault": "F5", "speed": 10}).faults()
    assert stranded.effects.ooms_per_hour == {"fragmentation": 10.0}


def test_a_part_comes_later_and_may_be_taken_in_part() -> None:
    button = of_parts(
        {"fault": "F1", "lasts": 50}, {"fault": "F12", "after": 9, "only": ["retries"]}
    )
    burst, retries = button.faults()
    assert (burst.start, burst.duration, retries.start) == (0, 50, 9)
    assert retries.effects.model_fields_set == {"retries"}
    assert "InfersloRetryStorm" not in button.expect


def test_a_button_that_there_is_not_names_a_near_one() -> None:
    with pytest.raises(UnknownFaultError, match="queue-avalanche"):
        button("queue-avalance")
    with pytest.raises(UnknownFaultError, match="known are bad-canary"):
        button("x")
