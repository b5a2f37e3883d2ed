"""The same rules as each ruler reads them."""

from typing import Any

import pytest
import yaml
from plans import chat_plan

from inferslo.rules.compile import compile_rules
from inferslo.rules.formats import write
from inferslo.rules.model import Alert, Format, Group, Recording
from inferslo.rules.yamltext import dump

GROUPS = (
    Group("g", 30, (Recording("a:b", 'x{l="1"}', {"slo": "s"}),)),
    Group(
        "h", 120, (Alert("A", "a:b > 0", {"tier": "1"}, {"actions": "1. one\n2. two"}, hold=90),)
    ),
)
RULES: list[dict[str, Any]] = [
    {
        "name": "g",
        "interval": "30s",
        "rules": [{"record": "a:b", "expr": 'x{l="1"}', "labels": {"slo": "s"}}],
    },
    {
        "name": "h",
        "interval": "2m",
        "rules": [
            {
                "alert": "A",
                "expr": "a:b > 0",
                "for": "90s",
                "labels": {"tier": "1"},
                "annotations": {"actions": "1. one\n2. two"},
            }
        ],
    },
]


@pytest.mark.parametrize("format", [Format.PROMETHEUS, Format.VMALERT])
def test_plain_rules(format: Format) -> None:
    assert yaml.safe_load(write({"shop": GROUPS}, format)) == {"groups": RULES}


def test_the_operators_resource() -> None:
    resource = yaml.safe_load(write({"My Shop_1": GROUPS}, Format.OPERATOR))
    assert resource["apiVersion"] == "monitoring.coreos.com/v1"
    assert resource["kind"] == "PrometheusRule"
    assert resource["metadata"]["name"] == "inferslo-my-shop-1"
    assert resource["spec"] == {"groups": RULES}


def test_mimirs_namespace() -> None:
    text = write({"shop": GROUPS}, Format.MIMIR)
    assert yaml.safe_load(text) == {"namespace": "inferslo-shop", "groups": RULES}


@pytest.mark.parametrize("format", [Format.OPERATOR, Format.MIMIR])
def test_several_services_are_several_documents(format: Format) -> None:
    documents = list(yaml.safe_load_all(write({"a": GROUPS, "b": GROUPS}, format)))
    assert len(documents) == 2


def test_several_services_are_one_plain_file() -> None:
    other = tuple(Group(f"b-{group.name}", 30, group.rules) for group in GROUPS)
    text = write({"a": GROUPS, "b": other}, Format.PROMETHEUS)
    names = [group["name"] for group in yaml.safe_load(text)["groups"]]
    assert names == ["g", "h", "b-g", "b-h"]


def test_every_format_says_the_same_of_a_real_file() -> None:
    file = chat_plan()
    compiled = {file.service: compile_rules(file)}
    plain = yaml.safe_load(write(compiled, Format.PROMETHEUS))
    assert yaml.safe_load(write(compiled, Format.OPERATOR))["spec"] == plain
    assert yaml.safe_load(write(compiled, Format.MIMIR))["groups"] == plain["groups"]


def test_yaml_keeps_order_and_lines_and_folds_nothing() -> None:
    text = dump({"z": "word " * 100, "a": "one\ntwo"}, head=["made"])
    assert text.splitlines()[0] == "# made"
    assert text.splitlines()[1].startswith("z: ")
    assert text.splitlines()[2:] == ["a: |-", "  one", "  two"]
    assert yaml.safe_load(text) == {"z": "word " * 100, "a": "one\ntwo"}


def test_texts_that_look_like_something_else_stay_texts() -> None:
    odd = {"a": "1", "b": "true", "c": "1e3", "d": "null", "e": "# no comment", "f": ""}
    assert yaml.safe_load(dump(odd)) == odd
