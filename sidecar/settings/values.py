"""How values are written in settings: durations, sizes, switches, addresses, files."""

from __future__ import annotations

import math
import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, ByteSize

from ...slo.files import read_small

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_MAX_TOKEN_BYTES = 64 << 10
_MAX_CA_BYTES = 16 << 20
_NUMBER_AND_UNIT = r"(\d+(?:\.\d+)?)(ms|s|m|h)"


@dataclass(frozen=True, slots=True)
class Metavar:
    """What stands for the value in `--help` and in the docs."""

    text: str


def parse_duration(text: str) -> float:
    """Seconds of "2s", "500ms", "1m30s" or a plain number of seconds. Raises ValueError."""
    if re.fullmatch(f"(?:{_NUMBER_AND_UNIT})+", text):
        return sum(float(n) * _UNITS[unit] for n, unit in re.findall(_NUMBER_AND_UNIT, text))
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise ValueError(
            f'"{text}" is not a duration: write 2s, 500ms or 1m, or a number of seconds'
        )
    return seconds


def format_duration(seconds: float) -> str:
    """Text that parse_duration reads back, to twelve digits."""
    for unit in ("h", "m"):
        if seconds and seconds % _UNITS[unit] == 0:
            return f"{seconds / _UNITS[unit]:.12g}{unit}"
    return f"{seconds * 1000:.12g}ms" if 0 < seconds < 1 else f"{seconds:.12g}s"


def between(low: str, high: str) -> AfterValidator:
    """Bounds, both allowed, for a Duration."""
    least, most = parse_duration(low), parse_duration(high)

    def check(seconds: float) -> float:
        if not least <= seconds <= most:
            raise ValueError(f"{format_duration(seconds)} is not between {low} and {high}")
        return seconds

    return AfterValidator(check)


def _seconds(value: object) -> object:
    return parse_duration(value.strip()) if isinstance(value, str) else value


def _word(value: object) -> object:
    # `true` and `false` of a file.
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:  # no such user, or one without a home
        raise ValueError(f"{path}: there is no such home folder") from None


def _certificates(path: Path) -> Path:
    read_small(path, _MAX_CA_BYTES)
    try:
        ssl.create_default_context(cafile=path)
    except ssl.SSLError:
        raise ValueError(f"{path} holds no certificate in PEM form") from None
    return path


def _folder(path: Path) -> Path:
    if not path.is_dir():
        raise ValueError(f"{path} is not a folder")
    return path


def _token(path: Path) -> Path:
    read_token(path)
    return path


def read_token(path: Path) -> str:
    """The bearer token in a file, white space around it left out. Raises ValueError."""
    try:
        token = read_small(path, _MAX_TOKEN_BYTES).decode("ascii").strip()
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a token: it holds other than ASCII") from None
    if not token or not token.isprintable():
        raise ValueError(f"{path} holds no token: one line is expected")
    return token


def _address(text: str) -> str:
    host_and_port(text)
    return text


def host_and_port(text: str) -> tuple[str, int]:
    """("127.0.0.1", 9400) of "127.0.0.1:9400"; ":9400" is every IPv4 address, IPv6 in brackets."""
    host, colon, port = text.rpartition(":")
    if not colon:
        raise ValueError(f'"{text}" is not an address: write HOST:PORT, as in 127.0.0.1:9400')
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f'"{text}": "{port}" is not a port: 0 to 65535')
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host or "/" in host:
        raise ValueError(f'"{text}" is not an address: write HOST:PORT, IPv6 as [::1]:9400')
    return host or "0.0.0.0", int(port)  # noqa: S104 - the user wrote ":PORT" to ask for this


def _name(name: str) -> str:
    if not re.fullmatch(r"[\w.:-]+", name):
        raise ValueError(f'"{name}" is not a name: letters, digits and . _ - : only')
    return name


def _url(url: str) -> str:
    parts = urlsplit(url)
    # What may be a secret is not repeated in the message.
    if "@" in url:
        raise ValueError("the URL holds a user or password: put a token in bearer_token_file")
    if "://" not in url:
        rest = re.sub("^(https?)?:?/+", "", url)
        raise ValueError(f'"{url}" has no scheme: write "http://{rest}"')
    if parts.query or parts.fragment:
        raise ValueError("the URL has a query: write the base URL, as in http://HOST:PORT")
    if parts.scheme not in ("http", "https"):
        raise ValueError(f'"{url}": only http and https are read, not {parts.scheme}')
    try:
        is_right = bool((parts.hostname or "").encode("idna")) and parts.port != 0
    except ValueError:  # UnicodeError too
        is_right = False
    if not is_right or re.search(r"\s", url):
        raise ValueError(f'"{url}" has no host or a bad port: write http://HOST:PORT')
    if not url.isprintable() or not parts.path.isascii():
        raise ValueError(f'"{url}": write what is not plain ASCII in the path as %XX')
    return url.rstrip("/").removesuffix("/metrics").rstrip("/")


Duration = Annotated[float, BeforeValidator(_seconds), Metavar("DURATION")]
Size = Annotated[ByteSize, Metavar("SIZE")]
OnOff = Annotated[bool, Metavar("on|off")]
AutoOnOff = Annotated[Literal["auto", "on", "off"], BeforeValidator(_word), Metavar("auto|on|off")]
Address = Annotated[str, BeforeValidator(str), AfterValidator(_address), Metavar("HOST:PORT")]
CaFile = Annotated[Path, AfterValidator(_expanded), AfterValidator(_certificates), Metavar("FILE")]
TokenFile = Annotated[Path, AfterValidator(_expanded), AfterValidator(_token), Metavar("FILE")]
Folder = Annotated[Path, AfterValidator(_folder), Metavar("FOLDER")]
NewFile = Annotated[Path, AfterValidator(_expanded), Metavar("FILE")]
Name = Annotated[str, AfterValidator(_name)]
Url = Annotated[str, AfterValidator(_url)]
