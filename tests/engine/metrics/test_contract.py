"""What every metric promises; a new file on the shelf is tested with no edit."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.errors import BadInput
from engine.metrics import METRICS
from engine.seeds import Seeds
from tests.engine.metrics.pictures.makers import noisy, pictures

NAMES = METRICS.names()
SETS = ("fashion_mnist", "cifar10")
DEVIATIONS = (0.02, 0.1, 0.3)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("vgg16")]


def worse(name: str, value: float) -> float:
    """The value turned so that more is further from the truth."""
    return value if METRICS[name].better == "lower" else -value


@pytest.mark.parametrize("name", NAMES)
def test_it_declares_itself(name: str):
    part = METRICS.make(name)
    assert part.title and part.source and part.summary().endswith(".")
    assert part.better in ("higher", "lower")
    assert METRICS.make(json.loads(json.dumps(METRICS.dump(part)))) == part
    for field in type(part).model_fields.values():
        assert field.title and field.description and field.description.endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_it_can_be_had_here(name: str):
    assert METRICS[name].absent() == ""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("data", SETS)
def test_more_noise_is_further_and_the_picture_itself_is_the_best(name: str, data: str):
    part, truths = METRICS.make(name), pictures(data, 4)
    far = [
        sum(worse(name, part.measure(guess, truth)) for guess, truth in zip(noisy(truths, by), truths, strict=True))
        for by in (0.0, *DEVIATIONS)
    ]
    assert far == sorted(set(far))
    best = {"psnr": 160, "ssim": 1, "eps-p": 1}.get(name, 0)
    assert all(part.measure(truth, truth) == pytest.approx(best, abs=1e-9) for truth in truths)


@pytest.mark.parametrize("name", NAMES)
def test_the_guess_is_clipped(name: str):
    part, truth = METRICS.make(name), pictures("cifar10")[0]
    wild = 5 * noisy(truth, 1.0)
    assert float(wild.min()) < 0 and float(wild.max()) > 1
    assert part.measure(wild, truth) == part.measure(wild.clamp(0, 1), truth)


EXTREMES = {"black": torch.zeros(()), "white": torch.ones(()), "grey": torch.tensor(0.5)}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (3, 28, 33), (1, 64, 80)], ids=str)
def test_flat_pictures_have_a_number_that_json_holds(name: str, shape: tuple[int, ...]):
    part, drawn = METRICS.make(name), torch.rand(shape, generator=Seeds(0).rng("picture"))
    flat = [value.expand(shape) for value in EXTREMES.values()]
    found = [part.measure(guess, truth) for guess in (*flat, drawn) for truth in (flat[0], flat[1], drawn)]
    assert all(isinstance(value, float) and math.isfinite(value) for value in found)
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("name", NAMES)
def test_it_leaves_its_pictures_and_chance_alone(name: str):
    truth = pictures("cifar10")[0].clone()
    guess = noisy(truth, 0.5).requires_grad_()
    kept, state = (truth.clone(), guess.detach().clone()), torch.get_rng_state()
    METRICS.make(name).measure(guess, truth)
    assert torch.equal(truth, kept[0]) and torch.equal(guess.detach(), kept[1]) and guess.grad is None
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", NAMES)
def test_any_precision_and_layout_will_do(name: str):
    part, truth = METRICS.make(name), pictures("cifar10")[0]
    guess = noisy(truth, 0.1)
    turned = guess.permute(1, 2, 0).contiguous().permute(2, 0, 1)
    assert not turned.is_contiguous()
    assert part.measure(turned.double(), truth.double()) == pytest.approx(part.measure(guess, truth), rel=1e-4)


GOOD = torch.full((3, 32, 32), 0.5)
UNKNOWN = GOOD.clone()
UNKNOWN[0, 0, 0] = math.nan
BAD = {
    "another shape": (GOOD[:, :30], GOOD, "guess: must have the shape"),
    "grey for colour": (GOOD[:1], GOOD, "guess: must have the shape"),
    "a pile": (GOOD[None], GOOD[None], "truth: must be one picture"),
    "no channels": (GOOD[0], GOOD[0], "truth: must be one picture"),
    "no pixels": (GOOD[:, :0], GOOD[:, :0], "truth: must be one picture"),
    "no number": (UNKNOWN, GOOD, "guess: every pixel must be a number"),
    "without end": (GOOD / 0, GOOD, "guess: every pixel must be a number"),
    "an unknown truth": (GOOD, UNKNOWN, "truth: every pixel must lie between 0 and 1"),
    "a normalised truth": (GOOD, GOOD * 2 + 1, "truth: every pixel must lie between 0 and 1"),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", BAD)
def test_what_are_not_two_pictures_is_refused_in_a_sentence(name: str, case: str):
    guess, truth, words = BAD[case]
    with pytest.raises(BadInput) as told:
        METRICS.make(name).measure(guess, truth)
    assert str(told.value).startswith(f"{name}: {words}") and "\n" not in str(told.value)


@pytest.mark.parametrize("name", ["lpips", "lpips-vgg", "kl-squeezenet"])
def test_a_network_that_sees_colours_refuses_two_channels(name: str):
    with pytest.raises(BadInput, match=f"{name}: pictures: must have 1 or 3 channels, got 2"):
        METRICS.make(name).measure(GOOD[:2], GOOD[:2])


@pytest.mark.parametrize("name", NAMES)
def test_a_tiny_picture_has_a_number_or_a_sentence(name: str):
    tiny = torch.full((3, 4, 4), 0.5)
    if name == "ssim":
        with pytest.raises(BadInput, match="ssim: pictures: must have sides of 11 or more"):
            METRICS.make(name).measure(tiny, tiny)
    else:
        assert math.isfinite(METRICS.make(name).measure(1 - tiny, tiny))


@pytest.mark.parametrize("name", NAMES)
def test_over_one_guess_it_is_that_guess(name: str):
    part, truth = METRICS.make(name), pictures("cifar10")[0]
    guess = noisy(truth, 0.2)
    assert part.over([guess], truth) == part.measure(guess, truth)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"eps-p"}))
def test_the_last_guess_counts(name: str):
    part, truth = METRICS.make(name), pictures("cifar10")[0]
    path: list[Tensor] = [noisy(truth, by) for by in (0.3, 0.1)]
    assert part.over(path, truth) == part.measure(path[-1], truth) != part.measure(path[0], truth)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"mse-normalised"}))
def test_most_do_not_care_for_the_deviations(name: str):
    part = METRICS.make(name)
    assert part.fitted((0.2, 0.3, 0.4)) == part


def test_no_vgg_is_told_by_that_metric_alone(no_vgg16: Path):
    assert [name for name in NAMES if METRICS[name].absent()] == ["lpips-vgg"]
    assert str(no_vgg16.parent) in METRICS["lpips-vgg"].absent()
