"""What one adversary gets of an exchange, as an Exposure: written to arrays and read back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor

from engine.errors import Damaged
from engine.events import Kept, Payload
from engine.records import Exposure, Local, Protocol
from engine.training.plan import LoadedPlan
from engine.training.rounds import Exchange
from engine.training.state import array


def recorded_exposure(plan: LoadedPlan, exchange: Exchange, slot: int = 0) -> Exposure:
    """The upload of one client as the server saw it."""
    seat, upload = exchange.seats[slot], exchange.uploads[slot]
    protocol = plan.method.protocol(plan.world, seat, "server")
    used = exchange.used[slot]
    pictures = len(used) if used is not None else plan.world.sizes[seat.client]
    return Exposure(
        "server",
        exchange.packets[slot],
        upload.tensors,
        replace(protocol, pictures=pictures),
        plan.world.shape,
        plan.world.classes,
    )


def true_inputs(plan: LoadedPlan, exchange: Exchange, slot: int = 0) -> dict[str, Tensor]:
    """All that entered the upload, pictures as pixels in [0, 1] or rows of words: stored apart, for metrics alone."""
    client, used = plan.client(exchange.seats[slot].client), exchange.used[slot]
    x, y = (client.x, client.y) if used is None else (client.x[used], client.y[used])
    inputs = {"pictures": pixels(plan, x)} if plan.world.pictures else {"sentences": x}
    return {**inputs, "labels": y}


def pixels(plan: LoadedPlan, x: Tensor) -> Tensor:
    """Inputs of the model back as pixels in [0, 1]."""
    mean, std = (torch.tensor(side, device=x.device).view(-1, 1, 1) for side in (plan.world.mean, plan.world.std))
    return (x * std + mean).clamp(0, 1)


def kept_exposure(plan: LoadedPlan, exchange: Exchange) -> Iterator[Kept]:
    """The exposure of the first client that put anything in, and, apart from it, the truth."""
    for slot, seat in enumerate(exchange.seats):
        used = exchange.used[slot]
        if used is not None and not len(used):  # DP-SGD drew nothing: there is noise to see, and no truth
            continue
        name = f"{seat.round}-{seat.client}-server"
        facts, payload = pack(recorded_exposure(plan, exchange, slot))
        arrays = {key: array(tensor) for key, tensor in true_inputs(plan, exchange, slot).items()}
        yield Kept("exposure", f"exposure-{name}", seat.round, {**facts, "client": seat.client}, payload)
        yield Kept("truth", f"truth-{name}", seat.round, {"client": seat.client}, arrays)
        return


def pack(exposure: Exposure) -> tuple[dict[str, Any], Payload]:
    """An exposure as small JSON and arrays."""
    facts = {
        "view": exposure.view,
        "protocol": asdict(exposure.protocol),
        "shape": list(exposure.shape),
        "classes": exposure.classes,
        "tampered": exposure.tampered,
    }
    arrays = {f"sent/{name}": array(tensor) for name, tensor in exposure.sent.items()}
    arrays |= {f"received/{name}": array(tensor) for name, tensor in exposure.received.items()}
    return facts, arrays


def unpack(facts: Mapping[str, Any], payload: Payload) -> Exposure:
    """The exposure that `pack` wrote."""
    try:
        told = dict(facts["protocol"])
        told |= {"local": Local(**told["local"]), "mean": tuple(told["mean"]), "scale": tuple(told["scale"])}
        sides: dict[str, dict[str, Tensor]] = {"sent": {}, "received": {}}
        for key, values in payload.items():
            side, _, name = key.partition("/")
            sides[side][name] = torch.from_numpy(values)
        return Exposure(
            facts["view"], sides["sent"], sides["received"], Protocol(**told),
            tuple(facts["shape"]), facts["classes"], facts["tampered"],
        )  # fmt: skip
    except (KeyError, TypeError) as error:
        raise Damaged(f"exposure: cannot be read ({error})", "Delete it and record it again") from None
