"""Dropout that knows where its chance comes from."""

from __future__ import annotations

import copy

import pytest
import torch

from engine.errors import LeakLensError
from engine.models import Dropout
from engine.seeds import Seeds


def test_without_a_generator_training_is_refused():
    layer = Dropout(0.5)
    with pytest.raises(LeakLensError, match="must be handed a generator"):
        layer(torch.ones(3))
    assert torch.equal(layer.eval()(torch.ones(3)), torch.ones(3))
    assert torch.equal(Dropout(0.0)(torch.ones(3)), torch.ones(3))


def test_it_keeps_the_mean_and_leaves_the_global_generator_alone():
    layer, before = Dropout(0.25), torch.get_rng_state()
    layer.generator = Seeds(0).rng("dropout")
    out = layer(torch.ones(100_000))
    assert torch.equal(before, torch.get_rng_state())
    assert out.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert float(out.mean()) == pytest.approx(1.0, abs=0.01)


def test_equal_generators_give_equal_masks_and_every_call_a_new_one():
    layer = Dropout(0.5)
    layer.generator = Seeds(0).rng("dropout")
    twin = copy.deepcopy(layer)
    x = torch.ones(50)
    first, second = layer(x), layer(x)
    assert torch.equal(first, twin(x)) and torch.equal(second, twin(x)) and not torch.equal(first, second)


def test_the_mask_does_not_depend_on_the_number_format():
    drawn = []
    for dtype in (torch.float32, torch.float64):
        layer = Dropout(0.5)
        layer.generator = Seeds(0).rng("dropout")
        out = layer(torch.ones(40, dtype=dtype))
        assert out.dtype == dtype
        drawn.append(out.double())
    assert torch.equal(*drawn)
