"""The cliff: the noise that hides a picture, from the best attack at each noise of a series."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.results.attack_summary import LOUD, AttackCell, best_cell, of_column, working_attacks
from engine.results.verdict import LEAKS, Verdict

BELOW = 10**1.5  # the series starts this far below the region: some attacks are weak, and fail sooner
ABOVE = 10.0  # and ends this far above it
CLOSE = 0.05  # a ratio this near an end of the region counts as that end


@dataclass(frozen=True)
class CliffPoint:
    """The best attack at one noise."""

    noise: float | None  # None: the baseline
    ratio: float  # noise over signal of this upload
    psnr: float
    state: str
    reason: str
    attack: str
    verdict: Verdict | None
    done: int  # attacks that have finished
    of: int

    @property
    def leaks(self) -> bool:
        """Whether something of the picture was recovered."""
        return self.verdict in LEAKS

    @property
    def readable_though_noisy(self) -> bool:
        """Whether something of the picture was recovered from an upload that is more noise than signal."""
        return self.leaks and self.ratio > LOUD


@dataclass(frozen=True)
class Cliff:
    """The measured points of a series, and what follows from them."""

    baseline: CliffPoint | None
    points: tuple[CliffPoint, ...]  # by noise over signal
    trivial: float | None
    complete: bool  # all attacks have finished
    worked: bool  # whether an attack succeeds on the baseline; else the other points show nothing
    signal: float | None = None  # the length of the upload before noise
    bound: float | None = None  # the largest length that the clip allows

    @property
    def last_success(self) -> CliffPoint | None:
        """The point with the most noise at which an attack succeeds."""
        return max((point for point in self.points if point.leaks), key=_ratio, default=None)

    @property
    def first_hidden(self) -> CliffPoint | None:
        """The point with the least noise from which on no attack succeeds."""
        last_ratio = self.last_success.ratio if self.last_success else 0.0
        return min((point for point in self.points if point.ratio > last_ratio), key=_ratio, default=None)

    def position(self, region: tuple[float, float]) -> str:
        """Where the picture is hidden: `inside` the region, `sooner` or `later`; empty if it is never hidden."""
        last, first = self.last_success, self.first_hidden
        if first is None:
            return ""
        if first.ratio <= region[0] * (1 + CLOSE):
            return "sooner"
        return "later" if last and last.ratio >= region[1] * (1 - CLOSE) else "inside"


def _ratio(point: CliffPoint) -> float:
    return point.ratio


def levels(region: tuple[float, float], parameters: int, count: int = 9) -> tuple[float, ...]:
    """Noise multipliers around the region, in equal factors, if the clip binds the whole update."""
    least = region[0] / BELOW
    most = region[1] * ABOVE
    ratios = [least * (most / least) ** (place / (count - 1)) for place in range(count)]
    return tuple(float(f"{ratio / math.sqrt(parameters):.3g}") for ratio in ratios)


def collect_cliff(columns: Mapping[str, float | None], cells: Sequence[AttackCell], titles: Mapping[str, str]) -> Cliff:
    """The cliff of the first picture of the upload. `columns` has the noise of each column, None for the baseline."""
    points: list[CliffPoint] = []
    for column, noise in columns.items():
        point = _point(noise, of_column(cells, column), titles)
        if point is not None:
            points.append(point)
    baselines = [column for column, noise in columns.items() if noise is None]
    able = [cell for cell in cells if cell.id]
    facts = _clip_facts(cells)
    return Cliff(
        baseline=next((point for point in points if point.noise is None), None),
        points=tuple(sorted((point for point in points if point.noise is not None), key=_ratio)),
        trivial=_trivial(cells),
        complete=bool(able) and all(cell.done for cell in able),
        worked=any(working_attacks(cells, column) for column in baselines),
        signal=facts.get("signal"),
        bound=facts.get("bound"),
    )


def _trivial(cells: Sequence[AttackCell]) -> float | None:
    for cell in cells:
        trivial = cell.trivial(0)
        if trivial is not None:
            return trivial
    return None


def _clip_facts(cells: Sequence[AttackCell]) -> Mapping[str, Any]:
    """The facts of the first upload with a clip on the whole update; empty if another view than the server saw it."""
    for cell in cells:
        if cell.seen and cell.seen.facts.get("clip") == "whole-update":
            return cell.seen.facts if cell.seen.view == "server" else {}
    return {}


def _point(noise: float | None, cells: Sequence[AttackCell], titles: Mapping[str, str]) -> CliffPoint | None:
    done = [cell for cell in cells if cell.done]
    cell = best_cell(done, 0)
    if cell is None or cell.seen is None or cell.judged is None:
        return None
    psnr = cell.psnr(0)
    assert psnr is not None
    return CliffPoint(
        noise=noise,
        ratio=float(cell.seen.facts.get("noise-to-signal") or 0.0),
        psnr=psnr,
        state=cell.judged.state,
        reason=cell.judged.reason,
        attack=titles.get(cell.attack, cell.attack),
        verdict=cell.verdict(0),
        done=len(done),
        of=sum(bool(cell.id) for cell in cells),
    )
