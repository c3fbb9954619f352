"""Robbing the Fed: a malicious server reads whole batches, and the result shows that it tampered."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.attacks.pictures.imprint import Imprint, by_bins
from engine.events import Judged, Seen
from engine.leakage.pictures import attack
from engine.records import Packet
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
    seen = next(event for event in events if isinstance(event, Seen))
    judged = next(event for event in events if isinstance(event, Judged))
    return seen, judged


@pytest.mark.parametrize("method", ["fedsgd", "fedavg"])
def test_pictures_of_a_batch_are_read_exactly(method: str) -> None:
    seen, judged = attacked(method, ["test-0", "test-2", "test-4", "test-5"])
    assert seen.facts["tampered"] is True
    assert sum(psnr > 40 for psnr in judged.numbers["psnr"]) >= 3


def test_one_picture_converges_and_three_in_two_bins_do_not() -> None:
    assert attacked("fedsgd", ["test-0"])[1].state == "converged"
    _, judged = attacked("fedsgd", ["test-0", "test-1", "test-2"], bins=2)
    assert judged.state != "converged"


def test_tampering_hardly_changes_the_outputs() -> None:
    world = load_plan(RunSpec(**RUN)).world
    honest = world.build(torch.Generator())
    honest.load_state_dict(dict(world.weights))
    tampered, packet = Imprint().tamper(world.build(torch.Generator()), Packet(world.weights), world)
    tampered.load_state_dict(dict(packet.model))
    x = torch.randn(8, *world.shape, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert float((tampered(x) - honest(x)).abs().max()) < 1e-3


def test_a_bin_that_did_not_change_holds_no_picture() -> None:
    weight = torch.zeros(4, 3)
    bias = torch.zeros(4)
    weight[:2] = torch.tensor([2.0, 4.0, 6.0])
    bias[:2] = 2.0
    assert torch.equal(by_bins(weight, bias, 3), torch.tensor([[1.0, 2.0, 3.0]]))
