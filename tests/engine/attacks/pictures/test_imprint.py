"""A malicious server reads whole batches, and says that it is malicious."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.attacks.pictures.imprint import Imprint, by_bins
from engine.events import Judged, Seen
from engine.leakage.pictures import attack
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from engine.training.plan import load_plan

pytestmark = pytest.mark.slow

RUN: dict[str, Any] = {
    "dataset": "cifar10", "model": "lenet-sigmoid", "clients": 10, "sampled": 5, "epochs": 1, "rounds": 1,
}  # fmt: skip


def attacked(method: Any, pictures: list[str], **fields: Any) -> tuple[Seen, Judged]:
    spec = AttackSpec(run={**RUN, "method": method}, attack={"name": "imprint", **fields}, pictures=pictures)
    events = list(attack(spec))
    seen, judged = (next(event for event in events if isinstance(event, kind)) for kind in (Seen, Judged))
    assert isinstance(seen, Seen) and isinstance(judged, Judged)
    return seen, judged


@pytest.mark.parametrize("method", ["fedsgd", "fedavg"])
def test_pictures_come_out_of_a_batch_exactly(method: str) -> None:
    seen, judged = attacked(method, ["test-0", "test-2", "test-4", "test-5"])
    assert seen.facts["tampered"] is True
    assert sum(psnr > 40 for psnr in judged.numbers["psnr"]) >= 3


def test_one_picture_converges_and_three_in_two_bins_do_not() -> None:
    assert attacked("fedsgd", ["test-0"])[1].state == "converged"
    _, judged = attacked("fedsgd", ["test-0", "test-1", "test-2"], bins=2)
    assert judged.state != "converged"


def test_the_model_says_almost_what_it_said_before() -> None:
    world = load_plan(RunSpec(**RUN)).world
    plain = world.build(torch.Generator())
    plain.load_state_dict(dict(world.weights))
    bent, packet = Imprint().tamper(world.build(torch.Generator()), world.weights, world)
    bent.load_state_dict(dict(packet))
    x = torch.randn(8, *world.shape, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert float((bent(x) - plain(x)).abs().max()) < 1e-3


def test_a_bin_that_nothing_moved_holds_no_picture() -> None:
    weight, bias = torch.zeros(4, 3), torch.zeros(4)
    weight[:2], bias[:2] = torch.tensor([2.0, 4.0, 6.0]), 2.0
    assert torch.equal(by_bins(weight, bias, 3), torch.tensor([[1.0, 2.0, 3.0]]))
