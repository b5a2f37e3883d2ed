"""Every setting of the sidecar, declared once.

Its flag, its environment variable, its key in the file, `inferslo config show` and the table in
docs/configuration.md all follow from the fields of `Settings`. How the values of the four
origins are laid over each other: load.py.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import BeforeValidator, ByteSize, Field, PositiveInt
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from ...slo.files import format_size
from .targets import Engine, Target
from .values import (
    Address,
    AutoOnOff,
    Duration,
    Folder,
    Metavar,
    NewFile,
    OnOff,
    Size,
    TokenFile,
    between,
    format_duration,
    host_and_port,
)

ENV_PREFIX = "INFERSLO_"
_STATE_OF_A_SERVICE = Path("/var/lib/inferslo")


def _comma_separated(value: Any) -> Any:
    return [part for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def default_state(name: str) -> Path:
    """A file in /var/lib/inferslo where a service may write there, else in the user's own state
    folder."""
    if os.access(_STATE_OF_A_SERVICE, os.W_OK):
        return _STATE_OF_A_SERVICE / name
    try:
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    except RuntimeError:  # a user without a home, as some clusters make
        return _STATE_OF_A_SERVICE / name
    return state / "inferslo" / name


Targets = (NoDecode, BeforeValidator(_comma_separated), Metavar("[NAME=]URL"))


class Settings(BaseSettings):
    """The settings of the running process. Made by hand it reads no origin; see load.load."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix=ENV_PREFIX, env_ignore_empty=True
    )

    engines: Annotated[tuple[Engine, ...], *Targets] = Field(
        default=(), description="Inference engine to watch; may be given several times."
    )
    litellm: Annotated[tuple[Target, ...], *Targets] = Field(
        default=(), description="LiteLLM proxy to watch; may be given several times."
    )
    engine_token_file: TokenFile | None = Field(
        default=None, description="File of the bearer token for engines without one of their own."
    )
    litellm_token_file: TokenFile | None = Field(
        default=None,
        description="File of the bearer token for LiteLLM proxies without one of their own.",
    )
    listen: Address = Field(
        default="127.0.0.1:9400", description="Where to serve /metrics; :9400 is every address."
    )
    poll_interval: Annotated[Duration, between("100ms", "5m")] = Field(
        default=2.0,
        description="Time between the starts of two reads of an engine or gateway.",
    )
    read_deadline: Annotated[Duration, between("100ms", "5m")] = Field(
        default=5.0, description="Time that one read may take in all; what is slower is given up."
    )
    max_page_bytes: Size = Field(
        default=ByteSize(16 << 20),
        ge=1024,
        description="Greatest metrics page read; what is larger is given up.",
    )
    gpu: AutoOnOff = Field(
        default="auto",
        description="Read the GPUs by NVML; auto: where the driver's library is found.",
    )
    gpu_interval: Annotated[Duration, between("1s", "5m")] = Field(
        default=5.0, description="Time between the starts of two reads of a GPU."
    )
    gpu_expected: PositiveInt | None = Field(
        default=None, description="GPUs that should answer. Default: the most ever seen."
    )
    host: OnOff = Field(
        default=True,
        description="Read sockets, file descriptors, memory and CPU from /proc and cgroups.",
    )
    host_root: Folder = Field(
        default=Path("/"),
        description="Where the host's /proc and /sys are: its root, as mounted here.",
    )
    events: OnOff = Field(default=True, description="Take business events at /v1/events.")
    events_journal: NewFile = Field(
        default_factory=lambda: default_state("events.db"),
        description="SQLite file that keeps the events over a restart. Default:"
        " /var/lib/inferslo/events.db where that folder is writable, else"
        " $XDG_STATE_HOME/inferslo/events.db.",
    )
    events_token_file: TokenFile | None = Field(
        default=None, description="File of the bearer token that whoever posts events must send."
    )
    events_max_body: Size = Field(
        default=ByteSize(1 << 20),
        ge=1024,
        description="Greatest body of a request that posts events.",
    )
    events_label_values_max: PositiveInt = Field(
        default=50, description="Values that one label may take; more are counted as `other`."
    )
    events_series_max: PositiveInt = Field(
        default=1000, description="Series that one family of events may have; more go to `other`."
    )
    slo: NewFile | None = Field(
        default=None,
        description="SLO file to judge, by what this sidecar publishes (docs/judge.md).",
    )
    slo_history: NewFile = Field(
        default_factory=lambda others: others["events_journal"].parent / "slo.db",
        description="SQLite file of what was judged, so that budgets outlive a restart. Default:"
        " slo.db beside the events' journal.",
    )
    alertmanager: Annotated[tuple[Target, ...], *Targets] = Field(
        default=(),
        description="Alertmanager, or one of its peers, to tell of the alerts of the SLO file;"
        " only where no Prometheus evaluates its rules. May be given several times.",
    )
    alertmanager_token_file: TokenFile | None = Field(
        default=None, description="File of the bearer token for Alertmanager."
    )
    log_format: Annotated[Literal["auto", "text", "json"], Metavar("auto|text|json")] = Field(
        default="auto",
        description="Form of the log on stderr; auto: text on a terminal, else JSON.",
    )
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Metavar("debug|info|warning|error")
    ] = Field(default="info", description="Least grave lines that are logged.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # config.load lays the origins over each other itself, to know where each value is from.
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of `listen`."""
        return host_and_port(self.listen)

    def token_file(self, target: Target) -> Path | None:
        """The file of the target's bearer token: its own, else the one for all of its sort."""
        shared = self.engine_token_file if isinstance(target, Engine) else self.litellm_token_file
        return target.bearer_token_file or shared


FIELDS: dict[str, FieldInfo] = Settings.model_fields


def flag(field: str) -> str:
    """ "--poll-interval" of "poll_interval"."""
    return "--engine" if field == "engines" else "--" + field.replace("_", "-")


def variable(field: str) -> str:
    """ "INFERSLO_POLL_INTERVAL" of "poll_interval"."""
    return ENV_PREFIX + field.upper()


def metavar(field: str) -> str:
    """What stands for the value of the setting in help and docs."""
    outer = FIELDS[field].metadata
    inner = [m for part in get_args(FIELDS[field].annotation) for m in get_args(part)]  # … | None
    return next((m.text for m in (*outer, *inner) if isinstance(m, Metavar)), "N")


def written(field: str, value: object) -> str:
    """The value of a setting (no list) as the user may write it, in any of the origins."""
    match metavar(field):
        case "DURATION":
            return format_duration(cast("float", value))
        case "SIZE":
            return format_size(cast("int", value))
        case "on|off":
            return "on" if value else "off"
    return str(value)


def default_text(field: str) -> str:
    """The default as `written`; empty if there is none, or if it depends on the machine."""
    default = FIELDS[field].get_default()
    return "" if default in (None, (), PydanticUndefined) else written(field, default)


def contradictions(settings: Settings) -> Iterator[tuple[tuple[str, ...], str]]:
    """Settings that are each right and cannot all be meant: their names, and what is wrong."""
    targets = (*settings.engines, *settings.litellm)
    by_url = {target.url: target for target in targets}
    for url in _repeated(target.url for target in targets):
        yield (
            _fields_with(targets, by_url[url].name),
            (f"{url} is there twice: its requests would be counted twice"),
        )
    for name in _repeated(target.name for target in by_url.values()):
        yield (
            _fields_with(targets, name),
            (f'two are named "{name}": give each a name of its own, NAME=URL'),
        )
    for target in targets:
        if _RESERVED.fullmatch(target.name):
            yield (
                _fields_with((target,), target.name),
                (f'"{target.name}" is the name of a source of the sidecar\'s own: choose another'),
            )
    if settings.gpu == "off" and settings.gpu_expected is not None:
        yield ("gpu", "gpu_expected"), "GPUs are expected and not read"
    yield from _of_alertmanager(settings)
    if not settings.events and settings.events_token_file is not None:
        yield ("events", "events_token_file"), "tokens without events"


def _of_alertmanager(settings: Settings) -> Iterator[tuple[tuple[str, ...], str]]:
    peers = settings.alertmanager
    if peers and settings.slo is None:
        yield ("alertmanager", "slo"), "there is nothing to tell without an SLO file"
    if settings.alertmanager_token_file is not None and not peers:
        yield ("alertmanager", "alertmanager_token_file"), "a token for nobody"
    if len({(peer.bearer_token_file, peer.ca_file) for peer in peers}) > 1:
        yield ("alertmanager",), "its peers take one token and one authority: write the same of all"
    if any(peer.insecure_skip_verify for peer in peers):
        yield ("alertmanager",), "its certificate is always verified: give ca_file"


# Names of the sources "host", "gpu", "gpu-events", "gpu0" …
_RESERVED = re.compile(r"host|gpu(-events|\d+)?")


def _fields_with(targets: Iterable[Target], name: str) -> tuple[str, ...]:
    """The settings that hold a target of this name."""
    fields = (
        "engines" if isinstance(target, Engine) else "litellm"
        for target in targets
        if target.name == name
    )
    return tuple(dict.fromkeys(fields))


def _repeated(values: Iterable[str]) -> list[str]:
    return [value for value, count in Counter(values).items() if count > 1]
