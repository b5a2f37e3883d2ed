"""The faults as buttons: a fragment of HTML that works without a script."""

from __future__ import annotations

from html import escape

from .api import PATH, RECOVER
from .buttons import Button, buttons
from .world import World


def panel(world: World) -> str:
    """A section of forms; the button that is armed has aria-pressed="true". data-fault names each
    one, data-recover the one that ends them."""
    armed = world.armed
    name = armed.button.name if armed else None
    told = f"Armed: {escape(armed.button.title)}." if armed else "No fault is armed."
    return (
        '<section data-demo aria-labelledby="demo-faults">'
        '<h2 id="demo-faults">Faults of the simulation</h2>'
        f'<p role="status" data-armed="{escape(name or "")}">{told}</p>'
        f"<ul>{''.join(_item(each, each.name == name) for each in buttons().values())}</ul>"
        f'<form method="post" action="{RECOVER}">'
        f"<button data-recover{'' if armed else ' disabled'}>Recover</button></form>"
        "</section>"
    )


def _item(button: Button, pressed: bool) -> str:
    pace = f" Played faster: {button.pace}." if button.pace else ""
    says = f"{button.says}{pace} ({', '.join(button.ids)})"
    return (
        f'<li><form method="post" action="{PATH}/faults/{escape(button.name)}">'
        f'<button data-fault="{escape(button.name)}" aria-pressed="{str(pressed).lower()}">'
        f"{escape(button.title)}</button> <small>{escape(says)}</small></form></li>"
    )
