"""The LSTM reads what is there and nothing else, and under DP-SGD it is the same network."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from engine.compute.dp_sgd import clipped_sum, ghostly
from engine.models import MODELS
from engine.seeds import Seeds
from engine.words import ENDED, UNKNOWN

SMALL = {"name": "lstm", "words": 20, "width": 6, "hidden": 5}
# repeated words, a word beyond those it knows, a sentence that fills its row, one of a single word, one of none
ROWS = torch.tensor(
    [[2, 3, 2, 2, 1, 0, 0, 0], [7, 300, 8, 20, 9, 4, 5, 6], [3, 3, 3, 3, 3, 3, 3, 3], [4, 0, 0, 0, 0, 0, 0, 0], [0] * 8]
)
LABELS = torch.tensor([0, 1, 1, 0, 1])


def built(seed=0, **values):
    return MODELS.make({**SMALL, **values}).build((8,), 2, Seeds(seed).rng("weights"))


def slopes(module, x, y):
    return torch.autograd.grad(functional.cross_entropy(module(x), y), list(module.parameters()))


def test_what_follows_the_last_word_counts_for_nothing():
    module = built()
    longer = torch.cat([ROWS, torch.full((len(ROWS), 30), ENDED)], 1)
    torch.testing.assert_close(module(longer), module(ROWS))
    assert bool(torch.isfinite(module(ROWS)).all())


def test_every_word_counts_and_so_does_their_order():
    module = built()
    row = torch.tensor([[2, 3, 4, 5, 0, 0]])
    for other in ([9, 3, 4, 5, 0, 0], [2, 3, 4, 9, 0, 0], [3, 2, 4, 5, 0, 0], [2, 3, 4, 5, 5, 0]):
        assert not torch.allclose(module(row), module(torch.tensor([other])), atol=1e-4)


def test_words_beyond_those_it_knows_are_one_to_it():
    module = built()
    known, *others = (torch.tensor([[2, word, 3]]) for word in (19, 20, 21, 999_999, UNKNOWN))
    said = [module(other) for other in others]
    assert all(torch.equal(said[0], one) for one in said) and not torch.equal(said[0], module(known))


def test_under_the_hooks_it_holds_the_same_parameters_by_the_same_names():
    module, before = built(), torch.get_rng_state()
    names, logits = dict(module.named_parameters()), module(ROWS)
    ghost = ghostly(module, 1.0)
    assert torch.equal(before, torch.get_rng_state())
    assert {name: id(one) for name, one in ghost._module.named_parameters()} == {
        name: id(one) for name, one in names.items()
    }
    torch.testing.assert_close(ghost(ROWS), logits)


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_each_examples_gradient_is_as_long_as_autograd_says():
    module = built(words=400)
    truth = [
        torch.cat([one.flatten() for one in slopes(module, ROWS[at : at + 1], LABELS[at : at + 1])]).norm()
        for at in range(len(ROWS))
    ]
    ghost = ghostly(module, 1.0)
    functional.cross_entropy(ghost(ROWS), LABELS, reduction="sum").backward()
    torch.testing.assert_close(ghost.get_norm_sample(), torch.stack(truth), atol=1e-6, rtol=1e-4)


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
@pytest.mark.parametrize("share", [0.5, 2.0])  # of the longest gradient: some are clipped, or none
def test_the_clipped_sum_is_the_sum_of_clipped_gradients(share):
    module = built()
    names = [name for name, _ in module.named_parameters()]
    each = [slopes(module, ROWS[at : at + 1], LABELS[at : at + 1]) for at in range(len(ROWS))]
    norms = [float(torch.cat([one.flatten() for one in own]).norm()) for own in each]
    bound = share * max(norms)
    assert any(norm > bound for norm in norms) is (share < 1) and any(norm < bound for norm in norms)
    shares = [min(1.0, bound / norm) for norm in norms]
    truth = [sum(share * own[at] for share, own in zip(shares, each, strict=True)) for at in range(len(names))]
    ghost = ghostly(module, bound)
    own = dict(ghost._module.named_parameters())
    for _ in range(2):  # the second batch starts where the first has left nothing behind
        found = clipped_sum(ghost, [own[name] for name in names], ROWS, LABELS)
        for one, other in zip(found, truth, strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
