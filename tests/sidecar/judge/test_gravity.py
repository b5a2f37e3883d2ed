"""Which alert is told first, wherever alerts are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

from judges import ANY, DAY, TURNS, judge, page, play, turns
from plans import objective

from inferslo.rules.model import Alert
from inferslo.sidecar.judge.firing import Firing
from inferslo.sidecar.judge.gravity import gravest_first
from inferslo.sidecar.judge.history import History
from inferslo.sidecar.judge.judge import Judgement
from inferslo.sidecar.judge.verdict import Verdict


def firing(name: str, slo: str, severity: str = "page", since: float = 100.0) -> Firing:
    labels = {"slo": slo, "severity": severity, "tier": "1"}
    return Firing(Alert(name, "", {}, {}, 0), labels, 1.0, since)


def verdicts(**shown: float | None) -> list[Verdict]:
    """Of objectives of 99 %, by the signal that names them."""
    history = History(None, DAY)
    slos = [objective(name, selection=ANY) for name in shown]
    made = judge(*slos, history=history).step([], 0).verdicts
    history.close()
    return [replace(one, shown=bad) for one, bad in zip(made, shown.values(), strict=True)]


GRAVEST_FIRST = [
    firing("InfersloEngineDown", "engine", since=900),
    firing("InfersloEngineStalled", "engine", since=901),
    firing("InfersloAvailabilityBurn", "availability", since=800),
    firing("InfersloTTFTBurn", "ttft", since=700),
    firing("InfersloTPOTBurn", "tpot", since=100),
    firing("InfersloQueueBurn", "queue", since=200),
    firing("InfersloEngineDown", "engine", "ticket", 50),
    firing("InfersloAvailabilityBurn", "availability", "ticket", 10),
    firing("InfersloNoData", "e2e", "ticket", 5),
]
STANDS = verdicts(availability=0.02, ttft=0.9, tpot=0.2, queue=0.2, e2e=None)


def names(alerts: Sequence[Firing]) -> list[tuple[str, str]]:
    return [(one.alert.alert, one.labels["severity"]) for one in alerts]


def test_pages_then_causes_then_failures_then_burn_then_age() -> None:
    for n, shuffled in enumerate(permutations(GRAVEST_FIRST)):
        assert names(gravest_first(shuffled, STANDS)) == names(GRAVEST_FIRST)
        if n == 500:
            break
    assert names(gravest_first(reversed(GRAVEST_FIRST), STANDS)) == names(GRAVEST_FIRST)


def test_an_objective_called_engine_is_no_cause() -> None:
    named = replace(STANDS[1], objective=replace(STANDS[1].objective, name="engine"))
    two = [firing("InfersloTTFTBurn", "engine"), firing("InfersloAvailabilityBurn", "availability")]
    assert names(gravest_first(two, [STANDS[0], named]))[0][0] == "InfersloAvailabilityBurn"


def test_of_a_split_objective_each_group_counts_by_itself() -> None:
    one = judge(objective("agent_turn_success", "98", **TURNS))
    last: Judgement = play(
        one, (turns(a=(6 * n, 4 * n), b=(n, 9 * n), c=(10 * n, 0)) for n in range(40))
    )
    told = [each.labels["tenant"] for each in last.alerts if each.labels["severity"] == "page"]
    assert list(dict.fromkeys(told)) == ["b", "a"]


def test_the_watchdog_is_not_told() -> None:
    last = play(judge(objective("availability", selection=ANY)), (page(n) for n in range(9)))
    assert [one.alert.alert for one in last.firing] == ["InfersloWatchdog"]
    assert last.alerts == []
