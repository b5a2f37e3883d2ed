"""One GPU under the real pynvml: what it gives, what is missing, and that nothing is invented."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fakenvml import (
    GIB,
    GPU_IS_LOST,
    INT,
    LONG,
    NO_PERMISSION,
    NOT_SUPPORTED,
    SIGNED,
    FakeNvml,
    values,
)

from inferslo.exporters import names
from inferslo.exporters.gpu.device import DeviceSource
from inferslo.exporters.gpu.session import Session
from inferslo.exporters.reading import ErrorKind, Observation, SourceError

Machine = Callable[..., FakeNvml]
MEMORY_TEMPERATURE = 82
ENERGY = 83


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def device(
    index: int = 0, *, clock: Clock | None = None, session: Session | None = None
) -> DeviceSource:
    session = session or Session()
    if not session.opened:
        session.open()
    return DeviceSource(session, index, clock=clock or Clock())


def gap_of(observation: Observation, family: names.Family) -> str:
    (gap,) = [gap for gap in observation.gaps if gap.signal == family.name]
    return f"{gap.reason}; {gap.remedy}"


def errors(session: Session) -> dict[tuple[str, ...], float]:
    return {(p.labels[0], p.labels[2]): float(p.value) for p in session.error_points()}  # type: ignore[arg-type]  # a counter


def test_a_healthy_gpu_gives_every_family_in_base_units(machine: Machine) -> None:
    machine(1)
    got = values(device().observe())
    assert got["memory_total_bytes", "0"] == 140 * GIB
    assert got["memory_used_bytes", "0"] == 100 * GIB
    assert got["memory_reserved_bytes", "0"] == 600 * 2**20
    assert got["utilization_ratio", "0"] == 0.4
    assert got["memory_bandwidth_utilization_ratio", "0"] == 0.2
    assert got["temperature_celsius", "0", "gpu"] == 52
    assert got["temperature_celsius", "0", "memory"] == 40
    assert got["temperature_margin_celsius", "0"] == 35
    assert got["temperature_limit_margin_celsius", "0", "shutdown"] == -8
    assert got["power_watts", "0", "average"] == 350
    assert got["power_watts", "0", "instant"] == 360.5
    assert got["power_limit_watts", "0"] == 700
    assert got["energy_joules_total", "0"] == 5000
    assert got["clock_hertz", "0", "sm"] == 1.98e9
    assert got["clock_event_seconds_total", "0", "sw_power_cap"] == 2.5
    assert got["clock_event_seconds_total", "0", "hw_thermal_slowdown"] == pytest.approx(0.001)
    assert got["clock_event_active", "0", "sw_power_cap"] == 1
    assert got["clock_event_active", "0", "hw_slowdown"] == 0
    assert got["ecc_errors_total", "0", "corrected", "volatile"] == 7
    assert got["ecc_errors_total", "0", "uncorrected", "aggregate"] == 1
    assert got["remapped_rows", "0", "corrected"] == 2
    assert got["row_remap_pending", "0"] == 0
    assert got["recovery_action", "0"] == 0
    assert got["pcie_errors_total", "0", "replay"] == 3
    assert got["processes", "0"] == 2
    assert got["process_memory_bytes", "0"] == 80 * GIB
    assert got["info", "0", "NVIDIA H200", "590.48.01", ""] == 1


def test_one_read_asks_for_all_fields_in_one_call(machine: Machine) -> None:
    fake = machine(1)
    source = device()
    source.observe()
    before = len(fake.calls())
    source.observe()
    assert fake.calls()[before:].count("nvmlDeviceGetFieldValues gpu0") == 1


def test_moments_of_utilisation_follow_the_samples(machine: Machine) -> None:
    fake = machine(1)
    source = device()
    source.observe()
    fake.put("gpu0", **{"utilization.gpu": 80})
    got = values(source.observe())
    assert got["utilization_moment_n_total", "0"] == 2
    assert got["utilization_moment_ratio_total", "0"] == pytest.approx(1.2)
    assert got["utilization_moment_ratio_squared_total", "0"] == pytest.approx(0.16 + 0.64)


def test_a_field_that_is_unsupported_is_absent_though_its_value_is_zero(machine: Machine) -> None:
    fake = machine(1)
    fake.set("gpu0", f"field-return:{MEMORY_TEMPERATURE}:0", NOT_SUPPORTED)
    session = Session()
    observation = device(session=session).observe()
    got = values(observation)
    assert ("temperature_celsius", "0", "memory") not in got
    assert got["temperature_celsius", "0", "gpu"] == 52
    assert "NVML field 82 answers NVML code 3" in gap_of(observation, names.GPU_TEMPERATURE)
    assert errors(session) == {}


@pytest.mark.parametrize(
    ("type", "value"),
    [
        (LONG, 9223372036854775794),
        (LONG, 18446744073709551615),
        (LONG, 2147483634),
        (INT, 2147483632),
        (INT, 4294967295),
        (SIGNED, -5),
        (0, "140737488355330.0"),
    ],
)
def test_a_value_that_stands_for_not_available_is_dropped(
    machine: Machine, type: int, value: object
) -> None:
    machine(1).field(0, ENERGY, value, type=type)
    observation = device().observe()
    assert ("energy_joules_total", "0") not in values(observation)
    assert gap_of(observation, names.GPU_ENERGY)


@pytest.mark.parametrize("type", [INT, LONG, SIGNED, 0, 2, 4, 6])
def test_every_value_type_of_nvml_is_read(machine: Machine, type: int) -> None:
    machine(1).field(0, ENERGY, 6000, type=type)
    assert values(device().observe())["energy_joules_total", "0"] == 6


def test_a_value_type_that_is_not_known_is_no_value(machine: Machine) -> None:
    machine(1).field(0, ENERGY, 6000, type=42)
    assert ("energy_joules_total", "0") not in values(device().observe())


def test_a_margin_that_the_driver_types_as_unsigned_is_negative_still(machine: Machine) -> None:
    machine(1).field(0, 193, 2**32 - 8, type=INT)
    got = values(device().observe())
    assert got["temperature_limit_margin_celsius", "0", "shutdown"] == -8


def test_a_utilisation_over_one_is_nonsense(machine: Machine) -> None:
    machine(1).put("gpu0", **{"utilization.gpu": 255})
    got = values(device().observe())
    assert ("utilization_ratio", "0") not in got
    assert ("utilization_moment_n_total", "0") not in got


def test_process_memory_is_absent_when_one_is_unknown(machine: Machine) -> None:
    machine(1).put("gpu0", processes=f"101:{GIB},102:18446744073709551615")
    got = values(device().observe())
    assert got["processes", "0"] == 2
    assert ("process_memory_bytes", "0") not in got


def test_no_process_shown_is_not_an_idle_gpu(machine: Machine) -> None:
    machine(1).put("gpu0", processes="-")
    observation = device().observe()
    assert not [key for key in values(observation) if key[0].startswith("process")]
    assert "hostPID" in gap_of(observation, names.GPU_PROCESSES)


def test_processes_are_listed_seldom(machine: Machine) -> None:
    fake, clock = machine(1), Clock()
    source = device(clock=clock)
    for clock.now in (0.0, 2.0, 29.0):
        assert values(source.observe())["processes", "0"] == 2
    listed = [call for call in fake.calls() if "RunningProcesses" in call]
    clock.now = 31.0
    fake.put("gpu0", processes="101:5")
    assert values(source.observe())["processes", "0"] == 1
    assert len([call for call in fake.calls() if "RunningProcesses" in call]) > len(listed)
    assert len(listed) == 2  # one list takes two calls: the first asks for its length


def test_idle_memory_is_told_apart_from_the_drivers_own(machine: Machine) -> None:
    fake = machine(1)
    fake.put("gpu0", **{"memory.used": 7_800_000, "memory.reserved": 904_000_000})
    got = values(device().observe())
    assert got["memory_used_bytes", "0"] == 7_800_000
    assert got["memory_reserved_bytes", "0"] == 904_000_000


def test_an_old_driver_falls_back_call_by_call(
    load: Callable[..., FakeNvml], old_library: Path
) -> None:
    fake = load(old_library)
    fake.put("system", driver="470.82.01")
    fake.put("gpu0", **{"memory.used": 7_800_000, "memory.reserved": 904_000_000, "power": 300_000})
    fake.put("gpu0", **{"power.limit": 400_000, "threshold:0": 92, "threshold:1": 89})
    for field in (185, 186, 190):
        fake.field(0, field, None)
    session = Session()
    observation = device(session=session).observe()
    got = values(observation)
    assert got["memory_used_bytes", "0"] == 911_800_000  # includes what the driver holds
    assert ("memory_reserved_bytes", "0") not in got
    assert "until then `used` includes it" in gap_of(observation, names.GPU_MEMORY_RESERVED)
    assert got["temperature_celsius", "0", "gpu"] == 52
    assert got["temperature_limit_celsius", "0", "slowdown"] == 89
    assert got["power_watts", "0", "unspecified"] == 300
    assert got["power_limit_watts", "0"] == 400
    assert got["clock_event_active", "0", "sw_power_cap"] == 1
    assert got["processes", "0"] == 2
    assert ("temperature_margin_celsius", "0") not in got
    assert errors(session) == {}


def test_fields_whose_number_changed_its_meaning_are_not_asked_of_older_drivers(
    machine: Machine,
) -> None:
    machine(1).put("system", driver="580.65.06")
    observation = device().observe()
    reasons = {key[2] for key in values(observation) if key[0] == "clock_event_seconds_total"}
    assert reasons == {"sw_power_cap", "thermal", "sync_boost"}
    assert "a newer driver may have it" in gap_of(observation, names.GPU_CLOCK_EVENT_SECONDS)


def test_a_gpu_that_shares_the_hosts_memory_has_no_memory_series(machine: Machine) -> None:
    fake = machine(1)
    for key in ("total", "used", "free", "reserved"):
        fake.set("gpu0", f"memory.{key}", None)
    observation = device().observe()
    got = values(observation)
    assert not [key for key in got if key[0].startswith("memory_") and "bytes" in key[0]]
    assert got["utilization_ratio", "0"] == 0.4
    assert "container_memory_bytes" in gap_of(observation, names.GPU_MEMORY_USED)


def test_a_vgpu_that_lacks_most_calls_gives_the_rest(machine: Machine) -> None:
    fake = machine(1)
    for call in ("FieldValues", "TemperatureV", "Temperature", "ClockInfo", "MigMode"):
        fake.fail("gpu0", NOT_SUPPORTED, f"nvmlDeviceGet{call}")
    session = Session()
    got = values(device(session=session).observe())
    assert got["memory_used_bytes", "0"] == 100 * GIB
    assert not [
        key for key in got if key[0] in {"temperature_celsius", "power_watts", "clock_hertz"}
    ]
    assert errors(session) == {}


def test_what_needs_more_rights_is_a_gap_and_no_error(machine: Machine) -> None:
    fake = machine(1)
    fake.fail("gpu0", NO_PERMISSION, "nvmlDeviceGetUtilizationRates")
    session = Session()
    observation = device(session=session).observe()
    assert "rights" in gap_of(observation, names.GPU_UTILIZATION)
    assert errors(session) == {}


def test_a_call_that_fails_is_counted_and_the_rest_is_published(machine: Machine) -> None:
    fake, session = machine(1), Session()
    source = device(session=session)
    fake.fail("gpu0", 10, "nvmlDeviceGetUtilizationRates")
    got = values(source.observe())
    assert ("utilization_ratio", "0") not in got
    assert got["memory_used_bytes", "0"] == 100 * GIB
    assert errors(session) == {("0", "10"): 1}
    fake.fail("gpu0", None, "nvmlDeviceGetUtilizationRates")
    assert values(source.observe())["utilization_ratio", "0"] == 0.4
    assert errors(session) == {("0", "10"): 1}


@pytest.mark.parametrize(
    ("code", "kind"),
    [(GPU_IS_LOST, ErrorKind.GPU_LOST), (2, ErrorKind.GPU_LOST), (999, ErrorKind.DRIVER),
     (18, ErrorKind.DRIVER_MISMATCH)],
)  # fmt: skip
def test_a_gpu_that_answers_nothing_fails(machine: Machine, code: int, kind: ErrorKind) -> None:
    fake, session = machine(1), Session()
    source = device(session=session)
    source.observe()
    fake.fail("gpu0", code)
    with pytest.raises(SourceError) as error:
        source.observe()
    assert error.value.kind is kind
    assert source.unknown == (code == 999)
    assert session.suspect


def test_one_field_that_says_lost_fails_the_read(machine: Machine) -> None:
    fake = machine(1)
    source = device()
    fake.set("gpu0", f"field-return:{ENERGY}:0", GPU_IS_LOST)
    with pytest.raises(SourceError, match="NVML field 83: NVML code 15") as error:
        source.observe()
    assert error.value.kind is ErrorKind.GPU_LOST


def test_mig_memory_is_told_once_per_instance_and_utilisation_not_at_all(machine: Machine) -> None:
    fake = machine(1)
    fake.put("gpu0", mig=1, **{"utilization.gpu": None})
    for part, instance, used in ((1, 7, 5), (2, 7, 5), (4, 9, 6)):
        fake.put(
            f"gpu0.{part}",
            uuid=f"MIG-{part}",
            name="NVIDIA H200 MIG 1g.18gb",
            instance=instance,
            **{"memory.total": 18 * GIB, "memory.used": used * GIB, "memory.free": 0,
               "memory.reserved": 0},
        )  # fmt: skip
    observation = device().observe()
    got = values(observation)
    used = {key[1]: value for key, value in got.items() if key[0] == "memory_used_bytes"}
    assert used == {"0/7": 5 * GIB, "0/9": 6 * GIB}
    assert got["info", "0/7", "NVIDIA H200 MIG 1g.18gb", "590.48.01", "1g.18gb"] == 1
    assert ("utilization_ratio", "0") not in got
    assert "expected under MIG" in gap_of(observation, names.GPU_UTILIZATION)
    assert got["power_watts", "0", "average"] == 350  # of the board, once


def test_a_mig_gpu_without_parts_is_told_whole(machine: Machine) -> None:
    machine(1).put("gpu0", mig=1)
    assert values(device().observe())["memory_used_bytes", "0"] == 100 * GIB


def test_mig_parts_that_may_not_be_seen_are_a_gap(machine: Machine) -> None:
    fake, session = machine(1), Session()
    fake.put("gpu0", mig=1)
    fake.fail("gpu0", NO_PERMISSION, "nvmlDeviceGetMigDeviceHandleByIndex")
    observation = device(session=session).observe()
    assert "MIG: as root" in gap_of(observation, names.GPU_INFO)
    assert values(observation)["power_watts", "0", "average"] == 350
    assert errors(session) == {}


def test_nvlink_errors_are_summed_over_the_links(machine: Machine) -> None:
    fake = machine(1)
    fake.field(0, 91, 3, type=INT)
    for link, errors_of_link in enumerate((1, 0, 4)):
        fake.field(0, 161, errors_of_link, scope=link)
    got = values(device().observe())
    assert got["nvlink_errors_total", "0", "dl_replay"] == 5
    assert ("nvlink_errors_total", "0", "dl_crc") not in got


def test_a_link_that_does_not_answer_makes_the_sum_unknown(machine: Machine) -> None:
    fake = machine(1)
    fake.field(0, 91, 2, type=INT)
    fake.field(0, 161, 1, scope=0)
    assert ("nvlink_errors_total", "0", "dl_replay") not in values(device().observe())


def test_what_nvml_says_of_its_own_cost_is_published(machine: Machine) -> None:
    fake = machine(1)
    fake.field(0, ENERGY, 1, latency=300)
    fake.field(0, MEMORY_TEMPERATURE, 40, type=INT, latency=200)
    got = values(device().observe())
    assert got["call_seconds", "0", "nvmlDeviceGetFieldValues"] == pytest.approx(500e-6)
    assert got["call_seconds", "0", "nvmlDeviceGetMemoryInfo_v2"] > 0


def test_health_names_the_gpu(machine: Machine) -> None:
    machine(1)
    source = device()
    source.observe()
    point = source.up_point(False)
    assert (point.family, point.labels, point.value) == (names.GPU_UP, ("0", "GPU-00000000"), 0.0)
