"""Runs a picture attack from start to end, and judges its result.

prepare_target    one upload, probed or recorded, as one view receives it                  (target.py)
search_restarts   the restarts of the attack in parallel; they receive only the exposure   (processes.py, attacks/)
judge             the guess with the lowest loss of its attack, compared with the truth    (judge.py, metrics/)
"""

from __future__ import annotations

import base64
import hashlib
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import wait
from functools import partial

import torch
from torch import Tensor

from engine import images
from engine.attacks.pictures.base import PictureAttack, Prior
from engine.compute.devices import device_fact
from engine.compute.threads import ThreadTeam
from engine.events import Event, Finished, Pictured, Seen, Started, Step
from engine.leakage.compatibility import refuse
from engine.leakage.judge import in_order_of_originals, judge, make_truth, measure_pairs, perceptual_problem
from engine.leakage.processes import RestartRequest, borrowed_processes
from engine.leakage.target import AttackResources, AttackTarget, prepare_target
from engine.metrics.pictures.pairing import trivial
from engine.records import Guess
from engine.seeds import Seeds
from engine.specs.attack import MOST_PICTURES, AttackSpec
from engine.training.loop import rounded_seconds, torch_settings
from engine.training.plan import LoadedPlan, load_plan
from engine.training.state import array


def attack(
    spec: AttackSpec,
    resources: AttackResources | None = None,
    *,
    threads: int = 1,
    device: str = "cpu",
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Event]:
    """All events of an attack; once `stop` returns True, it ends without `Judged` and `Finished`."""
    began = time.monotonic()
    resources = resources or AttackResources()
    with torch_settings(device), ThreadTeam(threads) as team:
        refuse(spec, resources)
        plan = load_plan(spec.run, device)
        facts = {"classes": list(plan.spec.dataset.facts().classes), **device_fact(device)}
        yield Started(spec.id, spec.canonical(), facts)
        target = yield from prepare_target(spec, plan, resources, team)
        yield seen(spec, target)
        missing_metric = perceptual_problem()
        if missing_metric:
            yield missing_metric
        prior = yield from learned_prior(spec, plan, resources, device)
        paths: dict[int, list[Guess]] = {}
        for restart, guess in search_restarts(spec, target, prior, team, stop, device):
            paths.setdefault(restart, []).append(guess)
            if not stop():
                yield pictured(spec.attack, restart, guess, target.truth)
        if stop():
            return
        truth = make_truth(spec, plan, target.truth, target.labels)
        yield judge(spec.attack, paths, truth, plan.world.std)
        yield Finished(0, rounded_seconds(time.monotonic() - began))


# --- the attack --------------------------------------------------------------------------------------------


def seen(spec: AttackSpec, target: AttackTarget) -> Seen:
    """What the adversary received, and the originals for the reader."""
    trivial_psnr = {"psnr": measure_pairs("psnr", trivial(target.truth), target.truth)}
    originals = tuple(map(png, target.truth))
    return Seen(spec.view, target.round, target.client, target.facts, originals, trivial_psnr)


def learned_prior(
    spec: AttackSpec, plan: LoadedPlan, resources: AttackResources, device: str
) -> Generator[Event, None, Prior | None]:
    """What the attack learns from public pictures: learned once for each kind of device, then stored in the home."""
    if not spec.attack.learns:
        return None
    name = prior_name(spec, plan, device)
    kept = resources.prior(name)
    if kept is not None:
        return {key: torch.from_numpy(values) for key, values in kept.items()}
    data = plan.spec.dataset.load()
    public = data.test_x[len(data.test_y) // 2 :]  # the second half of the test split, which no attack targets
    prior: Prior = {}
    for fraction, learned in spec.attack.learn(public.to(device), Seeds(0)):
        prior = learned
        yield Step("learning from public pictures", fraction)
    resources.keep_prior(name, {key: array(tensor) for key, tensor in prior.items()})
    return {key: tensor.cpu() for key, tensor in prior.items()}


def prior_name(spec: AttackSpec, plan: LoadedPlan, device: str = "cpu") -> str:
    """The name of the stored prior: a hash of the fields that it depends on.

    A prior that a GPU learned has a name of its own: its last digits differ, so it would change what a processor finds.
    """
    attack = spec.attack
    dataset = plan.spec.dataset
    fields = {name: value for name, value in attack.values().items() if name in attack.learns}
    text = f"{attack.name}:{sorted(fields.items())}:{dataset.values()}:{dataset.name}"
    kind = torch.device(device).type
    learned_on = "" if kind == "cpu" else f"-{kind}"
    return f"{attack.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}{learned_on}"


def search_restarts(
    spec: AttackSpec,
    target: AttackTarget,
    prior: Prior | None,
    team: ThreadTeam,
    stop: Callable[[], bool],
    device: str = "cpu",
) -> Iterator[tuple[int, Guess]]:
    """The guesses of all restarts as they arrive: one restart at a time runs here, the others in ready processes.

    Privacy: the request for a restart holds the exposure and no truth. A process can never compare a guess with it.
    """
    request = RestartRequest(spec.suited_attack, target.build, target.exposure, prior, spec.seed, device)
    results: queue.SimpleQueue[tuple[int, Guess] | None] = queue.SimpleQueue()
    free: queue.SimpleQueue[Callable[[int], Iterator[Guess]]] = queue.SimpleQueue()
    closed = threading.Event()

    def run_restart(restart: int) -> None:
        guesses = free.get()
        try:
            if closed.is_set() or stop():
                return
            for guess in guesses(restart):
                results.put((restart, guess))
                if closed.is_set() or stop():
                    return
        finally:
            free.put(guesses)

    with borrowed_processes(min(team.threads, spec.restarts) - 1) as processes:
        free.put(request.guesses)
        for process in processes:
            process.when_ready(partial(free.put, partial(process.guesses, request)))
        done = team.begin(lambda: team.each(run_restart, range(spec.restarts)))
        done.add_done_callback(lambda _: results.put(None))
        try:
            while True:
                result = results.get()
                if result is None:
                    break
                yield result
            done.result()
        finally:
            closed.set()
            wait([done])


def pictured(attack: PictureAttack, restart: int, guess: Guess, truth: Tensor) -> Pictured:
    """The event for one guess, with its pictures in the order of the originals.

    Of more than 8, only the last guess holds all; the others hold the chosen picture, which is the first.
    """
    places, pictures = in_order_of_originals(guess.pictures, truth)
    if len(places) > MOST_PICTURES and guess.iteration < guess.of:
        shown = [index for index, place in enumerate(places) if place == 0]
        places, pictures = tuple(places[index] for index in shown), pictures[shown]
    return Pictured(
        attack=attack.name,
        iteration=guess.iteration,
        of=guess.of,
        restart=restart,
        loss=guess.loss,
        pictures=tuple(map(png, pictures)),
        places=places,
        psnr=measure_pairs("psnr", pictures, truth[list(places)]),
    )


def png(picture: Tensor) -> str:
    """A picture as PNG in base64."""
    return base64.b64encode(images.to_png(picture)).decode("ascii")
