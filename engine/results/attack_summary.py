"""The results of the attacks of a grid: guesses, measured numbers, and the best of several attacks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.events import Event, Failed, Judged, Pictured, Seen, Step
from engine.specs.attack_grid import RequestedAttack

BETTER = 3.0  # dB above the mean colour: from here on, part of the picture was recovered
WHOLE = 8.0  # dB above the mean colour: from here on, people recognise the picture
MOVING = ("queued", "running")
METRICS = ("psnr", "ssim", "lpips")


@dataclass(frozen=True)
class ProtectionResult:
    """The best result of all attacks against one protection."""

    title: str
    gain: float | None  # dB above the mean colour, of the best attack; None: some attacks have not finished
    psnr: float = 0.0

    @property
    def open(self) -> bool:
        """Whether part of the picture was recovered."""
        return self.gain is not None and self.gain > BETTER

    @property
    def whole(self) -> bool:
        """Whether people recognise the recovered picture."""
        return self.gain is not None and self.gain > WHOLE


@dataclass(frozen=True)
class AttackEvents:
    """The status of one attack and its events."""

    status: str  # in the store; `stored` for an example that ships
    events: tuple[Event, ...]
    place: int | None = None  # in the queue


@dataclass(frozen=True)
class AttackCell:
    """One attack against one protection."""

    column: str
    attack: str
    id: str
    status: str = ""  # empty: it was not requested yet
    problem: str = ""  # why it cannot run, or why it failed
    doing: str = ""  # its current step, before its first guess
    seen: Seen | None = None
    path: tuple[Pictured, ...] = ()  # the guesses of the restart that is shown
    judged: Judged | None = None

    @property
    def moving(self) -> bool:
        return self.status in MOVING

    @property
    def done(self) -> bool:
        return self.judged is not None

    @property
    def share(self) -> float:
        """The fraction of the attack that is done."""
        if self.status and not self.moving:
            return 1.0
        if not self.path:
            return 0.0
        return self.path[-1].iteration / max(1, self.path[-1].of)

    @property
    def picture_count(self) -> int:
        """The number of pictures in the upload."""
        return len(self.seen.originals) if self.seen else 0

    def psnr(self, picture: int) -> float | None:
        """The PSNR of the last guess of one picture."""
        if self.judged is not None:
            return self.number("psnr", picture)
        guess = guess_of(self.path[-1], picture) if self.path else None
        return guess[1] if guess else None

    def number(self, metric: str, picture: int) -> float | None:
        """A metric of the final guess; None before the attack has finished."""
        if self.judged is None:
            return None
        return _of_picture(self.judged.numbers.get(metric, ()), self.judged.places, picture)

    def trivial(self, picture: int, metric: str = "psnr") -> float | None:
        """The same metric for the mean colour of the picture."""
        if self.judged is not None:
            return _of_picture(self.judged.trivial.get(metric, ()), self.judged.places, picture)
        values = self.seen.trivial.get(metric, ()) if self.seen else ()
        return finite(values[picture]) if picture < len(values) else None

    def gain(self, picture: int) -> float | None:
        """PSNR above the mean colour, in dB."""
        psnr = self.psnr(picture)
        trivial = self.trivial(picture)
        return None if psnr is None or trivial is None else psnr - trivial

    @property
    def best(self) -> tuple[float, float] | None:
        """Gain and PSNR of the best recovered picture: one leaked picture makes the upload a leak."""
        results: list[tuple[float, float]] = []
        for picture in range(self.picture_count):
            gain = self.gain(picture)
            psnr = self.psnr(picture)
            if gain is not None and psnr is not None:
                results.append((gain, psnr))
        return max(results, default=None)


def guess_of(guess: Pictured, picture: int) -> tuple[str, float | None] | None:
    """The guessed picture that is nearest to an original, and its PSNR; None if no guessed picture is."""
    if picture not in guess.places:
        return None
    place = guess.places.index(picture)
    return guess.pictures[place], finite(guess.psnr[place])


def _of_picture(values: Sequence[float], places: Sequence[int], picture: int) -> float | None:
    """The value of one original, where the values are in the order of `places`."""
    return finite(values[places.index(picture)]) if picture in places and values else None


def finite(value: float | None) -> float | None:
    """The value, or None if it is not a finite number."""
    return value if value is not None and math.isfinite(value) else None


def collect_cell(request: RequestedAttack, recorded: AttackEvents | None) -> AttackCell:
    """The cell of a requested attack, from the events that it has so far."""
    if recorded is None:
        return AttackCell(request.column, request.attack, request.id, problem=request.problem)
    seen: Seen | None = None
    judged: Judged | None = None
    problem = request.problem
    doing = ""
    paths: dict[int, list[Pictured]] = {}
    for event in recorded.events:
        if isinstance(event, Seen):
            seen = event
        elif isinstance(event, Pictured):
            paths.setdefault(event.restart, []).append(event)
        elif isinstance(event, Judged):
            judged = event
        elif isinstance(event, Step):
            doing = event.what
        elif isinstance(event, Failed):
            problem = f"{event.reason}. {event.remedy}.".replace(". .", ".")
    path = _chosen_path(paths, judged)
    return AttackCell(
        column=request.column,
        attack=request.attack,
        id=request.id,
        status=recorded.status,
        problem=problem,
        doing="" if path else doing,
        seen=seen,
        path=path,
        judged=judged,
    )


def _chosen_path(paths: Mapping[int, Sequence[Pictured]], judged: Judged | None) -> tuple[Pictured, ...]:
    """The guesses of the restart that the attack chose; of a running attack, those with the lowest loss so far."""
    if not paths:
        return ()
    if judged is not None and judged.restart in paths:
        return tuple(paths[judged.restart])

    def loss(restart: int) -> float:
        value = paths[restart][-1].loss
        return math.inf if value is None else value

    return tuple(paths[min(paths, key=loss)])


def of_column(cells: Iterable[AttackCell], column: str) -> list[AttackCell]:
    """The cells of one column."""
    return [cell for cell in cells if cell.column == column]


def best_cell(cells: Sequence[AttackCell], picture: int) -> AttackCell | None:
    """The attack with the highest measured PSNR. An attacker could not choose it, because it needs the original."""
    best: AttackCell | None = None
    highest = -math.inf
    for cell in cells:
        psnr = cell.psnr(picture)
        if psnr is not None and psnr > highest:
            best, highest = cell, psnr
    return best


def working_attacks(cells: Sequence[AttackCell], baseline: str) -> tuple[str, ...]:
    """The attacks that succeed in the column of the baseline. Only these show anything about protection."""
    attacks: list[str] = []
    for cell in of_column(cells, baseline):
        converged = cell.judged is not None and cell.judged.state == "converged"
        if converged and cell.best is not None and cell.best[0] > BETTER:
            attacks.append(cell.attack)
    return tuple(attacks)


def protection_result(cells: Sequence[AttackCell], column: str, title: str) -> ProtectionResult:
    """The best result against one protection, once all its attacks have finished."""
    able = [cell for cell in of_column(cells, column) if not cell.problem or cell.done]
    results = [cell.best for cell in able if cell.best is not None]
    if not results or not all(cell.done for cell in able):
        return ProtectionResult(title, None)
    gain, psnr = max(results)
    return ProtectionResult(title, gain, psnr)


def done_fraction(cells: Sequence[AttackCell]) -> float:
    """The fraction of all requested attacks that is done."""
    requested = [cell for cell in cells if cell.status]
    return sum(cell.share for cell in requested) / len(requested) if requested else 0.0
