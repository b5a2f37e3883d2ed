"""A real vLLM that is started with the flag that `check` prints has the bounds that it lacked."""

import shlex
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest
from e2e.processes import free_port
from e2e.vllm import vllm_server
from plans import objective, plan
from vllm_pages import CAPTURES

from inferslo.exporters.http import HttpFetcher
from inferslo.sidecar.commands.bounds import page_at, page_of_capture
from inferslo.sidecar.settings.targets import Target
from inferslo.slo.buckets import check
from inferslo.slo.plan import Selection

pytestmark = pytest.mark.e2e


def test_the_printed_flag_makes_the_plan_fit(model: Path, tmp_path: Path) -> None:
    wanted = {"ttft": "2", "itl": "0.03", "tpot": "0.04", "e2e": "3", "queue": "0.2"}
    objectives = (objective(name, threshold=Decimal(value)) for name, value in wanted.items())
    slos = plan(*objectives, selection=Selection())
    before = page_of_capture(CAPTURES / "vllm-0.32.0__3-requests.prom")
    misfits = check(slos, before)
    assert [each.objective for each in misfits] == list(wanted)
    flags = shlex.split(misfits[0].text.rpartition(" newer with ")[2])
    with (
        vllm_server(model, tmp_path, free_port(), *flags) as server,
        closing(HttpFetcher()) as fetcher,
    ):
        page = page_at(Target(url=server.url), fetcher)
    assert page.version.startswith("0.32.0")
    assert check(slos, page) == ()
    assert all(set(page.bounds[name]) > set(before.bounds[name]) for name in wanted)
