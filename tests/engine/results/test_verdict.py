"""The verdict gives the words of people to pictures that people judged, and no leak to a guess that needs no upload."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.datasets import DATASETS
from engine.leakage.judge import measure_pairs
from engine.leakage.neighbours import Neighbours, nearest
from engine.results.attack_summary import picture_scores, verdicts
from engine.results.verdict import (
    COMES_BACK,
    KIND,
    LEAKS,
    NOT_RECOGNISED,
    OUTLINES,
    VERDICTS,
    PictureScores,
    Verdict,
    verdict,
)
from tests.app.screens.leak.makers import judged

JUDGED = json.loads((Path(__file__).parent / "judged_by_eye.json").read_text(encoding="utf-8"))
BETTER = {"psnr": max, "ssim": max, "lpips": min}


def scores_of(row: Mapping[str, Any], lpips: bool = True) -> PictureScores:
    numbers = row["numbers"]
    trivial = {name: better(row["trivial"][name], row["mean"][name]) for name, better in BETTER.items()}
    near = row["nearest"] if lpips else {}
    return PictureScores(
        psnr=numbers["psnr"],
        ssim=numbers["ssim"],
        lpips=numbers["lpips"] if lpips else None,
        trivial=trivial,
        nearer=near.get("nearer"),
        kind=near.get("kind"),
    )


def test_b04_the_verdict_is_what_people_see() -> None:
    assert len(JUDGED) == 220 and all(row["first"] in VERDICTS and row["second"] in VERDICTS for row in JUDGED)
    assert sum(row["first"] == row["second"] for row in JUDGED) == 203
    words = [(verdict(scores_of(row)), {row["first"], row["second"]}) for row in JUDGED]
    assert sum(word in seen for word, seen in words) == 175
    assert sum(word not in LEAKS and bool(seen <= set(LEAKS)) for word, seen in words) == 14
    assert sum(word in LEAKS and not seen & set(LEAKS) for word, seen in words) == 11


def test_without_lpips_two_metrics_decide_and_no_kind_is_named() -> None:
    words = [(verdict(scores_of(row, lpips=False)), {row["first"], row["second"]}) for row in JUDGED]
    assert KIND not in {word for word, _ in words}
    leaks = [(word in LEAKS, bool(seen & set(LEAKS))) for word, seen in words if KIND not in seen]
    assert sum(word == seen for word, seen in leaks) / len(leaks) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fashion-mnist", "mnist", "cifar10"])
def test_a_guess_that_needs_no_upload_is_not_recognised_and_the_original_comes_back(name: str) -> None:
    data = DATASETS.make(name).load()
    half = len(data.test_y) // 2
    originals, labels = data.test_x[5 : half : half // 6][:5], data.test_y[5 : half : half // 6][:5]
    noise = torch.rand(originals.shape, generator=torch.Generator().manual_seed(1), device="cpu")
    guesses = {
        "mean colour": originals.mean(dim=(2, 3), keepdim=True).expand_as(originals),
        "mean picture": data.test_x[half:].mean(dim=0).expand_as(originals),
        "black": torch.zeros_like(originals),
        "noise": noise,
        "original": originals,
    }
    neighbours = Neighbours(data.test_x[:half], data.test_y[:half], data.train_x, data.train_y)
    for title, guess in guesses.items():
        words = words_of(guess, originals, labels, neighbours, (guesses["mean colour"], guesses["mean picture"]))
        assert words == [COMES_BACK if title == "original" else NOT_RECOGNISED] * 5, title


def words_of(
    guess: Tensor, originals: Tensor, labels: Tensor, neighbours: Neighbours, trivial: tuple[Tensor, Tensor]
) -> list[Verdict]:
    numbers = {name: measure_pairs(name, guess, originals) for name in BETTER}
    floors = {name: [measure_pairs(name, each, originals) for each in trivial] for name in BETTER}
    near = nearest(guess, originals, labels, neighbours)
    words = []
    for place in range(len(originals)):
        best = {name: better(floor[place] for floor in floors[name]) for name, better in BETTER.items()}
        scores = PictureScores(
            numbers["psnr"][place], numbers["ssim"][place], numbers["lpips"][place], best,
            near["nearer"][place], near["kind"][place],
        )  # fmt: skip
        words.append(verdict(scores))
    return words


def test_a02_a_picture_with_less_psnr_than_grey_can_come_back_in_outlines() -> None:
    """The skimage cat against ConvNet: 16.6 dB where grey reaches 18.8, SSIM .54, and face and eyes are obvious."""
    cat = PictureScores(16.6, 0.54, 0.4, {"psnr": 18.8, "ssim": 0.3, "lpips": 0.8})
    assert verdict(cat) == OUTLINES


def test_an_attack_of_an_earlier_version_has_a_verdict_without_ranks() -> None:
    old = judged([30.0, 14.0])
    assert not old.mean_picture and not old.nearest
    scores = picture_scores(old, 0)
    assert scores is not None and (scores.nearer, scores.trivial["psnr"]) == (None, 14.0)
    assert verdicts(old) == (COMES_BACK, NOT_RECOGNISED)
    assert picture_scores(old, 2) is None  # an original without a guess
