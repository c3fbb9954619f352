"""The probe: replays one round on a copy of the run, with chosen pictures in place of one client's data."""

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
from engine.training.exposure import summed
from engine.training.plan import LoadedPlan
from engine.training.rounds import client_contexts, first_state, server_context, train_round
from engine.training.state import State, read_state

MOST_AT_ONCE = 128  # pictures of an ordinary upload that an attack reconstructs
Tamper = Callable[[nn.Module, Packet], tuple[nn.Module, Packet]]  # returns the same at every call


@dataclass(frozen=True)
class Victim:
    """The client whose data the probe replaces, the round, and the pictures."""

    round: int
    client: int
    pictures: Tensor  # (m, ...) pixels in [0, 1]
    labels: Tensor  # (m,)
    ordinary: bool = False  # whether these are the records of the run's own client, so that it trains as in the run
    stream: bytes = b""  # what the random streams follow from; empty: the pictures


def make_victim(plan: LoadedPlan, round: int, pictures: Tensor, labels: Tensor, client: int | None = None) -> Victim:
    """A checked victim; by default the first client of the round's cohort."""
    if not plan.world.pictures:
        raise BadInput("probe: pictures: the run learns from text", "Choose a run that learns from pictures")
    if not 1 <= round <= plan.last_round:
        raise refusal("probe: round", f"must be between 1 and {plan.last_round}", round)
    if not 1 <= len(pictures) <= MOST_PICTURES or len(labels) != len(pictures):
        raise refusal("probe: pictures", f"must be 1 to {MOST_PICTURES}, each with a label", len(pictures))
    shape = tuple(pictures.shape[1:])
    if shape != plan.world.shape:
        raise refusal("probe: pictures", f"must have the shape {plan.world.shape} of this data set", shape)
    if not bool(((pictures >= 0) & (pictures <= 1)).all()):
        raise BadInput("probe: pictures: every pixel must lie between 0 and 1", "Divide by 255")
    if not bool(((labels >= 0) & (labels < plan.world.classes)).all()):
        raise refusal("probe: labels", f"must be between 0 and {plan.world.classes - 1}", labels.tolist())
    return Victim(round, _checked_client(plan, round, client), pictures, labels)


def _checked_client(plan: LoadedPlan, round: int, client: int | None) -> int:
    """This client if it took part in the round; the first of the cohort for None."""
    cohort = plan.cohort(round)
    if not cohort:
        raise BadInput(f"probe: round {round}: no client took part in it", "Choose another round")
    if client is None:
        return cohort[0]
    if client not in cohort:
        clients = ", ".join(map(str, cohort[:20]))
        raise refusal("probe: client", f"must be one that took part in round {round} ({clients})", client)
    return client


def state_before(plan: LoadedPlan, round: int, kept: Sequence[Kept], team: ThreadTeam) -> State:
    """The state before a round: the latest stored one, and the rounds after it replayed."""
    state = latest_state(plan, round, kept)
    for number in range(state.round + 1, round):
        state = train_round(plan, state, number, team)
    return state


def latest_state(plan: LoadedPlan, round: int, kept: Sequence[Kept]) -> State:
    """The latest stored state before a round; without one, the state before the first round."""
    stored = [event for event in kept if event.kind in ("state", "checkpoint") and event.round < round]
    latest = max(stored, key=lambda event: event.round, default=None)
    return first_state(plan) if latest is None else read_state(latest.round, latest.payload, plan.world.weights)


def probe(plan: LoadedPlan, kept: Sequence[Kept], victim: Victim, view: View, team: ThreadTeam) -> Exposure:
    """What this view receives if the client has only the victim's pictures; the run itself does not change."""
    return expose(plan, state_before(plan, victim.round, kept, team), victim, view, team)


def expose(
    plan: LoadedPlan, state: State, victim: Victim, view: View, team: ThreadTeam, tamper: Tamper | None = None
) -> Exposure:
    """The same as `probe`, from the state before the round; with `tamper` the server sends the victim another model."""
    method = plan.method
    trained = trained_victim(plan, state, victim, view, team, tamper)
    contexts, packets, slot = trained.contexts, trained.packets, trained.slot
    context = contexts[slot]
    world = context.world
    protocol = public_protocol(plan, contexts, slot, view)
    exposure = Exposure(
        view=view,
        packet=packets[slot],
        upload=trained.upload,
        protocol=protocol,
        shape=world.shape,
        classes=world.classes,
        tampered=tamper is not None,
        known=method.known(view, context.seat, state.memory),
        lacks=method.lacks(view, context.seat, state.memory),
    )
    if victim.ordinary:
        count = len(victim.labels) if context.used is None else len(context.used)
        exposure = replace(exposure, protocol=replace(protocol, pictures=count), at_once=MOST_AT_ONCE)
    if view == "server":
        return exposure
    others = [place for place in range(len(contexts)) if place != slot]
    uploads = _train(plan, state, [packets[place] for place in others], [contexts[place] for place in others], None)
    uploads.insert(slot, trained.upload)
    if view == "aggregate":
        return replace(exposure, upload=summed(uploads))
    merging = server_context(plan, plan.cohort(victim.round), victim.round, 1, 1, team)
    merging = replace(merging, world=world, seeds=context.seeds)
    server, memory = method.merge(state.server, uploads, state.memory, merging)
    if view == "outsider":
        change = Upload(-1, trained.upload.kind, weights.subtract(server, state.server))
        return replace(exposure, packet=Packet(state.server), upload=change)
    witness = others[0]
    seat = contexts[witness].seat
    parts = method.received_parts(seat, uploads, world)
    change = remaining_change(packets[witness], method.send(seat, server, memory), uploads[witness], parts[witness])
    participant = participant_protocol(plan, contexts, slot, witness, parts)
    participant = replace(participant, pictures=exposure.protocol.pictures)
    return replace(exposure, packet=packets[witness], upload=change, protocol=participant, own=uploads[witness])


@dataclass(frozen=True)
class TrainedVictim:
    """The victim's upload, and the cohort around it."""

    contexts: Sequence[ClientContext]
    packets: Sequence[Packet]
    slot: int  # of the victim
    upload: Upload


def trained_victim(
    plan: LoadedPlan, state: State, victim: Victim, view: View, team: ThreadTeam, tamper: Tamper | None = None
) -> TrainedVictim:
    """The victim's local training in its round."""
    absent: Mapping[str, str] = plan.guarantee.absent
    if view in absent:
        raise BadInput(f"probe: view: {view} does not apply: {absent[view]}", "Choose another view")
    world = plan.world if victim.ordinary else probe_world(plan, victim)
    contexts = client_contexts(plan, plan.cohort(victim.round), victim.round, 1, 1, team)
    slot = [context.seat.client for context in contexts].index(victim.client)
    if view == "client" and len(contexts) == 1:
        rule = f"probe: view: client does not apply: no other client took part in round {victim.round}"
        raise BadInput(rule, "Choose another view or another round")
    packets = [plan.method.send(context.seat, state.server, state.memory) for context in contexts]
    if tamper is not None:
        if view != "server":
            raise BadInput("probe: view: only the server can read a tampered model", "Choose server")
        world, packets[slot] = tampered(world, packets[slot], tamper)
    seeds = probe_seeds(plan, victim, packets[slot] if tamper else None)
    others = Seeds(plan.spec.seed, f"{plan.spec.id}:{seeds.seed}")  # they train as in the run, with other noise
    contexts = [replace(context, seeds=others) for context in contexts]
    contexts[slot] = replace(contexts[slot], world=world, seeds=seeds)
    upload = _train(plan, state, [packets[slot]], [contexts[slot]], victim)[0]
    return TrainedVictim(contexts, packets, slot, upload)


def remaining_change(before: Packet, after: Packet, own: Upload, part: float) -> Upload:
    """The change that a participant received without the part of its own upload, for the weights that it uploads."""
    names = own.model or after.model  # samples change all weights, and no part of that change is known
    change = {name: after.model[name] - before.model[name] for name in names}
    for name, tensor in own.model.items():
        change[name] -= part * tensor
    return Upload(-1, own.kind, change)


def tampered(world: World, packet: Packet, tamper: Tamper) -> tuple[World, Packet]:
    """The victim's world and packet after tampering: every model built in this world is a tampered one."""

    def build(rng: torch.Generator) -> nn.Module:
        return tamper(world.build(rng), packet)[0]

    return replace(world, build=build, stacked=None), tamper(world.build(torch.Generator()), packet)[1]


def probe_seeds(plan: LoadedPlan, victim: Victim, sent: Packet | None = None) -> Seeds:
    """The random streams of the probe, equal for all views and different from the run's.

    `sent` is the model that a cheating server sent. Privacy: with the run's noise, subtracting a probe from the
    recorded upload would cancel the noise and reveal the clean update. So would two probes that differ in their
    pictures or in the model that was sent, if they shared their noise.
    """
    text = f"{plan.spec.seed}:probe:{victim.round}:{victim.client}:"
    known = victim.stream or content(victim.pictures, victim.labels)
    digest = hashlib.sha256(text.encode() + known)
    for name, tensor in (sent.model if sent else {}).items():
        digest.update(name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
    return Seeds(int.from_bytes(digest.digest()[:16], "big"), plan.spec.id)


def content(pictures: Tensor, labels: Tensor) -> bytes:
    """Pictures and labels as bytes."""
    return pictures.contiguous().numpy().tobytes() + labels.contiguous().numpy().tobytes()


def public_protocol(plan: LoadedPlan, contexts: Sequence[ClientContext], slot: int, view: View) -> Protocol:
    """The public facts of this probe.

    Its noise replaces the noise that the victim's client has in the run. A client with the victim's few pictures may
    add noise of another size than a client with its full data.
    """
    world = contexts[slot].world
    seat = contexts[slot].seat
    protocol = replace(plan.method.protocol(world, seat, view), pictures=world.sizes[seat.client])
    stds = [plan.method.protocol(context.world, context.seat, "server").std for context in contexts]
    if view == "server":
        return protocol
    if view == "aggregate":
        return replace(protocol, std=math.hypot(*stds))
    run_std = plan.method.protocol(plan.world, seat, "server").std
    share = protocol.server_step / protocol.uploads
    variance = plan.method.protocol(plan.world, seat, view).std ** 2 + (stds[slot] ** 2 - run_std**2) * share**2
    return replace(protocol, std=math.sqrt(max(0.0, variance)))


def participant_protocol(
    plan: LoadedPlan, contexts: Sequence[ClientContext], slot: int, witness: int, parts: Sequence[float]
) -> Protocol:
    """The public facts of the change that remains after a participant subtracted its own upload and its noise.

    As in every view of models, the change is the server step times the mean of the uploads in it. The noise that the
    server adds remains.
    """
    world = contexts[slot].world
    seat = contexts[slot].seat
    protocol = plan.method.protocol(world, seat, "client")
    run_std = plan.method.protocol(plan.world, seat, "server").std
    total_variance = plan.method.protocol(plan.world, seat, "client").std ** 2
    upload_variance = sum((part * run_std) ** 2 for part in parts)
    variance = max(0.0, total_variance - upload_variance)  # the server's own noise
    others = [place for place in range(len(parts)) if place != witness]
    part_by_client = {place: parts[place] for place in others if parts[place]}
    if not part_by_client:  # it received its own slice: a smoothing mixes the others into it, about as in a mean
        part_by_client = dict.fromkeys(others, parts[witness] / len(parts))
    for place, part in part_by_client.items():
        context = contexts[place]
        variance += (part * plan.method.protocol(context.world, context.seat, "server").std) ** 2
    return replace(
        protocol,
        pictures=world.sizes[seat.client],
        uploads=len(part_by_client),
        server_step=abs(sum(part_by_client.values())),
        std=math.sqrt(variance),
    )


def probe_world(plan: LoadedPlan, victim: Victim) -> World:
    """The victim's world: every local step uses all of its pictures, so no batch is drawn."""
    many = len(victim.labels)
    sizes = list(plan.world.sizes)
    sizes[victim.client] = many
    return replace(plan.world, sizes=tuple(sizes), local=replace(plan.world.local, batch=many))


def _train(
    plan: LoadedPlan,
    state: State,
    packets: Sequence[Packet],
    contexts: Sequence[ClientContext],
    victim: Victim | None,
) -> list[Upload]:
    """The uploads of these clients; with a victim, the single upload from its pictures."""
    if not contexts:
        return []
    clients = [plan.client(context.seat.client) for context in contexts]
    if victim is not None:
        device = victim.pictures.device
        mean = torch.tensor(plan.world.mean, device=device).view(-1, 1, 1)
        std = torch.tensor(plan.world.std, device=device).view(-1, 1, 1)
        x = ((victim.pictures - mean) / std).to(clients[0].x.device)
        clients = [Client(victim.client, x, victim.labels.to(x.device))]
    privates = [state.privates.get(client.id) for client in clients]
    return [upload for upload, _ in plan.method.train_all(clients, packets, privates, contexts)]
