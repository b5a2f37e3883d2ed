"""The host source on a recorded /proc, on trees made from it, and on this machine's own."""

from __future__ import annotations

import os
import shutil
import socket
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from e2e.processes import wait_until

from inferslo.exporters import procfs
from inferslo.exporters.host import RESCAN_SECONDS, EngineAddress, HostSource, is_local_host
from inferslo.exporters.names import (
    CONTAINER_CPU,
    CONTAINER_CPU_THROTTLED,
    CONTAINER_MEMORY,
    CONTAINER_MEMORY_LIMIT,
    CONTAINER_OOM_KILLS,
    HOST_LISTEN_BACKLOG,
    HOST_LISTEN_DROPS,
    HOST_LISTEN_OVERFLOWS,
    HOST_MAX_FDS,
    HOST_OPEN_FDS,
    HOST_SOCKETS,
    HOST_TCP_RETRANSMITS,
    HOST_TCP_SEGMENTS,
    HOST_THREADS,
    Family,
)
from inferslo.exporters.reading import ErrorKind, Histogram, Observation, SourceError

RECORDED = Path(__file__).parent / "trees" / "recorded"
PID = "2287"
ENGINE = EngineAddress("vllm", "127.0.0.1", 8000)
GIB = 1 << 30


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the recorded tree, to be changed."""
    return shutil.copytree(RECORDED, tmp_path / "root", symlinks=True)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def source(root: Path, *engines: EngineAddress, clock: Clock | None = None) -> HostSource:
    return HostSource(
        engines or (ENGINE,),
        root,
        is_local=lambda host: host.startswith("127."),
        clock=clock or Clock(),
    )


def values(observation: Observation, family: Family) -> dict[tuple[str, ...], float]:
    return {
        point.labels: point.value
        for point in observation.points
        if point.family is family and not isinstance(point.value, Histogram)
    }


def gaps(observation: Observation, signal: str) -> list[str]:
    return [f"{gap.reason}: {gap.remedy}" for gap in observation.gaps if gap.signal == signal]


def cgroup(folder: Path, **files: str) -> None:
    """A cgroup v2 as the kernel documents it; `memory_max="max"` changes memory.max."""
    content = {
        "memory_current": f"{3 * GIB}",
        "memory_max": f"{4 * GIB}",
        "memory_events": "low 0\nhigh 0\nmax 17\noom 2\noom_kill 1\noom_group_kill 0",
        "cpu_stat": "usage_usec 7500000\nuser_usec 7000000\nsystem_usec 500000\n"
        "nr_periods 90\nnr_throttled 30\nthrottled_usec 1250000",
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {**content, **files}.items():
        (folder / name.replace("_", ".")).write_text(f"{text}\n")


# Sockets


def test_sockets_are_counted_by_state_on_the_engines_side_of_ipv4_and_ipv6() -> None:
    seen = source(RECORDED).observe()
    assert values(seen, HOST_SOCKETS) == {
        ("vllm", "established"): 6,
        ("vllm", "time_wait"): 1,
        ("vllm", "close_wait"): 1,
        ("vllm", "syn_recv"): 0,
        ("vllm", "fin_wait1"): 0,
        ("vllm", "fin_wait2"): 0,
        ("vllm", "last_ack"): 0,
        ("vllm", "closing"): 0,
    }
    assert values(seen, HOST_LISTEN_BACKLOG) == {("vllm",): 2}


def test_each_engine_has_the_sockets_of_its_own_port() -> None:
    other = EngineAddress("other", "127.0.0.1", 0x1F55)  # listens in the recorded tree
    seen = source(RECORDED, ENGINE, other).observe()
    assert values(seen, HOST_SOCKETS)["vllm", "established"] == 6
    assert values(seen, HOST_SOCKETS)["other", "established"] == 0


def test_ports_that_only_a_client_uses_are_no_engine() -> None:
    client = EngineAddress("vllm", "127.0.0.1", 0xCF58)
    seen = source(RECORDED, client).observe()
    assert values(seen, HOST_SOCKETS) == {}
    assert "nobody listens on port 53080" in gaps(seen, "host_sockets")[0]


def test_an_engine_that_does_not_listen_is_unknown_not_zero() -> None:
    seen = source(RECORDED, EngineAddress("vllm", "127.0.0.1", 9)).observe()
    assert values(seen, HOST_SOCKETS) == {}
    assert values(seen, HOST_LISTEN_BACKLOG) == {}
    assert "run the sidecar in the engine's pod" in gaps(seen, "host_sockets")[0]


def test_an_engine_on_another_host_has_no_sockets_here() -> None:
    seen = source(RECORDED, EngineAddress("far", "10.0.0.9", 8000)).observe()
    assert values(seen, HOST_SOCKETS) == {}
    assert "far runs on another host" in gaps(seen, "host_sockets")[0]


def test_a_name_without_an_address_is_said_and_asked_again() -> None:
    answers: list[bool | OSError] = [socket.gaierror(-2, "Name or service not known"), True]

    def is_local(host: str) -> bool:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    host = HostSource([EngineAddress("vllm", "vllm.local", 8000)], RECORDED, is_local=is_local)
    assert "vllm.local has no address: Name or service" in gaps(host.observe(), "host_sockets")[0]
    assert values(host.observe(), HOST_SOCKETS)
    assert values(host.observe(), HOST_SOCKETS), "a third question would have had no answer"


def test_without_ipv6_only_ipv4_is_read(tree: Path) -> None:
    (tree / "proc/net/tcp6").rename(tree / "proc/net/tcp6.away")
    assert "nobody listens on port 8000" in gaps(source(tree).observe(), "host_sockets")[0]


def test_a_time_wait_storm_is_counted_in_little_memory(tree: Path) -> None:
    table = tree / "proc/net/tcp"
    with table.open("a") as file:
        for number in range(100_000):
            file.write(
                f"{number:4d}: 0100007F:1F40 {number:08X}:9C40 06 00000000:00000000 "
                "03:00001000 00000000     0        0 0 3 0000000000000000\n"
            )
    host = source(tree)
    tracemalloc.start()
    try:
        seen = host.observe()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert values(seen, HOST_SOCKETS)["vllm", "time_wait"] == 100_001
    assert peak < 1_000_000 < table.stat().st_size


@pytest.mark.parametrize(
    "torn",
    [
        "   9: 0100007F:1F40 0100007F:CF58 01 00000000:000",
        "   9: 0100007F:1F40 0100007F:CF58",
        "   9: 0100007F:1F40 00000000:0000 0A 00000000:xyz 00:00000000 00000000 0 0 43415 1",
    ],
)
def test_a_torn_line_gives_no_count_at_all(tree: Path, torn: str) -> None:
    with (tree / "proc/net/tcp").open("a") as table:
        table.write(torn)
    seen = source(tree).observe()
    assert values(seen, HOST_SOCKETS) == {}
    assert "torn line" in gaps(seen, "host_sockets")[0]
    assert values(seen, HOST_TCP_SEGMENTS), "the rest goes on"


def test_a_file_that_is_no_socket_table_is_said_to_be_none(tree: Path) -> None:
    (tree / "proc/net/tcp").write_text("")
    assert "has no header line" in gaps(source(tree).observe(), "host_sockets")[0]


def test_a_missing_socket_table_leaves_the_rest(tree: Path) -> None:
    (tree / "proc/net/tcp").unlink()
    seen = source(tree).observe()
    assert "proc/net/tcp: No such file" in gaps(seen, "host_sockets")[0]
    assert values(seen, HOST_TCP_SEGMENTS)


# TCP of the whole network namespace


def test_tcp_counters_are_the_kernels() -> None:
    seen = source(RECORDED).observe()
    snmp = (RECORDED / "proc/net/snmp").read_text().split("\nTcp: ")[2].split()
    assert values(seen, HOST_TCP_SEGMENTS) == {(): int(snmp[10])}
    assert values(seen, HOST_TCP_RETRANSMITS) == {(): int(snmp[11])}


def test_dropped_connections_are_counted(tree: Path) -> None:
    (tree / "proc/net/netstat").write_text(
        "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 20 30\n"
        "IpExt: InNoRoutes\nIpExt: 0\n"
    )
    seen = source(tree).observe()
    assert values(seen, HOST_LISTEN_OVERFLOWS) == {(): 20}
    assert values(seen, HOST_LISTEN_DROPS) == {(): 30}


@pytest.mark.parametrize("text", ["", "Tcp: A B\n", "Tcp: A B\nTcp: 1\n", "Tcp: A\nTcp: x\n"])
def test_a_torn_counter_file_gives_no_counters(tree: Path, text: str) -> None:
    (tree / "proc/net/snmp").write_text(text)
    seen = source(tree).observe()
    assert values(seen, HOST_TCP_SEGMENTS) == {}
    assert "proc/net/snmp" in gaps(seen, "host_tcp")[0]
    assert values(seen, HOST_SOCKETS), "the rest goes on"


# The engine's process


def test_the_process_that_listens_is_found_and_described() -> None:
    seen = source(RECORDED).observe()
    assert seen.facts["pid vllm"] == PID
    assert values(seen, HOST_OPEN_FDS) == {("vllm",): 9}
    assert values(seen, HOST_MAX_FDS) == {("vllm",): 20000}
    assert values(seen, HOST_THREADS) == {("vllm",): 1}


def test_no_limit_of_descriptors_is_no_number(tree: Path) -> None:
    limits = tree / "proc" / PID / "limits"
    limits.write_text(limits.read_text().replace("20000   ", "unlimited", 1))
    seen = source(tree).observe()
    assert values(seen, HOST_MAX_FDS) == {}
    assert values(seen, HOST_OPEN_FDS) == {("vllm",): 9}


def test_a_process_in_another_pid_namespace_is_a_gap_with_its_remedy(tree: Path) -> None:
    shutil.rmtree(tree / "proc" / PID)
    seen = source(tree).observe()
    assert values(seen, HOST_OPEN_FDS) == {}
    assert "shareProcessNamespace: true" in gaps(seen, "host_process")[0]
    assert values(seen, HOST_SOCKETS)


def test_a_process_that_may_not_be_looked_into_is_a_gap_with_its_remedy(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests may run as root, to whom nothing is denied: the refusal is a fake."""
    real = Path.iterdir

    def iterdir(path: Path) -> Iterator[Path]:
        if path == tree / "proc" / PID / "fd":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    seen = source(tree).observe()
    assert values(seen, HOST_OPEN_FDS) == {}
    assert "CAP_SYS_PTRACE" in gaps(seen, "host_process")[0]


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The inodes for which every descriptor of the machine was looked at."""
    inodes: list[int] = []
    real = procfs.holder_of

    def holder_of(proc: Path, inode: int) -> Path | None:
        inodes.append(inode)
        return real(proc, inode)

    monkeypatch.setattr(procfs, "holder_of", holder_of)
    return inodes


def test_the_process_is_searched_for_once(searches: list[int]) -> None:
    host = source(RECORDED)
    for _ in range(3):
        host.observe()
    assert searches == [77624]


def test_a_restarted_engine_is_searched_for_again(tree: Path, searches: list[int]) -> None:
    host = source(tree)
    host.observe()
    (tree / "proc" / PID).rename(tree / "proc" / "3000")
    (tree / "proc/3000/fd/3").unlink()
    (tree / "proc/3000/fd/4").symlink_to("socket:[88888]")
    table = tree / "proc/net/tcp6"
    table.write_text(table.read_text().replace(" 77624 ", " 88888 "))
    assert host.observe().facts["pid vllm"] == "3000"
    assert searches == [77624, 88888]


def test_a_process_that_hands_its_socket_on_is_followed(tree: Path, searches: list[int]) -> None:
    host = source(tree)
    host.observe()
    (tree / "proc" / PID).rename(tree / "proc" / "3000")
    assert host.observe().facts["pid vllm"] == "3000"


def test_a_vain_search_is_not_repeated_at_every_read(tree: Path, searches: list[int]) -> None:
    (tree / "proc" / PID).rename(tree / "proc" / "away")
    clock = Clock()
    host = source(tree, clock=clock)
    for clock.now in (0.0, 1.0, RESCAN_SECONDS - 1):
        assert gaps(host.observe(), "host_process")
    assert len(searches) == 1
    (tree / "proc" / "away").rename(tree / "proc" / PID)
    clock.now = RESCAN_SECONDS
    assert host.observe().facts["pid vllm"] == PID


# Containers


def test_cgroup_v1_is_a_gap_with_its_remedy() -> None:
    seen = source(RECORDED).observe()
    assert values(seen, CONTAINER_MEMORY) == {}
    assert [gap.split(":")[0] for gap in gaps(seen, "container")] == [
        "memory of self is in cgroup v1, which is not read",
        "memory of vllm is in cgroup v1, which is not read",
    ]


def test_the_sidecars_own_container_has_the_scope_self(tree: Path) -> None:
    (tree / "proc/self/cgroup").write_text("0::/\n")
    cgroup(tree / "sys/fs/cgroup")
    seen = source(tree).observe()
    assert values(seen, CONTAINER_MEMORY) == {("self",): 3 * GIB}
    assert values(seen, CONTAINER_MEMORY_LIMIT) == {("self",): 4 * GIB}
    assert values(seen, CONTAINER_OOM_KILLS) == {("self",): 1}
    assert values(seen, CONTAINER_CPU) == {("self",): 7.5}
    assert values(seen, CONTAINER_CPU_THROTTLED) == {("self",): 1.25}


def test_an_engine_on_the_bare_host_has_its_own_cgroup(tree: Path) -> None:
    (tree / "proc" / PID / "cgroup").write_text("0::/system.slice/vllm.service\n")
    cgroup(tree / "sys/fs/cgroup/system.slice/vllm.service", memory_current="77")
    assert values(source(tree).observe(), CONTAINER_MEMORY) == {("vllm",): 77}


def test_an_engine_in_another_container_of_the_pod_is_read_through_its_root(tree: Path) -> None:
    """With shareProcessNamespace each container still has a cgroup namespace of its own."""
    (tree / "proc" / PID / "cgroup").write_text("0::/../cri-containerd-4711.scope\n")
    cgroup(tree / "proc" / PID / "root/sys/fs/cgroup", memory_current="77")
    assert values(source(tree).observe(), CONTAINER_MEMORY) == {("vllm",): 77}


def test_no_limit_and_no_throttling_count_are_absent_not_zero(tree: Path) -> None:
    (tree / "proc/self/cgroup").write_text("0::/\n")
    cgroup(tree / "sys/fs/cgroup", memory_max="max", cpu_stat="usage_usec 5", memory_events="low 0")
    seen = source(tree).observe()
    assert values(seen, CONTAINER_MEMORY) == {("self",): 3 * GIB}
    assert values(seen, CONTAINER_MEMORY_LIMIT) == {}
    assert values(seen, CONTAINER_CPU_THROTTLED) == {}
    assert values(seen, CONTAINER_OOM_KILLS) == {}


def test_a_cgroup_without_the_memory_controller_is_a_gap(tree: Path) -> None:
    (tree / "proc/self/cgroup").write_text("0::/\n")
    (tree / "sys/fs/cgroup").mkdir(parents=True)
    assert "memory.max: No such file" in gaps(source(tree).observe(), "container")[0]


def test_a_torn_cgroup_file_is_a_gap(tree: Path) -> None:
    (tree / "proc/self/cgroup").write_text("0::/\n")
    cgroup(tree / "sys/fs/cgroup", memory_current="")
    seen = source(tree).observe()
    assert values(seen, CONTAINER_MEMORY) == {}
    assert "memory.current holds '', not a number" in gaps(seen, "container")[0]


# The whole source


def test_a_host_of_which_nothing_can_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="proc/net/snmp: No such file") as error:
        source(tmp_path).observe()
    assert error.value.kind is ErrorKind.UNREADABLE


def test_it_has_no_health_series_of_its_own() -> None:
    assert source(RECORDED).up_point(up=True) is None


def seen_once(host: HostSource, *, established: int, fin_wait: int, backlog: int) -> Observation:
    """The kernel finishes a handshake a moment after connect() returns."""

    def probe() -> Observation | None:
        seen = host.observe()
        sockets = values(seen, HOST_SOCKETS)
        counts = (
            sockets["vllm", "established"],
            sockets["vllm", "fin_wait1"] + sockets["vllm", "fin_wait2"],
            values(seen, HOST_LISTEN_BACKLOG)["vllm",],
        )
        return seen if counts == (established, fin_wait, backlog) else None

    seen = wait_until("the expected sockets", probe, 10)
    assert seen
    return seen


def test_a_real_server_and_its_clients() -> None:
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = server.getsockname()[1]
        host = HostSource([EngineAddress("vllm", "127.0.0.1", port)])

        def connect(times: int) -> None:
            for _ in range(times):
                stack.enter_context(socket.create_connection(("127.0.0.1", port)))

        connect(5)
        accepted = [stack.enter_context(server.accept()[0]) for _ in range(3)]
        seen = seen_once(host, established=5, fin_wait=0, backlog=2)
        assert seen.facts["pid vllm"] == str(os.getpid())
        assert values(seen, HOST_TCP_SEGMENTS)[()] > 0

        before = values(seen, HOST_OPEN_FDS)["vllm",]
        connect(1)
        for connection in accepted:
            connection.close()
        seen = seen_once(host, established=3, fin_wait=3, backlog=3)
        assert values(seen, HOST_OPEN_FDS) == {("vllm",): before + 1 - 3}


@pytest.mark.parametrize(
    ("host", "local"), [("127.0.0.1", True), ("localhost", True), ("192.0.2.1", False)]
)
def test_an_address_of_this_machine_is_local(host: str, local: bool) -> None:
    assert is_local_host(host) is local
