"""What a page of vLLM counts of one model's requests: by finish reason and by HTTP status."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ..exposition import Sample
from .excess import Restart
from .series import HTTP_REQUESTS, Found, VllmPage, model_of

FINISHED = "request_success_total"  # despite its name it counts failures and aborts too

# Of the same middleware. Several API servers tell nothing of a counter before its first sample,
# but this one, which has no labels, is there from the start.
_HTTP_DURATION = "http_request_duration_highr_seconds"

# Handlers of vLLM 0.32 that make engine requests: text, audio and pooling (which finish with
# `stop`). One that is not listed makes derived aborts run behind, never ahead.
INFERENCE_HANDLERS = frozenset({
    "/v1/completions", "/v1/chat/completions", "/v1/chat/completions/batch", "/v1/responses",
    "/v1/messages", "/cohere/v2/chat", "/inference/v1/generate", "/generative_scoring",
    "/v1/systemone", "/invocations", "/v1/audio/transcriptions", "/v1/audio/translations",
    "/v1/embeddings", "/v2/embed", "/pooling", "/classify", "/score", "/v1/score", "/rerank",
    "/v1/rerank", "/v2/rerank",
})  # fmt: skip


class Http:
    """Responses of inference handlers by the first digit of their status.

    A label set is made with its first response, so one that is absent is a true zero; but a
    family without any sample tells nothing (`seen` is False).
    """

    def __init__(self, page: VllmPage) -> None:
        self.seen = bool(page.page.samples(HTTP_REQUESTS))
        by_status = Found(HTTP_REQUESTS, inference_responses(page)).by(
            lambda s: s.labels.get("status", "")[:1]
        )
        self._counts = {status: math.fsum(counts) for status, counts in by_status.items()}

    @property
    def answered(self) -> float:
        """2xx: finished, broken off by the client, failed in mid-stream, or a refused stream."""
        return self._counts.get("2", 0.0)

    @property
    def invalid(self) -> float:
        return self._counts.get("4", 0.0)

    @property
    def failed(self) -> float:
        """5xx: failures, and what a queue limit refused (503)."""
        return self._counts.get("5", 0.0)


@dataclass(frozen=True, slots=True)
class Traffic:
    """http: None where vLLM's HTTP server is not counted, or its page is Ray's.

    reasons: finished engine requests by finish reason; empty where the page has none.
    rejected: requests that a queue limit refused. vLLM answers 503, but 200 to a stream, with an
    error in it. Of both kinds only the sum is known: as many as there are 5xx are taken to be 503.
    """

    page: VllmPage
    model: str
    reasons: Mapping[str, float]
    rejected: float
    http: Http | None
    restart: Restart

    def finished(self, reason: str) -> float:
        return self.reasons.get(reason, 0.0)

    @property
    def failed_responses(self) -> float:
        """5xx that no queue limit made; 0 where HTTP is not counted."""
        return max(self.http.failed - self.rejected, 0.0) if self.http else 0.0

    @property
    def refused_streams(self) -> float:
        """2xx that tell of a queue limit; 0 where HTTP is not counted."""
        return max(self.rejected - self.http.failed, 0.0) if self.http else 0.0


def inference_responses(page: VllmPage) -> list[Sample]:
    samples = page.page.samples(HTTP_REQUESTS)
    return [sample for sample in samples if sample.labels.get("handler") in INFERENCE_HANDLERS]


def http_of(page: VllmPage) -> Http | None:
    """Raises UnusableError."""
    counted = page.page.declared(HTTP_REQUESTS) or page.page.declared(_HTTP_DURATION)
    return Http(page) if counted and not page.is_ray else None


def finished_by_model(page: VllmPage) -> dict[str, dict[str, float]]:
    """Raises UnusableError."""
    found: dict[str, dict[str, float]] = {}
    counts = page.find(FINISHED).by(lambda s: (model_of(s), s.labels.get("finished_reason", "")))
    for (model, reason), values in counts.items():
        found.setdefault(model, {})[reason] = math.fsum(values)
    return found


def total(page: VllmPage, name: str) -> float:
    """Over all series of the name; 0 if there are none. Raises UnusableError."""
    return page.find(name).total()
