"""How well the aborted requests that inferslo derives from vLLM's page match the clients' own log.

    python bench/aborted.py --engine http://127.0.0.1:8000 [--rounds 5] [--requests 120] [--drop 50]

Starts requests, drops some of them at random points (before the answer, before the first token,
after it), waits until the engine is idle, and compares. Needs an engine that nobody else uses and
contexts of 2,048 tokens. Dropped requests ask for answers so long that they cannot have finished,
but in the rounds of short answers: there, many have, and then vLLM counts a success.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass, field

import httpx

from inferslo.exporters.engines.source import EngineSource
from inferslo.exporters.http import HttpFetcher
from inferslo.exporters.names import REQUESTS, REQUESTS_RUNNING, REQUESTS_WAITING, Outcome
from inferslo.exporters.reading import Histogram, SourceError

POLL = 0.5  # seconds
SHORT, LONG = 48, 1500  # tokens
KINDS = ("streamed", "not streamed", "n = 2", "short answers")
ENDS = ("before the answer", "before the first token", "after it")


@dataclass
class Log:
    """What the clients saw. dropped: Unix times at which a client hung up."""

    ends: Counter[str] = field(default_factory=Counter)
    dropped: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Plan:
    """Hang up so many seconds after the request was sent, or after so many chunks; None: stay."""

    max_tokens: int
    seconds: float | None = None
    chunks: int | None = None
    stream: bool = True
    choices: int = 1


class Watch:
    """Polls the engine as the sidecar does, and notes how far it ever got ahead of the truth."""

    def __init__(self, url: str) -> None:
        self._source = EngineSource("bench", f"{url}/metrics", HttpFetcher(), count_first=True)
        self.aborted = 0.0
        self.rejected = 0.0
        self.idle = False
        self.polls = 0

    async def run(self, log: Log, base: float) -> float:
        """Polls until cancelled. Returns the most that the derived count was ahead of `log`."""
        ahead = float("-inf")
        try:
            while True:
                await self.poll()
                ahead = max(ahead, self.aborted - base - len(log.dropped))
                await asyncio.sleep(POLL)
        except asyncio.CancelledError:
            return ahead

    async def poll(self) -> None:
        try:
            observation = await asyncio.to_thread(self._source.observe)
        except SourceError as error:
            print(f"a read failed: {error.detail}")
            return
        in_flight = 0.0
        for point in observation.points:
            if isinstance(point.value, Histogram):
                continue
            if point.family is REQUESTS and point.labels[2] == Outcome.ABORTED:
                self.aborted = point.value
            elif point.family is REQUESTS and point.labels[2] == Outcome.REJECTED:
                self.rejected = point.value
            elif point.family in (REQUESTS_RUNNING, REQUESTS_WAITING):
                in_flight += point.value
        self.idle = in_flight == 0
        self.polls += 1
        for gap in observation.gaps:
            if gap.signal == "requests_aborted":
                print(f"aborted is not told: {gap.reason}")


async def call(client: httpx.AsyncClient, model: str, plan: Plan, log: Log) -> None:
    body = {
        "model": model, "prompt": "the quick brown fox " * random.randint(1, 20),
        "max_tokens": plan.max_tokens, "ignore_eos": True,
        "stream": plan.stream, "n": plan.choices,
    }  # fmt: skip
    seen = "before the answer"
    try:
        async with asyncio.timeout(None) as patience:

            async def on_event(event: str, _: object) -> None:
                if event == "http11.send_request_body.complete" and plan.seconds is not None:
                    patience.reschedule(asyncio.get_running_loop().time() + plan.seconds)

            async with client.stream(
                "POST", "/v1/completions", json=body, extensions={"trace": on_event}
            ) as response:
                seen = "before the first token"
                chunks = 0
                async for line in response.aiter_lines():
                    if line.startswith('data: {"error"') or response.status_code == 503:
                        log.ends["refused"] += 1
                        break
                    if line == "data: [DONE]" or (not plan.stream and line):
                        break
                    # Not read as JSON: httpx splits lines at U+2028 too, which text may hold.
                    if line.startswith("data: {"):
                        seen = "after it"
                        chunks += 1
                        if chunks == plan.chunks:
                            raise TimeoutError
    except TimeoutError:
        log.dropped.append(time.time())
        log.ends[seen] += 1


def plans(kind: str, requests: int, drop: int) -> list[Plan]:
    stream, choices = kind != "not streamed", 2 if kind == "n = 2" else 1
    tokens = SHORT if kind == "short answers" else LONG

    def dropped() -> Plan:
        if not stream or random.random() < 0.5:
            return Plan(tokens, random.uniform(0, 3.0), None, stream, choices)
        return Plan(tokens, None, random.randint(1, SHORT // 2), stream, choices)

    chosen = [dropped() for _ in range(drop)]
    chosen += [
        Plan(random.randint(2, SHORT), stream=stream, choices=choices)
        for _ in range(requests - drop)
    ]
    random.shuffle(chosen)
    return chosen


async def one_round(
    url: str, model: str, watch: Watch, kind: str, requests: int, drop: int
) -> None:
    log, base, rejected = Log(), watch.aborted, watch.rejected
    watching = asyncio.create_task(watch.run(log, base))
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=url, timeout=300, limits=limits) as client:
        calls = (call(client, model, plan, log) for plan in plans(kind, requests, drop))
        await asyncio.gather(*calls)
    await settled(watch)
    watching.cancel()
    ahead = await watching
    truth, derived = len(log.dropped), watch.aborted - base
    ends = " | ".join(f"{log.ends[end]}" for end in ENDS)
    print(
        f"| {kind} | {requests} | {ends} | {truth} | {derived:g} | {derived - truth:+g} |"
        f" {ahead:+g} | {log.ends['refused']} | {watch.rejected - rejected:g} |",
        flush=True,
    )


async def settled(watch: Watch) -> None:
    """Three polls in a row without anything in flight: two confirm a value."""
    quiet = 0
    while quiet < 3:
        before = watch.polls
        while watch.polls == before:
            await asyncio.sleep(POLL / 4)
        quiet = quiet + 1 if watch.idle else 0


async def main() -> None:
    parser = argparse.ArgumentParser(description="Measures the aborted requests derived from vLLM.")
    parser.add_argument("--engine", required=True, metavar="URL")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=120)
    parser.add_argument("--drop", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    random.seed(args.seed)
    model = httpx.get(f"{args.engine}/v1/models").json()["data"][0]["id"]
    watch = Watch(args.engine)
    for _ in range(3):  # what was counted before is left out
        await watch.poll()
    columns = ["requests", "requests made", *(f"dropped {end}" for end in ENDS)]
    columns += ["dropped in all", "derived", "error", "most ahead at any poll"]
    columns += ["clients that saw a refusal", "refusals counted"]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for kind in KINDS:
        for _ in range(args.rounds):
            await one_round(args.engine, model, watch, kind, args.requests, args.drop)


if __name__ == "__main__":
    asyncio.run(main())
