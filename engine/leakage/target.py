"""The target of an attack: one exposure and, kept apart from it, the original pictures and facts about the upload."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from engine import images
from engine.attacks.pictures.base import PictureAttack
from engine.capabilities import HasNoise
from engine.compute import weights
from engine.compute.devices import PROCESSOR, on_device
from engine.compute.threads import ThreadTeam
from engine.errors import BadInput, UnknownName
from engine.events import Event, Kept, Payload, Step
from engine.leakage import portrait
from engine.leakage.compatibility import picture_name_parts, round_number
from engine.leakage.ordinary import ordinary_victim
from engine.leakage.probe import Victim, expose, make_victim, state_before
from engine.records import Exposure, Packet, Seat, Upload, World
from engine.specs.attack import AttackSpec
from engine.training.exposure import recorded_exposure, true_inputs
from engine.training.plan import LoadedPlan
from engine.training.rounds import Exchange, train_round
from engine.training.shipped_states import shipped_states
from engine.training.state import State


class AttackResources:
    """What an attack may read from a home; this base class holds nothing."""

    def states(self, run: str) -> Sequence[Kept]:
        """The states that this run stored between its rounds."""
        del run
        return ()

    def states_of(self, run: str) -> Sequence[Kept]:
        """The states of this run that the home holds, then those that ship."""
        return [*self.states(run), *shipped_states(run)]

    def photo(self, name: str) -> bytes:
        """The portrait or a visitor's own picture as PNG."""
        return portrait.read() if name == portrait.NAME else self.picture(name)

    def picture(self, name: str) -> bytes:
        """A visitor's own picture as PNG."""
        raise UnknownName(f"picture: no {name}", "Add it again")

    def prior(self, name: str) -> Payload | None:
        """A stored prior, which an attack learned from public pictures; None if there is none."""
        del name
        return None

    def keep_prior(self, name: str, payload: Payload) -> None:
        """Stores a prior under a name."""


@dataclass(frozen=True)
class AttackTarget:
    """One exposure and, for the judge only, the original pictures and facts about the upload; all on the processor.

    Privacy: an attack receives the exposure and never the truth. With the truth in reach it could choose its guess by
    it, and its result would not show what the upload leaks.
    """

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
    """The target: a probe if the spec names pictures, otherwise the upload that the run recorded."""
    round = round_number(spec, plan)
    kept: Sequence[Kept] = ()
    if round > 1:
        kept = resources.states_of(spec.run.id)
        yield Step("playing the rounds before")
    state = state_before(plan, round, kept, team)
    if spec.pictures:
        return probed_target(spec, plan, state, round, resources, team)
    return recorded_target(spec, plan, state, round, team)


def probed_target(
    spec: AttackSpec, plan: LoadedPlan, state: State, round: int, resources: AttackResources, team: ThreadTeam
) -> AttackTarget:
    """The upload of a client that has only the chosen pictures."""
    pictures, labels = chosen_pictures(spec, plan, resources)
    world = plan.world
    build = world.build
    tamper = None
    if spec.attack.malicious:
        build = partial(tampered_model, spec.attack, replace(world, weights=on_device(world.weights, PROCESSOR)))
        tamper = partial(spec.attack.tamper, world=world)
    if spec.upload == "listed":
        subject = make_victim(plan, round, pictures, labels, spec.client)
    else:
        subject, pictures, labels = ordinary_victim(spec, plan, state, round, (pictures, labels), team, tamper)
    exposure = expose(plan, state, subject, spec.view, team, tamper)
    noiseless = noiseless_plan(plan)
    clean = exposure if noiseless is None else expose(noiseless, state, subject, spec.view, team, tamper)
    facts = {
        **upload_facts(exposure, round, True, labels),
        **noise_facts(exposure, clean),
        **own_facts(spec, plan, subject),
    }
    return AttackTarget(on_device(exposure, PROCESSOR), build, pictures, labels, facts, round, subject.client)


def own_facts(spec: AttackSpec, plan: LoadedPlan, victim: Victim) -> dict[str, Any]:
    """What the upload of a probe holds, and what the same client uploads in the run itself."""
    cohort = plan.cohort(victim.round)
    size = plan.world.sizes[victim.client]
    seat = Seat(victim.client, cohort.index(victim.client), victim.round, 1, 1, len(cohort))
    protocol = plan.method.protocol(plan.world, seat, "server")
    own = size if protocol.drawing == "whole" else min(size, protocol.steps * protocol.batch)
    return {"upload": spec.upload, "own-pictures": own, "own-steps": protocol.steps}


def tampered_model(attack: PictureAttack, world: World, rng: torch.Generator) -> nn.Module:
    """The model that a malicious server builds."""
    return attack.tamper(world.build(rng), Packet({}), world)[0]


def chosen_pictures(spec: AttackSpec, plan: LoadedPlan, resources: AttackResources) -> tuple[Tensor, Tensor]:
    """The pictures that the spec names, in [0, 1], and their classes."""
    data = plan.spec.dataset.load()
    pictures: list[Tensor] = []
    labels: list[int] = []
    for name in spec.pictures:
        split, place, upload, label = picture_name_parts(name)
        if upload is not None:
            pictures.append(images.model_input(resources.photo(upload), plan.world.shape))
            labels.append(int(label))
            continue
        x, y = (data.train_x, data.train_y) if split == "train" else (data.test_x, data.test_y)
        pictures.append(x[int(place)])
        labels.append(int(y[int(place)]))
    return torch.stack(pictures), torch.tensor(labels, device="cpu")


def _first_exchange(plan: LoadedPlan, state: State, round: int, team: ThreadTeam) -> list[Exchange]:
    """The first exchange of a replayed round; none if no client took part. The state stays as it is."""
    exchanges: list[Exchange] = []
    own = replace(state, privates=dict(state.privates))
    train_round(plan, own, round, team, watch=partial(keep_first, exchanges))
    return exchanges


def recorded_target(spec: AttackSpec, plan: LoadedPlan, state: State, round: int, team: ThreadTeam) -> AttackTarget:
    """The recorded upload and the client's own pictures; replaying the round gives the upload bit for bit."""
    noiseless = noiseless_plan(plan)
    clean = [] if noiseless is None else _first_exchange(noiseless, state, round, team)
    exchanges = _first_exchange(plan, state, round, team)
    clients = [seat.client for seat in exchanges[0].seats] if exchanges else []
    slots = []
    for slot, client in enumerate(clients):
        if spec.client in (None, client) and used_pictures(exchanges[0].used[slot]):
            slots.append(slot)
    if not slots:
        rule = f"attack: client: took no part in round {round} with a picture, got {spec.client}"
        participants = ", ".join(map(str, clients[:20])) or "none"
        raise BadInput(rule, f"Clients of that round: {participants}")
    slot = slots[0]
    exposure = recorded_exposure(plan, exchanges[0], slot)
    without_noise = recorded_exposure(noiseless, clean[0], slot) if noiseless else exposure
    truth = on_device(true_inputs(plan, exchanges[0], slot), PROCESSOR)
    facts = {**upload_facts(exposure, round, False, truth["labels"]), **noise_facts(exposure, without_noise)}
    received = on_device(exposure, PROCESSOR)
    return AttackTarget(received, plan.world.build, truth["pictures"], truth["labels"], facts, round, clients[slot])


def keep_first(exchanges: list[Exchange], exchange: Exchange) -> None:
    """Keeps only the first exchange of a round."""
    if not exchanges:
        exchanges.append(exchange)


def used_pictures(used: Tensor | None) -> bool:
    """Whether a client used any picture; None means that it used all."""
    return used is None or len(used) > 0


def noiseless_plan(plan: LoadedPlan) -> LoadedPlan | None:
    """The same plan without noise, or None if its method adds none.

    Privacy: it serves only to measure the noise for the facts. An attack that received its upload would see the clean
    update.
    """
    method = plan.method
    if not isinstance(method, HasNoise) or not method.noise_level:
        return None
    return replace(plan, method=method.without_noise())


def upload_facts(exposure: Exposure, round: int, probe: bool, labels: Tensor) -> dict[str, Any]:
    """Facts that show how realistic this upload is."""
    protocol = exposure.protocol
    return {
        **({"lacks": exposure.lacks} if exposure.lacks else {}),
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
        "numbers": sum(tensor.numel() for tensor in numbers_of(exposure.upload).values()),
    }


def noise_facts(exposure: Exposure, clean: Exposure) -> dict[str, float]:
    """The norms of the upload, of its signal (the same upload without noise) and of its noise."""
    received = numbers_of(exposure.upload)
    norm = joint_norm(received)
    signal = joint_norm(numbers_of(clean.upload))
    noise = joint_norm(weights.subtract(received, numbers_of(clean.upload)))
    return {"norm": norm, "signal": signal, "noise": noise, "noise-to-signal": noise / max(signal, 1e-15)}


def numbers_of(upload: Upload) -> Mapping[str, Tensor]:
    """The tensors that an attack reads: the model's, or the samples."""
    return {"samples": upload.samples.x} if upload.samples else upload.model


def joint_norm(tensors: Mapping[str, Tensor]) -> float:
    """The norm of all tensors as one vector."""
    return math.sqrt(sum(float(tensor.double().square().sum()) for tensor in tensors.values()))
