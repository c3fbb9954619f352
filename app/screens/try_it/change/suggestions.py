"""Changes that Try suggests for side B: half the ε, another protection, more people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from app.screens.try_it import texts as try_texts
from app.session import outcomes, run_settings, services
from engine.epsilon import Epsilon, shown_noise
from engine.results.estimates import best_step

FIRST_NOISE = 1.0  # of a side B whose A has no noise
OTHERS = ("fedceo", "udp-fedavg")  # the other protection that side B starts with
EACH_PHONE = "full-local"


def epsilon_of(run: Mapping[str, Any], view: str) -> Epsilon | None:
    """The forecast ε of a run against this observer; None without a promise."""
    answers = services.forecast_of(run_settings.spec_of(run).canonical()).answers
    answer = next((answer for answer in answers if answer.view == view), None)
    return answer if answer is not None and answer.value is not None else None


def noise_of(run: Mapping[str, Any]) -> float | None:
    """The noise of a run, also where it names a target ε; None for a method without one."""
    noise: float | None = run.get("method.noise")
    if noise is None or run.get("target-epsilon") is None:
        return noise
    return services.forecast_of(run_settings.spec_of(run).canonical()).noise


def at_budget(run: Mapping[str, Any], view: str, epsilon: float) -> dict[str, Any]:
    """The changes that give a run the noise of this ε against this observer. Empty if no noise reaches it."""
    wanted = {**run, "target-epsilon": epsilon, "view": view, "budget": None}
    forecast = services.forecast_of(run_settings.spec_of(wanted).canonical())
    if forecast.fatal or not forecast.noise:
        return {}
    changes = {"method.noise": shown_noise(forecast.noise), **_no_target(run)}
    return {**changes, **_step(run, changes)}


def _step(run: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The server step that goes with another noise, if the step of the run is the best stored one for its noise."""
    canonical = run_settings.spec_of(run).canonical()
    known = outcomes.near(canonical, "noise")
    if best_step(known, canonical) != run.get("method.server-step"):
        return {}
    best = best_step(known, run_settings.spec_of({**run, **changes}).canonical())
    return {} if best is None else {"method.server-step": best}


def _no_target(run: Mapping[str, Any]) -> dict[str, Any]:
    """The changes that take a target ε away. `view` stays where a budget needs it."""
    if run.get("target-epsilon") is None:
        return {}
    return {"target-epsilon": None, **({} if run.get("budget") is not None else {"view": None})}


def half(run: Mapping[str, Any], view: str) -> dict[str, Any]:
    """Half the ε; where there is none, noise by each phone."""
    epsilon = epsilon_of(run, view)
    if epsilon is not None and epsilon.value:
        changes = at_budget(run, view, epsilon.value / 2)
        if changes:
            return changes
    if run.get("method.noise"):
        return {"method.noise": 2 * run["method.noise"], **_no_target(run)}
    return {**protection("udp-fedavg"), "method.noise": FIRST_NOISE}


def another(run: Mapping[str, Any], view: str) -> dict[str, Any]:
    """Another protection at the same ε against this observer."""
    name = next(name for name in OTHERS if name != run["method"])
    return with_protection(run, protection(name), view)


def crowd(run: Mapping[str, Any], view: str) -> dict[str, Any]:
    """Ten times the people, of whom as large a share takes part in a round."""
    del view
    return {"clients": run["clients"] * 10, "sampled": run["sampled"] * 10}


def label_of_half(run: Mapping[str, Any], view: str) -> str:
    """What `half` does with this run."""
    epsilon = epsilon_of(run, view)
    if epsilon is not None and epsilon.value:
        return try_texts.HALF
    return try_texts.MORE_NOISE if run.get("method.noise") else try_texts.SOME_NOISE


SUGGESTED: Mapping[str, Callable[[Mapping[str, Any], str], dict[str, Any]]] = {
    try_texts.HALF: half,
    try_texts.OTHER: another,
    try_texts.CROWD: crowd,
}


def protection(method: str) -> dict[str, Any]:
    """A method as a form offers it: where the crowd may share the noise, each phone adds all of it."""
    fields = run_settings.own_fields("method", method)
    split = fields.get("noise-split")
    each_phone = split is not None and split.default == "paper" and EACH_PHONE in run_settings.choices(split)
    return {"method": method, **({"method.noise-split": EACH_PHONE} if each_phone else {})}


def with_protection(run: Mapping[str, Any], chosen: Mapping[str, Any], view: str) -> dict[str, Any]:
    """A chosen method with the noise that keeps the ε of this run against the observer, where both have one.

    Nothing else of the method before is carried over: a field of the same name may have another default.
    """
    changes = dict(chosen)
    others = {path: value for path, value in run.items() if not path.startswith("method")}
    new = run_settings.completed({**others, **changes})
    if not new.get("method.noise"):
        return {**changes, **_no_target(run)}
    before = epsilon_of(run, view)
    budget = at_budget(new, view, before.value) if before is not None and before.value else {}
    return {**changes, "method.noise": new["method.noise"], **budget, **_no_target(run)}
