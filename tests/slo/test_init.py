"""The file that `init` writes: right by itself, and for the engine that was looked at."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest
from vllm_pages import CAPTURES

from inferslo.sidecar.commands.bounds import page_of_capture
from inferslo.slo.buckets import EnginePage, check
from inferslo.slo.catalogue import NoSuchEntryError, names
from inferslo.slo.init import Answers, InitError, Strictness, write
from inferslo.slo.load import load_text
from inferslo.slo.plan import Plan, Urgency, When

VLLM = page_of_capture(CAPTURES / "vllm-0.32.0__mid-overload.prom")
SILENT = page_of_capture(CAPTURES / "vllm-0.32.0__disable-log-stats.prom")
CHAT = Answers("chat", Strictness.NORMAL, "platform", "assistant")


def text_of(answers: Answers = CHAT, page: EnginePage = VLLM, *models: str) -> str:
    return write(answers, replace(page, models=models or ("tiny",)))


def plan_of(answers: Answers = CHAT, page: EnginePage = VLLM, *models: str) -> Plan:
    return load_text(text_of(answers, page, *models))


def thresholds(plan: Plan, signal: str) -> list[str]:
    return [str(o.threshold) for o in plan.objectives if o.signal.name == signal]


@pytest.mark.parametrize(
    ("kind", "strictness", "events"),
    list(itertools.product(names(), Strictness, (False, True))),
)
def test_it_passes_check_by_itself_and_against_the_engine(
    kind: str, strictness: Strictness, events: bool
) -> None:
    plan = plan_of(Answers(kind, strictness, "platform", kind, events))
    assert plan.objectives
    assert check(plan, VLLM) == ()


def test_it_speaks_of_the_models_that_the_engine_serves() -> None:
    assert plan_of(CHAT, VLLM, "org/qwen3", 'od"d').selection.match == (
        ("model_name", ('od"d', "org/qwen3")),
    )


def test_what_an_engine_says_of_itself_stays_inside_comments_and_quotes() -> None:
    evil = "x\n\nservice: evil"
    page = replace(VLLM, version=evil, missing={"tpot_cv": evil})
    plan = plan_of(CHAT, page, 'a", evil: "b')
    assert plan.service == "assistant"
    assert plan.selection.match == (("model_name", ('a", evil: "b',)),)


def test_without_a_model_it_speaks_of_all() -> None:
    assert load_text(write(CHAT, replace(VLLM, models=()))).selection.match == ()


def test_a_threshold_that_is_no_bound_moves_to_the_next_one_and_the_file_says_so() -> None:
    assert thresholds(plan_of(), "ttft") == ["2.5", "5"]
    assert "threshold: 2.5s # T1 says 2s, no bound of vLLM\n" in text_of()


def test_strict_takes_the_bound_below_and_fewer_failures() -> None:
    plan = plan_of(replace(CHAT, strictness=Strictness.STRICT))
    assert thresholds(plan, "ttft") == ["1", "2.5"]
    assert str(plan.objectives[0].objective) == "0.9997"


def test_relaxed_waits_for_the_morning() -> None:
    plan = plan_of(replace(CHAT, strictness=Strictness.RELAXED))
    assert {objective.urgency for objective in plan.objectives} == {Urgency.OFFICE_HOURS}
    assert str(plan.objectives[0].objective) == "0.99"


def test_a_bound_beyond_the_histogram_is_its_last_one() -> None:
    short = replace(VLLM, bounds={**VLLM.bounds, "ttft": (0.1, 1.0)})
    assert thresholds(plan_of(CHAT, short), "ttft") == ["1", "1"]
    late = replace(VLLM, bounds={**VLLM.bounds, "ttft": (30.0, 60.0)})
    strict = replace(CHAT, strictness=Strictness.STRICT)
    assert thresholds(plan_of(strict, late), "ttft") == ["30", "30"]


def test_what_needs_the_probe_is_a_comment_until_it_is_there() -> None:
    strict = replace(CHAT, kind="strict")
    assert "# - name: goodput-s" in text_of(strict)
    assert "# Needs the in-engine probe" in text_of(strict)

    probed = plan_of(strict, replace(VLLM, probed=True))
    assert "goodput-s" in [objective.name for objective in probed.objectives]


def test_what_needs_events_is_a_comment_until_they_are_posted() -> None:
    assert "  # - name: fallback-storm" in text_of()
    assert "  - name: fallback-storm" in text_of(replace(CHAT, events=True))


def test_what_the_page_lacks_is_a_comment_with_the_reason() -> None:
    page = replace(VLLM, missing={"tpot_cv": "the engine tells no moments; ask it to"})
    text = text_of(CHAT, page)
    assert "  # - name: steady-stream" in text
    assert "the engine tells no moments; ask it to" in text


def test_the_team_on_call_acts_in_every_tier() -> None:
    plan = plan_of()
    assert plan.owner == "platform"
    assert [(tier.tier, tier.team, tier.receiver) for tier in plan.response] == [
        (1, "platform", "platform-pager"),
        (2, "platform", "platform-pager"),
        (3, "platform", "platform-tickets"),
    ]


def test_one_team_is_paged_once_of_an_incident() -> None:
    """Tier 2 is paged of a fast burn and of one that lasts: here that is whom tier 1 woke."""
    paged = {When.INCIDENT, When.FAST_BURN}
    tiers = plan_of().response
    assert [tier.tier for tier in tiers if tier.when & paged or tier.after is not None] == [1]


def test_the_receivers_in_the_comment_are_right_once_one_does_as_it_says() -> None:
    head, _, below = text_of().partition("and write your own:\n")
    [mark] = re.findall('Remove "(.+?)"', head)
    lines = [line.removeprefix(mark) for line in below.splitlines()]
    plan = load_text("\n".join([head, *lines]))
    names = [receiver.name for receiver in plan.receivers]
    assert names == ["platform-pager", "platform-tickets", "watchdog"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"on_call": "plat form"}, 'on-call team: "plat form" is not a name'),
        ({"service": ""}, 'service: "" is not a name'),
    ],
)
def test_a_name_that_no_file_accepts_is_refused(wrong: dict[str, str], message: str) -> None:
    with pytest.raises(InitError, match=message):
        text_of(replace(CHAT, **wrong))


def test_an_unknown_kind_is_told_the_nearest() -> None:
    with pytest.raises(NoSuchEntryError, match="did you mean batch"):
        text_of(replace(CHAT, kind="bacth"))


def test_an_engine_without_statistics_leaves_what_the_gpu_tells() -> None:
    assert [objective.name for objective in plan_of(CHAT, SILENT).objectives] == ["even-gpus"]


def test_a_file_without_an_objective_is_not_written() -> None:
    with pytest.raises(InitError, match="no objective of code-completion can be judged here"):
        text_of(replace(CHAT, kind="code-completion"), SILENT)
