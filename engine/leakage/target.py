"""The case an attack works on: one exposure, and apart from it the truth and what is said beside the pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from engine import images
from engine.attacks import Attack
from engine.compute.threads import ThreadTeam
from engine.errors import BadInput, UnknownName
from engine.events import Event, Kept, Payload, Step
from engine.leakage.compatibility import named, which
from engine.leakage.probe import before, expose, victim
from engine.records import Exposure, World
from engine.specs.attack import AttackSpec
from engine.training.exposure import recorded_exposure, true_inputs
from engine.training.plan import LoadedPlan
from engine.training.rounds import Exchange, play
from engine.training.state import State


class AttackResources:
    """What a home may hold for an attack; this one is empty."""

    def states(self, run: str) -> Sequence[Kept]:
        """The states that this run kept between its rounds."""
        del run
        return ()

    def picture(self, name: str) -> bytes:
        """A visitor's own picture as PNG."""
        raise UnknownName(f"picture: no {name}", "Add it again")

    def prior(self, name: str) -> Payload | None:
        """What an attack learnt before."""
        del name
        return None

    def keep_prior(self, name: str, payload: Payload) -> None:
        """Remember what an attack learnt."""


@dataclass(frozen=True)
class AttackTarget:
    """One exposure, and apart from it the truth and what is said beside the pictures."""

    exposure: Exposure
    build: Callable[[torch.Generator], nn.Module]
    truth: Tensor  # (m, channels, height, width)
    labels: Tensor
    facts: Mapping[str, Any]
    round: int
    client: int


def prepare_target(
    spec: AttackSpec, plan: LoadedPlan, resources: AttackResources, team: ThreadTeam
) -> Generator[Event, None, AttackTarget]:
    """The case: with pictures a probe, without them the upload as the run recorded it."""
    round = which(spec, plan)
    kept = list(resources.states(spec.run.id)) if round > 1 else []
    if round > 1:
        yield Step("playing the rounds before")
    state = before(plan, round, kept, team)
    case: AttackTarget = (
        probed(spec, plan, state, round, resources, team) if spec.pictures else recorded(spec, plan, state, round, team)
    )
    return case


def probed(
    spec: AttackSpec, plan: LoadedPlan, state: State, round: int, resources: AttackResources, team: ThreadTeam
) -> AttackTarget:
    x, y = chosen(spec, plan, resources)
    who = victim(plan, round, x, y, spec.client)
    world, bends = plan.world, spec.attack.malicious
    tamper = partial(spec.attack.tamper, world=world) if bends else None
    exposure = expose(plan, state, who, spec.view, team, tamper)
    silent = quiet(plan)
    clean = exposure if silent is None else expose(silent, state, who, spec.view, team, tamper)
    build = partial(bent, spec.attack, world) if bends else world.build
    facts = {**told(exposure, round, True, y), **loudness(exposure, clean)}
    return AttackTarget(exposure, build, x, y, facts, round, who.client)


def bent(attack: Attack, world: World, rng: torch.Generator) -> nn.Module:
    """A model as a malicious server would build it."""
    return attack.tamper(world.build(rng), {}, world)[0]


def chosen(spec: AttackSpec, plan: LoadedPlan, resources: AttackResources) -> tuple[Tensor, Tensor]:
    """The victim's pictures in [0, 1], and their classes."""
    data, found, labels = plan.spec.dataset.load(), list[Tensor](), list[int]()
    for name in spec.pictures:
        split, place, own, label = named(name)
        if own is not None:
            found.append(images.pixels(resources.picture(own), plan.world.shape))
            labels.append(int(label))
            continue
        x, y = (data.train_x, data.train_y) if split == "train" else (data.test_x, data.test_y)
        found.append(x[int(place)])
        labels.append(int(y[int(place)]))
    return torch.stack(found), torch.tensor(labels)


def recorded(spec: AttackSpec, plan: LoadedPlan, state: State, round: int, team: ThreadTeam) -> AttackTarget:
    """The round is played again, which gives the upload bit for bit, and the seat's own pictures."""
    seen: list[Exchange] = []
    play(plan, state, round, team, watch=partial(first, seen))
    seats = [seat.client for seat in seen[0].seats] if seen else []
    used = [slot for slot, client in enumerate(seats) if some(seen[0].used[slot]) and spec.client in (None, client)]
    if not used:
        known = ", ".join(map(str, seats[:20])) or "nobody"
        raise BadInput(
            f"attack: client: took no part in round {round} with a picture, got {spec.client}", f"There: {known}"
        )
    exposure, truth = recorded_exposure(plan, seen[0], used[0]), true_inputs(plan, seen[0], used[0])
    facts = {**told(exposure, round, False, truth["labels"]), **loudness(exposure, None)}
    return AttackTarget(exposure, plan.world.build, truth["pictures"], truth["labels"], facts, round, seats[used[0]])


def first(seen: list[Exchange], exchange: Exchange) -> None:
    """Of a round's exchanges the first is looked at."""
    if not seen:
        seen.append(exchange)


def some(used: Tensor | None) -> bool:
    return used is None or len(used) > 0


def quiet(plan: LoadedPlan) -> LoadedPlan | None:
    """The same plan without noise, to tell signal from noise: for a number beside the picture, never for an attack."""
    if not getattr(plan.method, "noise", None):
        return None
    return replace(plan, method=plan.method.with_(noise=0.0))


def told(exposure: Exposure, round: int, probe: bool, labels: Tensor) -> dict[str, Any]:
    """How realistic this upload is."""
    protocol = exposure.protocol
    return {
        "probe": probe,
        "pictures": len(labels),
        "labels": labels.tolist(),
        "trained": round - 1,
        "kind": protocol.kind,
        "steps": protocol.steps,
        "batch": protocol.batch,
        "uploads": protocol.uploads,
        "clip": protocol.clip,
        "bound": protocol.bound,
        "std": protocol.std,
        "tampered": exposure.tampered,
        "numbers": sum(tensor.numel() for tensor in exposure.received.values()),
    }


def loudness(exposure: Exposure, clean: Exposure | None) -> dict[str, float]:
    """The noise's norm over that of the upload before noise, and both of them."""
    whole = length(exposure.received)
    if clean is None:
        count = sum(tensor.numel() for tensor in exposure.received.values())
        noise = exposure.protocol.std * math.sqrt(count)
        signal = math.sqrt(max(whole**2 - noise**2, 1e-30))
        bound = exposure.protocol.bound
        signal = min(signal, bound) if exposure.protocol.clip == "whole-update" and bound else signal
    else:
        noise = length({name: tensor - clean.received[name] for name, tensor in exposure.received.items()})
        signal = length(clean.received)
    return {"norm": whole, "signal": signal, "noise": noise, "noise-to-signal": noise / max(signal, 1e-15)}


def length(tensors: Mapping[str, Tensor]) -> float:
    return math.sqrt(sum(float(tensor.double().square().sum()) for tensor in tensors.values()))
