"""What one read of the host costs. Prints figures, asserts none.

    .venv/bin/python bench/host.py [--sockets 100000] [--reads 20]

On this machine's own /proc with a server that has 500 clients, and on a copy in which a storm of
sockets in TIME_WAIT fills the table, on the engine's port and on another.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import socket
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from inferslo.exporters import procfs
from inferslo.exporters.host import EngineAddress, HostSource

TREE = Path(__file__).parent.parent / "tests" / "exporters" / "trees" / "recorded"
CLIENTS = 500
LINE = (
    "{n:4d}: 0100007F:{port:04X} {n:08X}:9C40 06 00000000:00000000 03:00001000 00000000"
    "     0        0 0 3 0000000000000000\n"
)


def measure(what: str, read: Callable[[], object], reads: int) -> None:
    walls, cpus = [], []
    for _ in range(reads):
        wall, cpu = time.perf_counter(), time.process_time()
        read()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    tracemalloc.start()
    read()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(
        f"{what:<44} {statistics.median(walls) * 1e3:9.2f} {max(walls) * 1e3:9.2f}"
        f" {statistics.median(cpus) * 1e3:9.2f} {peak / 1024:9.0f}"
    )


def real(reads: int) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=CLIENTS))
        port = server.getsockname()[1]
        for _ in range(CLIENTS):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            stack.enter_context(server.accept()[0])
        host = HostSource([EngineAddress("vllm", "127.0.0.1", port)])
        host.observe()
        measure(f"this machine, {CLIENTS} clients of the engine", host.observe, reads)
        inode = procfs.read_ports(Path("/proc/net"), [port])[port].listeners[0]
        descriptors = sum(1 for _ in Path("/proc").glob("[0-9]*/fd/*"))
        measure(
            f"the search for its process, {descriptors} descriptors",
            lambda: procfs.holder_of(Path("/proc"), inode),
            reads,
        )


def storm(sockets: int, port: int, reads: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(shutil.copytree(TREE, Path(folder) / "root", symlinks=True))
        with (root / "proc/net/tcp").open("a") as table:
            table.writelines(LINE.format(n=number, port=port) for number in range(sockets))
        host = HostSource([EngineAddress("vllm", "127.0.0.1", 8000)], root)
        whose = "the engine's" if port == 8000 else "another"
        measure(f"{sockets} in TIME_WAIT, {whose} port", host.observe, reads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sockets", type=int, default=100_000)
    parser.add_argument("--reads", type=int, default=20)
    given = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 3 * CLIENTS)), hard))
    print(f"{'one read':<44} {'median ms':>9} {'max ms':>9} {'cpu ms':>9} {'peak kB':>9}")
    real(given.reads)
    storm(given.sockets, 8000, given.reads)
    storm(given.sockets, 9000, given.reads)


if __name__ == "__main__":
    main()
