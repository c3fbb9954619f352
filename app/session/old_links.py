"""Links from the time when Leak, and before it the Lab, which Try replaced, was the first page."""

from __future__ import annotations

from collections.abc import Mapping

from app.session import run_settings, screens

OF_START = {"stop", "content", "picture"}  # every address that Start writes has all of them
# The settings of a run, by name: reading them from the engine would make the first page wait for it.
OF_RUN = {
    *run_settings.PARTS, "rounds", "clients", "sampled", "sampling", "epochs", "batch", "lr", "momentum",
    "weight-decay", "seed", "honest-share", "delta", "target-epsilon", "budget", "view",
}  # fmt: skip


def screen_of(params: Mapping[str, str]) -> str:
    """The screen that an address without a path means today; empty for Start.

    An address with parameters that no screen ever wrote, such as those that other websites add, means Start.
    """
    if OF_START & set(params):
        return ""
    of_leak = screens.settings_class("leak").own_fields() if params else {}
    if set(params) & set(of_leak):
        return "leak"
    return "lab" if any(_of_lab(name) for name in params) else ""


def _of_lab(name: str) -> bool:
    """Whether the Lab had this parameter: a setting of a run, a field of one of its parts, or what it shows."""
    part, dot, _ = name.partition(".")
    if dot:
        return part in run_settings.PARTS
    return name in OF_RUN or name in run_settings.OTHER_PARAMS
