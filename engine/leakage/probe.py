"""What an adversary would have seen: a probe plays one round again, on a side copy, with pictures somebody chose."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from engine.compute import weights
from engine.compute.context import ClientContext
from engine.compute.threads import ThreadTeam
from engine.errors import BadInput, refusal
from engine.events import Kept
from engine.records import Client, Exposure, Packet, Protocol, Upload, View, World
from engine.seeds import Seeds
from engine.specs.attack import MOST_PICTURES
from engine.training.plan import LoadedPlan
from engine.training.rounds import opening, play, seated, server_desk
from engine.training.state import State, restored

MOST = MOST_PICTURES  # of one probe
Tamper = Callable[[nn.Module, Packet], tuple[nn.Module, Packet]]  # gives the same whenever it is called


@dataclass(frozen=True)
class Victim:
    """Whose pictures, and in which seat of which round."""

    round: int
    client: int
    pictures: Tensor  # (m, ...) pixels in [0, 1]
    labels: Tensor  # (m,)


def victim(plan: LoadedPlan, round: int, pictures: Tensor, labels: Tensor, client: int | None = None) -> Victim:
    """The victim takes the seat of `client`, by default the first of that round's cohort."""
    if not plan.world.pictures:
        raise BadInput("probe: pictures: the run learns from text", "Choose a run that learns from pictures")
    if not 1 <= round <= plan.last:
        raise refusal("probe: round", f"must be between 1 and {plan.last}", round)
    if not 1 <= len(pictures) <= MOST or len(labels) != len(pictures):
        raise refusal("probe: pictures", f"must be 1 to {MOST}, each with a label", len(pictures))
    if tuple(pictures.shape[1:]) != plan.world.shape:
        raise refusal(
            "probe: pictures", f"must have the shape {plan.world.shape} of this data set", tuple(pictures.shape[1:])
        )
    if not bool(((pictures >= 0) & (pictures <= 1)).all()):
        raise BadInput("probe: pictures: every pixel must lie between 0 and 1", "Divide by 255")
    if not bool(((labels >= 0) & (labels < plan.world.classes)).all()):
        raise refusal("probe: labels", f"must be between 0 and {plan.world.classes - 1}", labels.tolist())
    return Victim(round, _seat(plan, round, client), pictures, labels)


def _seat(plan: LoadedPlan, round: int, client: int | None) -> int:
    """Whose seat the victim takes."""
    cohort = plan.cohort(round)
    if not cohort:
        raise BadInput(f"probe: round {round}: nobody took part in it", "Choose another round")
    chosen = cohort[0] if client is None else client
    if chosen not in cohort:
        known = ", ".join(map(str, cohort[:20]))
        raise refusal("probe: client", f"must be one that took part in round {round} ({known})", chosen)
    return chosen


def before(plan: LoadedPlan, round: int, kept: Sequence[Kept], team: ThreadTeam) -> State:
    """The state before a round: the nearest one kept, and the rounds since played again."""
    states = [one for one in kept if one.kind in ("state", "checkpoint") and one.round < round]
    near = max(states, key=lambda one: one.round, default=None)
    state = opening(plan) if near is None else restored(near.round, near.payload, plan.world.weights)
    for again in range(state.round + 1, round):
        state = play(plan, state, again, team)
    return state


def probe(plan: LoadedPlan, kept: Sequence[Kept], who: Victim, view: View, team: ThreadTeam) -> Exposure:
    """What this view would have seen, had the victim's pictures been all the client had; the run is not touched."""
    return expose(plan, before(plan, who.round, kept, team), who, view, team)


def expose(
    plan: LoadedPlan, state: State, who: Victim, view: View, team: ThreadTeam, tamper: Tamper | None = None
) -> Exposure:
    """The same from the state before the round; a malicious server may send the victim another model."""
    absent: Mapping[str, str] = plan.guarantee.absent
    if view in absent:
        raise BadInput(f"probe: view: {view} does not apply: {absent[view]}", "Choose another view")
    method = plan.method
    small, chance = probe_world(plan, who), fresh_chance(plan, who)
    contexts = seated(plan, plan.cohort(who.round), who.round, 1, 1, team)
    slot = [context.seat.client for context in contexts].index(who.client)
    packets = [method.send(context.seat, state.server, state.memory) for context in contexts]
    if tamper is not None:
        if view != "server":
            raise BadInput("probe: view: a tampered model is seen through by the server alone", "Choose server")
        small, packets[slot] = tampered(small, packets[slot], tamper)
    contexts[slot] = replace(contexts[slot], world=small, seeds=chance)

    def exposed(sent: Mapping[str, Tensor], received: Mapping[str, Tensor]) -> Exposure:
        bent = tamper is not None
        return Exposure(view, sent, received, told(plan, contexts, slot, view), small.shape, small.classes, bent)

    victims = _train(plan, state, [packets[slot]], [contexts[slot]], who)
    if view == "server":
        return exposed(packets[slot], victims[0].tensors)
    rest = [place for place in range(len(contexts)) if place != slot]
    uploads = _train(plan, state, [packets[place] for place in rest], [contexts[place] for place in rest], None)
    uploads.insert(slot, victims[0])
    if view == "aggregate":
        return exposed(packets[slot], weights.total([upload.tensors for upload in uploads]))
    boss = server_desk(plan, plan.cohort(who.round), who.round, 1, 1, team)
    server, memory = method.merge(state.server, uploads, state.memory, replace(boss, world=small, seeds=chance))
    if view == "outsider":
        return exposed(state.server, weights.subtract(server, state.server))
    witness, packet = next_packet(plan, who, replace(state, round=who.round, server=server, memory=memory), team)
    own = {context.seat.client: sent for context, sent in zip(contexts, packets, strict=True)}
    return exposed(own.get(witness, state.server), packet)


def tampered(world: World, packet: Packet, tamper: Tamper) -> tuple[World, Packet]:
    """The victim's world, where every model is the one that was tampered with."""

    def build(rng: torch.Generator) -> nn.Module:
        return tamper(world.build(rng), packet)[0]

    return replace(world, build=build, stacked=None), tamper(world.build(torch.Generator()), packet)[1]


def fresh_chance(plan: LoadedPlan, who: Victim) -> Seeds:
    """The probe's own stream, one for all views: with the run's noise, exposures would differ by clean uploads."""
    text = f"{plan.spec.seed}:probe:{who.round}:{who.client}:"
    pictures = who.pictures.contiguous().numpy().tobytes() + who.labels.contiguous().numpy().tobytes()
    return Seeds(int.from_bytes(hashlib.sha256(text.encode() + pictures).digest()[:16], "big"))


def told(plan: LoadedPlan, contexts: Sequence[ClientContext], slot: int, view: View) -> Protocol:
    """The public facts of this probe: the noise of the victim's few pictures beside that of the others."""
    world, seat = contexts[slot].world, contexts[slot].seat
    protocol = replace(plan.method.protocol(world, seat, view), pictures=world.sizes[seat.client])
    stds = [plan.method.protocol(context.world, context.seat, "server").std for context in contexts]
    if view == "server":
        return protocol
    if view == "aggregate":
        return replace(protocol, std=math.hypot(*stds))
    usual = plan.method.protocol(plan.world, seat, "server").std
    follow = protocol.server_step / protocol.uploads
    square = plan.method.protocol(plan.world, seat, view).std ** 2 + (stds[slot] ** 2 - usual**2) * follow**2
    return replace(protocol, std=math.sqrt(max(0.0, square)))


def next_packet(plan: LoadedPlan, who: Victim, state: State, team: ThreadTeam) -> tuple[int, Packet]:
    """What the next round's send gives another participant; rounds without one are played on the side copy."""
    for later in range(who.round + 1, plan.last + 2):
        others = [
            context
            for context in seated(plan, plan.cohort(later), later, 1, 1, team)
            if context.seat.client != who.client
        ]
        if others:
            return others[0].seat.client, plan.method.send(others[0].seat, state.server, state.memory)
        state = play(plan, state, later, team)
    raise BadInput(f"probe: view: no other client receives anything after round {who.round}", "Choose an earlier round")


def probe_world(plan: LoadedPlan, who: Victim) -> World:
    """Every local step uses all of the victim's pictures: nothing is drawn."""
    many = len(who.labels)
    sizes = tuple(many if client == who.client else size for client, size in enumerate(plan.world.sizes))
    return replace(plan.world, sizes=sizes, local=replace(plan.world.local, batch=many))


def _train(
    plan: LoadedPlan, state: State, packets: Sequence[Packet], contexts: Sequence[ClientContext], who: Victim | None
) -> list[Upload]:
    """The uploads of these seats; with a victim, from its pictures."""
    if not contexts:
        return []
    data = [plan.client(context.seat.client) for context in contexts]
    if who is not None:
        mean, std = (torch.tensor(side).view(-1, 1, 1) for side in (plan.world.mean, plan.world.std))
        x = ((who.pictures - mean) / std).to(data[0].x.device)
        data = [Client(who.client, x, who.labels.to(x.device))]
    privates = [state.privates.get(client.id) for client in data]
    return [upload for upload, _ in plan.method.train_all(data, packets, privates, contexts)]
