"""AlexNet has two dropout layers, which draw only from their own generator."""

from __future__ import annotations

import pytest
import torch

from engine.compute.sgd import seed_dropout
from engine.models import MODELS
from engine.seeds import Seeds


def built(**values):
    model = MODELS.make({"name": "alexnet", "width": 4, "hidden": 32, **values})
    return model.build((3, 32, 32), 10, Seeds(0).rng("w"))


def test_dropout_is_drawn_from_the_generator_and_only_while_training():
    baseline = built().eval()
    module = built(dropout=0.5)
    x = torch.rand(4, 3, 32, 32, generator=Seeds(0).rng("x"))
    assert torch.equal(module.eval()(x), baseline(x))
    outputs = []
    for seed in (1, 1, 2):
        seed_dropout(module.train(), Seeds(seed).rng("dropout"))
        outputs.append(module(x))
    assert torch.equal(outputs[0], outputs[1]) and not torch.equal(outputs[0], outputs[2])


def test_dropout_sets_a_share_of_both_hidden_layers_to_zero():
    module = built(dropout=0.75).train()
    calls = []

    def record(layer, inputs, output):
        calls.append((inputs[0], output))

    seed_dropout(module, Seeds(0).rng("dropout"))
    for name in ("dropout1", "dropout2"):
        module.get_submodule(name).register_forward_hook(record)
    module(torch.rand(64, 3, 32, 32, generator=Seeds(0).rng("x")))
    assert len(calls) == 2
    for values, output in calls:
        positive = values > 0
        assert float((output[positive] > 0).float().mean()) == pytest.approx(0.25, abs=0.05)
