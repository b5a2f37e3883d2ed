"""A real Prometheus that scrapes given targets every second, and evaluates given rules."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml
from e2e.processes import Server, free_port, wait_until

INTERVAL = 1  # seconds


@dataclass(frozen=True, slots=True)
class Sample:
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Prometheus:
    url: str

    def query(self, expression: str, at: float | None = None) -> list[Sample]:
        """An instant query, now or at a Unix time; the answer is a vector."""
        parameters = {"query": expression} | ({} if at is None else {"time": str(at)})
        result: list[dict[str, Any]] = self._get("query", parameters)["result"]
        return [Sample(each["metric"], float(each["value"][1])) for each in result]

    def scraped_since(self, job: str, moment: float) -> bool:
        """Whether a whole scrape of the job began after `moment` and succeeded."""
        # timestamp() of anything but a bare selector is the time of the query.
        up = f'up{{job="{job}"}}'
        done = self.query(f"timestamp({up}) and {up} == 1")
        return bool(done) and all(sample.value > moment for sample in done)

    def wait_for_scrape(self, job: str, seconds: float = 20) -> float:
        """Waits for a scrape that begins from now on; gives a Unix time just after it."""
        now = time.time()
        wait_until(f"a scrape of {job}", lambda: self.scraped_since(job, now), seconds)
        return time.time()

    def _get(self, path: str, parameters: Mapping[str, str]) -> dict[str, Any]:
        answer = httpx.get(f"{self.url}/api/v1/{path}", params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]


@contextmanager
def prometheus(
    scratch: Path,
    targets: Mapping[str, str],
    rules: Sequence[Path] = (),
    alertmanager: str | None = None,
) -> Iterator[Prometheus]:
    """targets: job name to host:port; alertmanager: host:port."""
    jobs = [
        {"job_name": job, "static_configs": [{"targets": [target]}]}
        for job, target in targets.items()
    ]
    every = f"{INTERVAL}s"
    config = {
        "global": {"scrape_interval": every, "scrape_timeout": every},
        "scrape_configs": jobs,
        "rule_files": [str(file) for file in rules],
    }
    if alertmanager:
        peers = [{"static_configs": [{"targets": [alertmanager]}]}]
        config["alerting"] = {"alertmanagers": peers}
    (scratch / "prometheus.yml").write_text(yaml.safe_dump(config))
    listen = f"127.0.0.1:{free_port()}"
    command = ["prometheus", f"--config.file={scratch / 'prometheus.yml'}"]
    command += [f"--storage.tsdb.path={scratch / 'tsdb'}", f"--web.listen-address={listen}"]
    with Server(command, f"http://{listen}", "/-/ready", scratch / "prometheus.log") as server:
        yield Prometheus(server.url)
