"""A probe shows what an adversary receives, and does not change the run."""

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
from engine.leakage.target import noiseless_plan
from engine.methods.averaging.fedavg import FedAvg
from engine.records import VIEWS, Exposure, Guarantee, Upload, View, World
from engine.specs.run import RunSpec
from engine.training.loop import run
from engine.training.plan import LoadedPlan, load_plan
from engine.training.rounds import Exchange, first_state, train_round
from tests.engine.makers import replayable as comparable_events
from tests.engine.makers import tiny_spec

pytestmark = pytest.mark.slow

METHODS = ["fedavg", "fedsgd", "udp-fedavg", "dp-fedavg"]
MLP = {"name": "mlp", "hidden": 8}


@cache
def loaded_plan(method: str = "fedavg", rounds: int = 2) -> LoadedPlan:
    return load_plan(tiny_spec(method=method, model=MLP, rounds=rounds))


def pictures(many: int, start: int = 0) -> tuple[Tensor, Tensor]:
    data = loaded_plan().spec.dataset.load()
    return data.test_x[start : start + many], data.test_y[start : start + many]


def probed(
    plan: LoadedPlan, view: View, round: int = 1, many: int = 2, kept: Any = (), client: int | None = None
) -> Exposure:
    with ThreadTeam(1) as team:
        return probe.probe(plan, kept, probe.make_victim(plan, round, *pictures(many), client), view, team)


def first_exchange(plan: LoadedPlan) -> Exchange:
    """The first exchange of the real run."""
    exchanges: list[Exchange] = []
    with ThreadTeam(1) as team:
        train_round(plan, first_state(plan), 1, team, watch=exchanges.append)
    return exchanges[0]


def assert_close(first: Any, second: Any, rtol: float = 1e-3, atol: float = 1e-6) -> None:
    assert first.keys() == second.keys()
    for name in first:
        torch.testing.assert_close(first[name], second[name], rtol=rtol, atol=atol)


# --- what cannot be probed ---------------------------------------------------------------------------------


def refused(plan: LoadedPlan | None = None, round: int = 1, x: Any = None, y: Any = None, **fields: Any) -> str:
    """The message for a victim that cannot be probed."""
    valid_x, valid_y = pictures(1)
    if x is None:
        x = valid_x
    if y is None:
        y = valid_y
    with pytest.raises(BadInput) as caught:
        probe.make_victim(plan or loaded_plan(), round, x, y, **fields)
    return str(caught.value)


@pytest.mark.parametrize("round", [0, 3, -1])
def test_a_round_that_does_not_exist(round: int) -> None:
    assert refused(round=round) == f"probe: round: must be between 1 and 2, got {round}"


@pytest.mark.parametrize("many", [0, 9])
def test_too_few_and_too_many_pictures(many: int) -> None:
    x, y = pictures(many)
    assert refused(x=x, y=y) == f"probe: pictures: must be 1 to 8, each with a label, got {many}"


def test_a_picture_without_a_label() -> None:
    assert "each with a label" in refused(x=pictures(3)[0], y=pictures(2)[1])


@pytest.mark.parametrize("shape", [(1, 3, 28, 28), (1, 28, 28), (1, 1, 32, 32)])
def test_pictures_of_another_shape(shape: tuple[int, ...]) -> None:
    law = f"must have the shape (1, 28, 28) of this data set, got {list(shape[1:])}"
    assert refused(x=torch.zeros(shape), y=torch.zeros(1).long()) == f"probe: pictures: {law}"


@pytest.mark.parametrize("pixel", [-0.01, 1.01, 255.0, float("nan"), float("inf")])
def test_pixels_outside_their_range(pixel: float) -> None:
    x = pictures(1)[0].clone()
    x[0, 0, 3, 3] = pixel
    assert refused(x=x) == "probe: pictures: every pixel must lie between 0 and 1. Divide by 255."


@pytest.mark.parametrize("label", [-1, 10])
def test_labels_that_do_not_exist(label: int) -> None:
    assert refused(y=torch.tensor([label])) == f"probe: labels: must be between 0 and 9, got [{label}]"


def test_a_client_that_took_no_part() -> None:
    cohort = loaded_plan().cohort(1)
    absent = next(client for client in range(40) if client not in cohort)
    clients = ", ".join(map(str, cohort))
    assert refused(client=absent) == f"probe: client: must be one that took part in round 1 ({clients}), got {absent}"
    assert probe.make_victim(loaded_plan(), 1, *pictures(1)).client == cohort[0]
    assert probe.make_victim(loaded_plan(), 1, *pictures(1), client=cohort[-1]).client == cohort[-1]


def test_a_round_without_a_client() -> None:
    plan = load_plan(tiny_spec(sampling="poisson", sampled=1, rounds=20, model=MLP))
    empty = next(round for round in range(1, 21) if not plan.cohort(round))
    assert refused(plan, round=empty) == f"probe: round {empty}: no client took part in it. Choose another round."


class WithoutTwoViews(FedAvg):
    """FedAvg with a guarantee that excludes two views."""

    def guarantee(self, world: World) -> Guarantee:
        return Guarantee("none", "nothing", {"aggregate": "every slice is returned", "outsider": "it is"})


def test_a_view_that_does_not_apply() -> None:
    plan = replace(loaded_plan(), method=WithoutTwoViews())
    with pytest.raises(BadInput) as caught:
        probed(plan, "aggregate")
    assert str(caught.value) == "probe: view: aggregate does not apply: every slice is returned. Choose another view."
    assert probed(plan, "server").view == "server"


# --- what each view receives -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("slot", [0, 3])
def test_the_aggregate_is_the_sum_of_what_the_server_receives(method: str, slot: int) -> None:
    """The other uploads are those of the real run, but for their noise; the victim's replaces that of its client."""
    plan = noiseless_plan(loaded_plan(method)) or loaded_plan(method)
    client = plan.cohort(1)[slot]
    single = probed(plan, "server", client=client)
    aggregate = probed(plan, "aggregate", client=client)
    others = [upload.model for upload in first_exchange(plan).uploads if upload.client != client]
    assert len(others) == len(plan.cohort(1)) - 1 == aggregate.protocol.uploads - 1
    assert_close(aggregate.upload.model, weights.total([*others, single.upload.model]), atol=1e-5)
    assert_close(aggregate.packet.model, single.packet.model, rtol=0, atol=0)


class ByPlace(FedAvg):
    """A server whose weight for an upload depends on its slot, as with smoothing."""

    def shares(self, uploads: Sequence[Upload], world: World) -> list[float]:
        return [float(place) for place in range(len(uploads))]


@pytest.mark.parametrize("slot", [0, 3])
def test_the_victim_keeps_the_slot_of_its_client(slot: int) -> None:
    plan = replace(loaded_plan(), method=ByPlace())
    client = plan.cohort(1)[slot]
    tensors = [upload.model for upload in first_exchange(plan).uploads]
    tensors[slot] = probed(plan, "server", client=client).upload.model
    outside = probed(plan, "outsider", client=client).upload.model
    assert_close(outside, weights.total(tensors, [float(place) for place in range(len(tensors))]), atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_an_outsider_receives_the_difference_of_two_models(method: str) -> None:
    plan = loaded_plan(method)
    aggregate = probed(plan, "aggregate")
    outsider = probed(plan, "outsider")
    assert_close(outsider.upload.model, weights.scale(aggregate.upload.model, factor_of_sum(plan)), atol=1e-6)
    assert_close(outsider.packet.model, plan.world.weights, rtol=0, atol=0)
    assert {exposure.protocol.pictures for exposure in (aggregate, outsider)} == {2}


def factor_of_sum(plan: LoadedPlan) -> float:
    """The factor between the sum of the uploads of round 1 and the change of the model."""
    cohort = len(plan.cohort(1))
    return {
        "fedavg": 1 / cohort,
        "fedprox": 1 / cohort,
        "scaffold": 1 / cohort,
        "fedsgd": -0.1 / cohort,
        "udp-fedavg": 0.1 / 6,  # η / K
        "dp-fedavg": 1 / 6,
        "ppsgd": 0.1 / 6,
        "centaur": 0.1 / 6,
        "fedceo": 0.1 / 6,  # a round without smoothing
    }[plan.method.name]


def test_a_probe_has_its_own_noise() -> None:
    """Privacy: with the run's noise, the difference of an upload and its probe would contain no noise.

    It would be as short as two clipped updates.
    """
    plan = loaded_plan("udp-fedavg")
    recorded = first_exchange(plan).uploads[0].model
    first = probed(plan, "server")
    noise = first.protocol.std * weights.count(recorded) ** 0.5
    assert weights.norm(weights.subtract(recorded, first.upload.model)) > noise
    repeated = probed(plan, "server")
    assert_close(first.upload.model, repeated.upload.model, rtol=0, atol=0)
    x, y = pictures(1, start=7)
    with ThreadTeam(1) as team:
        other = probe.probe(plan, [], probe.make_victim(plan, 1, x, y), "server", team)
    assert weights.norm(weights.subtract(other.upload.model, first.upload.model)) > noise


@pytest.mark.parametrize("method", ["udp-fedavg", "dp-fedavg"])
@pytest.mark.parametrize("view", ["server", "aggregate", "outsider"])
def test_the_protocol_reports_the_noise_that_was_added(method: str, view: View) -> None:
    plan = load_plan(
        tiny_spec(method={"name": method, "noise": 50.0, "clip": 0.01}, sampling="all", sampled=40, momentum=0.5)
    )
    exposure = probed(plan, view)
    noise = torch.cat([tensor.flatten() for tensor in exposure.upload.model.values()])
    assert float(noise.std()) == pytest.approx(exposure.protocol.std, rel=0.05)


def test_without_another_client_there_is_no_client_view() -> None:
    plan = load_plan(tiny_spec(clients=1, sampled=1, sampling="all", batch=5000, model=MLP))
    with pytest.raises(BadInput, match=r"^probe: view: client does not apply: there is no other client. Choose"):
        probed(plan, "client")


def test_the_server_receives_the_victims_own_gradient() -> None:
    plan = loaded_plan("fedsgd")
    x, y = pictures(2)
    exposure = probed(plan, "server")
    module = plan.world.build(torch.Generator())
    for name, parameter in module.named_parameters():
        parameter.data.copy_(exposure.packet.model[name])
    mean = plan.world.mean[0]
    std = plan.world.std[0]
    loss = torch.nn.functional.cross_entropy(module((x - mean) / std), y)
    gradients = torch.autograd.grad(loss, list(module.parameters()))
    assert_close(exposure.upload.model, dict(zip(exposure.packet.model, gradients, strict=True)))


@pytest.mark.parametrize(("method", "steps"), [("fedavg", 3), ("udp-fedavg", 3), ("dp-fedavg", 3), ("fedsgd", 1)])
@pytest.mark.parametrize(("many", "batch"), [(1, 100), (8, 100), (8, 4)])
def test_every_step_uses_all_of_the_victims_pictures(method: str, steps: int, many: int, batch: int) -> None:
    plan = load_plan(tiny_spec(method=method, model=MLP, epochs=3, batch=batch, sampled=1, sampling="fixed"))
    protocol = probed(plan, "server", many=many).protocol
    assert (protocol.steps, protocol.batch, protocol.drawing, protocol.pictures) == (steps, many, "whole", many)


def test_the_clip_and_noise_of_a_probe_are_the_runs_own() -> None:
    method = {"name": "udp-fedavg", "clip": 0.5}
    noisy_plan = load_plan(tiny_spec(method={**method, "noise": 4.0}, model=MLP))
    clean = probed(load_plan(tiny_spec(method={**method, "noise": 0.0}, model=MLP)), "server")
    noisy = probed(noisy_plan, "server")
    assert weights.norm(clean.upload.model) <= 0.5
    difference = weights.subtract(noisy.upload.model, clean.upload.model)
    noise = torch.cat([tensor.flatten() for tensor in difference.values()])
    assert float(noise.std()) == pytest.approx(noisy.protocol.std, rel=0.04)
    assert noisy.protocol.std == pytest.approx(4.0 * 0.5 / len(noisy_plan.cohort(1)) ** 0.5)


# --- the run does not change -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["udp-fedavg", "dp-fedavg"])
def test_a_run_has_the_same_events_with_and_without_probes(method: str) -> None:
    plan = loaded_plan(method)
    events = []
    states = []
    for event in run(plan.spec):
        events.append(event)
        if isinstance(event, Kept) and event.kind == "state":
            states.append(event)
        if isinstance(event, Measured) and event.name == "loss":
            for view in VIEWS:
                probed(plan, view, event.round, kept=states)
    assert comparable_events(events) == comparable_events(run(plan.spec))


@pytest.mark.parametrize("view", VIEWS)
def test_a_probe_is_the_same_from_any_stored_state(view: View) -> None:
    plan = loaded_plan("udp-fedavg", rounds=3)
    states = [event for event in run(plan.spec) if isinstance(event, Kept) and event.kind == "state"]
    from_last = probed(plan, view, 3, kept=states)
    from_first = probed(plan, view, 3, kept=states[:1])
    from_start = probed(plan, view, 3, kept=[])
    for name in from_last.upload.model:
        assert torch.equal(from_last.upload.model[name], from_first.upload.model[name])
        assert torch.equal(from_last.upload.model[name], from_start.upload.model[name])
        assert torch.equal(from_last.packet.model[name], from_start.packet.model[name])


# --- does an attack learn anything? ------------------------------------------------------------------------


def invert(exposure: Exposure, module: torch.nn.Module, iterations: int) -> Tensor:
    """Matches the gradient. Everything used is in the exposure; the module gives only the architecture."""
    for name, parameter in module.named_parameters():
        parameter.data.copy_(exposure.packet.model[name])
    parameters = list(module.parameters())
    protocol = exposure.protocol
    scale = 1.0 if protocol.kind == "gradient" else -1 / (protocol.local.lr * protocol.steps)
    target = [exposure.upload.model[name] * scale for name, _ in module.named_parameters()]
    label = target[-1].argmin().view(1)
    mean = torch.tensor(protocol.mean).view(-1, 1, 1)
    std = torch.tensor(protocol.scale).view(-1, 1, 1)
    x = (0.5 + 0.1 * torch.randn(1, *exposure.shape, generator=torch.Generator().manual_seed(0))).requires_grad_()
    optimiser = torch.optim.Adam([x], lr=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, iterations)
    length = torch.cat([part.flatten() for part in target]).norm()
    for _ in range(iterations):
        loss = torch.nn.functional.cross_entropy(module((x - mean) / std), label)
        gradients = torch.autograd.grad(loss, parameters, create_graph=True)
        pairs = zip(gradients, target, strict=True)
        differences = [(gradient - goal).flatten() / length for gradient, goal in pairs]
        distance = torch.cat(differences).square().sum()
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


BASELINE = {"name": "udp-fedavg", "noise": 0.0, "clip": 1000.0}
NOISY = {"name": "udp-fedavg", "noise": 1.0, "noise-split": "full-local"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "lr", "recovered"),
    [("fedsgd", 0.1, True), (NOISY, 0.1, False), (BASELINE, 1.0, True), ({**NOISY, "clip": 1000.0}, 1.0, False)],
    ids=["a clean gradient", "a noisy update", "a clean update", "the same update with noise"],
)
def test_the_noise_and_nothing_else_hides_the_picture(
    one_quick_thread: None, method: Any, lr: float, recovered: bool
) -> None:
    spec = RunSpec(
        dataset="cifar10", model="lenet-sigmoid", method=method, lr=lr, clients=40, sampled=6, epochs=1, rounds=1
    )
    plan = load_plan(spec)
    data = spec.dataset.load()
    picture = data.test_x[:1]
    label = data.test_y[:1]
    with ThreadTeam(1) as team:
        exposure = probe.probe(plan, [], probe.make_victim(plan, 1, picture, label), "server", team)
    guess = invert(exposure, spec.model.build(exposure.shape, exposure.classes, torch.Generator()), 450)
    trivial = psnr(picture.mean((2, 3), keepdim=True).expand_as(picture), picture)
    gained = psnr(guess, picture) - trivial
    assert gained >= 8 if recovered else gained < 1
