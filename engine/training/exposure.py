"""What one observer sees of an exchange, as an Exposure; it is written to arrays and read back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor

from engine.compute import weights
from engine.errors import Damaged
from engine.events import Kept, Payload
from engine.records import Exposure, Local, Packet, Protocol, Samples, Upload
from engine.training.plan import LoadedPlan
from engine.training.rounds import Exchange
from engine.training.state import array


def recorded_exposure(plan: LoadedPlan, exchange: Exchange, slot: int = 0) -> Exposure:
    """The upload of one client as the server sees it."""
    seat = exchange.seats[slot]
    used = exchange.used[slot]
    pictures = plan.world.sizes[seat.client] if used is None else len(used)
    protocol = plan.method.protocol(plan.world, seat, "server")
    return Exposure(
        view="server",
        packet=exchange.packets[slot],
        upload=exchange.uploads[slot],
        protocol=replace(protocol, pictures=pictures),
        shape=plan.world.shape,
        classes=plan.world.classes,
        known=plan.method.known("server", seat, exchange.memory),
    )


def summed(uploads: Sequence[Upload]) -> Upload:
    """What secure aggregation reveals: the sum of updates or gradients, or the union of samples."""
    kind = uploads[0].kind
    if kind == "samples":
        samples = [upload.samples for upload in uploads if upload.samples]
        union = Samples(torch.cat([part.x for part in samples]), torch.cat([part.y for part in samples]))
        return Upload(-1, kind, samples=union)
    extra = {slot: weights.total([upload.extra[slot] for upload in uploads]) for slot in uploads[0].extra}
    return Upload(-1, kind, weights.total([upload.model for upload in uploads]), extra)


def true_inputs(plan: LoadedPlan, exchange: Exchange, slot: int = 0) -> dict[str, Tensor]:
    """The inputs that entered the upload: pictures as pixels in [0, 1], or sentences as rows of words.

    The truth is stored apart from the exposure, for metrics only. If an attack could read it, its result would show
    nothing about leakage.
    """
    client = plan.client(exchange.seats[slot].client)
    used = exchange.used[slot]
    x = client.x if used is None else client.x[used]
    y = client.y if used is None else client.y[used]
    inputs = {"pictures": pixels(plan, x)} if plan.world.pictures else {"sentences": x}
    return {**inputs, "labels": y}


def pixels(plan: LoadedPlan, x: Tensor) -> Tensor:
    """The model's inputs without their normalisation: pixels in [0, 1]."""
    mean = torch.tensor(plan.world.mean, device=x.device).view(-1, 1, 1)
    std = torch.tensor(plan.world.std, device=x.device).view(-1, 1, 1)
    return (x * std + mean).clamp(0, 1)


def kept_exposure(plan: LoadedPlan, exchange: Exchange) -> Iterator[Kept]:
    """The exposure of the first client whose upload holds any data and, apart from it, the truth."""
    for slot, seat in enumerate(exchange.seats):
        used = exchange.used[slot]
        if used is not None and not len(used):  # DP-SGD drew no picture: the upload is noise, and there is no truth
            continue
        name = f"{seat.round}-{seat.client}-server"
        facts, payload = pack(recorded_exposure(plan, exchange, slot))
        truth = {key: array(tensor) for key, tensor in true_inputs(plan, exchange, slot).items()}
        yield Kept("exposure", f"exposure-{name}", seat.round, {**facts, "client": seat.client}, payload)
        yield Kept("truth", f"truth-{name}", seat.round, {"client": seat.client}, truth)
        return


def pack(exposure: Exposure) -> tuple[dict[str, Any], Payload]:
    """An exposure as a small JSON object and arrays."""
    facts = {
        "view": exposure.view,
        "protocol": asdict(exposure.protocol),
        "shape": list(exposure.shape),
        "classes": exposure.classes,
        "tampered": exposure.tampered,
    }
    packet, upload = exposure.packet, exposure.upload
    arrays = {f"sent/{name}": array(tensor) for name, tensor in packet.model.items()}
    arrays |= {f"received/{name}": array(tensor) for name, tensor in upload.model.items()}
    slots_by_side = {"sent+": packet.extra, "received+": upload.extra, "known": exposure.known}
    for side, slots in slots_by_side.items():
        for slot, tensors in slots.items():
            arrays |= {f"{side}/{slot}/{name}": array(tensor) for name, tensor in tensors.items()}
    if upload.samples:
        arrays |= {"samples/x": array(upload.samples.x), "samples/y": array(upload.samples.y)}
    return facts, arrays


def unpack(facts: Mapping[str, Any], payload: Payload) -> Exposure:
    """The exposure that `pack` wrote."""
    try:
        protocol = dict(facts["protocol"])
        protocol["local"] = Local(**protocol["local"])
        protocol["mean"] = tuple(protocol["mean"])
        protocol["scale"] = tuple(protocol["scale"])
        sides: dict[str, dict[str, Tensor]] = {"sent": {}, "received": {}, "samples": {}}
        slots: dict[str, dict[str, dict[str, Tensor]]] = {"sent+": {}, "received+": {}, "known": {}}
        for key, values in payload.items():
            side, _, name = key.partition("/")
            tensor = torch.from_numpy(values)
            if side in slots:
                slot, _, name = name.partition("/")
                slots[side].setdefault(slot, {})[name] = tensor
            else:
                sides[side][name] = tensor
        samples = Samples(**sides["samples"]) if sides["samples"] else None
        return Exposure(
            view=facts["view"],
            packet=Packet(sides["sent"], slots["sent+"]),
            upload=Upload(facts.get("client", -1), protocol["kind"], sides["received"], slots["received+"], samples),
            protocol=Protocol(**protocol),
            shape=tuple(facts["shape"]),
            classes=facts["classes"],
            tampered=facts["tampered"],
            known=slots["known"],
        )
    except (KeyError, TypeError) as error:
        raise Damaged(f"exposure: cannot be read ({error})", "Delete it and record it again") from None
