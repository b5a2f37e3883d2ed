"""Signals that are a number: when a slice of time is bad, asked of the real PromQL engine."""

from decimal import Decimal
from pathlib import Path

from plans import HOUR, MATCH, objective, plan
from promtool import MODEL, TARGET, Said, alive, prove

from inferslo.slo.plan import Selection

BAD, TOTAL = "sum(inferslo:sli_bad:rate)", "sum(inferslo:sli_total:rate)"
STATE = "max(inferslo:slo_state:enum)"
SECOND = MODEL.replace("pod-1", "pod-2")


def e2e(part: str, labels: str = MODEL, le: str = "") -> str:
    bound = f',le="{le}"' if le else ""
    return f'inferslo_e2e_seconds_{part}{{{labels},source="engine"{bound}}}'


def engine(labels: str, one: int, ten: int, all_: int) -> dict[str, str]:
    """Requests in 30 s that took up to 1 s, 10 s, at all."""
    return {
        e2e("bucket", labels, "1"): f"0+{one}x40",
        e2e("bucket", labels, "10"): f"0+{ten}x40",
        e2e("bucket", labels, "+Inf"): f"0+{all_}x40",
        e2e("count", labels): f"0+{all_}x40",
    }


def test_tail_ratio_is_of_all_engines_together(tmp_path: Path) -> None:
    """Each engine by itself is even: one is quick, the other slow. Users meet both."""
    quick, slow = engine(MODEL, 40, 40, 40), engine(SECOND, 0, 10, 10)
    objectives = plan(objective("tail_ratio"))
    prove(tmp_path, objectives, {**alive(20), **quick}, Said("15m", BAD, 0), Said("15m", TOTAL, 1))
    prove(tmp_path, objectives, {**alive(20), **quick, **slow}, Said("15m", BAD, 1))


def test_few_requests_have_no_tail(tmp_path: Path) -> None:
    prove(
        tmp_path,
        plan(objective("tail_ratio")),
        {
            **alive(20),
            e2e("bucket", le="1"): "0 0 0 0 0 1+0x40",
            e2e("bucket", le="10"): "0 0 0 0 0 2+0x40",
            e2e("bucket", le="+Inf"): "0 0 0 0 0 2+0x40",
            e2e("count"): "0 0 0 0 0 2+0x40",
        },
        Said("4m", BAD, 0),
        Said("4m", TOTAL, 0),
        Said("4m", STATE, 1),
    )


def moments(of: str, n: str, total: str, squares: str, labels: str) -> dict[str, str]:
    """Counters of n, Σx, Σx² by what they grow in 30 s."""
    unit = "ratio" if "gpu" in of else "seconds"
    counted = zip(
        (f"{of}_n_total", f"{of}_{unit}_total", f"{of}_{unit}_squared_total"),
        (n, total, squares),
        strict=True,
    )
    return {f"inferslo_{name}{{{labels}}}": f"0+{by}x40" for name, by in counted}


def test_tpot_varies_by_its_moments(tmp_path: Path) -> None:
    """10 requests at 0.1 s, 10 at 0.3 s: mean 0.2 s, deviation 0.1 s, coefficient 0.5 exactly."""
    series = alive(20) | moments("tpot_moment", "20", "4", "1", f'{MODEL},source="engine"')
    below, above = (plan(objective("tpot_cv", threshold=Decimal(t))) for t in ("0.51", "0.49"))
    prove(tmp_path, below, series, Said("15m", BAD, 0), Said("15m", TOTAL, 1))
    prove(tmp_path, above, series, Said("15m", BAD, 1))


def test_a_gpu_that_idles_is_not_uneven(tmp_path: Path) -> None:
    busy = moments("gpu_utilization_moment", "30", "15", "12", f'{TARGET},gpu="0",uuid="u"')
    idle = moments("gpu_utilization_moment", "30", "1", "0.9", f'{TARGET},gpu="0",uuid="u"')
    up = {f'inferslo_gpu_up{{{TARGET},gpu="0",uuid="u"}}': "1x40"}
    uneven = plan(objective("gpu_utilization_cv"))
    prove(tmp_path, uneven, alive(20) | up | busy, Said("15m", BAD, 1), Said("15m", TOTAL, 1))
    prove(tmp_path, uneven, alive(20) | up | idle, Said("15m", BAD, 0), Said("15m", TOTAL, 0))


def test_gpus_beside_another_services_engine_are_not_looked_at(tmp_path: Path) -> None:
    elsewhere = TARGET.replace("pod-1", "pod-9")
    busy = moments("gpu_utilization_moment", "30", "15", "12", f'{elsewhere},gpu="0",uuid="u"')
    prove(tmp_path, plan(objective("gpu_utilization_cv")), alive(20) | busy, Said("15m", BAD, None))


def test_fragmentation_is_of_the_worst_engine(tmp_path: Path) -> None:
    series = {
        f"inferslo_kv_tail_waste_ratio{{{MODEL}}}": "0.05x40",
        f"inferslo_kv_tail_waste_ratio{{{SECOND}}}": "0.2x40",
    }
    prove(tmp_path, plan(objective("kv_fragmentation")), alive(20) | series, Said("15m", BAD, 1))


def test_memory_that_grows_by_more_than_its_share_of_the_limit(tmp_path: Path) -> None:
    growth = plan(objective("memory_growth", over=HOUR))
    used = f'inferslo_container_memory_bytes{{{TARGET},scope="pod-1:8000"}}'
    limit = f'inferslo_container_memory_limit_bytes{{{TARGET},scope="pod-1:8000"}}'
    own = {f'inferslo_container_memory_bytes{{{TARGET},scope="self"}}': "0+100x200"}
    gpu = {
        f'inferslo_gpu_memory_used_bytes{{{TARGET},gpu="0",uuid="u"}}': "0+1x200",
        f'inferslo_gpu_memory_total_bytes{{{TARGET},gpu="0",uuid="u"}}': "1000x200",
    }
    slow = {used: "5000+1x200", limit: "12000x200"}  # 120 an hour of 12000: 1 %
    at = "90m"
    prove(tmp_path, growth, alive(100) | slow | own, Said(at, BAD, 0), Said(at, TOTAL, 1))
    prove(tmp_path, growth, alive(100) | slow | gpu, Said(at, BAD, 1))


def test_memory_without_a_limit_is_not_judged(tmp_path: Path) -> None:
    used = f'inferslo_container_memory_bytes{{{TARGET},scope="pod-1:8000"}}'
    prove(
        tmp_path,
        plan(objective("memory_growth", over=HOUR)),
        {**alive(100), used: "5000+100x200"},
        Said("90m", TOTAL, 0),
    )


def fallbacks() -> str:
    event = f'{TARGET},app="shop",model_name="",tenant="acme",sla_class=""'
    return f'inferslo_fallbacks_total{{{event},from_model="a",to_model="b",reason="x",level="1"}}'


GATEWAY = f'{TARGET},gateway="g",from_model="a",to_model="b",reason="Timeout",outcome="succeeded"'


def test_no_fallback_ever_is_none_where_the_sidecar_answers(tmp_path: Path) -> None:
    storm = plan(objective("fallback_count"))
    prove(tmp_path, storm, alive(20), Said("15m", BAD, 0), Said("15m", TOTAL, 1))
    prove(tmp_path, storm, {"other": "1x40"}, Said("15m", BAD, None), Said("15m", STATE, 2))


def test_a_storm_is_seen_at_once_though_its_counter_is_born_in_it(tmp_path: Path) -> None:
    """And until an hour later, not only while the counter is new."""
    prove(
        tmp_path,
        plan(objective("fallback_count")),
        {**alive(140), fallbacks(): "_x40 60x240"},
        Said("19m", BAD, 0),
        Said("21m30s", BAD, 1),
        Said("50m", BAD, 1),
        Said("79m", BAD, 1),
        Said("83m", BAD, 0),
    )


def test_fallbacks_of_application_and_gateway_add_up(tmp_path: Path) -> None:
    both = {
        fallbacks(): "0x40 30x80",
        f"inferslo_gateway_fallbacks_total{{{GATEWAY}}}": "0x40 30x80",
    }
    up = {f'inferslo_gateway_up{{{TARGET},gateway="g"}}': "1x120"}
    storm = plan(objective("fallback_count"))
    prove(tmp_path, storm, alive(60) | up | both, Said("30m", BAD, 1))
    only = {name: values for name, values in both.items() if "gateway" not in name}
    prove(tmp_path, storm, alive(60) | only, Said("30m", BAD, 0))


def test_fallbacks_by_tenant_are_judged_apart(tmp_path: Path) -> None:
    grouped = Selection(match=MATCH.match, per=("tenant",))
    prove(
        tmp_path,
        plan(objective("fallback_count", selection=grouped)),
        {
            **alive(60),
            fallbacks(): "0x40 60x80",
            fallbacks().replace("acme", "other"): "0x40 30x80",
        },
        Said("30m", 'sum(inferslo:sli_bad:rate{tenant="acme"})', 1),
        Said("30m", 'sum(inferslo:sli_bad:rate{tenant="other"})', 0),
    )
