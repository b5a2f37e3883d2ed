"""What compiled rules cost in a real Prometheus, beside rules of Sloth's shape on the same data.

    python bench/rules.py [--services N] [--days D] [--json]

Each service has four objectives (availability, TTFT, TPOT, E2E) over the series of one sidecar,
scraped every 15 s. Each set of rules is evaluated by a Prometheus of its own over the same history,
at 30 s (our long windows, as compiled, at four times that); the figure is the CPU time of that
Prometheus for each second, less that of one without rules. The history holds `--days` of raw series
and of both sets' recorded ones: with less than 30 days both read less for the period than they
would in the end. It reaches past the end of the measurement, so what the rules give is thrown away:
keeping 9 series or 15 is in neither figure. Early warnings and alerts about engines, which Sloth
has none of, are a figure of their own.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import yaml

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))  # real servers are started there as here
sys.path.append(str(ROOT / "bench"))

import sloth_shape  # noqa: E402
from e2e.processes import Server, free_port  # noqa: E402
from plans import objective, plan  # noqa: E402

from inferslo.exporters.names import E2E, ENGINE_INFO, ENGINE_UP, REQUESTS, TPOT, TTFT  # noqa: E402
from inferslo.rules import naming  # noqa: E402
from inferslo.rules.compile import compile_rules  # noqa: E402
from inferslo.rules.formats import write  # noqa: E402
from inferslo.rules.model import Format, Group, Recording  # noqa: E402
from inferslo.slo.plan import Evaluation, Objective, Plan, Selection  # noqa: E402

SCRAPE, INTERVAL = 15, 30
SIGNALS = ("availability", "ttft", "tpot", "e2e")
HISTOGRAMS = {"ttft": TTFT, "tpot": TPOT, "e2e": E2E}
OUTCOMES = ("success", "error", "aborted", "timeout", "rejected", "empty", "invalid")
MEASURED = 240  # seconds, of each set of rules


def services(count: int) -> Iterator[Plan]:
    for number in range(count):
        match = Selection(match=(("model_name", (f"model-{number}",)),))
        objectives = (objective(signal, selection=match) for signal in SIGNALS)
        evaluation = Evaluation(SCRAPE, INTERVAL)
        yield plan(*objectives, service=f"service-{number}", selection=match, evaluation=evaluation)


def sloth(service: Plan) -> Iterator[Group]:
    model = f'model_name="{dict(service.selection.match)["model_name"][0]}"'
    for each in service.objectives:
        yield from sloth_shape.groups(_slo(service.service, each, model), INTERVAL)


def _slo(service: str, each: Objective, model: str) -> sloth_shape.SlothSlo:
    if each.signal.name == "availability":
        bad, good = f'outcome=~"{"|".join(each.bad_outcomes)}"', 'outcome!="invalid"'
        return sloth_shape.SlothSlo(
            service, each.name, each.objective,
            errors=lambda w: f"sum(rate({REQUESTS.name}{{{bad},{model}}}[{w}]))",
            total=lambda w: f"sum(rate({REQUESTS.name}{{{good},{model}}}[{w}]))",
        )  # fmt: skip
    name = HISTOGRAMS[each.signal.name].name
    bound = f'le="{float(each.threshold or 0)}"'
    return sloth_shape.SlothSlo(
        service, each.name, each.objective,
        errors=lambda w: (
            f"sum(rate({name}_count{{{model}}}[{w}]))"
            f" - sum(rate({name}_bucket{{{bound},{model}}}[{w}]))"
        ),
        total=lambda w: f"sum(rate({name}_count{{{model}}}[{w}]))",
    )  # fmt: skip


# --- the data --------------------------------------------------------------------------------


def backfill(plans: list[Plan], folder: Path, start: int, end: int) -> int:
    """Raw and recorded series from `start` to `end` into a TSDB; how many samples."""
    samples = 0
    for day in range(start, end, 86400):
        file, until = folder / "day.om", min(day + 86400, end)
        with file.open("w") as page:
            for series, grid, per_second in _series(plans):
                for at in range(day, until, grid):
                    value = 1 if per_second is None else per_second * (at - start)
                    page.write(f"{series} {value:g} {at}\n")
                samples += len(range(day, until, grid))
            page.write("# EOF\n")
        command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "--quiet"]
        subprocess.run([*command, file, folder / "tsdb"], check=True)
        file.unlink()
    return samples


def _series(plans: list[Plan]) -> Iterator[tuple[str, int, float | None]]:
    """Name and labels, seconds between samples, growth a second (None is a constant 1)."""
    for number, each in enumerate(plans):
        labels = f'job="inferslo",instance="pod-{number}",engine="e",model_name="model-{number}"'
        yield f"{ENGINE_UP.name}{{{labels}}}", SCRAPE, None
        yield f"{ENGINE_INFO.name}{{{labels}}}", SCRAPE, None
        for outcome in OUTCOMES:
            series = f'{REQUESTS.name}{{{labels},outcome="{outcome}"}}'
            yield series, SCRAPE, 5 if outcome == "success" else 0.001
        for slo in each.objectives:
            yield from _recorded(each, slo)
            if family := HISTOGRAMS.get(slo.signal.name):
                bound = float(slo.threshold or 0)
                for le, growth in ((bound / 2, 4.0), (bound, 4.99), ("+Inf", 5.0)):
                    yield f'{family.name}_bucket{{{labels},le="{le}"}}', SCRAPE, growth
                yield f"{family.name}_count{{{labels}}}", SCRAPE, 5.0


def _recorded(each: Plan, slo: Objective) -> Iterator[tuple[str, int, None]]:
    own = f'service="{each.service}",slo="{slo.name}"'
    for series in (naming.BAD, naming.TOTAL, naming.INCIDENT):
        yield f"{series.name}{{{own}}}", INTERVAL, None
    identity = f'sloth_id="{each.service}-{slo.name}",sloth_service="{each.service}"'
    ratio = f'slo:sli_error:ratio_rate5m{{{identity},sloth_slo="{slo.name}",sloth_window="5m"}}'
    yield ratio, INTERVAL, None


# --- the evaluation --------------------------------------------------------------------------


@contextmanager
def ruler(folder: Path, rules: Path) -> Iterator[Server]:
    config = {"global": {"evaluation_interval": f"{INTERVAL}s"}, "rule_files": [str(rules)]}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    listen = f"127.0.0.1:{free_port()}"
    command = ["prometheus", f"--config.file={folder / 'prometheus.yml'}"]
    command += [f"--storage.tsdb.path={folder / 'tsdb'}", f"--web.listen-address={listen}"]
    command += ["--storage.tsdb.retention.time=60d"]
    url = f"http://{listen}"
    with Server(command, url, "/-/ready", folder / "prometheus.log", patience=120) as server:
        yield server


def cpu_of(groups: Sequence[Group], folder: Path) -> float:
    """CPU seconds a second that a Prometheus with these rules takes; it spreads the groups over
    their intervals by itself."""
    (folder / "rules.yaml").write_text(write({"all": tuple(groups)}, Format.PROMETHEUS))
    with ruler(folder, folder / "rules.yaml") as server:
        time.sleep(INTERVAL)
        begun, before = time.monotonic(), _cpu_seconds(server.url)
        time.sleep(MEASURED)
        taken, lasted = _cpu_seconds(server.url) - before, time.monotonic() - begun
        _no_rule_fails(server.url)
    return taken / lasted


def _cpu_seconds(url: str) -> float:
    page = httpx.get(f"{url}/metrics", timeout=60).text
    [value] = re.findall(r"^process_cpu_seconds_total (\S+)$", page, re.MULTILINE)
    return float(value)


def _no_rule_fails(url: str) -> None:
    for group in httpx.get(f"{url}/api/v1/rules", timeout=60).json()["data"]["groups"]:
        for rule in group["rules"]:
            # History reaches into the future, where nothing can be recorded beside it.
            if rule["health"] == "err" and "out of bounds" not in rule["lastError"]:
                raise SystemExit(f"{group['name']}: {rule['lastError']}")


def of_slos(group: Group) -> bool:
    return group.name.rpartition("-")[2] in ("base", "derived", "budget", "alerts", "tickets")


def recorded(groups: Iterable[Group]) -> int:
    return sum(isinstance(rule, Recording) for group in groups for rule in group.rules)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--services", type=int, default=100)
    parser.add_argument("--days", type=float, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    plans = list(services(options.services))
    slos = sum(len(each.objectives) for each in plans)

    begun = time.perf_counter()
    ours = [group for each in plans for group in compile_rules(each)]
    text = write({"all": tuple(ours)}, Format.PROMETHEUS)
    compiling = (time.perf_counter() - begun) * 100 / slos
    theirs = [group for each in plans for group in sloth(each)]

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # The rules are evaluated while the last of it passes.
        end = int(time.time()) // SCRAPE * SCRAPE + 10 * MEASURED
        samples = backfill(plans, folder, end - int(options.days * 86400), end)
        idle, own, around, shaped = (
            cpu_of(groups, folder)
            for groups in (
                [],
                [group for group in ours if of_slos(group)],
                [group for group in ours if not of_slos(group)],
                theirs,
            )
        )

    figures = {
        "services": options.services,
        "SLOs": slos,
        "days of history": options.days,
        "samples": samples,
        "compile, s for 100 SLOs": round(compiling, 3),
        "rules.yaml, kB for one SLO": round(len(text) / slos / 1000, 1),
        "recorded series for one SLO": recorded(ours) / slos,
        "recorded series for one SLO, Sloth's shape": recorded(theirs) / slos,
        "a Prometheus without rules, ms of a core a second": round(idle * 1000, 1),
        "evaluation, ms of a core a second": round((own - idle) * 1000, 1),
        "evaluation, Sloth's shape": round((shaped - idle) * 1000, 1),
        "ratio": round((own - idle) / (shaped - idle), 3),
        "engines' causes and early warnings, which Sloth has none of": round(
            (around - idle) * 1000, 1
        ),
    }
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    for what, value in figures.items():
        print(f"{what:<62} {value}")


if __name__ == "__main__":
    main()
