"""Links from one screen to another, with the settings that the other screen reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.session import run_settings
from engine.specs.attack_grid import NOISY, NONE, OF_RUN, column_key

AGAINST = (NONE, *(column_key(NOISY, noise) for noise in (0.01, 0.1)))


def leak_link_of_run(spec: Mapping[str, Any], whose: str = "test-0", when: str = "first") -> dict[str, str]:
    """The link to the Leak screen with the setting of a run, on this picture in this round."""
    flat = run_settings.flat(spec)
    has_noise = flat.get("method.noise") or flat.get("target-epsilon") is not None
    defences = (NONE, OF_RUN) if has_noise else AGAINST
    return {"whose": whose, "when": when, "against": ",".join(defences), **run_settings.link(flat)}


def leak_link_of_attack(spec: Mapping[str, Any]) -> dict[str, str]:
    """The link to the Leak screen with the settings of one attack."""
    pictures = [str(picture) for picture in spec.get("pictures") or ()]
    part = spec.get("attack")
    attack = dict(part) if isinstance(part, Mapping) else {"name": part}
    params = {
        "whose": pictures[0] if pictures else "test-0", "many": str(max(1, len(pictures))),
        "eyes": str(spec.get("view", "server")), "when": str(spec.get("round", "first")),
        "against": ",".join((NONE, OF_RUN)), "attacks": str(attack.get("name", "map")),
        "restarts": str(spec.get("restarts", 1)), "chance": str(spec.get("seed", 0)),
    }  # fmt: skip
    if spec.get("upload", "listed") != "listed":
        params["upload"] = str(spec["upload"])
    if "iterations" in attack:
        params["iterations"] = str(attack["iterations"])
    run = spec.get("run")
    run_fields = run_settings.flat(run) if isinstance(run, Mapping) else {}
    return {**params, **run_settings.link(run_fields)}


SOLVED_FIELDS = ("target-epsilon", "budget", "view")  # fields that solve for one noise; Trade-off varies the noise


def tradeoff_link_of_run(spec: Mapping[str, Any]) -> dict[str, str]:
    """The link to the Trade-off screen with the setting of a run. The varied fields keep their values."""
    run = {name: value for name, value in run_settings.flat(spec).items() if name not in SOLVED_FIELDS}
    if "method.noise" not in run:
        run |= {"sampling": "auto"}  # this method needs no Poisson sampling, but the compared ones may
    return run_settings.link(run)
