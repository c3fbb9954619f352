"""Links from one screen to another, with the settings that the other screen reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.session import run_settings
from app.texts import attacks as attack_texts
from engine.specs.attack_grid import NOISY, NONE, OF_RUN

AGAINST = (NONE, *(f"{NOISY}:{attack_texts.noise(noise)}" for noise in (1e-3, 3e-3, 0.01, 0.1)))


def leak_link_of_run(spec: Mapping[str, Any]) -> dict[str, str]:
    """The link to what the server sees of a run that was asked elsewhere."""
    flat = run_settings.flat(spec)
    noisy = flat.get("method.noise") or flat.get("target-epsilon") is not None
    return {"whose": "test-0", "against": ",".join((NONE, OF_RUN) if noisy else AGAINST), **run_settings.link(flat)}


def leak_link_of_attack(spec: Mapping[str, Any]) -> dict[str, str]:
    """The link to one attack that was asked before."""
    pictures = [str(one) for one in spec.get("pictures") or ()]
    part = spec.get("attack")
    attack = dict(part) if isinstance(part, Mapping) else {"name": part}
    own = {
        "whose": pictures[0] if pictures else "test-0", "many": str(max(1, len(pictures))),
        "eyes": str(spec.get("view", "server")), "when": str(spec.get("round", "first")),
        "against": ",".join((NONE, OF_RUN)), "attacks": str(attack.get("name", "map")),
        "restarts": str(spec.get("restarts", 1)), "chance": str(spec.get("seed", 0)),
    }  # fmt: skip
    more = {"iterations": str(attack["iterations"])} if "iterations" in attack else {}
    run = spec.get("run")
    return {**own, **more, **run_settings.link(run_settings.flat(run if isinstance(run, Mapping) else {}))}


SOLVED = ("target-epsilon", "budget", "view")  # of a run, where one noise is asked for


def tradeoff_link_of_run(spec: Mapping[str, Any]) -> dict[str, str]:
    """The link to the trade-off of a run that was asked elsewhere; what is varied stays as it was."""
    run = {name: value for name, value in run_settings.flat(spec).items() if name not in SOLVED}
    if "method.noise" not in run:
        run |= {"sampling": "auto"}  # as suits the methods that are compared: this one protects nobody
    return run_settings.link(run)
