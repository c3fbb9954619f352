"""The Dropout layer, which draws only from its own generator."""

from __future__ import annotations

import copy

import pytest
import torch

from engine.errors import LeakLensError
from engine.models import Dropout
from engine.seeds import Seeds


def test_training_without_a_generator_is_an_error():
    layer = Dropout(0.5)
    with pytest.raises(LeakLensError, match="must have a generator before training, got none"):
        layer(torch.ones(3))
    assert torch.equal(layer.eval()(torch.ones(3)), torch.ones(3))
    assert torch.equal(Dropout(0.0)(torch.ones(3)), torch.ones(3))


def test_it_keeps_the_mean_and_does_not_use_the_global_generator():
    layer = Dropout(0.25)
    before = torch.get_rng_state()
    layer.generator = Seeds(0).rng("dropout")
    out = layer(torch.ones(100_000))
    assert torch.equal(before, torch.get_rng_state())
    assert out.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert float(out.mean()) == pytest.approx(1.0, abs=0.01)


def test_equal_generators_give_equal_masks_and_every_call_draws_a_new_mask():
    layer = Dropout(0.5)
    layer.generator = Seeds(0).rng("dropout")
    copied = copy.deepcopy(layer)
    x = torch.ones(50)
    first = layer(x)
    second = layer(x)
    assert torch.equal(first, copied(x)) and torch.equal(second, copied(x)) and not torch.equal(first, second)


def test_the_mask_does_not_depend_on_the_data_type():
    outputs = []
    for dtype in (torch.float32, torch.float64):
        layer = Dropout(0.5)
        layer.generator = Seeds(0).rng("dropout")
        out = layer(torch.ones(40, dtype=dtype))
        assert out.dtype == dtype
        outputs.append(out.double())
    assert torch.equal(*outputs)
