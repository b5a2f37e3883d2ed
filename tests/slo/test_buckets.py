"""Thresholds against the bounds of an engine's histograms."""

import json
import re
import shlex
from decimal import Decimal
from typing import Any

import pytest
from plans import MATCH, objective, plan

from inferslo.slo.buckets import EnginePage, Kind, Problem, check
from inferslo.slo.plan import Objective, PromptRange, Selection

BOUNDS = {
    "ttft": (0.5, 1.0, 2.5),
    "tpot": (0.05, 0.1),
    "itl": (0.05, 0.1),
    "e2e": (0.3, 10.0),
    "queue": (0.3, 10.0),
}


def page(engine_type: str = "vllm", version: str = "0.32.0", **fields: Any) -> EnginePage:
    rest: dict[str, Any] = {"bounds": BOUNDS} | fields
    return EnginePage(engine_type, version, **rest)


def latency(signal: str, threshold: str, **fields: Any) -> Objective:
    return objective(signal, threshold=Decimal(threshold), **fields)


def text(of: Objective, of_page: EnginePage) -> str:
    (problem,) = check(plan(of), of_page)
    return problem.text


def custom_buckets(of: str) -> dict[str, list[float]]:
    """What a shell hands to vLLM."""
    words = shlex.split(of)
    found = json.loads(words[words.index("--custom-histogram-buckets") + 1])
    assert isinstance(found, dict)
    return found


def test_a_threshold_that_is_a_bound_is_fine() -> None:
    assert check(plan(latency("ttft", "2.5"), latency("queue", "0.30")), page()) == ()


def test_a_threshold_between_bounds_names_them_and_the_flag() -> None:
    found = check(plan(latency("ttft", "2")), page())
    assert found == (
        Problem(
            "ttft",
            Kind.BOUND,
            "2s is not a bucket bound of vLLM 0.32.0: use 1s or 2.5s; or start it with"
            " --custom-histogram-buckets '{\"time_to_first_token\": [0.5, 1.0, 2.0, 2.5]}'",
        ),
    )


@pytest.mark.parametrize(
    ("threshold", "line"),
    [
        ("0.2", "200ms is below the first bucket bound of vLLM 0.32.0: use 300ms; or start it"),
        ("60", "1m is above the last bucket bound of vLLM 0.32.0: use 10s; or start it with"),
    ],
)
def test_a_threshold_beyond_all_bounds_says_which_way(threshold: str, line: str) -> None:
    found = text(latency("queue", threshold), page())
    assert found.startswith(line)
    assert custom_buckets(found) == {
        "request_latency": sorted([0.3, 10.0, float(Decimal(threshold))])
    }


def test_one_flag_has_all_that_the_plan_misses_and_only_that() -> None:
    """vLLM keeps one list for e2e and queue, and one for ITL and TPOT."""
    wanted = [latency("e2e", "3"), latency("queue", "0.2"), latency("tpot", "0.06")]
    found = check(plan(latency("ttft", "1"), *wanted), page())
    assert [problem.objective for problem in found] == ["e2e", "queue", "tpot"]
    for problem in found:
        assert custom_buckets(problem.text) == {
            "request_latency": [0.2, 0.3, 3.0, 10.0],
            "inter_token_latency": [0.05, 0.06, 0.1],
        }


@pytest.mark.parametrize("version", ["", "0.11.0", "0.9.2", "0.31.9rc1"])
def test_an_engine_that_may_be_too_old_is_told_from_when_on(version: str) -> None:
    assert "; or start vLLM 0.32 or newer with --custom" in text(
        latency("ttft", "2"), page(version=version)
    )


@pytest.mark.parametrize("version", ["0.32.0", "0.32.0+cpu", "0.33.1rc2", "1.0"])
def test_an_engine_that_is_new_enough_is_just_started_with_it(version: str) -> None:
    assert "; or start it with --custom" in text(latency("ttft", "2"), page(version=version))


def test_sglang_has_a_flag_for_each_of_three_lists() -> None:
    sglang = page("sglang", "0.5.16")
    found = check(plan(latency("ttft", "2"), latency("itl", "0.06"), latency("queue", "1")), sglang)
    flags = (
        "--bucket-time-to-first-token 0.5 1.0 2.0 2.5 --bucket-inter-token-latency 0.05 0.06 0.1"
    )
    assert [re.sub(r"^.*; ", "", problem.text) for problem in found] == [
        f"or start it with {flags}",
        f"or start it with {flags}",
        "no flag of the engine is known that adds a bound",
    ]


def test_an_engine_of_which_no_flag_is_known_leaves_the_nearest() -> None:
    assert text(latency("ttft", "2"), page("tgi", "3.3.7")) == (
        "2s is not a bucket bound of tgi 3.3.7: use 1s or 2.5s; no flag of the engine is known"
        " that adds a bound"
    )


def test_a_signal_that_is_not_on_the_page_is_missing() -> None:
    why = "vLLM runs with --disable-log-stats; start vLLM without it"
    silent = page(bounds={}, missing={"ttft": why, "availability": why, "tail_ratio": why})
    found = check(
        plan(latency("ttft", "2"), latency("queue", "1"), objective("availability")), silent
    )
    assert [(problem.objective, problem.kind, problem.text) for problem in found] == [
        ("ttft", Kind.MISSING, f"the page lacks time to first token: {why}"),
        ("queue", Kind.MISSING, "the page lacks queue wait: it has no such histogram"),
        ("availability", Kind.MISSING, f"the page lacks answered requests: {why}"),
    ]


CLASSED = [
    latency("ttft", "2", selection=Selection(MATCH.match, sla_class="S")),
    latency("ttft", "2", selection=Selection(MATCH.match, prompts=(PromptRange(above=8000),))),
    objective("goodput"),
]


@pytest.mark.parametrize("classed", CLASSED)
def test_what_only_the_probe_measures_needs_it(classed: Objective) -> None:
    (problem,) = check(plan(classed), page())
    assert problem.kind is Kind.MISSING
    assert problem.text.endswith(": only the in-engine probe measures it")


@pytest.mark.parametrize("classed", CLASSED)
def test_the_bounds_of_the_probe_are_the_thresholds_themselves(classed: Objective) -> None:
    assert check(plan(classed), page(probed=True)) == ()


def test_what_no_engine_publishes_is_not_looked_for() -> None:
    others = [objective("agent_turn_success"), objective("fallback_count"), objective("promql")]
    of_class = Selection(MATCH.match, sla_class="S")
    others.append(objective("session_completion", selection=of_class))
    assert check(plan(*others, objective("gpu_utilization_cv")), page(bounds={})) == ()
