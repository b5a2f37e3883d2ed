"""The faults as buttons: a part of the page that works without a script."""

from __future__ import annotations

from ...page.html import Html, join, tag
from .api import PATH, RECOVER
from .buttons import Button, buttons
from .world import World


def panel(world: World) -> Html:
    """Forms; the button that is armed has aria-pressed="true". data-fault names each one,
    data-recover the one that ends them."""
    armed = world.armed
    name = armed.button.name if armed else ""
    told = f"Armed: {armed.button.title}." if armed else "No fault is armed."
    recover = tag("button", "Recover", id="recover", data_recover=True, disabled=armed is None)
    return join(
        tag("h2", "Break something", id="demo-h"),
        tag("p", told, role="status", data_armed=name),
        tag("ul", [_item(each, each.name == name) for each in buttons().values()], class_="faults"),
        tag("form", recover, method="post", action=RECOVER),
    )


def _item(button: Button, pressed: bool) -> Html:
    pace = f" Played faster: {button.pace}." if button.pace else ""
    says = f"{button.says}{pace} ({', '.join(button.ids)})"
    pressing = tag(
        "button", button.title, id=f"fault-{button.name}", data_fault=button.name,
        aria_pressed=str(pressed).lower(),
    )  # fmt: skip
    form = tag("form", pressing, method="post", action=f"{PATH}/faults/{button.name}")
    return tag("li", form, tag("p", says))
