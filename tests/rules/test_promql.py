"""PromQL as text: what is escaped, whose series are selected, how bounds are spelled."""

import json
import re
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from promtool import promtool

from inferslo.exporters.names import (
    AGENT_TURNS,
    ALLOCATOR_OOMS,
    CLASS_TTFT,
    ENGINE_UP,
    FALLBACKS,
    GATEWAY_REQUESTS,
    GPU_UTILIZATION,
    REQUESTS,
    TTFT,
    Family,
)
from inferslo.rules.promql import (
    born_late,
    le,
    matcher,
    newborn,
    of_service,
    quoted,
    rate,
    select,
    sum_by,
)
from inferslo.slo.plan import PromptRange, Selection

bounds = st.decimals(Decimal("0.0001"), Decimal(10**7), places=4).filter(bool)


def pattern(bound: Decimal) -> str:
    return le(bound).removeprefix('le=~"').removesuffix('"')


@given(bounds)
def test_every_spelling_of_a_bound_is_matched(bound: Decimal) -> None:
    number = float(bound)
    spellings = {str(number), f"{number:g}" if float(f"{number:g}") == number else str(number)}
    spellings |= {f"{bound.normalize():f}", repr(number), f"{bound.normalize():e}"}
    assert all(re.fullmatch(pattern(bound), text) for text in spellings), (
        pattern(bound),
        spellings,
    )


@given(bounds, bounds)
def test_no_other_bound_is_matched(bound: Decimal, other: Decimal) -> None:
    if bound != other:
        assert not re.fullmatch(pattern(bound), str(float(other)))


@given(st.text(max_size=20), st.text(max_size=20))
def test_one_value_or_several_are_matched_as_they_are(one: str, two: str) -> None:
    text = matcher("label", [one, two]).removeprefix("label=~")
    regex = re.fullmatch(r'"(.*)"', text, re.DOTALL)
    assert regex is not None
    unquoted = re.sub(r"\\(.)", lambda escape: "\n" if escape[1] == "n" else escape[1], regex[1])
    assert {value for value in (one, two) if re.fullmatch(unquoted, value)} == {one, two}


def test_labels_that_a_user_writes_are_read_back_by_prometheus(tmp_path: Path) -> None:
    odd = ['a"b', "back\\slash", "a|b", "x.y", "tab\tnew\nline", "Qwen/Qwen3-27B(int4)", "é+"]
    rules = [
        {"record": f"r{n}", "expr": f"sum(x{{{each}}})"}
        for n, each in enumerate([*(matcher("m", [one]) for one in odd), matcher("m", odd)])
    ]
    file = tmp_path / "rules.yaml"
    file.write_text(json.dumps({"groups": [{"name": "g", "rules": rules}]}))
    ran = subprocess.run(
        [promtool(), "check", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_string_is_escaped_once() -> None:
    assert quoted('a"b\\c\nd') == '"a\\"b\\\\c\\nd"'


MATCH = (("model_name", ("m",)), ("job", ("a", "b")), ("app", ("shop",)))


def test_target_labels_apply_to_all_and_other_labels_where_a_family_has_them() -> None:
    selection = Selection(match=MATCH)
    assert select(TTFT, selection, part="_count") == (
        'inferslo_ttft_seconds_count{model_name="m",job=~"a|b"}'
    )
    assert select(GPU_UTILIZATION, selection) == 'inferslo_gpu_utilization_ratio{job=~"a|b"}'


def test_an_application_need_not_name_the_model() -> None:
    selection = Selection(match=MATCH, tenant="acme", sla_class="S")
    assert select(AGENT_TURNS, selection) == (
        'inferslo_agent_turns_total{model_name=~"m|",job=~"a|b",app="shop",'
        'sla_class="S",tenant="acme"}'
    )
    assert 'model_name=~"m|"' in select(GATEWAY_REQUESTS, selection)


def test_prompt_lengths_are_told_by_the_label_of_their_range() -> None:
    selection = Selection(prompts=(PromptRange(above=8000), PromptRange(2000, 8000)))
    assert select(CLASS_TTFT, selection, part="_count") == (
        'inferslo_class_ttft_seconds_count{prompt_class=~"gt_8000|gt_2000_le_8000"}'
    )


def test_what_names_no_model_is_told_by_the_engine_beside_it() -> None:
    selection = Selection(match=MATCH)
    assert of_service("x", GPU_UTILIZATION, selection) == (
        "(x and on (job, instance)"
        ' last_over_time(inferslo_engine_info{model_name="m",job=~"a|b"}[1h]))'
    )
    assert "on (job, instance, engine)" in of_service("x", ENGINE_UP, selection)
    for family, chosen in [
        (TTFT, selection),
        (AGENT_TURNS, selection),
        (GPU_UTILIZATION, Selection(match=(("job", ("a",)),))),
    ]:
        assert of_service("x", family, chosen) == "x"


@pytest.mark.parametrize("family", [AGENT_TURNS, FALLBACKS, GATEWAY_REQUESTS])
def test_counters_with_open_labels_are_born_late(family: Family) -> None:
    assert born_late(family)


@pytest.mark.parametrize("family", [TTFT, REQUESTS, CLASS_TTFT])
def test_what_an_engine_counts_is_there_from_its_start(family: Family) -> None:
    assert rate("x", family, 300) == "rate(x[5m])"


def test_a_newborn_counts_only_where_its_source_answered_before() -> None:
    assert newborn("x", GATEWAY_REQUESTS, 300) == (
        "((x unless x offset 5m unless x offset 1h <= x unless x offset 1d <= x)"
        " and on (job, instance, gateway) (inferslo_gateway_up offset 5m == 1))"
    )
    assert "inferslo_build_info offset" in newborn("x", AGENT_TURNS, 300)
    assert "inferslo_engine_up offset" in newborn("x", ALLOCATOR_OOMS, 300)


def test_a_sum_by_nothing_is_a_sum() -> None:
    assert sum_by((), "x") == "sum(x)"
    assert sum_by(("a", "b"), "x") == "sum by (a, b) (x)"
