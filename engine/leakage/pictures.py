"""An attack from beginning to end: what an adversary had in hand, its guesses as they form, and how near they came.

plan      the run's data and first weights                                      (plan.py)
expose     one upload, recorded or probed, as one view saw it                    (breach.py)
hunt       restarts of the attack side by side: they see the exposure alone      (attacks/)
judge      the guess chosen by the attack's own objective, beside the truth      (metrics/)
"""

from __future__ import annotations

import base64
import hashlib
import math
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import wait
from functools import partial

import torch
from torch import Tensor

from engine import images
from engine.attacks import Attack, Prior
from engine.compute.threads import ThreadTeam
from engine.events import Event, Finished, Judged, Pictured, Seen, Started, Step
from engine.leakage.compatibility import refuse
from engine.leakage.processes import RestartOrder, borrowed_processes
from engine.leakage.target import AttackResources, AttackTarget, prepare_target
from engine.metrics import METRICS, Metric
from engine.metrics.pictures.pairing import matched, trivial
from engine.records import Guess
from engine.seeds import Seeds
from engine.specs.attack import AttackSpec
from engine.training.loop import quiet_torch, round_s
from engine.training.plan import LoadedPlan, load_plan
from engine.training.state import array

DIRECT = 0.1  # what may be left open where the first layer reads the pixels themselves
HUSH = 3e-3  # by so much noise may always move what is left open: a louder one must stay below what may be left open
WHILE_IT_FORMS = ("psnr", "ssim", "lpips")  # told for each moment


def attack(
    spec: AttackSpec,
    resources: AttackResources | None = None,
    *,
    threads: int = 1,
    device: str = "cpu",
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Event]:
    """Everything an attack says, from its first event to its end; asked to stop, it ends without a word."""
    began, resources = time.monotonic(), resources or AttackResources()
    with quiet_torch(device), ThreadTeam(threads) as team:
        refuse(spec, resources)
        plan = load_plan(spec.run)
        yield Started(spec.id, spec.canonical(), {"classes": list(plan.spec.dataset.facts().classes)})
        case = yield from prepare_target(spec, plan, resources, team)
        plain = {"psnr": many("psnr", trivial(case.truth), case.truth)}
        yield Seen(spec.view, case.round, case.client, case.facts, tuple(map(png, case.truth)), plain)
        prior = yield from learnt(spec, plan, resources)
        paths: dict[int, list[Guess]] = {}
        for restart, guess in search_restarts(spec, case, prior, team, stop):
            paths.setdefault(restart, []).append(guess)
            if not stop():
                yield pictured(spec.attack, restart, guess, case.truth)
        if stop():
            return
        yield judge(spec.attack, paths, case.truth, plan.world.std)
        yield Finished(0, round_s(time.monotonic() - began))


# --- the attack --------------------------------------------------------------------------------------------


def learnt(spec: AttackSpec, plan: LoadedPlan, resources: AttackResources) -> Generator[Event, None, Prior | None]:
    """What the attack knows from public pictures: learnt once, then kept in the home."""
    if not spec.attack.learns:
        return None
    asked = {name: value for name, value in spec.attack.values().items() if name in spec.attack.learns}
    text = f"{spec.attack.name}:{sorted(asked.items())}:{plan.spec.dataset.values()}:{plan.spec.dataset.name}"
    name = f"{spec.attack.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    if (kept := resources.prior(name)) is not None:
        return {key: torch.from_numpy(values) for key, values in kept.items()}
    data = plan.spec.dataset.load()
    prior: Prior = {}
    for fraction, known in spec.attack.learn(data.test_x[len(data.test_y) // 2 :], Seeds(0)):
        prior = known
        yield Step("learning from public pictures", fraction)
    resources.keep_prior(name, {key: array(tensor) for key, tensor in prior.items()})
    return prior


def search_restarts(
    spec: AttackSpec, case: AttackTarget, prior: Prior | None, team: ThreadTeam, stop: Callable[[], bool]
) -> Iterator[tuple[int, Guess]]:
    """The guesses of all restarts as they come: one at a time is worked out here, the others by hands once warm."""
    order = RestartOrder(spec.attack, case.build, case.exposure, prior, spec.seed)
    heard: queue.SimpleQueue[tuple[int, Guess] | None] = queue.SimpleQueue()
    seats: queue.SimpleQueue[Callable[[int], Iterator[Guess]]] = queue.SimpleQueue()
    left = threading.Event()

    def one(restart: int) -> None:
        seat = seats.get()
        try:
            for guess in () if left.is_set() or stop() else seat(restart):
                heard.put((restart, guess))
                if left.is_set() or stop():
                    return
        finally:
            seats.put(seat)

    with borrowed_processes(min(team.threads, spec.restarts) - 1) as hands:
        seats.put(order.guesses)
        for hand in hands:
            hand.when_warm(partial(seats.put, partial(hand.guesses, order)))
        done = team.begin(lambda: team.each(one, range(spec.restarts)))
        done.add_done_callback(lambda _: heard.put(None))
        try:
            while (item := heard.get()) is not None:
                yield item
            done.result()
        finally:
            left.set()
            wait([done])


def pictured(attack: Attack, restart: int, guess: Guess, truth: Tensor) -> Pictured:
    places, shown = pairs(guess.pictures, truth)
    return Pictured(
        attack.name, guess.iteration, guess.of, restart, guess.loss,
        tuple(map(png, shown)), places, many("psnr", shown, truth[list(places)]),
    )  # fmt: skip


def pairs(guess: Tensor, truth: Tensor) -> tuple[tuple[int, ...], Tensor]:
    """The places of the originals that some guess belongs to, and those guesses in the same order."""
    order = matched(guess, truth)
    places = tuple(place for place, own in enumerate(order.tolist()) if own < len(guess))
    return places, guess[order[list(places)]]


# --- the verdict -------------------------------------------------------------------------------------------


def judge(attack: Attack, paths: Mapping[int, Sequence[Guess]], truth: Tensor, std: Sequence[float]) -> Judged:
    """The restart with the lowest loss, measured in every way there is."""
    ends = {restart: path[-1] for restart, path in sorted(paths.items())}
    best = min(ends, key=lambda restart: rank(ends[restart].loss))
    end = ends[best]
    places, _ = pairs(end.pictures, truth)
    met = truth[list(places)]
    path = [guess.pictures[matched(guess.pictures, met)] for guess in paths[best]]
    state, reason = state_of(paths[best], attack.leaves)
    gauges = [part().fitted(std) for part in METRICS if not part.absent()]
    return Judged(
        attack=attack.name,
        state=state,
        reason=reason,
        restart=best,
        places=places,
        labels=tuple(end.labels[matched(end.pictures, met)].tolist()),
        numbers={gauge.name: over(gauge, path, met) for gauge in gauges},
        trivial={gauge.name: over(gauge, [trivial(met)], met) for gauge in gauges},
        curves={name: tuple(mean(many(name, moment, met)) for moment in path) for name in WHILE_IT_FORMS},
        restarts=tuple(row(attack, paths[restart], truth) for restart in ends),
        floor=end.residual_scale.floor,
    )


def row(attack: Attack, path: Sequence[Guess], truth: Tensor) -> dict[str, float | str]:
    """One restart's end."""
    end = path[-1]
    places, shown = pairs(end.pictures, truth)
    psnr = mean(many("psnr", shown, truth[list(places)]))
    return {
        "loss": end.loss,
        "left": end.residual_scale.left(end.unexplained),
        "state": state_of(path, attack.leaves)[0],
        "psnr": psnr,
    }


def state_of(path: Sequence[Guess], tolerance: float) -> tuple[str, str]:
    """Whether the attack found what explains the upload, and if not, why: never a word about protection."""
    first, last = path[0], path[-1]
    if not (math.isfinite(last.loss) and math.isfinite(last.unexplained)):
        return "diverged", "its numbers left every bound"
    if last.unexplained > 1.05 * max(1.0, first.unexplained):
        return "diverged", "it ended further from the upload than it began"
    if last.residual_scale.drowned:
        return "not converged", "noise drowns the pictures: plain grey explains the upload as well as any"
    left, allowed = (
        last.residual_scale.left(last.unexplained),
        max(tolerance, DIRECT if last.residual_scale.direct else 0),
    )
    if left > allowed:
        return (
            "not converged",
            f"it leaves {min(left, 9.99):.0%} of what tells these pictures from plain grey unexplained",
        )
    if last.residual_scale.chance > max(allowed, HUSH):
        return "not converged", "the noise is too loud to tell whether it found the pictures"
    return "converged", ""


def rank(loss: float) -> float:
    return loss if math.isfinite(loss) else math.inf


def many(name: str, shown: Tensor, truth: Tensor) -> tuple[float, ...]:
    metric = METRICS[name]()
    return tuple(metric.measure(one, other) for one, other in zip(shown, truth, strict=False))


def over(metric: Metric, path: Sequence[Tensor], truth: Tensor) -> tuple[float, ...]:
    """One number a picture, over all the moments that were shown."""
    counted = range(min(len(truth), len(path[-1])))
    return tuple(metric.over([moment[place] for moment in path], truth[place]) for place in counted)


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def png(picture: Tensor) -> str:
    return base64.b64encode(images.png(picture)).decode("ascii")
