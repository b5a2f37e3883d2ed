"""Engine adapters: one file per engine, and how an engine is told from its page."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from ..exposition import Page
from ..reading import Observation
from .series import HTTP_REQUESTS, PREFIXES
from .traffic import INFERENCE_HANDLERS
from .vllm import Vllm


class Engine(Protocol):
    """Turns successive pages of one engine into observations; may keep state between them."""

    def __init__(
        self, name: str, *, kv_cache_groups: int | None = None, count_first: bool = True
    ) -> None: ...

    def observe(self, page: Page, version: str) -> Observation: ...


ENGINES: Mapping[str, type[Engine]] = MappingProxyType({"vllm": Vllm})

# Pages that are often named by mistake, told by the prefix of their series.
_OTHERS = {
    "sglang:": "SGLang: not supported yet",
    "tgi_": "Hugging Face TGI: not supported yet",
    "trtllm_": "TensorRT-LLM: not supported yet",
    "nv_": "Triton: not supported yet",
    "llamacpp:": "llama.cpp: not supported yet",
    "lmdeploy:": "LMDeploy: not supported yet",
    "dynamo_": "NVIDIA Dynamo: not supported yet",
    "litellm_": "LiteLLM: a gateway, not an engine; set it with --litellm",
    "inferslo_": "another inferslo sidecar; name the engine itself",
}


def detect(page: Page) -> str | None:
    """The key of ENGINES whose page this is, or None."""
    if _is_router(page):
        return None
    if page.has_prefix(*PREFIXES) or _counts_inference(page):
        return "vllm"
    return None


def explain_unknown(url: str, page: Page) -> str:
    """One line for the operator about a page that `detect` does not know."""
    if _is_router(page):
        return (
            f"{url} is the page of the vLLM production-stack router, which re-exports its engines;"
            " name the engines' own pages"
        )
    for prefix, what in _OTHERS.items():
        if page.has_prefix(prefix):
            return f"{url} is the page of {what}"
    return (
        f"{url} is the page of no engine that inferslo knows: no series begins with"
        f" {', '.join(PREFIXES)}. Name vLLM's own port; if it is vLLM, say so in the --config file:"
        f" engines: [{{url: …, type: vllm}}]"
    )


def _is_router(page: Page) -> bool:
    """It says of each engine (label `server`), under vLLM's own names, what it has read of it."""
    return page.declared("vllm:healthy_pods_total") or any(
        "server" in sample.labels and "model_name" not in sample.labels
        for name in ("vllm:num_requests_running", "vllm:num_requests_waiting")
        for sample in page.samples(name)
    )


def _counts_inference(page: Page) -> bool:
    """vLLM under --disable-log-stats still counts HTTP requests by handler."""
    samples = page.samples(HTTP_REQUESTS)
    return any(sample.labels.get("handler") in INFERENCE_HANDLERS for sample in samples)
