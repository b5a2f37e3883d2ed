"""A real LiteLLM proxy, and upstreams of our own that it may call.

with Upstream() as primary, litellm_proxy(tmp_path, config(primary=primary.url)) as proxy:
    assert proxy.ask("primary", "hello") == 200
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import httpx
import pytest
import yaml
from e2e.processes import ROOT, Server, free_port

EXECUTABLE = ROOT / ".parts" / "litellm" / "bin" / "litellm"


class Upstream:
    """A fake of an OpenAI-shaped engine. Its sockets are real, so that to kill it is real too.

    The prompt says what becomes of a request: one with "429" in it is answered so, one with
    "slow" after two seconds. `log` lists the prompts of every attempt.
    """

    def __init__(self) -> None:
        self.log: list[str] = []
        self._server = self._listen(0)
        self.port: int = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def kill(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def revive(self) -> None:
        self._server = self._listen(self.port)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: object, trace: TracebackType | None
    ) -> None:
        self.kill()

    def _listen(self, port: int) -> _Server:
        server = _Server(("127.0.0.1", port), _Handler)
        server.log = self.log
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return server


class _Server(ThreadingHTTPServer):
    log: list[str]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The proxy hangs up when it times out: no traceback for that."""


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        prompt = body["messages"][0]["content"]
        cast("_Server", self.server).log.append(prompt)
        if "slow" in prompt:
            time.sleep(2)
        if "429" in prompt:
            self._answer(429, {"error": {"message": "too many", "code": "429"}})
        else:
            self._answer(200, _completion(body["model"]))

    def _answer(self, status: int, body: Mapping[str, object]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


def _completion(model: str) -> Mapping[str, object]:
    message = {"role": "assistant", "content": "yes"}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


class LiteLlmProxy(Server):
    """A proxy of these models and settings; ready after about 12 s. Leaves its files in `folder`.

    key: its master key, wanted for requests and for /metrics.
    """

    def __init__(self, folder: Path, config: Mapping[str, object]) -> None:
        if not EXECUTABLE.exists():
            pytest.fail(f"{EXECUTABLE.relative_to(ROOT)} is missing: run `make parts`")
        self.key = f"sk-{secrets.token_hex(16)}"
        file = folder / "litellm.yaml"
        file.write_text(yaml.safe_dump(dict(config)))
        port = free_port()
        super().__init__(
            [EXECUTABLE, "--config", file, "--host", "127.0.0.1", "--port", str(port)],
            f"http://127.0.0.1:{port}",
            "/health/liveliness",
            folder / "litellm.log",
            patience=300,
            env={"LITELLM_MASTER_KEY": self.key, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        )

    def ask(self, model: str, prompt: str) -> int:
        """The HTTP status of one chat completion."""
        return httpx.post(
            f"{self.url}/v1/chat/completions",
            headers={"authorization": f"Bearer {self.key}"},
            json={"model": model, "messages": [{"role": "user", "content": prompt}]},
            timeout=60,
        ).status_code
