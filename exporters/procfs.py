"""Readers of /proc and cgroup v2: file formats only, no metric names.

Formats: proc(5), Documentation/networking/proc_net_tcp, Documentation/admin-guide/cgroup-v2.
Every reader raises OSError for a file that cannot be read, and MalformedError for one whose
content is not what the kernel writes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

# The codes of the column `st` of /proc/net/tcp that a server's port can be in.
STATES: Mapping[bytes, str] = {
    b"01": "established",
    b"03": "syn_recv",
    b"04": "fin_wait1",
    b"05": "fin_wait2",
    b"06": "time_wait",
    b"08": "close_wait",
    b"09": "last_ack",
    b"0B": "closing",
}
_LISTEN = b"0A"
# Local port, state, rx_queue, inode.
_ROW = re.compile(
    rb" *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} ([0-9A-F]{2})"
    rb" [0-9A-F]+:([0-9A-F]+) \S+ \S+ +\d+ +\d+ (\d+) "
)


class MalformedError(Exception):
    """A file is not as the kernel writes it: torn, or not what its name says."""


@dataclass(slots=True)
class ServerPort:
    """The sockets on one port, as the server sees them.

    states: sockets by state, all of STATES; backlog: connections waiting for accept();
    listeners: inodes of the listening sockets.
    """

    states: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STATES.values(), 0))
    backlog: int = 0
    listeners: list[int] = field(default_factory=list)


def read_ports(net: Path, ports: Collection[int]) -> dict[int, ServerPort]:
    """The sockets of these ports from net/tcp and, where the kernel has IPv6, net/tcp6.

    Line by line, so that 100,000 sockets in TIME_WAIT cost time but no memory.
    """
    found = {b"%04X" % port: ServerPort() for port in ports}
    if not found:
        return {}
    for name in ("tcp", "tcp6"):
        path = net / name
        if name == "tcp" or path.exists():
            _read_table(path, found)
    return {int(port, 16): sockets for port, sockets in found.items()}


def _read_table(path: Path, found: Mapping[bytes, ServerPort]) -> None:
    # Lines of other ports are passed over in C: of a large table most are.
    of_these_ports = re.compile(b":(?:%b) " % b"|".join(found)).search
    with path.open("rb", buffering=1 << 16) as table:
        if b"local_address" not in table.readline():
            raise MalformedError(f"{path} has no header line")
        for line in filter(of_these_ports, table):
            row = _ROW.match(line)
            if row is None:
                raise MalformedError(f"{path} has a torn line: {line!r}")
            port, state, rx_queue, inode = row.groups()
            if port in found:  # else it is the port of the other side
                _count(found[port], state, rx_queue, inode)


def _count(port: ServerPort, state: bytes, rx_queue: bytes, inode: bytes) -> None:
    if state == _LISTEN:
        port.backlog += int(rx_queue, 16)  # the accept queue, in sockets
        port.listeners.append(int(inode))
    elif state in STATES:
        port.states[STATES[state]] += 1


def read_counters(path: Path, protocol: str) -> dict[str, int]:
    """The counters of one protocol of net/snmp or net/netstat, which come in pairs of lines."""
    lines = [line.split() for line in path.read_text().splitlines()]
    rows = [line[1:] for line in lines if line and line[0] == f"{protocol}:"]
    if len(rows) != 2 or len(rows[0]) != len(rows[1]):
        raise MalformedError(f"{path} has no pair of lines for {protocol}")
    try:
        return dict(zip(rows[0], map(int, rows[1]), strict=True))
    except ValueError as error:
        raise MalformedError(f"{path}: {error}") from error


def holder_of(proc: Path, inode: int) -> Path | None:
    """The file descriptor, proc/<pid>/fd/<n>, of the lowest pid that has this socket open.

    None if no visible process has it; PermissionError if none has and some could not be
    looked into. Costs one readlink for each descriptor on the machine: keep the answer.
    """
    denied: PermissionError | None = None
    for pid in sorted(int(entry.name) for entry in proc.iterdir() if entry.name.isdigit()):
        try:
            for descriptor in (proc / str(pid) / "fd").iterdir():
                if is_socket(descriptor, inode):
                    return descriptor
        except PermissionError as error:
            denied = error
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended while we looked
    if denied is not None:
        raise denied
    return None


def is_socket(descriptor: Path, inode: int) -> bool:
    try:
        return str(descriptor.readlink()) == f"socket:[{inode}]"
    except (FileNotFoundError, ProcessLookupError):
        return False


def max_open_files(process: Path) -> int | None:
    """The soft limit in proc/<pid>/limits; None for unlimited."""
    for line in (process / "limits").read_text().splitlines():
        if line.startswith("Max open files"):
            soft = line.split()[3]
            return None if soft == "unlimited" else _integer(process / "limits", soft)
    raise MalformedError(f"{process / 'limits'} has no line 'Max open files'")


def threads(process: Path) -> int:
    for line in (process / "status").read_text().splitlines():
        if line.startswith("Threads:"):
            return _integer(process / "status", line.partition(":")[2])
    raise MalformedError(f"{process / 'status'} has no line 'Threads:'")


@dataclass(frozen=True, slots=True)
class Cgroup:
    """One cgroup v2. memory, limit: bytes, page cache included; limit None where there is none.

    cpu, throttled: seconds, None where the cpu controller does not count them.
    """

    memory: int
    limit: int | None
    oom_kills: int | None
    cpu: float | None
    throttled: float | None


def cgroup_folder(proc: Path, mount: Path, pid: str) -> Path | None:
    """The folder of the process's cgroup; None where cgroup v1 holds the memory controller.

    With cgroup namespaces of their own (every container runtime), the path of a process in
    another container leads out of what is mounted here ("/../…"); that container's own mount,
    seen through proc/<pid>/root, has it as root.
    """
    lines = (proc / pid / "cgroup").read_text().splitlines()
    if any("memory" in line.split(":")[1].split(",") for line in lines if line.count(":") >= 2):
        return None
    unified = [line.removeprefix("0::") for line in lines if line.startswith("0::/")]
    if not unified:
        return None
    if unified[0].startswith("/.."):
        return proc / pid / "root" / "sys" / "fs" / "cgroup"
    return mount / unified[0].lstrip("/")


def read_cgroup(folder: Path) -> Cgroup:
    limit = (folder / "memory.max").read_text().strip()
    cpu = dict(_pairs(folder / "cpu.stat"))
    throttled = cpu.get("throttled_usec")
    usage = cpu.get("usage_usec")
    return Cgroup(
        memory=_integer(folder / "memory.current", (folder / "memory.current").read_text()),
        limit=None if limit == "max" else _integer(folder / "memory.max", limit),
        oom_kills=dict(_pairs(folder / "memory.events")).get("oom_kill"),
        cpu=None if usage is None else usage / 1e6,
        throttled=None if throttled is None else throttled / 1e6,
    )


def _pairs(path: Path) -> Iterator[tuple[str, int]]:
    for line in path.read_text().splitlines():
        key, _, value = line.partition(" ")
        yield key, _integer(path, value)


def _integer(path: Path, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise MalformedError(f"{path} holds {text.strip()!r}, not a number") from error
