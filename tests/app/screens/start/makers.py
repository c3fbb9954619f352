"""A made-up stored table of Start: eight stops, of which the first three leak."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from engine.events import Event, Finished, Judged, Measured, Pictured, Seen, Spent, Started
from engine.examples.attacks import AttackExample
from engine.examples.files import RunExample
from engine.examples.start import StartExample, StartStop
from tests.app.screens.leak.makers import GREY, PIXEL, judged

NOISES = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 2.0)
ACCURACIES = (0.838, 0.836, 0.834, 0.829, 0.780, 0.709, 0.548, 0.352)
EPSILONS = (None, 448_000.0, 41_200.0, 4850.0, 520.0, 84.0, 15.5, 6.63)
PSNRS = (60.0, 29.6, 23.4, 18.4, 11.3, 11.4, 11.5, 11.5)
ATTACKS = ("analytic", "map", "inverting-gradients")
UPLOADS = {"1": "listed", "8": "listed", "ordinary": "ordinary", "cheat": "cheat"}
PICTURES = ["portrait-0", *(f"test-{place}" for place in range(7))]
VIEWS = ("server", "client", "outsider")


def run_spec(place: int, seed: int = 0) -> dict[str, object]:
    """The canonical spec of a stop's run."""
    method = {"name": "udp-fedavg", "noise": NOISES[place], "noise-split": "full-local"}
    return {
        "format": 4, "dataset": "fashion-mnist", "model": "mlp", "method": method, "clients": 100, "sampled": 10,
        "rounds": 30, "server-step": 1.0, "sampling": "poisson", "seed": seed,
    }  # fmt: skip


def run_example(place: int, seed: int) -> RunExample:
    """A finished run of a stop."""
    id = f"run{place}seed{seed}"
    spec = run_spec(place, seed)
    epsilon = EPSILONS[place]
    spent: list[Event] = []
    for view in VIEWS:
        value = epsilon if view == "server" or epsilon is None else epsilon / 10
        reason = "" if value else "without noise there is no guarantee"
        spent.append(Spent(30, view, value, "user", "zero-out", 1e-5, "prv", "poisson", reason=reason))
    accuracy = ACCURACIES[place] + 0.005 * seed
    events = (Started(id, spec, {}), Measured(30, "accuracy", accuracy), *spent, Finished(30, 1.0))
    return RunExample(id, "", "", "2026-11-20", id, spec, "", 1.0, events, (), aside=True)


def attack_example(place: int, attack: str, view: str, upload: str) -> AttackExample:
    """A finished attack on a stop's run of seed 0."""
    id = f"attack-{place}-{attack}-{view}-{upload}"
    psnr = PSNRS[place] if view == "server" and upload in ("1", "cheat") else GREY - 3
    if attack != "map":
        psnr -= 1
    facts = {"pictures": 120, "steps": 8, "trained": 29, "upload": UPLOADS[upload]}
    seen = Seen(view, 30, 0, facts, (PIXEL,), {"psnr": (GREY,)})
    guess = Pictured(attack, 20, 20, 0, 1.0, (PIXEL,), (0,), (psnr,))
    end: Judged = replace(judged([psnr]), attack=attack)
    spec = {
        "run": run_spec(place), "attack": {"name": attack}, "view": view, "upload": UPLOADS[upload],
        "pictures": PICTURES if upload == "8" else PICTURES[:1], "round": "last",
    }  # fmt: skip
    return AttackExample(id, "2026-11-20", spec, 1.0, (Started(id, spec, {}), seen, guess, end, Finished(0, 1.0)))


@cache
def start_example() -> StartExample:
    """The whole table."""
    tried = {0.1: (0.3,), 0.3: (0.5,), 1.0: (0.8,)}
    stops = tuple(
        StartStop(NOISES[place], 1.0, tuple(run_example(place, seed) for seed in range(3)), tried)
        for place in range(len(NOISES))
    )
    baseline = StartStop(0.0, 1.0, stops[4].runs, tried)  # its accuracy is that of no stop next to it
    attacks = []
    for place in range(len(NOISES)):
        for view in VIEWS:
            for upload in UPLOADS if view == "server" else ("1", "ordinary"):
                names = ("imprint",) if upload == "cheat" else ATTACKS
                attacks += [attack_example(place, name, view, upload) for name in names]
    return StartExample("2026-11-20", stops, baseline, tuple(attacks))
