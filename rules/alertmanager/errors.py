"""What keeps alerts from reaching anybody, each in one line that says what to do."""

from __future__ import annotations


class TreeError(Exception):
    """No Alertmanager tree can be made of these plans; the text says what to change in the file."""


class NoReceiversError(TreeError):
    """The file names receivers that nobody describes: rules can be built, alertmanager.yaml not."""


class AlertmanagerError(Exception):
    """An Alertmanager cannot be reached or refuses; the text says what to do."""


class AddressError(AlertmanagerError):
    """The address given for an Alertmanager is not one."""
