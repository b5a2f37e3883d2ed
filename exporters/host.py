"""What the host tells about the engines beside us: sockets, TCP, file descriptors, container.

It answers one question: is the engine slow, or can clients not get through to it? A signal that
cannot be read becomes a Gap; the others go on.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from . import procfs
from .names import (
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
from .reading import ErrorKind, Gap, Observation, Point, SourceError

RESCAN_SECONDS = 60.0

_TCP_COUNTERS: Sequence[tuple[str, str, str, Family]] = (
    ("snmp", "Tcp", "RetransSegs", HOST_TCP_RETRANSMITS),
    ("snmp", "Tcp", "OutSegs", HOST_TCP_SEGMENTS),
    ("netstat", "TcpExt", "ListenOverflows", HOST_LISTEN_OVERFLOWS),
    ("netstat", "TcpExt", "ListenDrops", HOST_LISTEN_DROPS),
)


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """An engine's name (the label `engine`) and where it listens."""

    name: str
    host: str
    port: int


class _UnavailableError(Exception):
    """A signal that cannot be given now, and what the operator can do about it."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.remedy = remedy


@dataclass(slots=True)
class _Draft:
    """An Observation in the making."""

    points: list[Point] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def part(self, signal: str) -> Iterator[None]:
        """What cannot be read inside becomes a gap, and the rest of the observation goes on."""
        try:
            yield
        except _UnavailableError as error:
            self.gaps.append(Gap(signal, str(error), error.remedy))
        except procfs.MalformedError as error:
            remedy = "if it stays, report it with that file: this kernel writes another format"
            self.gaps.append(Gap(signal, str(error), remedy))
        except OSError as error:
            self.gaps.append(Gap(signal, f"{error.filename}: {error.strerror}", _remedy(error)))


class HostSource:
    """The host's side of the engines that run on this machine.

    root: the folder that holds `proc` and `sys`. is_local: whether a host name means this
    machine; may raise socket.gaierror.
    """

    name = "host"

    def __init__(
        self,
        engines: Sequence[EngineAddress],
        root: Path = Path("/"),
        interval: float = 5.0,
        deadline: float = 5.0,
        *,
        is_local: Callable[[str], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.interval = interval
        self.deadline = deadline
        self._engines = engines
        self._proc = root / "proc"
        self._cgroups = root / "sys" / "fs" / "cgroup"
        self._is_local = is_local or is_local_host
        self._local: dict[str, bool] = {}
        self._holders = _Holders(self._proc, clock)

    def up_point(self, up: bool) -> Point | None:  # noqa: ARG002 (Source asks for it)
        return None

    def observe(self) -> Observation:
        draft = _Draft()
        with draft.part("host_tcp"):
            draft.points += self._tcp()
        with draft.part("container"):
            draft.points += self._container("self", "self")
        local = [engine for engine in self._engines if self._runs_here(engine, draft)]
        with draft.part("host_sockets"):
            ports = procfs.read_ports(self._proc / "net", [engine.port for engine in local])
            for engine in local:
                self._engine(engine, ports[engine.port], draft)
        if not draft.points:
            raise SourceError(ErrorKind.UNREADABLE, f"nothing of the host: {draft.gaps[0].reason}")
        return Observation(tuple(draft.points), tuple(draft.gaps), draft.facts)

    def _runs_here(self, engine: EngineAddress, draft: _Draft) -> bool:
        with draft.part("host_sockets"):
            if not self._is_here(engine.host):
                raise _UnavailableError(
                    f"{engine.name} runs on another host",
                    "run a sidecar beside that engine: sockets are seen only where they are",
                )
            return True
        return False

    def _is_here(self, host: str) -> bool:
        if host not in self._local:
            try:
                self._local[host] = self._is_local(host)
            except socket.gaierror as error:
                raise _UnavailableError(
                    f"{host} has no address: {error.strerror}", "correct the engine's host name"
                ) from error
        return self._local[host]

    def _engine(self, engine: EngineAddress, port: procfs.ServerPort, draft: _Draft) -> None:
        with draft.part("host_sockets"):
            draft.points += _sockets(engine, port)
        if not port.listeners:
            return
        with draft.part("host_process"):
            pid = self._holders.pid_of(engine, port.listeners[0])
            draft.facts[f"pid {engine.name}"] = pid
            with draft.part("container"):
                draft.points += self._container(pid, engine.name)
            draft.points += self._process(engine, pid)

    def _tcp(self) -> list[Point]:
        net = self._proc / "net"
        counters = {
            (file, protocol): procfs.read_counters(net / file, protocol)
            for file, protocol in dict.fromkeys((row[0], row[1]) for row in _TCP_COUNTERS)
        }
        return [
            Point(family, (), counters[file, protocol][counter], f"{net / file} {counter}")
            for file, protocol, counter, family in _TCP_COUNTERS
            if counter in counters[file, protocol]
        ]

    def _process(self, engine: EngineAddress, pid: str) -> list[Point]:
        process = self._proc / pid
        labels = (engine.name,)
        open_fds = sum(1 for _ in (process / "fd").iterdir())
        points = [
            Point(HOST_OPEN_FDS, labels, open_fds, f"{process / 'fd'}"),
            Point(HOST_THREADS, labels, procfs.threads(process), f"{process / 'status'} Threads"),
        ]
        limit = procfs.max_open_files(process)
        if limit is not None:
            points.append(Point(HOST_MAX_FDS, labels, limit, f"{process / 'limits'}"))
        return points

    def _container(self, pid: str, scope: str) -> list[Point]:
        folder = procfs.cgroup_folder(self._proc, self._cgroups, pid)
        if folder is None:
            raise _UnavailableError(
                f"memory of {scope} is in cgroup v1, which is not read",
                "start the node with systemd.unified_cgroup_hierarchy=1",
            )
        cgroup = procfs.read_cgroup(folder)
        values = (
            (CONTAINER_MEMORY, cgroup.memory, "memory.current"),
            (CONTAINER_MEMORY_LIMIT, cgroup.limit, "memory.max"),
            (CONTAINER_OOM_KILLS, cgroup.oom_kills, "memory.events oom_kill"),
            (CONTAINER_CPU, cgroup.cpu, "cpu.stat usage_usec"),
            (CONTAINER_CPU_THROTTLED, cgroup.throttled, "cpu.stat throttled_usec"),
        )
        return [
            Point(family, (scope,), value, f"{folder}/{origin}")
            for family, value, origin in values
            if value is not None
        ]


@dataclass(frozen=True, slots=True)
class _Search:
    """Who holds the socket `inode`: the descriptor, or why it is not known (reason, remedy)."""

    inode: int
    at: float
    outcome: Path | tuple[str, str]


class _Holders:
    """Which process listens. To find it costs a look at every descriptor on the machine."""

    def __init__(self, proc: Path, clock: Callable[[], float]) -> None:
        self._proc = proc
        self._clock = clock
        self._searches: dict[str, _Search] = {}

    def pid_of(self, engine: EngineAddress, inode: int) -> str:
        search = self._searches.get(engine.name)
        if search is None or search.inode != inode or self._stale(search):
            search = _Search(inode, self._clock(), self._find(engine, inode))
            self._searches[engine.name] = search
        if isinstance(search.outcome, Path):
            return search.outcome.parent.parent.name
        raise _UnavailableError(*search.outcome)

    def _stale(self, search: _Search) -> bool:
        if isinstance(search.outcome, Path):
            return not procfs.is_socket(search.outcome, search.inode)
        return self._clock() - search.at >= RESCAN_SECONDS

    def _find(self, engine: EngineAddress, inode: int) -> Path | tuple[str, str]:
        try:
            descriptor = procfs.holder_of(self._proc, inode)
        except PermissionError:
            return (
                f"the process of {engine.name} may not be looked into",
                "run the sidecar as the engine's user, or give it CAP_SYS_PTRACE",
            )
        return descriptor or (
            f"the process of {engine.name} is not visible from here",
            "set shareProcessNamespace: true in the pod",
        )


def _sockets(engine: EngineAddress, port: procfs.ServerPort) -> list[Point]:
    # Without a listener the port may be a client's own, and nothing here is the engine's.
    if not port.listeners:
        raise _UnavailableError(
            f"nobody listens on port {engine.port} in this network namespace",
            "start the engine, or run the sidecar in the engine's pod",
        )
    origin = f"/proc/net/tcp port {engine.port}"
    return [
        Point(HOST_LISTEN_BACKLOG, (engine.name,), port.backlog, f"{origin} listen rx_queue"),
        *(
            Point(HOST_SOCKETS, (engine.name, state), count, f"{origin} st")
            for state, count in port.states.items()
        ),
    ]


def is_local_host(host: str) -> bool:
    """Whether `host` is an address of this machine: only then can a socket be bound to it."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        try:
            probe.bind(address)
        except OSError:
            return False
    return True


def _remedy(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "run the sidecar as the engine's user, or give it CAP_SYS_PTRACE"
    return "mount /proc and cgroup v2 where the sidecar sees them"
