"""/v1/slo and /readyz: what a client and a load balancer read of the judge."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from judges import ANY, DAY, STEP, TURNS, judge, page, turns
from plans import objective

from inferslo.rules.alertmanager.client import Alertmanager
from inferslo.sidecar.app import create_app
from inferslo.sidecar.board import Board
from inferslo.sidecar.judge.history import History
from inferslo.sidecar.judge.loop import Judging
from inferslo.sidecar.judge.messenger import Messenger
from inferslo.sidecar.publisher import Publisher
from inferslo.slo.plan import Query

DOCS = Path(__file__).parents[3] / "docs" / "judge.md"
OBJECTIVES = (
    objective("availability", selection=ANY, min_coverage=Decimal(0)),
    objective("ttft", selection=ANY),
)


class Sidecar:
    """Of some objectives, stepped by hand."""

    def __init__(
        self,
        *objectives: Any,
        messenger: Messenger | None = None,
        history: History | None = None,
    ) -> None:
        self.at = 0
        self.judging = Judging(
            judge(*(objectives or OBJECTIVES), history=history),
            messenger,
            wall=lambda: float(self.at),
        )
        self.client = client(self.judging)

    def step(self, points: Any) -> None:
        self.judging.step(points, self.at)
        self.at += STEP

    def outage(self) -> None:
        for n in range(30):
            self.step(page(0, 10 * n))

    def slo(self) -> dict[str, Any]:
        answer = self.client.get("/v1/slo")
        assert answer.status_code == 200
        return json.loads(answer.text, parse_constant=_no_json)

    def ready(self, query: str = "") -> tuple[int, str]:
        answer = self.client.get(f"/readyz{query}")
        return answer.status_code, answer.text


def _no_json(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def client(judging: Judging | None) -> TestClient:
    board = Board()
    publisher = Publisher(board.points, lambda: board.version)
    return TestClient(create_app(board, publisher, judging=judging))


@pytest.fixture
def sidecar() -> Sidecar:
    return Sidecar()


# --- /v1/slo -------------------------------------------------------------------------------------


def test_without_an_slo_file_there_is_no_such_page() -> None:
    assert client(None).get("/v1/slo").status_code == 404


def test_before_the_first_judgement_it_says_that_nothing_is_judged_yet(sidecar: Sidecar) -> None:
    assert sidecar.slo() == {
        "service": "checkout-assistant",
        "owner": "checkout-team",
        "interval_seconds": 30,
        "base_seconds": 300,
        "judged_at": None,
        "fault": None,
        "objectives": [],
        "alerts": [],
        "not_judged": {},
        "history": {"fault": None},
        "alertmanager": None,
        "simulated": False,
    }


def test_what_is_not_known_is_null(sidecar: Sidecar) -> None:
    sidecar.step([])
    [availability, ttft] = sidecar.slo()["objectives"]
    assert availability == {
        "name": "availability",
        "group": {},
        "group_text": "",
        "description": "",
        "signal": "availability",
        "title": availability["title"],
        "threshold": None,
        "objective": 0.99,
        "budgeting": "occurrences",
        "standing": {"level": "unknown", "word": "No data"},
        "state": "no_data",
        "good_ratio": None,
        "burn_rate": None,
        "budget": {"remaining": None, "coverage": 0, "failures": 0, "since": -30 * 86400},
        "incident": None,
        "conditions": availability["conditions"],
        "tiers": [
            {"tier": 1, "team": "operations", "told": []},
            {"tier": 2, "team": "engineering", "told": []},
            {"tier": 3, "team": "product", "told": []},
        ],
    }
    assert set(availability["conditions"].values()) == {None}
    assert ttft["threshold"] == 2.5


def test_an_outage_is_told_with_who_is_called_and_what_to_do(sidecar: Sidecar) -> None:
    sidecar.outage()
    said = sidecar.slo()
    [availability, _] = said["objectives"]
    assert said["judged_at"] == sidecar.at - STEP
    assert (availability["state"], availability["good_ratio"]) == ("ok", 0)
    assert availability["incident"] is True
    assert availability["conditions"]["outage"] is True
    assert availability["budget"]["remaining"] < 0
    assert availability["tiers"][0] == {"tier": 1, "team": "operations", "told": ["page"]}
    alert = next(a for a in said["alerts"] if a["alert"] == "InfersloAvailabilityBurn")
    assert alert["labels"] | {"slo": "availability", "severity": "page"} == alert["labels"]
    assert alert["annotations"].keys() == {"summary", "impact", "actions", "runbook_url"}
    assert "{{" not in json.dumps(alert["annotations"]["summary"])
    assert 0 < alert["since"] < sidecar.at
    assert "InfersloWatchdog" not in {each["alert"] for each in said["alerts"]}


def test_the_documented_shape_is_the_shape() -> None:
    sidecar = Sidecar(objective("agent_turn_success", **TURNS, description="Turns end well."))
    for n in range(25):
        sidecar.step(turns(acme=(0, 10 * n)))
    documented = DOCS.read_text("utf-8").partition("```json\n")[2].partition("```")[0]
    assert shape(sidecar.slo()) == shape(json.loads(documented))


def shape(document: Any) -> Any:
    """Keys, however deep; of a list those of its first."""
    if isinstance(document, list):
        return [shape(each) for each in document[:1]]
    if isinstance(document, dict):
        return {key: shape(value) for key, value in document.items()}
    return None


def test_groups_are_told_apart() -> None:
    sidecar = Sidecar(objective("agent_turn_success", **TURNS))
    for n in range(25):
        sidecar.step(turns(acme=(10 * n, 0), bad=(0, 10 * n)))
    told = {one["group"]["tenant"]: one for one in sidecar.slo()["objectives"]}
    assert told.keys() == {"acme", "bad"}
    assert told["bad"]["group_text"] == "tenant=bad"
    assert (told["acme"]["incident"], told["bad"]["incident"]) == (False, True)
    assert told["acme"]["tiers"][0]["told"] == []
    assert told["bad"]["tiers"][0]["told"] == ["page"]


WRONG = (
    "inferslo_requests_total + on () inferslo_requests_total",  # cannot be told apart
    "vector(10) ^ 400",
    "vector(1) / 0 % 2",
    "(0 - vector(1)) ^ 0.5",
)


@pytest.mark.parametrize("bad", ["holt_winters(x[5m], 0.1, 0.1)", *WRONG])
def test_a_query_that_gives_no_answer_costs_its_own_objective_only(bad: str) -> None:
    query = Query(bad=bad, total="sum(inferslo_requests_total)")
    sidecar = Sidecar(OBJECTIVES[0], objective("promql", query=query, selection=ANY))
    for n in range(5):
        sidecar.step(page(10 * n))
    said = sidecar.slo()
    assert said["fault"] is None
    assert list(said["not_judged"]) == ["promql"]
    assert said["objectives"][0]["good_ratio"] == 1


@pytest.mark.parametrize("number", ["vector(0) / 0", "vector(1e308) * 10"])
def test_what_is_no_number_is_not_counted(number: str) -> None:
    query = Query(bad="vector(0)", total=number)
    sidecar = Sidecar(objective("promql", query=query, selection=ANY))
    for n in range(5):
        sidecar.step(page(10 * n))
    [mine] = sidecar.slo()["objectives"]
    assert (mine["good_ratio"], mine["state"], mine["budget"]["failures"]) == (None, "no_data", 0)


def test_a_judge_that_fails_says_so_beside_the_last_judgement(sidecar: Sidecar) -> None:
    sidecar.step(page(1))
    sidecar.judging.step(None, STEP)  # type: ignore[arg-type]  # a fault of ours
    said = sidecar.slo()
    assert said["judged_at"] == 0
    assert said["fault"].startswith("TypeError: ")


def test_a_judge_that_stands_still_says_so(sidecar: Sidecar) -> None:
    sidecar.step(page(1))
    sidecar.at += 4 * STEP
    assert sidecar.slo()["fault"] == "the judge stands still"


def test_a_history_that_is_not_kept_is_said_and_is_no_fault_of_judging(tmp_path: Path) -> None:
    history = History(tmp_path / "slo.db", DAY)
    sidecar = Sidecar(history=history)
    sidecar.step(page(1))
    history._db.execute("PRAGMA query_only = ON")
    sidecar.step(page(2))
    said = sidecar.slo()
    assert (said["fault"], said["judged_at"]) == (None, STEP)
    assert "slo.db cannot be written" in said["history"]["fault"]
    history.close()


def test_an_alertmanager_that_cannot_be_told_is_said() -> None:
    messenger = Messenger(Alertmanager(["http://127.0.0.1:1"], deadline=1))
    sidecar = Sidecar(messenger=messenger)
    assert sidecar.slo()["alertmanager"] == {"fault": None}
    sidecar.step(page(1))  # the watchdog fires
    messenger._tell()
    assert "127.0.0.1:1" in sidecar.slo()["alertmanager"]["fault"]


# --- /readyz -------------------------------------------------------------------------------------


def test_ready_without_a_question_is_of_the_process_even_in_an_outage(sidecar: Sidecar) -> None:
    sidecar.outage()
    assert sidecar.ready() == (200, "ok\n")
    assert client(None).get("/readyz").text == "ok\n"
    assert client(None).get("/readyz?slo=availability").text == "ok\n", "nobody gates on nothing"


def test_ready_by_an_objective_is_503_while_it_pages_and_then_again_200(sidecar: Sidecar) -> None:
    assert sidecar.ready("?slo=availability") == (200, "ok\n")
    sidecar.outage()
    assert sidecar.ready("?slo=availability") == (503, "not ready: availability pages\n")
    assert sidecar.ready("?slo=all") == (503, "not ready: availability pages\n")
    assert sidecar.ready("?slo=ttft") == (200, "ok\n"), "another one"
    for n in range(400):
        sidecar.step(page(100 * n, 290))
    assert sidecar.ready("?slo=all") == (200, "ok\n")


def test_what_cannot_be_judged_is_ready(sidecar: Sidecar) -> None:
    sidecar.step([])
    assert sidecar.ready("?slo=all") == (200, "ok\n")


def test_what_can_no_longer_be_judged_is_ready_again(sidecar: Sidecar) -> None:
    sidecar.outage()
    sidecar.step(None)  # a fault of ours
    assert sidecar.ready("?slo=all") == (200, "ok\n")


def test_an_objective_that_is_not_there_is_404_and_says_which_are(sidecar: Sidecar) -> None:
    assert sidecar.ready("?slo=latency") == (
        404, "no objective latency: there are availability, ttft, all\n",
    )  # fmt: skip


@pytest.mark.parametrize("path", ["/readyz", "/readyz?slo=all"])
def test_probes_may_ask_by_head(sidecar: Sidecar, path: str) -> None:
    assert sidecar.client.head(path).status_code == 200
