"""AlexNet's dropout has two places, and chance comes from the generator it is handed."""

from __future__ import annotations

import pytest
import torch

from engine.compute.sgd import seed_dropout
from engine.models import MODELS
from engine.seeds import Seeds


def built(**values):
    return MODELS.make({"name": "alexnet", "width": 4, "hidden": 32, **values}).build(
        (3, 32, 32), 10, Seeds(0).rng("w")
    )


def test_dropout_is_drawn_from_the_generator_and_only_while_training():
    plain, module = built().eval(), built(dropout=0.5)
    x = torch.rand(4, 3, 32, 32, generator=Seeds(0).rng("x"))
    assert torch.equal(module.eval()(x), plain(x))
    drawn = []
    for seed in (1, 1, 2):
        seed_dropout(module.train(), Seeds(seed).rng("dropout"))
        drawn.append(module(x))
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])


def test_a_share_of_both_hidden_layers_is_switched_off():
    module, kept = built(dropout=0.75).train(), []
    seed_dropout(module, Seeds(0).rng("dropout"))
    for name in ("dropout1", "dropout2"):
        module.get_submodule(name).register_forward_hook(lambda layer, given, out: kept.append((given[0], out)))
    module(torch.rand(64, 3, 32, 32, generator=Seeds(0).rng("x")))
    assert len(kept) == 2
    for given, out in kept:
        alive = given > 0
        assert float((out[alive] > 0).float().mean()) == pytest.approx(0.25, abs=0.05)
