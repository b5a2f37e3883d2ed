"""What reading pages of metrics costs. Prints figures, asserts none.

    .venv/bin/python bench/parse.py [--polls 200] [--json]

Milliseconds of CPU, median over polls. Between two polls *every* number changes, which is the
worst a poll can meet. cold: the parser has read nothing yet; warm: it has read the target's last
page; all: warm, and then every sample of the page asked for, of which an adapter asks for some.
The ratio is prometheus_client's time by ours.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from inferslo.exporters.exposition import Parser

CAPTURES = Path(__file__).parent.parent / "tests" / "captures"
OVERLOAD = (CAPTURES / "vllm-0.32.0__mid-overload.prom").read_bytes()
LITELLM = (CAPTURES / "litellm-1.108.7__3-fallbacks.prom").read_bytes()
TARGETS = {
    "vLLM 0.32 in overload": [OVERLOAD],
    "eight such engines": [
        OVERLOAD.replace(b'engine="0"', b'engine="%d"' % engine) for engine in range(8)
    ],
    "LiteLLM 1.108": [LITELLM],
}
REFERENCE_POLLS = 15  # it is slow, and steady


def later(page: bytes, chance: random.Random) -> bytes:
    """The page with every number changed; whole ones stay whole."""
    lines = page.splitlines()
    for index, line in enumerate(lines):
        if not line.startswith(b"#"):
            series, _, number = line.rpartition(b" ")
            whole = number.endswith(b".0")
            changed = float(chance.randrange(10**6)) if whole else chance.uniform(0, 1e6)
            lines[index] = b"%s %r" % (series, changed)
    return b"\n".join([*lines, b""])


def polls(pages: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    chance = random.Random(0)
    return cycle([[later(page, chance) for page in pages] for _ in range(10)])


def median(read: Callable[[Sequence[bytes]], object], pages: Sequence[bytes], count: int) -> float:
    times = []
    for _, poll in zip(range(count), polls(pages), strict=False):
        start = time.process_time_ns()
        read(poll)
        times.append(time.process_time_ns() - start)
    return statistics.median(times) / 1e6


def reference(poll: Sequence[bytes]) -> None:
    for page in poll:
        list(text_string_to_metric_families(page.decode()))


def cold(poll: Sequence[bytes]) -> None:
    for page in poll:
        Parser().parse(page)


def warm(pages: Sequence[bytes], ask: bool) -> Callable[[Sequence[bytes]], None]:
    parsers = [Parser() for _ in pages]
    for parser, page in zip(parsers, pages, strict=True):
        parser.parse(page)

    def read(poll: Sequence[bytes]) -> None:
        for parser, page in zip(parsers, poll, strict=True):
            parsed = parser.parse(page)
            for name in parsed.names if ask else ():
                parsed.samples(name)

    return read


def measure(pages: Sequence[bytes], count: int) -> dict[str, float]:
    theirs = median(reference, pages, REFERENCE_POLLS)
    ours = {
        "cold": median(cold, pages, count),
        "warm": median(warm(pages, ask=False), pages, count),
        "all": median(warm(pages, ask=True), pages, count),
    }
    return {
        "kilobytes": sum(map(len, pages)) / 1000,
        "prometheus_client_ms": theirs,
        **{f"{name}_ms": value for name, value in ours.items()},
        **{f"{name}_ratio": theirs / value for name, value in ours.items()},
    }


def main() -> None:
    options = argparse.ArgumentParser(description="What reading pages of metrics costs.")
    options.add_argument("--polls", type=int, default=200)
    options.add_argument("--json", action="store_true", help="figures as JSON, unrounded")
    chosen = options.parse_args()
    figures = {target: measure(pages, chosen.polls) for target, pages in TARGETS.items()}
    if chosen.json:
        print(json.dumps(figures, indent=2))
        return
    ours = "".join(f"{name:>8}{'ratio':>7}" for name in ("cold", "warm", "all"))
    print(f"{'ms':24}{'kB':>5}{'prometheus_client':>19}{ours}")
    for target, row in figures.items():
        columns = "".join(
            f"{row[f'{name}_ms']:8.2f}{row[f'{name}_ratio']:7.1f}"
            for name in ("cold", "warm", "all")
        )
        print(f"{target:24}{row['kilobytes']:5.0f}{row['prometheus_client_ms']:19.2f}{columns}")


if __name__ == "__main__":
    main()
