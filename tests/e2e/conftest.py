"""The model that every real vLLM of this folder serves."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e.vllm import make_model


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def fatal_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """vLLM loads it, calls itself healthy, and dies of the first request."""
    return make_model(tmp_path_factory.mktemp("fatal-model"), hidden_size=64)
