"""Says what a metrics page is of: an engine, a gateway, or something else that it looks like."""

from __future__ import annotations

from ..exporters.engines import ENGINES, detect
from ..exporters.exposition import Page
from ..exporters.reading import ErrorKind, SourceError

LITELLM = "litellm"
# By the start of a series name; only for the message that says what a page looks like.
_LOOKS = {
    "vllm:": "vLLM",
    "sglang:": "SGLang",
    "lmdeploy:": "LMDeploy",
    "llamacpp:": "llama.cpp",
    "tgi_": "Hugging Face TGI",
    "trtllm_": "TensorRT-LLM",
    "nv_": "NVIDIA Triton",
    "dynamo_": "NVIDIA Dynamo",
    "smg_": "the SGLang gateway",
    "inferslo_": "an inferslo sidecar",
    "prometheus_": "Prometheus",
    "node_": "the Prometheus node exporter",
}


def recognise(page: Page) -> str:
    """A key of ENGINES, or LITELLM. Raises SourceError UNKNOWN_ENGINE that says what it saw."""
    engine = detect(page)
    if engine is not None:
        return engine
    if any(name.startswith("litellm_") for name in page.names):
        return LITELLM
    known = ", ".join([*sorted(ENGINES), LITELLM])
    raise SourceError(
        ErrorKind.UNKNOWN_ENGINE,
        f"this is no page of an engine or gateway that inferslo knows ({known}): {_looks(page)}",
    )


def _looks(page: Page) -> str:
    names = sorted(page.names)
    for prefix, product in _LOOKS.items():
        if any(name.startswith(prefix) for name in names):
            return f"it looks like {product}"
    return f"its series are {', '.join(names[:3])}, …" if names else "it has no series"
