"""Each metric equals its formula, computed in another way."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter

from engine.errors import BadInput
from engine.metrics import METRICS
from engine.metrics.pictures.mse_normalised import MseNormalised
from engine.part import Part
from engine.vision import torchvision
from tests.engine.metrics.pictures.makers import made, noisy, pictures

TRUTH = pictures("cifar10")[0]
GUESS = noisy(TRUTH, 0.2).clamp(0, 1)
GREY = torch.full((1, 32, 32), 0.5)


def measured(name: str, guess: torch.Tensor, truth: torch.Tensor, **values: object) -> float:
    return made({"name": name, **values}).measure(guess, truth)


def test_an_error_of_a_tenth_everywhere():
    assert measured("mse", GREY + 0.1, GREY) == pytest.approx(0.01, rel=1e-6)
    assert measured("psnr", GREY + 0.1, GREY) == pytest.approx(20, rel=1e-6)
    assert measured("eps-p", GREY + 0.1, GREY) == pytest.approx(0.9, rel=1e-6)
    assert measured("mse-normalised", GREY + 0.1, GREY, std=(0.5,)) == pytest.approx(0.04, rel=1e-6)


def test_the_worst_possible_guess():
    black = torch.zeros(3, 32, 32)
    white = torch.ones(3, 32, 32)
    assert measured("mse", white, black) == 1
    assert str(measured("psnr", white, black)) == "0.0"
    assert measured("eps-p", white, black) == 0


@pytest.mark.parametrize("error", [0.0, 1e-12, 1e-160])
def test_psnr_is_at_most_160(error: float):
    assert measured("psnr", GREY.double() * 0 + error, GREY.double() * 0) == 160


def test_psnr_below_its_maximum_is_exact():
    assert measured("psnr", GREY.double() + 1e-7, GREY.double()) == pytest.approx(140, abs=1e-3)


# --- normalised pixels -------------------------------------------------------------------------------------


def test_every_channel_is_divided_by_its_own_deviation():
    std = (0.2, 0.25, 0.5)
    divisor = torch.tensor(std).view(3, 1, 1)
    normalised_guess = (GUESS / divisor).double()
    normalised_truth = (TRUTH / divisor).double()
    expected = float((normalised_guess - normalised_truth).square().mean())
    assert MseNormalised().with_deviations(std).measure(GUESS, TRUTH) == pytest.approx(expected, rel=1e-6)
    assert measured("mse-normalised", GUESS, TRUTH) == measured("mse", GUESS, TRUTH)


def test_other_deviations_make_another_part():
    default = MseNormalised()
    other = default.with_deviations([0.2, 0.3])
    assert (default.std, other.std) == ((1.0,), (0.2, 0.3))
    assert METRICS.make(METRICS.dump(other)) == other != default


@pytest.mark.parametrize("std", [(), (0.0,), (0.2, -1.0), (math.nan,), (math.inf,), ("a",), 0.5])
def test_invalid_deviations_are_refused(std: object):
    with pytest.raises(BadInput, match=r"^mse-normalised: std: must be "):
        METRICS.make({"name": "mse-normalised", "std": std})


def test_deviations_for_another_number_of_channels_are_refused():
    with pytest.raises(BadInput, match="std: must be 1 number or one for each of 3 channels, got"):
        MseNormalised(std=(0.2, 0.3)).measure(GUESS, TRUTH)


# --- structure ---------------------------------------------------------------------------------------------


def test_ssim_is_the_formula_of_wang_in_a_gaussian_window():
    def blurred(x: np.ndarray) -> np.ndarray:
        return np.asarray(gaussian_filter(x, 1.5, truncate=3.5))

    means = []
    for x, y in zip(GUESS.double().numpy(), TRUTH.double().numpy(), strict=True):
        mean_x = blurred(x)
        mean_y = blurred(y)
        variance_x = blurred(x * x) - mean_x * mean_x
        variance_y = blurred(y * y) - mean_y * mean_y
        covariance = blurred(x * y) - mean_x * mean_y
        c1 = 0.01**2
        c2 = 0.03**2
        numerator = (2 * mean_x * mean_y + c1) * (2 * covariance + c2)
        local = numerator / ((mean_x * mean_x + mean_y * mean_y + c1) * (variance_x + variance_y + c2))
        means.append(local[5:-5, 5:-5].mean())  # only where the window of 11 lies inside the picture
    assert measured("ssim", GUESS, TRUTH) == pytest.approx(float(np.mean(means)), abs=1e-6)


def test_ssim_of_a_negative_is_below_zero():
    assert measured("ssim", 1 - TRUTH, TRUTH) < 0


# --- the leakage score -------------------------------------------------------------------------------------


def score(path: list[torch.Tensor], **values: Part | str) -> float:
    return made({"name": "eps-p", **values}).measure_path(path, TRUTH)


def test_it_is_the_mean_over_all_guesses_or_the_last():
    path = [noisy(TRUTH, deviation).clamp(0, 1) for deviation in (0.4, 0.2, 0.0)]
    largest = math.sqrt(3 * 32 * 32)
    distances = [float(np.linalg.norm((guess - TRUTH).double().numpy())) for guess in path]
    assert score(path) == pytest.approx((largest - sum(distances) / 3) / largest, rel=1e-6)
    assert score(path, iterates="last") == 1


def test_a_slow_attack_looks_private_under_the_mean():
    quick = [torch.zeros(3, 32, 32), TRUTH, TRUTH, TRUTH]
    slow = [torch.zeros(3, 32, 32)] * 3 + [TRUTH]
    assert score(slow) < score(quick)
    assert score(slow, iterates="last") == score(quick, iterates="last")


@pytest.mark.parametrize("iterates", ["all", "last"])
def test_the_score_without_a_guess_is_zero(iterates: str):
    assert score([], iterates=iterates) == 0


# --- a classifier -----------------------------------------------------------------------------------------


def test_kl_is_the_divergence_of_two_answers():
    torchvision()  # a plain import of torchvision fails with a CPU build of torch
    from torchvision.transforms.v2.functional import normalize, resize

    from engine.metrics.pictures.networks import squeezenet

    def probabilities(picture: torch.Tensor) -> np.ndarray:
        inputs = normalize(resize(picture, [224, 224], antialias=False), [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
        logits = squeezenet()(inputs[None])[0].double().numpy()
        exponentials = np.exp(logits - logits.max())
        return np.asarray(np.maximum(exponentials / exponentials.sum(), 1e-8))

    real = probabilities(TRUTH)
    guessed = probabilities(GUESS)
    expected = float(np.sum(real * np.log(real / guessed)))
    assert measured("kl-squeezenet", GUESS, TRUTH) == pytest.approx(expected, rel=1e-4)
    assert measured("kl-squeezenet", TRUTH, GUESS) != pytest.approx(measured("kl-squeezenet", GUESS, TRUTH), rel=0.01)


def test_kl_is_never_below_zero(monkeypatch: pytest.MonkeyPatch):
    """Many probabilities raised to the smallest allowed one sum to more than 1."""
    logits = torch.full((2, 1000), -40.0)
    logits[1] = torch.linspace(-17, -16, 1000)
    logits[:, 0] = 0
    monkeypatch.setattr("engine.metrics.pictures.networks.squeezenet", lambda: lambda inputs: logits)
    divergence = measured("kl-squeezenet", GREY, GREY)
    assert 0 <= divergence < 1e-3
