"""Fault files: what they may say, how they combine, and that somebody names each of them."""

from __future__ import annotations

import pytest

from inferslo.rules import naming, warnings
from inferslo.sidecar.demo.faults import Effects, Fault, FaultError, catalogue, combined, parse

FILE = "id: F1\nname: burst\ntitle: t\nexpect: []\neffects: {arrival_factor: 3}\n"


def fault(**fields: object) -> Fault:
    return Fault.model_validate(
        {"id": "F1", "name": "f", "title": "", "expect": (), "effects": {}, **fields}
    )


def test_every_fault_that_metrics_can_show_has_a_file() -> None:
    """F27, F28 and F37 change nothing in time: faults/README.md."""
    wanted = {f"F{n}" for n in range(1, 38)} - {"F27", "F28", "F37"}
    assert catalogue().keys() == wanted


@pytest.mark.parametrize("fault", catalogue().values(), ids=lambda fault: fault.id)
def test_the_alerts_that_name_a_fault_exist(fault: Fault) -> None:
    known = {alert.name for alert in naming.ALERTS} | {w.alert for w in warnings.catalogue()}
    assert fault.expect
    assert set(fault.expect) <= known


def test_every_fault_that_a_warning_claims_has_that_warning_in_its_file() -> None:
    missing = [
        (fault, warning.alert)
        for warning in warnings.catalogue()
        for fault in warning.faults
        if fault in catalogue() and warning.alert not in catalogue()[fault].expect
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (FILE.replace("arrival_factor", "arival_factor"), "effects.arival_factor"),
        (FILE.replace("factor: 3", "factor: 0"), "greater than 0"),
        (FILE.replace("id: F1", "id: fault1"), "made.yaml: id:"),
        (FILE + "when: now\n", "made.yaml: when"),
        ("- a\n", "made.yaml: the file"),
        ("id: [", "not YAML"),
    ],
)
def test_a_wrong_file_is_told_where_it_is_wrong(text: str, says: str) -> None:
    with pytest.raises(FaultError, match=says):
        parse(text, "made.yaml")


def test_a_fault_begins_grows_and_ends() -> None:
    ramped = fault(start=100, duration=1000, ramp=200)
    assert [ramped.strength(t) for t in (99, 100, 200, 300, 1099, 1100)] == [0, 0, 0.5, 1, 1, 0]


def test_a_fault_may_come_back() -> None:
    spikes = fault(every=1800, lasting=40, duration=None)
    assert [spikes.strength(t) for t in (0, 39, 40, 1799, 1800, 1841)] == [1, 1, 0, 0, 1, 0]


def test_factors_multiply_shares_add_up_and_limits_are_the_last() -> None:
    both = combined([
        (Effects(step_factor=2.0, error_share=0.7, pool_size=10, patience=9.0), 1.0),
        (Effects(step_factor=3.0, error_share=0.6, pool_size=2, patience=5.0), 1.0),
    ])  # fmt: skip
    assert (both.step_factor, both.error_share, both.pool_size, both.patience) == (6, 1, 2, 5)


def test_half_a_fault_is_half_as_far_from_healthy() -> None:
    half = combined([(Effects(step_factor=3.0, error_share=0.2), 0.5)])
    assert (half.step_factor, half.error_share) == (2.0, 0.1)


def test_no_fault_is_healthy() -> None:
    assert combined([(Effects(step_factor=3.0), 0.0)]) == Effects()
