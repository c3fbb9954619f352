"""The texts of the exported pages of grids, sweeps and examples that no screen has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from app.session import run_settings
from app.texts import states
from app.texts.runs import runs

if TYPE_CHECKING:
    from app.export.grid_content import FoundAttack
    from app.export.sweep_content import FoundRun

# --- grids -------------------------------------------------------------------------------------------------

TITLE = "What comes back? Attacks on {dataset}, {model}"
EPSILON = "What each protection promises"
EPSILON_TABLE = "ε {seen}, with its meaning and its terms"
EPSILON_HEADS = ("protection", "ε", "meaning", "terms")
SCORES, TRIVIAL = "Every score, next to a trivial guess", "needs no attack"
SHARED, PROTECTIONS, ATTACKS = "Settings of all runs", "Protections", "Attacks"
AGAIN_RUNS = "First start the runs ({runs}), then the attacks on them ({attacks})."
ATTACK_COMMANDS = "The commands of the attacks"
ALL_DONE, SOME_DONE = "All {all} attacks finished.", "{done} of {all} attacks finished. The others: {rest}."
ONE_DONE = "The attack finished."
TRAINED = "Runs of this batch without a result, which are not shown: {ids}."
NO_ATTACK = "Not shown: {attacks} of this batch without a result."
DELETED = "{count} of {all} members of this batch were deleted and are not shown."
FIRST = "Shown are the first {most} of {all}."
NOT_POSSIBLE = "Not run: {reason}"
GRID, SWEEP = "A grid of attacks", "A sweep"  # in the foot of the page

# --- sweeps ------------------------------------------------------------------------------------------------

SWEEP_TITLE = "What does protection cost? {dataset}, {model}, {rounds} rounds"
RUNS_DONE, RUNS_SOME = "{all} finished.", "{done} of {all} finished. The others: {rest}."
BY_EPSILON, BY_NOISE = "Accuracy by ε, {per}, {seen}", "Accuracy by noise, {per}"
EPSILON_AXIS = "ε {per}, {seen}: protection grows to the right"
NOISE_AXIS = "noise σ: protection grows to the right"
POINTS = "Every point"
POINT_HEADS = ("method", "noise σ", "server step", "accuracy", "worst and best seed", "seeds", "ε", "terms")
METHODS = "Settings of the methods"
EVERY_RUN = "These runs are no complete sweep, so each has its own command ({runs})."

# --- examples ----------------------------------------------------------------------------------------------

EXAMPLE_FOOT = "LeakLens{version}. Example {name}, run {id}, made on {made}."


def title(run: Mapping[str, Any]) -> str:
    """The first heading of a grid, from a run that it attacks."""
    settings = run_settings.flat(run)
    dataset = run_settings.part_title("dataset", settings["dataset"])
    model = run_settings.part_title("model", settings["model"])
    return TITLE.format(dataset=dataset, model=model)


def finished(attacks: Sequence[FoundAttack]) -> str:
    """How many attacks have finished, and the states of the others."""
    others = Counter(states.STATES[attack.recorded.status] for attack in attacks if not attack.finished)
    if not others:
        return ALL_DONE.format(all=len(attacks)) if len(attacks) > 1 else ONE_DONE
    rest = ", ".join(f"{count} {state}" for state, count in others.items())
    return SOME_DONE.format(done=len(attacks) - others.total(), all=len(attacks), rest=rest)


def runs_finished(members: Sequence[FoundRun]) -> str:
    """How many runs have finished, and the states of the others."""
    others = Counter(states.STATES[run.status] for run in members if not run.finished)
    if not others:
        return RUNS_DONE.format(all=runs(len(members)).capitalize())
    rest = ", ".join(f"{count} {state}" for state, count in others.items())
    return RUNS_SOME.format(done=len(members) - others.total(), all=runs(len(members)), rest=rest)
