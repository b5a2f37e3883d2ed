"""Business events as they come over the wire: models, JSON Schema, faults in words."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)

from ...exporters import names
from ...exporters.names import Family
from ...exporters.reading import InfersloError

MAX_BATCH = 1000

# Control characters and line separators would break the lines of a log or of a table.
_PRINTABLE = r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*$"
Label = Annotated[str, StringConstraints(max_length=64, pattern=_PRINTABLE)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=_PRINTABLE)]
Key = Annotated[str, StringConstraints(min_length=1, max_length=128)]


def _whole(value: object) -> object:
    # JSON has one sort of number: to JSON Schema, and to languages without integers, 1.0 is 1.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _checked_time(value: object) -> object:
    if value is None:
        return None
    if isinstance(value, str):
        try:
            if datetime.fromisoformat(value).tzinfo is not None:
                return value
        except ValueError:
            pass
    elif isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return value
    raise ValueError("is not RFC 3339 with a zone (2026-01-31T12:00:00Z), nor Unix seconds")


Time = Annotated[
    str | float | None,
    PlainValidator(_checked_time),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "date-time"},
                {"type": "number", "minimum": 0},
                {"type": "null"},
            ]
        }
    ),
]


class _Event(BaseModel):
    # `model_name` is a field here, so pydantic's own `model_` prefix is not reserved.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, protected_namespaces=())

    family: ClassVar[Family]

    app: Label | None = Field(None, description="The application that reports.")
    model_name: Label | None = Field(None, description="The model that served it.")
    tenant: Label | None = Field(None, description="The customer, bounded in number.")
    sla_class: Label | None = Field(None, description="What the request is worth: S, A, B, ….")
    id: Key | None = Field(
        None,
        description="Idempotency key: an event whose id was seen before is acknowledged and not"
        " counted. Without it a retry counts twice.",
    )
    time: Time = Field(
        None,
        description="When it happened, RFC 3339 or Unix seconds. Checked, never used: an event"
        " counts when it arrives.",
    )

    def labels(self) -> tuple[str, ...]:
        """The label values of `family`, in its order; "" for what was not given."""
        common = (self.app, self.model_name, self.tenant, self.sla_class)
        return (*(value or "" for value in common), *self._own_labels())

    def _own_labels(self) -> tuple[str, ...]:
        return ()


TurnOutcome = Literal["success", "timeout", "format_error", "tool_error", "aborted", "error"]
SessionState = Literal["started", "completed", "interrupted", "escalated"]


class AgentTurn(_Event):
    """One turn of an agent has ended."""

    family = names.AGENT_TURNS
    type: Literal["agent_turn"]
    outcome: TurnOutcome = Field(description=f"One of {', '.join(get_args(TurnOutcome))}.")

    def _own_labels(self) -> tuple[str, ...]:
        return (self.outcome,)


class Session(_Event):
    """A session has entered a state; `escalated` means handed to a human."""

    family = names.SESSIONS
    type: Literal["session"]
    state: SessionState = Field(description=f"One of {', '.join(get_args(SessionState))}.")

    def _own_labels(self) -> tuple[str, ...]:
        return (self.state,)


class Fallback(_Event):
    """The application took a degraded path."""

    family = names.FALLBACKS
    type: Literal["fallback"]
    from_model: Name = Field(description="The model that should have answered.")
    to_model: Name = Field(description="What answered instead: a model, a template, a human.")
    reason: Name = Field(description="Why, from a short list of your own: timeout, overload, ….")
    level: Annotated[int, BeforeValidator(_whole)] = Field(
        1, ge=1, le=10, description="Depth of degradation, 1 to 10."
    )

    def _own_labels(self) -> tuple[str, ...]:
        return (self.from_model, self.to_model, self.reason, str(self.level))


class Regenerate(_Event):
    """The user asked for another answer."""

    family = names.REGENERATIONS
    type: Literal["regenerate"]


class SchemaFailure(_Event):
    """A structured output did not match its schema."""

    family = names.SCHEMA_FAILURES
    type: Literal["schema_failure"]
    # pydantic's base class has an attribute `schema`.
    schema_name: Name = Field(alias="schema", description="Name of the schema.")

    def _own_labels(self) -> tuple[str, ...]:
        return (self.schema_name,)


class QualityCheck(_Event):
    """A named check of an answer's quality: context_retention, negation, vague_request, …."""

    family = names.QUALITY_CHECKS
    type: Literal["quality_check"]
    check: Name = Field(description="Name of the check.")
    passed: bool = Field(description="true or false.")

    def _own_labels(self) -> tuple[str, ...]:
        return (self.check, "passed" if self.passed else "failed")


Event = AgentTurn | Session | Fallback | Regenerate | SchemaFailure | QualityCheck

_ADAPTER: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="type")])
_MODELS: Mapping[str, type[_Event]] = {
    get_args(model.model_fields["type"].annotation)[0]: model for model in get_args(Event)
}


class EventError(InfersloError):
    """An event was refused: what is wrong, and in `hint` what to do."""

    def __init__(self, error: str, hint: str) -> None:
        super().__init__(error)
        self.error = error
        self.hint = hint


def parse(document: object) -> Event:
    """The event that a decoded JSON value stands for. Raises EventError."""
    try:
        return _ADAPTER.validate_python(document)
    except ValidationError as error:
        details = error.errors(include_url=False)
    # A misspelt key is also a missing one; the misspelling is the more helpful to hear of.
    first = min(details, key=lambda detail: detail["type"] != "extra_forbidden")
    raise _in_words(first["type"], first["loc"], first["msg"], first.get("ctx", {}))


def _in_words(
    fault: str, place: tuple[int | str, ...], message: str, context: Mapping[str, Any]
) -> EventError:
    if fault == "union_tag_not_found":
        return EventError("`type` is missing", f"give one of {', '.join(_MODELS)}")
    if fault == "union_tag_invalid":
        tag = str(context["tag"])[:64]
        return EventError(f"unknown type {tag!r}", _nearest(tag, _MODELS))
    if len(place) < 2:
        return EventError("an event is a JSON object", 'for example {"type": "regenerate"}')
    model, key = _MODELS[str(place[0])], str(place[1])
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    if fault == "extra_forbidden":
        return EventError(f"unknown key {key[:64]!r} in {place[0]}", _nearest(key, fields))
    hint = fields[key].description or ""
    if fault == "missing":
        return EventError(f"`{key}` is missing in {place[0]}", hint)
    if fault == "string_pattern_mismatch":
        message = "holds a control character or line separator"
    return EventError(f"`{key}`: {message.removeprefix('Value error, ')}", hint)


def _nearest(word: str, known: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of one event; `$defs.Batch` is the body of /v1/events:batch."""
    schema = _ADAPTER.json_schema()
    # OpenAPI's keyword, which JSON Schema does not know; `oneOf` and the constants say the same.
    del schema["discriminator"]
    schema["$defs"]["Batch"] = {
        "type": "object",
        "additionalProperties": False,
        "required": ["events"],
        "properties": {
            "events": {"type": "array", "maxItems": MAX_BATCH, "items": {"$ref": "#"}},
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "inferslo business event",
        **schema,
    }
