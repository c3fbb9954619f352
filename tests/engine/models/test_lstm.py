"""The LSTM ignores padding, and under DP-SGD it is the same network."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from engine.compute.dp_sgd import clipped_sum, ghost_module
from engine.models import MODELS
from engine.seeds import Seeds
from engine.words import PADDING, UNKNOWN

SMALL = {"name": "lstm", "words": 20, "width": 6, "hidden": 5}
# repeated words, an unknown word, a full row, a sentence with a single word, a sentence without words
ROWS = torch.tensor(
    [[2, 3, 2, 2, 1, 0, 0, 0], [7, 300, 8, 20, 9, 4, 5, 6], [3, 3, 3, 3, 3, 3, 3, 3], [4, 0, 0, 0, 0, 0, 0, 0], [0] * 8]
)
LABELS = torch.tensor([0, 1, 1, 0, 1])


def built(seed=0, **values):
    return MODELS.make({**SMALL, **values}).build((8,), 2, Seeds(seed).rng("weights"))


def gradients_of(module, x, y):
    return torch.autograd.grad(functional.cross_entropy(module(x), y), list(module.parameters()))


def test_padding_does_not_change_the_output():
    module = built()
    longer = torch.cat([ROWS, torch.full((len(ROWS), 30), PADDING)], 1)
    torch.testing.assert_close(module(longer), module(ROWS))
    assert bool(torch.isfinite(module(ROWS)).all())


def test_every_word_and_the_order_of_words_change_the_output():
    module = built()
    row = torch.tensor([[2, 3, 4, 5, 0, 0]])
    for other in ([9, 3, 4, 5, 0, 0], [2, 3, 4, 9, 0, 0], [3, 2, 4, 5, 0, 0], [2, 3, 4, 5, 5, 0]):
        assert not torch.allclose(module(row), module(torch.tensor([other])), atol=1e-4)


def test_all_unknown_words_give_the_same_output():
    module = built()
    known, *others = (torch.tensor([[2, word, 3]]) for word in (19, 20, 21, 999_999, UNKNOWN))
    first, *rest = [module(other) for other in others]
    assert all(torch.equal(first, logits) for logits in rest) and not torch.equal(first, module(known))


def test_the_dp_wrapper_has_the_same_parameters_with_the_same_names():
    module = built()
    before = torch.get_rng_state()
    parameters = dict(module.named_parameters())
    logits = module(ROWS)
    ghost = ghost_module(module, 1.0)
    assert torch.equal(before, torch.get_rng_state())
    wrapped = dict(ghost._module.named_parameters())
    assert wrapped.keys() == parameters.keys()
    assert all(wrapped[name] is parameters[name] for name in parameters)
    torch.testing.assert_close(ghost(ROWS), logits)


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_the_norm_of_each_examples_gradient_equals_that_of_autograd():
    module = built(words=400)
    norms = []
    for row in range(len(ROWS)):
        gradients = gradients_of(module, ROWS[row : row + 1], LABELS[row : row + 1])
        norms.append(torch.cat([gradient.flatten() for gradient in gradients]).norm())
    ghost = ghost_module(module, 1.0)
    functional.cross_entropy(ghost(ROWS), LABELS, reduction="sum").backward()
    torch.testing.assert_close(ghost.get_norm_sample(), torch.stack(norms), atol=1e-6, rtol=1e-4)


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
@pytest.mark.parametrize("share", [0.5, 2.0])  # of the longest gradient: some are clipped, or none
def test_the_clipped_sum_is_the_sum_of_clipped_gradients(share):
    module = built()
    names = [name for name, _ in module.named_parameters()]
    by_example = [gradients_of(module, ROWS[row : row + 1], LABELS[row : row + 1]) for row in range(len(ROWS))]
    norms = [float(torch.cat([gradient.flatten() for gradient in gradients]).norm()) for gradients in by_example]
    bound = share * max(norms)
    assert any(norm > bound for norm in norms) is (share < 1) and any(norm < bound for norm in norms)
    shares = [min(1.0, bound / norm) for norm in norms]
    expected = []
    for by_parameter in zip(*by_example, strict=True):
        expected.append(sum(share * gradient for share, gradient in zip(shares, by_parameter, strict=True)))
    ghost = ghost_module(module, bound)
    wrapped = dict(ghost._module.named_parameters())
    for _ in range(2):  # the first batch must leave nothing behind for the second
        sums = clipped_sum(ghost, [wrapped[name] for name in names], ROWS, LABELS)
        for actual, correct in zip(sums, expected, strict=True):
            torch.testing.assert_close(actual, correct, atol=1e-5, rtol=1e-4)
