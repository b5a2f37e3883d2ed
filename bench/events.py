"""Durable events a second, beside prometheus-pushgateway on the same machine in the same run.

    python bench/events.py [--events N] [--json] [--folder DIR]

Both servers get the same requests from the same client: persistent connections, one event (for
the Pushgateway one counter sample) a request, or 500. The servers do not promise the same: the
sidecar answers when the event is synced to disk and counts each id once; the Pushgateway answers
when the sample is in memory, writes its file every few minutes, and replaces a value rather than
adding to it. --folder says where the files go: a disk, not a tmpfs, or the figures mean nothing.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))  # real servers are started there as here

from e2e.processes import Server, free_port  # noqa: E402
from e2e.sidecar import sidecar  # noqa: E402

BATCH = 500
PUSHGATEWAY = "prometheus-pushgateway"

Request = tuple[str, bytes]
Body = Callable[[int], Request]


def sidecar_request(size: int) -> Request:
    events = [
        {"type": "agent_turn", "outcome": "success", "app": "bench", "id": uuid.uuid4().hex}
        for _ in range(size)
    ]
    if size == 1:
        return "/v1/events", json.dumps(events[0]).encode()
    return "/v1/events:batch", json.dumps({"events": events}).encode()


def pushgateway_request(size: int) -> Request:
    samples = "".join(f'turns_total{{app="bench",n="{n}"}} 1\n' for n in range(size))
    return "/metrics/job/bench", f"# TYPE turns_total counter\n{samples}".encode()


def post(netloc: str, requests: list[Request], latencies: list[float]) -> None:
    connection = http.client.HTTPConnection(netloc)
    for path, body in requests:
        start = time.perf_counter()
        connection.request("POST", path, body)
        response = connection.getresponse()
        response.read()
        latencies.append(time.perf_counter() - start)
        if response.status not in (200, 202):
            raise SystemExit(f"{netloc}{path} answered {response.status}")
    connection.close()


def measure(server: Server, body: Body, events: int, clients: int, size: int) -> dict[str, float]:
    """Events a second over all clients, and the latency of one request in milliseconds."""
    share = events // clients // size
    work = [[body(size) for _ in range(share)] for _ in range(clients)]
    latencies: list[float] = []
    threads = [
        threading.Thread(target=post, args=(server.netloc, part, latencies)) for part in work
    ]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    cuts = statistics.quantiles(latencies, n=100)
    return {
        "events_per_second": share * clients * size / seconds,
        "p50_ms": cuts[49] * 1e3,
        "p99_ms": cuts[98] * 1e3,
    }


def syncs_per_second(folder: Path) -> float:
    """How often the disk can sync 4 KiB: the bound of one client, one event, one fsync."""
    count = 300
    with (folder / "sync").open("wb", buffering=0) as file:
        start = time.perf_counter()
        for _ in range(count):
            file.write(b"\0" * 4096)
            os.fsync(file.fileno())
        return count / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--events", type=int, default=4000, help="one by one; 25 times in batches")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--folder", type=Path, help="where journal and persistence file go")
    arguments = parser.parse_args()
    binary = shutil.which(PUSHGATEWAY)
    if binary is None:
        raise SystemExit(f"{PUSHGATEWAY} is not installed: apt-get install {PUSHGATEWAY}")
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        report(Path(name), binary, arguments.events, arguments.json)


def pushgateway(folder: Path, binary: str) -> Server:
    listen = f"127.0.0.1:{free_port()}"
    saved = f"--persistence.file={folder / 'pushgateway.data'}"
    command = [binary, f"--web.listen-address={listen}", saved]
    return Server(command, f"http://{listen}", "/-/ready", folder / "pushgateway.log")


def report(folder: Path, binary: str, events: int, as_json: bool) -> None:
    load = os.getloadavg()[0]
    syncs = syncs_per_second(folder)
    cases = [(1, 1, events), (8, 1, events), (1, BATCH, 25 * events), (8, BATCH, 25 * events)]
    rows = []
    alone = ("--gpu", "off", "--host", "off")
    with sidecar(folder, flags=alone) as ours, pushgateway(folder, binary) as theirs:
        for clients, size, count in cases:
            mine = measure(ours, sidecar_request, count, clients, size)
            other = measure(theirs, pushgateway_request, count, clients, size)
            ratio = mine["events_per_second"] / other["events_per_second"]
            row = {"clients": clients, "size": size, "sidecar": mine, "pushgateway": other}
            rows.append(row | {"ratio": ratio})
    if as_json:
        print(json.dumps({"syncs_per_second": syncs, "cases": rows}, indent=2))
        return
    print(
        f"the disk syncs {syncs:,.0f} times a second; {os.cpu_count()} CPUs; load {load:.1f} before"
    )
    print()
    print("                        --------- sidecar ---------   ------- pushgateway -------")
    print(
        "clients  events/request   events/s   p50 ms   p99 ms    events/s   p50 ms   p99 ms   ratio"
    )
    for row in rows:
        print(f"{row['clients']:>7}  {row['size']:>14}", end="")
        for side, width in (("sidecar", 11), ("pushgateway", 12)):
            figures = row[side]
            print(f"{figures['events_per_second']:>{width},.0f}", end="")
            print(f"{figures['p50_ms']:>9.2f}{figures['p99_ms']:>9.2f}", end="")
        print(f"{row['ratio']:>8.2f}")
    print("\nsidecar: synced to disk, each id once. pushgateway: in memory, saved every 5 minutes.")


if __name__ == "__main__":
    main()
