"""A probe shows what an adversary would have seen, and leaves the run alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.compute import weights
from engine.compute.threads import ThreadTeam
from engine.errors import BadInput
from engine.events import Kept, Measured
from engine.leakage import probe
from engine.methods.averaging.fedavg import FedAvg
from engine.records import VIEWS, Exposure, Guarantee, Upload, View, World
from engine.specs.run import RunSpec
from engine.training.loop import run
from engine.training.plan import LoadedPlan, load_plan
from engine.training.rounds import Exchange, opening, play
from tests.engine.makers import tiny, told

pytestmark = pytest.mark.slow

METHODS = ["fedavg", "fedsgd", "udp-fedavg", "dp-fedavg"]
MLP = {"name": "mlp", "hidden": 8}


@cache
def loaded_plan(method: str = "fedavg", rounds: int = 2) -> LoadedPlan:
    return load_plan(tiny(method=method, model=MLP, rounds=rounds))


def pictures(many: int, start: int = 0) -> tuple[Tensor, Tensor]:
    data = loaded_plan().spec.dataset.load()
    return data.test_x[start : start + many], data.test_y[start : start + many]


def probed(
    there: LoadedPlan, view: View, round: int = 1, many: int = 2, kept: Any = (), client: int | None = None
) -> Exposure:
    with ThreadTeam(1) as team:
        return probe.probe(there, kept, probe.victim(there, round, *pictures(many), client), view, team)


def close(one: Any, other: Any, rtol: float = 1e-3, atol: float = 1e-6) -> None:
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=rtol, atol=atol)


# --- what cannot be probed ---------------------------------------------------------------------------------


def refused(there: LoadedPlan | None = None, round: int = 1, x: Any = None, y: Any = None, **place: Any) -> str:
    plain_x, plain_y = pictures(1)
    with pytest.raises(BadInput) as caught:
        probe.victim(there or loaded_plan(), round, plain_x if x is None else x, plain_y if y is None else y, **place)
    return str(caught.value)


@pytest.mark.parametrize("round", [0, 3, -1])
def test_a_round_that_never_was(round: int) -> None:
    assert refused(round=round) == f"probe: round: must be between 1 and 2, got {round}"


@pytest.mark.parametrize("many", [0, 9])
def test_too_few_and_too_many_pictures(many: int) -> None:
    x, y = pictures(many)
    assert refused(x=x, y=y) == f"probe: pictures: must be 1 to 8, each with a label, got {many}"


def test_a_picture_without_a_label() -> None:
    assert "each with a label" in refused(x=pictures(3)[0], y=pictures(2)[1])


@pytest.mark.parametrize("shape", [(1, 3, 28, 28), (1, 28, 28), (1, 1, 32, 32)])
def test_pictures_of_another_shape(shape: tuple[int, ...]) -> None:
    said = f"must have the shape (1, 28, 28) of this data set, got {list(shape[1:])}"
    assert refused(x=torch.zeros(shape), y=torch.zeros(1).long()) == f"probe: pictures: {said}"


@pytest.mark.parametrize("pixel", [-0.01, 1.01, 255.0, float("nan"), float("inf")])
def test_pixels_that_are_none(pixel: float) -> None:
    x = pictures(1)[0].clone()
    x[0, 0, 3, 3] = pixel
    assert refused(x=x) == "probe: pictures: every pixel must lie between 0 and 1. Divide by 255."


@pytest.mark.parametrize("label", [-1, 10])
def test_labels_that_are_none(label: int) -> None:
    assert refused(y=torch.tensor([label])) == f"probe: labels: must be between 0 and 9, got [{label}]"


def test_a_client_that_was_not_there() -> None:
    cohort = loaded_plan().cohort(1)
    absent = next(client for client in range(40) if client not in cohort)
    known = ", ".join(map(str, cohort))
    assert refused(client=absent) == f"probe: client: must be one that took part in round 1 ({known}), got {absent}"
    assert probe.victim(loaded_plan(), 1, *pictures(1)).client == cohort[0]
    assert probe.victim(loaded_plan(), 1, *pictures(1), client=cohort[-1]).client == cohort[-1]


def test_a_round_without_anybody() -> None:
    there = load_plan(tiny(sampling="poisson", sampled=1, rounds=20, model=MLP))
    empty = next(round for round in range(1, 21) if not there.cohort(round))
    assert refused(there, round=empty) == f"probe: round {empty}: nobody took part in it. Choose another round."


class Secretive(FedAvg):
    """FedAvg behind a promise that leaves two views out."""

    def guarantee(self, world: World) -> Guarantee:
        return Guarantee("none", "nothing", {"aggregate": "every slice is returned", "outsider": "it is"})


def test_a_view_that_does_not_apply() -> None:
    there = replace(loaded_plan(), method=Secretive())
    with pytest.raises(BadInput) as caught:
        probed(there, "aggregate")
    assert str(caught.value) == "probe: view: aggregate does not apply: every slice is returned. Choose another view."
    assert probed(there, "server").view == "server"


# --- what each view sees -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("slot", [0, 3])
def test_the_aggregate_is_the_sum_of_what_the_server_sees(method: str, slot: int) -> None:
    """The others' uploads are those of the real run; the victim's takes the place of its client's."""
    there, seen = loaded_plan(method), list[Exchange]()
    with ThreadTeam(1) as team:
        play(there, opening(there), 1, team, watch=seen.append)
    client = there.cohort(1)[slot]
    mine, together = (probed(there, view, client=client) for view in ("server", "aggregate"))
    others = [upload.tensors for upload in seen[0].uploads if upload.client != client]
    assert len(others) == len(there.cohort(1)) - 1 == together.protocol.uploads - 1
    close(together.received, weights.total([*others, mine.received]), atol=1e-5)
    close(together.sent, mine.sent, rtol=0, atol=0)


class ByPlace(FedAvg):
    """What a slot counts depends on its place, as it does where the server smooths slices."""

    def shares(self, uploads: Sequence[Upload], world: World) -> list[float]:
        return [float(place) for place in range(len(uploads))]


@pytest.mark.parametrize("slot", [0, 3])
def test_the_victim_keeps_the_slot_of_its_client(slot: int) -> None:
    there = replace(loaded_plan(), method=ByPlace())
    client = there.cohort(1)[slot]
    seen: list[Exchange] = []
    with ThreadTeam(1) as team:
        play(there, opening(there), 1, team, watch=seen.append)
    tensors = [upload.tensors for upload in seen[0].uploads]
    tensors[slot] = probed(there, "server", client=client).received
    outside = probed(there, "outsider", client=client).received
    close(outside, weights.total(tensors, [float(place) for place in range(len(tensors))]), atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_an_outsider_sees_the_difference_of_two_models_and_a_client_the_second(method: str) -> None:
    there = loaded_plan(method)
    together, outside, inside = (probed(there, view) for view in ("aggregate", "outsider", "client"))
    factor = {
        "fedavg": 1 / len(there.cohort(1)),
        "fedsgd": -0.1 / len(there.cohort(1)),
        "udp-fedavg": 0.1 / 6,  # η / K
        "dp-fedavg": 1 / 6,
    }[method]
    close(outside.received, weights.scale(together.received, factor), atol=1e-6)
    close(outside.sent, there.world.weights, rtol=0, atol=0)
    close(inside.received, weights.add(outside.sent, outside.received), atol=1e-6)
    assert {one.protocol.pictures for one in (together, outside, inside)} == {2}


def test_a_client_receives_what_the_next_round_sends() -> None:
    there = loaded_plan("udp-fedavg")
    who = probe.victim(there, 1, *pictures(2))
    with ThreadTeam(1) as team:
        witness, packet = probe.next_packet(there, who, opening(there), team)
        assert witness != who.client and witness in there.cohort(2)
        close(packet, there.world.weights, rtol=0, atol=0)


def test_empty_rounds_in_between_are_played() -> None:
    """An empty round of udp-fedavg moves the model by its noise: whoever comes next receives that too."""
    for seed in range(40):
        there = load_plan(tiny(method="udp-fedavg", sampled=1, rounds=9, seed=seed, model=MLP))
        rounds = [round for round in range(1, 8) if there.cohort(round)]
        if (
            len(rounds) > 1
            and rounds[1] > rounds[0] + 1
            and set(there.cohort(rounds[1])) - {there.cohort(rounds[0])[0]}
        ):
            break
    who = probe.victim(there, rounds[0], *pictures(2))
    with ThreadTeam(1) as team:
        state = replace(opening(there), round=rounds[0])
        _, packet = probe.next_packet(there, who, state, team)
        for empty in range(rounds[0] + 1, rounds[1]):
            state = play(there, state, empty, team)
    close(packet, state.server, rtol=0, atol=0)
    assert any(not torch.equal(packet[name], there.world.weights[name]) for name in packet)


def test_a_probe_has_noise_of_its_own() -> None:
    """With the run's noise, the difference of an upload and its probe would be as short as two clipped updates."""
    there, seen = loaded_plan("udp-fedavg"), list[Exchange]()
    with ThreadTeam(1) as team:
        play(there, opening(there), 1, team, watch=seen.append)
    recorded, first = seen[0].uploads[0].tensors, probed(there, "server")
    noise = first.protocol.std * weights.count(recorded) ** 0.5
    assert weights.norm(weights.subtract(recorded, first.received)) > noise
    again = probed(there, "server")
    close(first.received, again.received, rtol=0, atol=0)
    x, y = there.spec.dataset.load().test_x[7:8], there.spec.dataset.load().test_y[7:8]
    with ThreadTeam(1) as team:
        other = probe.probe(there, [], probe.victim(there, 1, x, y), "server", team)
    assert weights.norm(weights.subtract(other.received, first.received)) > noise


@pytest.mark.parametrize("method", ["udp-fedavg", "dp-fedavg"])
@pytest.mark.parametrize("view", ["server", "aggregate", "outsider"])
def test_the_noise_told_is_the_noise_met(method: str, view: View) -> None:
    there = load_plan(
        tiny(method={"name": method, "noise": 50.0, "clip": 0.01}, sampling="all", sampled=40, momentum=0.5)
    )
    exposure = probed(there, view)
    noise = torch.cat([tensor.flatten() for tensor in exposure.received.values()])
    assert float(noise.std()) == pytest.approx(exposure.protocol.std, rel=0.05)


def test_nobody_else_receives_anything() -> None:
    there = load_plan(tiny(clients=1, sampled=1, sampling="all", batch=5000, model=MLP))
    with pytest.raises(BadInput, match=r"^probe: view: no other client receives anything after round 1. Choose"):
        probed(there, "client")


def test_the_server_sees_the_victims_own_gradient() -> None:
    there, (x, y) = loaded_plan("fedsgd"), pictures(2)
    exposure = probed(there, "server")
    module = there.world.build(torch.Generator())
    for name, parameter in module.named_parameters():
        parameter.data.copy_(exposure.sent[name])
    mean, std = there.world.mean[0], there.world.std[0]
    loss = torch.nn.functional.cross_entropy(module((x - mean) / std), y)
    slopes = torch.autograd.grad(loss, list(module.parameters()))
    close(exposure.received, dict(zip(exposure.sent, slopes, strict=True)))


@pytest.mark.parametrize(("method", "steps"), [("fedavg", 3), ("udp-fedavg", 3), ("dp-fedavg", 3), ("fedsgd", 1)])
@pytest.mark.parametrize(("many", "batch"), [(1, 100), (8, 100), (8, 4)])
def test_every_step_uses_all_of_the_victims_pictures(method: str, steps: int, many: int, batch: int) -> None:
    there = load_plan(tiny(method=method, model=MLP, epochs=3, batch=batch, sampled=1, sampling="fixed"))
    told_ = probed(there, "server", many=many).protocol
    assert (told_.steps, told_.batch, told_.drawing, told_.pictures) == (steps, many, "whole", many)


def test_the_clip_and_noise_of_a_probe_are_the_runs_own() -> None:
    quiet, loud = (
        load_plan(tiny(method={"name": "udp-fedavg", "noise": noise, "clip": 0.5}, model=MLP)) for noise in (0.0, 4.0)
    )
    plain, noised = probed(quiet, "server"), probed(loud, "server")
    assert weights.norm(plain.received) <= 0.5
    noise = torch.cat([t.flatten() for t in weights.subtract(noised.received, plain.received).values()])
    assert float(noise.std()) == pytest.approx(noised.protocol.std, rel=0.04)
    assert noised.protocol.std == pytest.approx(4.0 * 0.5 / len(loud.cohort(1)) ** 0.5)


# --- the run is left alone ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["udp-fedavg", "dp-fedavg"])
def test_a_run_says_the_same_whether_it_is_probed_or_not(method: str) -> None:
    there, events, states = loaded_plan(method), [], []
    for event in run(there.spec):
        events.append(event)
        if isinstance(event, Kept) and event.kind == "state":
            states.append(event)
        if isinstance(event, Measured) and event.name == "loss":
            for view in VIEWS:
                probed(there, view, event.round, kept=states)
    assert told(events) == told(run(there.spec))


@pytest.mark.parametrize("view", VIEWS)
def test_a_probe_is_the_same_from_any_state_kept(view: View) -> None:
    there = loaded_plan("udp-fedavg", rounds=3)
    states = [one for one in run(there.spec) if isinstance(one, Kept) and one.kind == "state"]
    near, far, again = (probed(there, view, 3, kept=kept) for kept in (states, states[:1], []))
    for name in near.received:
        assert torch.equal(near.received[name], far.received[name]) and torch.equal(
            near.received[name], again.received[name]
        )
        assert torch.equal(near.sent[name], again.sent[name])


# --- does an attack learn anything? ------------------------------------------------------------------------


def invert(seen: Exposure, module: torch.nn.Module, iterations: int) -> Tensor:
    """Match the gradient: everything used is in the exposure; the module gives the architecture alone."""
    for name, parameter in module.named_parameters():
        parameter.data.copy_(seen.sent[name])
    parameters, facts = list(module.parameters()), seen.protocol
    scale = 1.0 if facts.kind == "gradient" else -1 / (facts.local.lr * facts.steps)
    target = [seen.received[name] * scale for name, _ in module.named_parameters()]
    label = target[-1].argmin().view(1)
    mean, std = (torch.tensor(side).view(-1, 1, 1) for side in (facts.mean, facts.scale))
    x = (0.5 + 0.1 * torch.randn(1, *seen.shape, generator=torch.Generator().manual_seed(0))).requires_grad_()
    optimiser = torch.optim.Adam([x], lr=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, iterations)
    length = torch.cat([part.flatten() for part in target]).norm()
    for _ in range(iterations):
        loss = torch.nn.functional.cross_entropy(module((x - mean) / std), label)
        slopes = torch.autograd.grad(loss, parameters, create_graph=True)
        misses = [(a - b).flatten() / length for a, b in zip(slopes, target, strict=True)]
        distance = torch.cat(misses).square().sum()
        (x.grad,) = torch.autograd.grad(distance, [x])
        optimiser.step()
        schedule.step()
        x.data.clamp_(0, 1)
    return x.detach()


def psnr(guess: Tensor, truth: Tensor) -> float:
    return float(-10 * (guess - truth).square().mean().log10())


@pytest.fixture
def one_quick_thread() -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    yield
    torch.set_num_threads(threads)
    torch.set_flush_denormal(False)


OPEN = {"name": "udp-fedavg", "noise": 0.0, "clip": 1000.0}
CLOSED = {"name": "udp-fedavg", "noise": 1.0, "noise-split": "full-local"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "lr", "recovered"),
    [("fedsgd", 0.1, True), (CLOSED, 0.1, False), (OPEN, 1.0, True), ({**CLOSED, "clip": 1000.0}, 1.0, False)],
    ids=["a clean gradient", "a noised update", "a clean update", "the same update noised"],
)
def test_the_noise_and_nothing_else_keeps_the_picture(
    one_quick_thread: None, method: Any, lr: float, recovered: bool
) -> None:
    spec = RunSpec(
        dataset="cifar10", model="lenet-sigmoid", method=method, lr=lr, clients=40, sampled=6, epochs=1, rounds=1
    )
    there, data = load_plan(spec), spec.dataset.load()
    picture, label = data.test_x[:1], data.test_y[:1]
    with ThreadTeam(1) as team:
        seen = probe.probe(there, [], probe.victim(there, 1, picture, label), "server", team)
    guess = invert(seen, spec.model.build(seen.shape, seen.classes, torch.Generator()), 450)
    trivial = psnr(picture.mean((2, 3), keepdim=True).expand_as(picture), picture)
    gained = psnr(guess, picture) - trivial
    assert gained >= 8 if recovered else gained < 1
