"""The remark on an attack: when it says that the attack converged, and why not."""

from __future__ import annotations

from dataclasses import replace

import torch

from engine.leakage.judge import share_text, state_of
from engine.records import Guess, ResidualScale


def end(unexplained: float, scale: ResidualScale) -> list[Guess]:
    pictures = torch.full((1, 1, 2, 2), 0.5, device="cpu")
    labels = torch.zeros(1, dtype=torch.long, device="cpu")
    return [Guess(at, 1, pictures, labels, 1.0, share, scale) for at, share in ((0, 1.0), (1, unexplained))]


def test_a04_pictures_that_hold_more_numbers_than_the_upload_never_converge() -> None:
    clear = ResidualScale(1.0, 0.0, 0.0, direct=False, pixels=6272, received=15826)
    fewer = ResidualScale(1.0, 0.0, 0.0, direct=False, pixels=24576, received=15826)
    assert state_of(end(1e-6, clear), 3e-4) == ("converged", "")
    assert state_of(end(1e-6, replace(clear, received=6272)), 3e-4) == ("converged", "")
    state, reason = state_of(end(1e-6, fewer), 3e-4)
    assert state == "not converged"
    assert reason == (
        "it explains the upload, and so would other pictures: they hold 24,576 numbers, and the upload 15,826"
    )


def test_a04_a_small_share_has_digits() -> None:
    scale = ResidualScale(1.0, 0.0, 0.0, direct=False)
    assert "leaves 0.12 % of what" in state_of(end(0.0012, scale), 3e-4)[1]
    assert [share_text(share) for share in (0.5, 0.02, 0.0004, 30.0)] == ["50 %", "2 %", "0.04 %", "999 %"]
