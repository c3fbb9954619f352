"""The contract of every metric; a new file on the shelf is tested without an edit."""

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
from tests.engine.metrics.pictures.makers import made, noisy, pictures

NAMES = tuple(part.name for part in METRICS if part.goal == "pictures")
SETS = ("fashion_mnist", "cifar10")
DEVIATIONS = (0.02, 0.1, 0.3)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("vgg16")]


def worse(name: str, value: float) -> float:
    """The value with its sign changed, if needed, so that more means further from the truth."""
    return value if METRICS[name].better == "lower" else -value


@pytest.mark.parametrize("name", NAMES)
def test_it_declares_itself(name: str):
    part = made(name)
    assert part.title and part.source and part.summary().endswith(".")
    assert part.better in ("higher", "lower")
    assert made(json.loads(json.dumps(METRICS.dump(part)))) == part
    for field in type(part).model_fields.values():
        assert field.title and field.description and field.description.endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_it_is_available_with_all_weights(name: str):
    assert METRICS[name].unavailable() == ""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("data", SETS)
def test_more_noise_is_further_and_the_picture_itself_is_the_best(name: str, data: str):
    part = made(name)
    truths = pictures(data, 4)
    distances = []
    for deviation in (0.0, *DEVIATIONS):
        pairs = zip(noisy(truths, deviation), truths, strict=True)
        distances.append(sum(worse(name, part.measure(guess, truth)) for guess, truth in pairs))
    assert distances == sorted(set(distances))
    best = {"psnr": 160, "ssim": 1, "eps-p": 1}.get(name, 0)
    assert all(part.measure(truth, truth) == pytest.approx(best, abs=1e-9) for truth in truths)


@pytest.mark.parametrize("name", NAMES)
def test_the_guess_is_clipped(name: str):
    part = made(name)
    truth = pictures("cifar10")[0]
    wild = 5 * noisy(truth, 1.0)
    assert float(wild.min()) < 0 and float(wild.max()) > 1
    assert part.measure(wild, truth) == part.measure(wild.clamp(0, 1), truth)


EXTREMES = {"black": torch.zeros(()), "white": torch.ones(()), "grey": torch.tensor(0.5)}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (3, 28, 33), (1, 64, 80)], ids=str)
def test_flat_pictures_have_a_number_that_json_holds(name: str, shape: tuple[int, ...]):
    part = made(name)
    random = torch.rand(shape, generator=Seeds(0).rng("picture"))
    flat = [value.expand(shape) for value in EXTREMES.values()]
    numbers = [part.measure(guess, truth) for guess in (*flat, random) for truth in (flat[0], flat[1], random)]
    assert all(isinstance(number, float) and math.isfinite(number) for number in numbers)
    json.dumps(numbers, allow_nan=False)


@pytest.mark.parametrize("name", NAMES)
def test_it_changes_neither_its_pictures_nor_the_generator(name: str):
    truth = pictures("cifar10")[0].clone()
    guess = noisy(truth, 0.5).requires_grad_()
    truth_before = truth.clone()
    guess_before = guess.detach().clone()
    generator_before = torch.get_rng_state()
    made(name).measure(guess, truth)
    assert torch.equal(truth, truth_before) and torch.equal(guess.detach(), guess_before) and guess.grad is None
    assert torch.equal(torch.get_rng_state(), generator_before)


@pytest.mark.parametrize("name", NAMES)
def test_any_precision_and_memory_layout_works(name: str):
    part = made(name)
    truth = pictures("cifar10")[0]
    guess = noisy(truth, 0.1)
    strided = guess.permute(1, 2, 0).contiguous().permute(2, 0, 1)
    assert not strided.is_contiguous()
    assert part.measure(strided.double(), truth.double()) == pytest.approx(part.measure(guess, truth), rel=1e-4)


GOOD = torch.full((3, 32, 32), 0.5)
WITH_NAN = GOOD.clone()
WITH_NAN[0, 0, 0] = math.nan
BAD = {
    "another shape": (GOOD[:, :30], GOOD, "guess: must have the shape"),
    "grey for colour": (GOOD[:1], GOOD, "guess: must have the shape"),
    "a batch": (GOOD[None], GOOD[None], "truth: must be one picture"),
    "no channels": (GOOD[0], GOOD[0], "truth: must be one picture"),
    "no pixels": (GOOD[:, :0], GOOD[:, :0], "truth: must be one picture"),
    "not a number": (WITH_NAN, GOOD, "guess: every pixel must be a number"),
    "infinity": (GOOD / 0, GOOD, "guess: every pixel must be a number"),
    "a truth that is not a number": (GOOD, WITH_NAN, "truth: every pixel must lie between 0 and 1"),
    "a normalised truth": (GOOD, GOOD * 2 + 1, "truth: every pixel must lie between 0 and 1"),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", BAD)
def test_anything_but_two_pictures_is_refused_in_one_sentence(name: str, case: str):
    guess, truth, message = BAD[case]
    with pytest.raises(BadInput) as caught:
        made(name).measure(guess, truth)
    assert str(caught.value).startswith(f"{name}: {message}") and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["lpips", "lpips-vgg", "kl-squeezenet"])
def test_a_network_for_colours_refuses_two_channels(name: str):
    with pytest.raises(BadInput, match=f"{name}: pictures: must have 1 or 3 channels, got 2"):
        made(name).measure(GOOD[:2], GOOD[:2])


@pytest.mark.parametrize("name", NAMES)
def test_a_tiny_picture_gives_a_number_or_an_error(name: str):
    tiny = torch.full((3, 4, 4), 0.5)
    if name == "ssim":
        with pytest.raises(BadInput, match="ssim: pictures: must have sides of 11 or more"):
            made(name).measure(tiny, tiny)
    else:
        assert math.isfinite(made(name).measure(1 - tiny, tiny))


@pytest.mark.parametrize("name", NAMES)
def test_a_path_of_one_guess_measures_that_guess(name: str):
    part = made(name)
    truth = pictures("cifar10")[0]
    guess = noisy(truth, 0.2)
    assert part.measure_path([guess], truth) == part.measure(guess, truth)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"eps-p"}))
def test_a_path_measures_its_last_guess(name: str):
    part = made(name)
    truth = pictures("cifar10")[0]
    path: list[Tensor] = [noisy(truth, deviation) for deviation in (0.3, 0.1)]
    assert part.measure_path(path, truth) == part.measure(path[-1], truth) != part.measure(path[0], truth)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"mse-normalised"}))
def test_most_metrics_ignore_the_deviations(name: str):
    part = made(name)
    assert part.with_deviations((0.2, 0.3, 0.4)) == part


def test_only_lpips_vgg_is_unavailable_without_vgg16(no_vgg16: Path):
    assert [name for name in NAMES if METRICS[name].unavailable()] == ["lpips-vgg"]
    assert str(no_vgg16.parent) in METRICS["lpips-vgg"].unavailable()
