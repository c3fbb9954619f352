"""At which noise a picture disappears: the best attack at each noise of a series."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.results import attack_summary
from engine.results.attack_summary import AttackCell, best, of_column, working

LEAST = 0.001  # noise over signal at the quiet end of the series, where the clip binds
MOST = 10.0  # and at the loud end
CLOSE = 0.05  # what is this near an end of the region stands on it: gone there already is gone before


@dataclass(frozen=True)
class CliffPoint:
    """The best attack at one noise."""

    noise: float | None  # None: the control
    ratio: float  # noise over signal, as this upload was
    psnr: float
    state: str
    reason: str
    attack: str
    leaks: bool  # nearer than the mean colour by more than chance
    done: int  # attacks that are over
    of: int


@dataclass(frozen=True)
class Cliff:
    """Everything measured so far."""

    control: CliffPoint | None
    points: tuple[CliffPoint, ...]  # by noise over signal
    trivial: float | None
    complete: bool  # nothing is open any more
    worked: bool  # whether some attack reached its aim without noise: else nothing follows from the rest
    signal: float | None = None  # the length of the upload before noise
    bound: float | None = None  # what the clip lets through

    @property
    def last_open(self) -> CliffPoint | None:
        return max((one for one in self.points if one.leaks), key=lambda one: one.ratio, default=None)

    @property
    def first_held(self) -> CliffPoint | None:
        """The first noise from which on nothing came back."""
        beyond = self.last_open.ratio if self.last_open else 0.0
        return min((one for one in self.points if one.ratio > beyond), key=lambda one: one.ratio, default=None)

    def when(self, region: tuple[float, float]) -> str:
        """Whether the picture disappeared in the region, sooner or later; empty where it did not disappear."""
        last, first = self.last_open, self.first_held
        if first is None:
            return ""
        if first.ratio <= region[0] * (1 + CLOSE):
            return "sooner"
        return "later" if last and last.ratio >= region[1] * (1 - CLOSE) else "inside"


def levels(parameters: int, many: int = 9) -> tuple[float, ...]:
    """Noise multipliers whose noise is LEAST to MOST times the signal, where the clip binds the whole update."""
    decades = math.log10(MOST / LEAST)
    shares = [LEAST * 10 ** (decades * place / (many - 1)) for place in range(many)]
    return tuple(float(f"{share / math.sqrt(parameters):.3g}") for share in shares)


def collect_cliff(columns: Mapping[str, float | None], cells: Sequence[AttackCell], titles: Mapping[str, str]) -> Cliff:
    """`columns`: the noise of each, None for the control. The first picture of the upload is the one that counts."""
    points = [found for key, noise in columns.items() if (found := _point(noise, of_column(cells, key), titles))]
    noisy = sorted((one for one in points if one.noise is not None), key=lambda one: one.ratio)
    trivial = next((value for cell in cells if (value := cell.trivial(0)) is not None), None)
    seen = next((cell.seen for cell in cells if cell.seen and cell.seen.facts.get("clip") == "whole-update"), None)
    facts = seen.facts if seen and seen.view == "server" else {}
    able = [cell for cell in cells if cell.id]
    return Cliff(
        next((one for one in points if one.noise is None), None), tuple(noisy), trivial,
        bool(able) and all(cell.done for cell in able),
        any(working(cells, key) for key, noise in columns.items() if noise is None),
        facts.get("signal"), facts.get("bound"),
    )  # fmt: skip


def _point(noise: float | None, cells: Sequence[AttackCell], titles: Mapping[str, str]) -> CliffPoint | None:
    done = [cell for cell in cells if cell.done]
    found = best(done, 0)
    if found is None or found.seen is None or found.judged is None:
        return None
    psnr, gain = found.psnr(0), found.gain(0)
    assert psnr is not None
    return CliffPoint(
        noise, float(found.seen.facts.get("noise-to-signal") or 0.0), psnr, found.judged.state, found.judged.reason,
        titles.get(found.attack, found.attack), gain is not None and gain > attack_summary.BETTER,
        len(done), sum(bool(cell.id) for cell in cells),
    )  # fmt: skip
