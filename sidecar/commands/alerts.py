"""`inferslo alerts` and `inferslo silence`: their flags. What they do is loaded when they run."""

from __future__ import annotations

from typing import Annotated

import typer

from .flags import CaFile, Json, TokenFile

_USUAL = ["http://127.0.0.1:9093"]

Matchers = Annotated[
    list[str],
    typer.Argument(metavar="MATCHER…", help="As service=chat, tier!=3 or slo=~first.*"),
]
Urls = Annotated[
    list[str],
    typer.Option(
        "--alertmanager",
        metavar="URL",
        help="Alertmanager, or one of its peers; may be repeated.",
    ),
]

silence_app = typer.Typer(help="Silence alerts for a while.", rich_markup_mode=None)


def alerts(
    matchers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MATCHER…]",
            help="As service=chat, tier!=3 or slo=~first.*",
            show_default=False,
        ),
    ] = None,
    alertmanager: Urls = _USUAL,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: Json = False,
) -> int:
    """List the alerts that fire, the first tier first.

    \b
    Examples:
      inferslo alerts
      inferslo alerts service=checkout-assistant tier=1
      inferslo alerts --alertmanager http://a:9093 --alertmanager http://b:9093 --json

    \b
    Exit codes: 0 listed, be there any or not; 1 no Alertmanager answers; 2 wrong usage.
    """
    from . import alerting

    client = alerting.client(alertmanager, token_file, ca_file)
    found = alerting.firing(client, alerting.matchers(matchers or ()))
    typer.echo(alerting.as_json(found) if as_json else alerting.alert_table(found))
    return 0


@silence_app.command("add")
def _add(
    matchers: Matchers,
    comment: Annotated[str, typer.Option("--comment", metavar="TEXT", help="Why.")],
    duration: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="How long: 30m, 2h, 1d.")
    ],
    by: Annotated[
        str | None, typer.Option("--by", metavar="NAME", help="Who. Default: your login.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Let it be longer than 7 days.")] = False,
    alertmanager: Urls = _USUAL,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
) -> int:
    """Silence the alerts of which every MATCHER holds, from now on.

    InfersloWatchdog goes on, unless a matcher names it: whoever listens for it would be called.
    Look first at which they are: `inferslo alerts MATCHER…`.

    \b
    Examples:
      inferslo silence add service=checkout-assistant --for 2h --comment "moves to new GPUs"
      inferslo silence add service=search slo=~first-token.* --for 30m --comment "load test"

    \b
    Exit codes: 0 silenced; 1 no Alertmanager answers, or it refuses; 2 wrong usage.
    """
    from . import alerting

    wanted = alerting.Wanted(
        alerting.matchers(matchers), alerting.lasting(duration, force), comment, by
    )
    typer.echo(alerting.silence(alerting.client(alertmanager, token_file, ca_file), wanted))
    return 0


@silence_app.command("list")
def _list(
    all_: Annotated[bool, typer.Option("--all", help="Those that are over, too.")] = False,
    alertmanager: Urls = _USUAL,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
    as_json: Json = False,
) -> int:
    """List silences, the one that ends first on top.

    \b
    Examples:
      inferslo silence list
      inferslo silence list --all --json

    \b
    Exit codes: 0 listed, be there any or not; 1 no Alertmanager answers; 2 wrong usage.
    """
    from . import alerting

    found = alerting.silences(alerting.client(alertmanager, token_file, ca_file), over=all_)
    typer.echo(alerting.as_json(found) if as_json else alerting.silence_table(found))
    return 0


@silence_app.command("expire")
def _expire(
    ids: Annotated[list[str], typer.Argument(metavar="ID…", help="From `inferslo silence list`.")],
    alertmanager: Urls = _USUAL,
    token_file: TokenFile = None,
    ca_file: CaFile = None,
) -> int:
    """End silences now.

    \b
    Example:
      inferslo silence expire 0b4cd5a6-3d6c-4b7e-9f3e-8f1d2a7c5e90

    \b
    Exit codes: 0 ended; 1 no Alertmanager answers, or it knows no such silence; 2 wrong usage.
    """
    from . import alerting

    alerting.check_ids(ids)
    client = alerting.client(alertmanager, token_file, ca_file)
    for id in ids:
        client.expire(id)
        typer.echo(f"ended {id}")
    return 0
