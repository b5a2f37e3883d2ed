"""The servers whose metrics pages are read, as the user names them."""

from __future__ import annotations

from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PositiveInt, model_validator

from ...exporters.engines import ENGINES
from ...slo.errors import closest
from .values import CaFile, Metavar, Name, TokenFile, Url


class Target(BaseModel):
    """A server whose metrics page is read. As text: "[NAME=]URL"."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: Annotated[Url, Metavar("URL")] = Field(
        description="Base URL of the server; the page read is /metrics below it."
    )
    name: Name = Field(
        default_factory=lambda known: urlsplit(known["url"]).netloc,
        description="The name in every series. Default: the host and port of the URL.",
    )
    bearer_token_file: TokenFile | None = Field(
        default=None, description="File that holds the bearer token sent with each read."
    )
    ca_file: CaFile | None = Field(
        default=None, description="PEM file of the certificate authority that signed the server's."
    )
    insecure_skip_verify: bool = Field(
        default=False, description="Read even if the certificate of the server cannot be verified."
    )

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        before, equals, after = value.strip().partition("=")
        is_named = equals and "/" not in before
        return {"name": before, "url": after} if is_named else {"url": value.strip()}

    @model_validator(mode="after")
    def _tls_makes_sense(self) -> Self:
        if self.ca_file and self.insecure_skip_verify:
            raise ValueError(f"{self.name}: ca_file and insecure_skip_verify contradict each other")
        if self.url.startswith("http:") and (self.ca_file or self.insecure_skip_verify):
            setting = "ca_file" if self.ca_file else "insecure_skip_verify"
            raise ValueError(f"{self.name}: {setting} means nothing with http: write https://…")
        return self

    @property
    def metrics_url(self) -> str:
        return self.url + "/metrics"


def _known_engine(name: str) -> str:
    if name not in ENGINES:
        raise ValueError(f'"{name}" is not an engine that inferslo knows{closest(name, ENGINES)}')
    return name


class Engine(Target):
    """An inference engine."""

    type: Annotated[str, AfterValidator(_known_engine)] | None = Field(
        default=None, description="What the engine is. Default: found out from its page."
    )
    kv_cache_groups: PositiveInt | None = Field(
        default=None,
        description="KV cache groups of the model, for its capacity in tokens: 1 for plain"
        " attention, more for hybrid models; the engine logs it at start.",
    )
