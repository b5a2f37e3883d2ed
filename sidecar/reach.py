"""How a server that a command names by its flags is reached."""

from __future__ import annotations

from ..exporters.http import HttpFetcher
from .settings.load import load_target
from .settings.targets import Target
from .settings.values import read_token


def reach(
    url: str, url_flag: str, token_file: str | None = None, ca_file: str | None = None
) -> tuple[Target, HttpFetcher]:
    """url_flag: what the URL is called in errors; the files are --token-file and --ca-file.

    Raises SettingsError.
    """
    origins = {"url": url_flag, "bearer_token_file": "--token-file", "ca_file": "--ca-file"}
    target = load_target({"url": url, "bearer_token_file": token_file, "ca_file": ca_file}, origins)
    token = read_token(target.bearer_token_file) if target.bearer_token_file else None
    return target, HttpFetcher(bearer_token=token, ca_file=target.ca_file)
