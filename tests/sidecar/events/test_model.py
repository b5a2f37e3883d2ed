import json
import math
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from inferslo.exporters.names import FAMILIES, Feed
from inferslo.sidecar.events.model import MAX_BATCH, Event, EventError, json_schema, parse

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = ROOT / "docs" / "schema" / "events.schema.json"

GOOD = [
    {"type": "agent_turn", "outcome": "timeout"},
    {"type": "session", "state": "escalated"},
    {"type": "fallback", "from_model": "a", "to_model": "b", "reason": "overload", "level": 2},
    {"type": "regenerate"},
    {"type": "schema_failure", "schema": "order"},
    {"type": "quality_check", "check": "negation", "passed": False},
]


def test_each_event_fills_the_labels_of_its_family() -> None:
    common = {"app": "shop", "model_name": "m", "tenant": "t", "sla_class": "S"}
    seen = {}
    for document in GOOD:
        event = parse(document | common)
        seen[event.family.name] = dict(zip(event.family.labels, event.labels(), strict=True))
    expected = {"app": "shop", "model_name": "m", "tenant": "t", "sla_class": "S"}
    assert seen == {
        "inferslo_agent_turns_total": expected | {"outcome": "timeout"},
        "inferslo_sessions_total": expected | {"state": "escalated"},
        "inferslo_fallbacks_total": expected
        | {"from_model": "a", "to_model": "b", "reason": "overload", "level": "2"},
        "inferslo_regenerations_total": expected,
        "inferslo_schema_failures_total": expected | {"schema": "order"},
        "inferslo_quality_checks_total": expected | {"check": "negation", "result": "failed"},
    }


def test_every_family_fed_by_events_has_an_event() -> None:
    fed = {family.name for family in FAMILIES.values() if family.feed is Feed.EVENTS}
    assert {model.family.name for model in get_args(Event)} == fed


def test_what_is_not_given_is_an_empty_label() -> None:
    assert parse({"type": "regenerate"}).labels() == ("", "", "", "")
    assert parse({"type": "regenerate", "app": None}).labels() == ("", "", "", "")


@pytest.mark.parametrize("time", ["2026-01-31T12:00:00Z", "2026-01-31T13:00:00.5+01:00", 0, 1e9])
def test_time_is_rfc_3339_or_unix(time: object) -> None:
    assert parse({"type": "regenerate", "time": time}).time == time


def test_one_is_one_however_the_number_is_written() -> None:
    level = parse(GOOD[2] | {"level": 3.0}).labels()[-1]
    assert level == "3"


BAD: list[tuple[Any, str, str]] = [
    (None, "an event is a JSON object", "for example"),
    ([], "an event is a JSON object", "for example"),
    ("regenerate", "an event is a JSON object", "for example"),
    ({}, "`type` is missing", "agent_turn, session, fallback"),
    ({"type": 7}, "unknown type '7'", "known: agent_turn"),
    ({"type": "agent_trun"}, "unknown type 'agent_trun'", "did you mean 'agent_turn'?"),
    ({"type": "agent_turn"}, "`outcome` is missing in agent_turn", "One of success"),
    (
        {"type": "agent_turn", "outcme": "success"},
        "unknown key 'outcme' in agent_turn",
        "did you mean 'outcome'?",
    ),
    ({"type": "agent_turn", "outcome": "sucess"}, "`outcome`: Input should be 'success'", "One of"),
    ({"type": "agent_turn", "outcome": None}, "`outcome`:", "One of"),
    ({"type": "regenerate", "modelname": "m"}, "unknown key 'modelname'", "mean 'model_name'?"),
    ({"type": "regenerate", "zzz": 1}, "unknown key 'zzz'", "known: app"),
    ({"type": "schema_failure", "schema_name": "x"}, "unknown key 'schema_name'", "mean 'schema'?"),
    ({"type": "regenerate", "app": 5}, "`app`: Input should be a valid string", "application"),
    ({"type": "regenerate", "app": "x" * 65}, "`app`: String should have at most 64", ""),
    ({"type": "regenerate", "app": "a\nb"}, "`app`: holds a control character", ""),
    ({"type": "regenerate", "app": "a\x00b"}, "`app`: holds a control character", ""),
    ({"type": "regenerate", "app": "a\x85b"}, "`app`: holds a control character", ""),
    ({"type": "regenerate", "app": "a\u2028b"}, "`app`: holds a control character", ""),
    ({"type": "regenerate", "app": "a\n"}, "`app`: holds a control character", ""),
    ({"type": "regenerate", "app": "\ud800"}, "`app`:", ""),
    ({"type": "regenerate", "id": ""}, "`id`: String should have at least 1", "Idempotency"),
    ({"type": "regenerate", "id": "x" * 129}, "`id`: String should have at most 128", ""),
    ({"type": "regenerate", "id": 5}, "`id`: Input should be a valid string", ""),
    ({"type": "regenerate", "time": "yesterday"}, "`time`: is not RFC 3339", ""),
    ({"type": "regenerate", "time": "2026-01-31T12:00:00"}, "`time`: is not RFC 3339", "RFC 3339"),
    ({"type": "regenerate", "time": -1}, "`time`: is not RFC 3339", ""),
    ({"type": "regenerate", "time": math.nan}, "`time`: is not RFC 3339", ""),
    ({"type": "regenerate", "time": True}, "`time`: is not RFC 3339", ""),
    ({"type": "schema_failure", "schema": ""}, "`schema`: String should have at least 1", ""),
    ({"type": "quality_check", "check": "c", "passed": "true"}, "`passed`:", "true or false"),
    ({"type": "quality_check", "check": "c", "passed": 1}, "`passed`:", "true or false"),
    (GOOD[2] | {"level": 0}, "`level`: Input should be greater than or equal to 1", "1 to 10"),
    (GOOD[2] | {"level": 11}, "`level`: Input should be less than or equal to 10", "1 to 10"),
    (GOOD[2] | {"level": True}, "`level`: Input should be a valid integer", "1 to 10"),
    (GOOD[2] | {"level": 1.5}, "`level`: Input should be a valid integer", "1 to 10"),
]


@pytest.mark.parametrize(("document", "error", "hint"), BAD)
def test_a_bad_event_is_told_what_is_wrong_and_what_to_do(
    document: object, error: str, hint: str
) -> None:
    with pytest.raises(EventError) as caught:
        parse(document)
    assert caught.value.error.startswith(error)
    assert hint in caught.value.hint
    assert "\n" not in caught.value.error + caught.value.hint


def test_events_cannot_be_changed() -> None:
    event = parse({"type": "regenerate"})
    with pytest.raises(ValidationError, match="frozen"):
        event.app = "other"  # pyright: ignore[reportAttributeAccessIssue] - that is the point


KEYS = sorted({key for document in GOOD for key in document} | {"app", "id", "time", "unknown"})
VALUES = [
    None, True, False, -1, 0, 1, 1.0, 1.5, 10, 11, [], {},
    "", "success", "started", "x" * 64, "x" * 65, "x" * 129, "a\x00b", "a\u2028b",
]  # fmt: skip


@pytest.mark.parametrize("good", GOOD, ids=lambda good: good["type"])
def test_the_published_schema_and_the_sidecar_take_the_same_events(good: dict[str, Any]) -> None:
    published = Draft202012Validator(json.loads(SCHEMA.read_text()))
    shorter = [{key: good[key] for key in good if key != left_out} for left_out in good]
    changed = [
        good | {key: value} for key in KEYS for value in VALUES if not is_a_text_time(key, value)
    ]
    for document in (good, *shorter, *changed):
        assert is_taken(document) == published.is_valid(document), document


def is_a_text_time(key: str, value: object) -> bool:
    """JSON Schema takes any text for a `format`; ours is held to it by the table of bad events."""
    return key == "time" and isinstance(value, str)


def is_taken(document: object) -> bool:
    try:
        parse(document)
    except EventError:
        return False
    return True


def test_the_schema_speaks_of_every_field_and_of_the_batch() -> None:
    definitions = json_schema()["$defs"]
    for model in get_args(Event):
        properties = definitions[model.__name__]["properties"]
        assert properties.keys() == {
            field.alias or name for name, field in model.model_fields.items()
        }
        assert definitions[model.__name__]["additionalProperties"] is False
    assert definitions["Batch"]["properties"]["events"]["maxItems"] == MAX_BATCH


def test_the_docs_name_every_type_and_field() -> None:
    text = (ROOT / "docs" / "events.md").read_text()
    for model in get_args(Event):
        assert f"`{model.family.name}`" in text
        for name, field in model.model_fields.items():
            assert f"`{field.alias or name}`" in text
