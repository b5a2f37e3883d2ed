"""An application behind the web server that the sidecar uses, in a thread of the test."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from inferslo.sidecar.process import _config


@contextmanager
def served(app: FastAPI, stopping: Callable[[], None], port: int = 0) -> Iterator[str]:
    """Its address. stopping: tells the application that the process is to end. port: 0 is any."""
    server = uvicorn.Server(_config(app))
    with socket.create_server(("127.0.0.1", port)) as listener:
        sockets = {"sockets": [listener]}
        thread = threading.Thread(target=server.run, kwargs=sockets, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            stopping()
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()
