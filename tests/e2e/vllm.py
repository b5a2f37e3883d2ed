"""A real vLLM on the CPU, serving a tiny model. Ready after 35 to 70 s on two cores."""

from __future__ import annotations

import subprocess
from pathlib import Path

from e2e.processes import ROOT, Server

PYTHON = ROOT / ".parts" / "vllm" / "bin" / "python"
MODEL_NAME = "tiny"
# So long that no answer ends of itself before the API server, however far behind the engine, has
# seen that its client left.
MAX_MODEL_LEN = 65536
MAX_NUM_SEQS = 16
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}


def make_model(directory: Path, hidden_size: int = 128) -> Path:
    """A model directory; hidden_size 64 makes vLLM crash on its first request (see model.py)."""
    assert PYTHON.exists(), "no real vLLM here: `make parts`; to do without: pytest -m 'not e2e'"
    script = Path(__file__).with_name("model.py")
    # -P: else `import vllm` inside transformers would find the file that you are reading.
    command = [PYTHON, "-P", script, directory, str(hidden_size), str(MAX_MODEL_LEN)]
    subprocess.run(command, check=True, capture_output=True)
    return directory


def vllm_server(model: Path, scratch: Path, port: int, *flags: str) -> Server:
    """`vllm serve`, on a port of 127.0.0.1."""
    command = [PYTHON, "-m", "vllm.entrypoints.cli.main", "serve", model]
    command += ["--served-model-name", MODEL_NAME, "--dtype", "float32", "--enforce-eager"]
    command += ["--max-num-seqs", str(MAX_NUM_SEQS)]
    # A chunk for every token would take the API server more time than the tiny model takes the
    # engine: it would fall behind, and see clients leave only when all is generated.
    command += ["--stream-interval", "8"]
    command += ["--host", "127.0.0.1", "--port", str(port), *flags]
    return Server(
        command,
        f"http://127.0.0.1:{port}",
        "/health",
        scratch / "vllm.log",
        patience=300,
        env={**ENVIRONMENT, "PYTHONPATH": str(_metadata(scratch))},
    )


def _metadata(scratch: Path) -> Path:
    """The distribution is called vllm-cpu, and `vllm serve` asks for the version of `vllm`."""
    info = scratch / "metadata" / "vllm-0.32.0+cpu.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n")
    return info.parent
