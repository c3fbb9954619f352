"""What became of each attack of a grid: its guesses, its numbers, and the best of several."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.events import Event, Failed, Judged, Pictured, Seen, Step
from engine.specs.attack_grid import RequestedAttack

BETTER = 3.0  # dB above the mean colour: from there on something came back
WHOLE = 8.0  # dB above the mean colour: from there on people recognise the picture
MOVING = ("queued", "running")
METRICS = ("psnr", "ssim", "lpips")


@dataclass(frozen=True)
class Fate:
    """What became of one protection."""

    title: str
    gain: float | None  # dB above the mean colour, of the attack that came nearest; None: not everything is known yet
    psnr: float = 0.0

    @property
    def open(self) -> bool:
        return self.gain is not None and self.gain > BETTER

    @property
    def whole(self) -> bool:
        return self.gain is not None and self.gain > WHOLE


@dataclass(frozen=True)
class AttackEvents:
    """Where one attack stands and everything it said."""

    status: str  # of the store, or `stored`
    events: tuple[Event, ...]
    place: int | None = None  # in the queue


@dataclass(frozen=True)
class AttackCell:
    """One attack against one protection."""

    column: str
    attack: str
    id: str
    status: str = ""  # empty: nobody asked it yet
    problem: str = ""  # why it cannot be asked, or why it failed
    doing: str = ""  # before its first guess
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
        """How much of it is done."""
        if self.status and not self.moving:
            return 1.0
        return self.path[-1].iteration / max(1, self.path[-1].of) if self.path else 0.0

    @property
    def many(self) -> int:
        """Pictures in the upload."""
        return len(self.seen.originals) if self.seen else 0

    def psnr(self, picture: int) -> float | None:
        """How near its last guess of one picture came."""
        if self.judged is not None:
            return self.number("psnr", picture)
        found = moment(self.path[-1], picture) if self.path else None
        return found[1] if found else None

    def number(self, metric: str, picture: int) -> float | None:
        """One measure of the end, once it is judged."""
        return _of(self.judged.numbers.get(metric, ()), self.judged.places, picture) if self.judged else None

    def trivial(self, picture: int, metric: str = "psnr") -> float | None:
        """What the mean colour of the picture reaches."""
        if self.judged is not None:
            return _of(self.judged.trivial.get(metric, ()), self.judged.places, picture)
        values = self.seen.trivial.get(metric, ()) if self.seen else ()
        return finite(values[picture]) if picture < len(values) else None

    def gain(self, picture: int) -> float | None:
        """dB above the mean colour."""
        mine, plain = self.psnr(picture), self.trivial(picture)
        return None if mine is None or plain is None else mine - plain

    @property
    def best(self) -> tuple[float, float] | None:
        """dB above the mean colour and PSNR of the picture that came out best: one that leaks is a leak."""
        known = [
            (gain, psnr)
            for at in range(self.many)
            if (gain := self.gain(at)) is not None and (psnr := self.psnr(at)) is not None
        ]
        return max(known, default=None)


def moment(guess: Pictured, picture: int) -> tuple[str, float | None] | None:
    """What a guess shows of one original, and how near that is; None where it is the nearest to none."""
    if picture not in guess.places:
        return None
    at = guess.places.index(picture)
    return guess.pictures[at], finite(guess.psnr[at])


def _of(values: Sequence[float], places: Sequence[int], picture: int) -> float | None:
    """The number of one original, where the numbers stand in the order of places."""
    return finite(values[places.index(picture)]) if picture in places and values else None


def finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def collect_cell(asked: RequestedAttack, told: AttackEvents | None) -> AttackCell:
    """A cell from what is known of its attack."""
    if told is None:
        return AttackCell(asked.column, asked.attack, asked.id, problem=asked.problem)
    seen: Seen | None = None
    judged: Judged | None = None
    problem, doing = asked.problem, ""
    paths: dict[int, list[Pictured]] = {}
    for event in told.events:
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
    path = _shown(paths, judged)
    return AttackCell(
        asked.column, asked.attack, asked.id, told.status, problem, "" if path else doing, seen, path, judged
    )


def _shown(paths: Mapping[int, Sequence[Pictured]], judged: Judged | None) -> tuple[Pictured, ...]:
    """The restart that the attack chose; while it still works, the one that explains most so far."""
    if not paths:
        return ()
    if judged is not None and judged.restart in paths:
        return tuple(paths[judged.restart])
    best = min(paths, key=lambda restart: loss if (loss := paths[restart][-1].loss) is not None else math.inf)
    return tuple(paths[best])


def of_column(cells: Iterable[AttackCell], column: str) -> list[AttackCell]:
    return [cell for cell in cells if cell.column == column]


def best(cells: Sequence[AttackCell], picture: int) -> AttackCell | None:
    """The adversary envelope: across attacks by measured PSNR, which no adversary could choose by."""
    known = [(value, cell) for cell in cells if (value := cell.psnr(picture)) is not None]
    return max(known, key=lambda pair: pair[0])[1] if known else None


def working(cells: Sequence[AttackCell], control: str) -> tuple[str, ...]:
    """Attacks that reach their aim where nothing is protected: only these say anything about protection."""
    return tuple(
        cell.attack
        for cell in of_column(cells, control)
        if cell.judged and cell.judged.state == "converged" and cell.best and cell.best[0] > BETTER
    )


def fate(cells: Sequence[AttackCell], column: str, title: str) -> Fate:
    """What the attack that came nearest got from one protection, once all of them are done: a leak is a leak."""
    mine = [cell for cell in of_column(cells, column) if not cell.problem or cell.done]
    known = [found for cell in mine if (found := cell.best) is not None]
    if not known or not all(cell.done for cell in mine):
        return Fate(title, None)
    gain, psnr = max(known)
    return Fate(title, gain, psnr)


def fractions(cells: Sequence[AttackCell]) -> float:
    asked = [cell for cell in cells if cell.status]
    return sum(cell.share for cell in asked) / len(asked) if asked else 0.0
