"""The verdict on a reconstructed picture, in four words, from PSNR, SSIM and LPIPS.

Two readers judged 220 pictures by eye; the thresholds are fitted to their words (assets/docs/verdict.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["comes back", "outlines come back", "only the kind of thing shows", "not recognised"]

COMES_BACK: Verdict = "comes back"
OUTLINES: Verdict = "outlines come back"
KIND: Verdict = "only the kind of thing shows"
NOT_RECOGNISED: Verdict = "not recognised"
VERDICTS = (NOT_RECOGNISED, KIND, OUTLINES, COMES_BACK)  # from the least leakage to the most
LEAKS = (COMES_BACK, OUTLINES)  # something of this very picture was recovered

NEARER = 0.1  # of the class: if more pictures of it are nearer to the guess than the original, it is not this picture
OF_ITS_KIND = 0.65  # chance that a picture of the class is nearer to the guess than one of another class
LIKE_A_PICTURE = 0.7  # of the LPIPS of the better trivial guess: above it, a guess shows no kind of thing


@dataclass(frozen=True)
class Threshold:
    """What a guess must reach in at least two of three metrics."""

    psnr: float  # dB above the better trivial guess
    ssim: float
    lpips: float  # as a fraction of the better trivial guess


WHOLE = Threshold(psnr=2.0, ssim=0.55, lpips=0.4)
PART = Threshold(psnr=2.0, ssim=0.3, lpips=0.95)


@dataclass(frozen=True)
class PictureScores:
    """The scores of a guess and of the better of two trivial guesses: the mean colour and the public mean picture."""

    psnr: float
    ssim: float
    lpips: float | None  # None: it could not be computed
    trivial: Mapping[str, float]  # by metric
    nearer: float | None = None  # see `events.Judged.nearest`; None: the picture has no class
    kind: float | None = None


def verdict(scores: PictureScores) -> Verdict:
    """What people see in the guess. Without LPIPS, the two other metrics decide."""
    needed = 2 if scores.lpips is not None else 1
    whole = votes(scores, WHOLE) >= 2
    part = whole or votes(scores, PART) >= needed
    if of_its_kind(scores) and (part or like_a_picture(scores)):
        return KIND
    if whole:
        return COMES_BACK
    return OUTLINES if part else NOT_RECOGNISED


def of_its_kind(scores: PictureScores) -> bool:
    """Whether the guess shows the class of the original, and other pictures of this class as much as the original."""
    if scores.nearer is None or scores.kind is None:
        return False
    return scores.nearer >= NEARER and scores.kind >= OF_ITS_KIND


def like_a_picture(scores: PictureScores) -> bool:
    """Whether LPIPS finds the guess clearly better than a trivial one."""
    return scores.lpips is not None and scores.lpips < LIKE_A_PICTURE * scores.trivial.get("lpips", 0.0)


def votes(scores: PictureScores, threshold: Threshold) -> int:
    """How many metrics find the guess at least this good. A trivial guess gets no vote by definition of `trivial`."""
    psnr = scores.psnr > scores.trivial.get("psnr", 0.0) + threshold.psnr
    ssim = scores.ssim > max(threshold.ssim, scores.trivial.get("ssim", 0.0))
    lpips = scores.lpips is not None and scores.lpips < threshold.lpips * scores.trivial.get("lpips", 0.0)
    return psnr + ssim + lpips


def rank(word: Verdict | None) -> int:
    """The place of a verdict from the least leakage to the most; below all for None."""
    return VERDICTS.index(word) if word else -1
