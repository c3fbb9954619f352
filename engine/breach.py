"""What an adversary would have seen: a probe plays one round again, on a side copy, with pictures somebody chose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine import weights
from engine.desk import Crew, Desk
from engine.errors import BadInput, refusal
from engine.events import Kept
from engine.exposing import summed
from engine.records import Client, Exposure, Packet, Upload, View, World
from engine.rounds import Exchange, opening, play, seated, server_desk
from engine.stage import Stage
from engine.state import State, restored

MOST = 8  # pictures of one probe


@dataclass(frozen=True)
class Victim:
    """Whose pictures, and in which seat of which round."""

    round: int
    client: int
    pictures: Tensor  # (m, ...) pixels in [0, 1]
    labels: Tensor  # (m,)


def victim(stage: Stage, round: int, pictures: Tensor, labels: Tensor, client: int | None = None) -> Victim:
    """The victim takes the seat of `client`, by default the first of that round's cohort."""
    if not 1 <= round <= stage.spec.rounds:
        raise refusal("probe: round", f"must be between 1 and {stage.spec.rounds}", round)
    if not 1 <= len(pictures) <= MOST or len(labels) != len(pictures):
        raise refusal("probe: pictures", f"must be 1 to {MOST}, each with a label", len(pictures))
    if tuple(pictures.shape[1:]) != stage.world.shape:
        raise refusal(
            "probe: pictures", f"must have the shape {stage.world.shape} of this data set", tuple(pictures.shape[1:])
        )
    if not bool(((pictures >= 0) & (pictures <= 1)).all()):
        raise BadInput("probe: pictures: every pixel must lie between 0 and 1", "Divide by 255")
    if not bool(((labels >= 0) & (labels < stage.world.classes)).all()):
        raise refusal("probe: labels", f"must be between 0 and {stage.world.classes - 1}", labels.tolist())
    cohort = stage.cohort(round)
    if not cohort:
        raise BadInput(f"probe: round {round}: nobody took part in it", "Choose another round")
    chosen = cohort[0] if client is None else client
    if chosen not in cohort:
        known = ", ".join(map(str, cohort[:20]))
        raise refusal("probe: client", f"must be one that took part in round {round} ({known})", chosen)
    return Victim(round, chosen, pictures, labels)


def before(stage: Stage, round: int, kept: Sequence[Kept], crew: Crew) -> State:
    """The state before a round: the nearest one kept, and the rounds since played again."""
    near = max((one for one in kept if one.round < round), key=lambda one: one.round, default=None)
    state = opening(stage) if near is None else restored(near.round, near.payload, stage.world.weights)
    for again in range(state.round + 1, round):
        state = play(stage, state, again, crew)
    return state


def probe(stage: Stage, kept: Sequence[Kept], who: Victim, view: View, crew: Crew) -> Exposure:
    """What this view would have seen, had the victim's pictures been all the client had; the run is not touched."""
    absent: Mapping[str, str] = stage.guarantee.absent
    if view in absent:
        raise BadInput(f"probe: view: {view} does not apply: {absent[view]}", "Choose another view")
    state = before(stage, who.round, kept, crew)
    small = probe_world(stage, who)
    cohort = stage.cohort(who.round)
    slot = cohort.index(who.client)
    desks = seated(stage, cohort, who.round, 1, 1, crew)
    desks[slot] = replace(desks[slot], world=small)
    packets = [stage.method.send(desk.seat, state.server, state.memory) for desk in desks]
    if view == "server":
        uploads = [_train(stage, state, [who.client], [packets[slot]], [desks[slot]], who)[0]]
        return _exposure(stage, small, desks[slot], view, packets[slot], uploads[0].tensors, who)
    clients = [*cohort]
    others = [place for place in range(len(clients)) if place != slot]
    uploads = _train(
        stage, state, [clients[p] for p in others], [packets[p] for p in others], [desks[p] for p in others], None
    )
    uploads.insert(slot, _train(stage, state, [who.client], [packets[slot]], [desks[slot]], who)[0])
    if view == "aggregate":
        exchange = Exchange([desk.seat for desk in desks], packets, uploads, [], state.server, state.server)
        return _exposure(stage, small, desks[slot], view, packets[slot], summed(exchange), who)
    server, memory = stage.method.merge(
        state.server, uploads, state.memory, server_desk(stage, cohort, who.round, 1, 1, crew)
    )
    if view == "outsider":
        return _exposure(stage, small, desks[slot], view, state.server, weights.subtract(server, state.server), who)
    witness, packet = next_packet(stage, who, server, memory, crew)
    sent = packets[cohort.index(witness)] if witness in cohort else state.server
    return _exposure(stage, small, desks[slot], view, sent, packet, who)


def next_packet(
    stage: Stage, who: Victim, server: Mapping[str, Tensor], memory: Mapping[str, Tensor], crew: Crew
) -> tuple[int, Packet]:
    """What the next round's send gives another participant, in the first later round that has one."""
    for later in range(who.round + 1, stage.spec.rounds + 2):
        others = [
            desk for desk in seated(stage, stage.cohort(later), later, 1, 1, crew) if desk.seat.client != who.client
        ]
        if others:
            return others[0].seat.client, stage.method.send(others[0].seat, server, memory)
    raise BadInput(f"probe: view: no other client receives anything after round {who.round}", "Choose an earlier round")


def probe_world(stage: Stage, who: Victim) -> World:
    """Every local step uses all of the victim's pictures: nothing is drawn."""
    many = len(who.labels)
    sizes = tuple(many if client == who.client else size for client, size in enumerate(stage.world.sizes))
    return replace(stage.world, sizes=sizes, local=replace(stage.world.local, batch=many))


def _train(
    stage: Stage,
    state: State,
    clients: Sequence[int],
    packets: Sequence[Packet],
    desks: Sequence[Desk],
    who: Victim | None,
) -> list[Upload]:
    if not clients:
        return []
    data = [stage.client(client) for client in clients]
    if who is not None:
        mean, std = (torch.tensor(side).view(-1, 1, 1) for side in (stage.world.mean, stage.world.std))
        x = ((who.pictures - mean) / std).to(data[0].x.device)
        data = [Client(who.client, x, who.labels.to(x.device))]
    privates = [state.privates.get(client) for client in clients]
    return [upload for upload, _ in stage.method.train_all(data, packets, privates, desks)]


def _exposure(
    stage: Stage,
    world: World,
    desk: Desk,
    view: View,
    sent: Mapping[str, Tensor],
    received: Mapping[str, Tensor],
    who: Victim,
) -> Exposure:
    protocol = replace(stage.method.protocol(world, desk.seat, view), pictures=len(who.labels))
    return Exposure(view, sent, received, protocol, world.shape, world.classes)
