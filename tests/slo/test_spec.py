"""The published schema and the models say the same of a file."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError
from slofiles import FULL

from inferslo.exporters.names import Outcome
from inferslo.slo.resolve.objective import OUTCOMES
from inferslo.slo.schema import json_schema
from inferslo.slo.spec import Spec
from inferslo.slo.yamlfile import parse

ROOT = Path(__file__).parents[2]
VALIDATOR = Draft202012Validator(json_schema())
# What stands in the place of a value that makes the file wrong, by the way to it.
WRONG: list[tuple[tuple[str | int, ...], Any]] = [
    (("service",), 5),
    (("service",), None),
    (("objectives",), []),
    (("objectives",), {}),
    (("objectives", 0, "name"), None),
    (("objectives", 0, "objective"), []),
    (("objectives", 0, "budgeting"), "ratio"),
    (("objectives", 0, "urgency"), "never"),
    (("objectives", 0, "expect_traffic"), "perhaps"),
    (("objectives", 0, "nope"), 1),
    (("objectives", 0, "alerting"), {"nope": 1}),
    (("objectives", 2, "composite"), {"a": 1}),
    (("classes", "S", "ttft"), 5),
    (("classes", "S", "nope"), 5),
    (("match", "job"), 5),
    (("window",), {"calendar": "year"}),
    (("response", 0, "tier"), 4),
    (("response", 0, "tier"), 0),
    (("response", 2, "times"), 1),
    (("response", 2, "when"), "never"),
    (("response", 2, "when"), []),
    (("receivers",), {}),
    (("receivers", "r", "slack", "api_url"), "https://h/secret"),
    (("receivers", "p", "pagerduty"), {}),
    (("evaluation", "base"), 300),
    (("alerting", "burns"), []),
    (("alerting", "burns", 0, "min_bad"), 0),
    (("alerting", "burns", 0, "severity"), "warning"),
    (("canary",), {"label": "revision"}),
]


def full() -> dict[str, Any]:
    document = parse(FULL.encode(), "full.yaml", "")
    assert document.problems == []
    return document.values


def test_the_published_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(json_schema())


def test_every_key_is_known_to_both() -> None:
    VALIDATOR.validate(full())
    Spec.model_validate(full())


def test_the_full_file_has_every_key() -> None:
    """So that the tests of it leave none out."""
    schema = json_schema()
    keys = {
        key for part in [schema, *schema["$defs"].values()] for key in part.get("properties", ())
    }
    text = json.dumps(full())
    assert [key for key in sorted(keys) if f'"{key}"' not in text] == []


@pytest.mark.parametrize(("way", "value"), WRONG)
def test_what_the_schema_refuses_the_models_refuse(way: tuple[str | int, ...], value: Any) -> None:
    document: Any = copy.deepcopy(full())
    place = document
    for key in way[:-1]:
        place = place[key]
    if value is None:
        del place[way[-1]]
    else:
        place[way[-1]] = value

    assert not VALIDATOR.is_valid(document)
    with pytest.raises(ValidationError):
        Spec.model_validate(document)


def test_the_outcomes_that_can_be_bad_are_those_of_the_contract() -> None:
    assert {*OUTCOMES, "success"} == set(Outcome)
