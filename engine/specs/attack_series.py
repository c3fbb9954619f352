"""The attacks behind the grid: a series of noises, a ladder of observers, and the questions of a blind test.

All are cells of the same grid with other settings, so an attack that the grid has keeps its id and runs once.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.specs.attack_grid import NOISY, NONE, OF_RUN, AttackGrid, RequestedAttack, column_key

VIEWS = ("server", "aggregate", "client", "outsider")  # of a ladder: the view that sees most comes first
PREFERRED = "map"  # it uses the noise level, so noise hurts it less
SHOWN = 12  # test pictures that a page shows; a blind test has others
SET = 8  # reconstructions in a set, half of them without protection
CHOICES = 6


@dataclass(frozen=True)
class BlindQuestion:
    """A reconstruction, and the pictures to choose its original from."""

    name: str  # of the original
    protected: bool
    request: RequestedAttack
    choices: tuple[str, ...]  # names of pictures, in the order shown

    @property
    def truth(self) -> int:
        """The index of the original among the choices."""
        return self.choices.index(self.name)


def main_attack(names: Sequence[str]) -> str:
    """The attack of a series with only one: `map` if it is among them, or else the first."""
    return PREFERRED if PREFERRED in names else names[0]


# --- noises and observers ----------------------------------------------------------------------------------


def cliff_grid(grid: AttackGrid, noises: Sequence[float]) -> AttackGrid:
    """The attacks of a grid against its baseline and against noise by each client, at each of these noises."""
    return replace(grid, columns=(NONE, *(column_key(NOISY, noise) for noise in noises)))


def ladder_requests(grid: AttackGrid, column: str, attack: str) -> tuple[RequestedAttack, ...]:
    """One attack against one protection of the grid, seen by each observer in the order of `VIEWS`.

    All observe the same run: with a budget, the noise is that of the observer of the grid.
    """
    fixed = replace(grid, run=grid.runs()[column], columns=(OF_RUN,), attacks=(attack,))
    requests = []
    for view in VIEWS:
        last = replace(fixed, view=view).requests()[-1]  # the baseline comes first, unless it is this run
        requests.append(replace(last, column=column))
    return tuple(requests)


def _single(grid: AttackGrid, column: str, attack: str) -> RequestedAttack:
    requests = replace(grid, columns=(column,), attacks=(attack,)).requests()  # the baseline is always there
    return next(request for request in requests if request.column == column)


# --- the blind test ----------------------------------------------------------------------------------------


def questions(grid: AttackGrid, attack: str, number: int) -> list[BlindQuestion]:
    """One set of questions: half without protection, half under the other columns of the grid in turn.

    The set is shuffled, so the order does not reveal which reconstructions are protected.
    """
    labels = public_labels(grid)
    signature = settings_text(grid)
    runs = grid.runs()
    baseline = next(iter(runs))
    protected = [column for column in runs if column != NONE] or [baseline]
    questions = []
    for place, name in enumerate(originals(grid, number, len(labels))):
        column = baseline if place % 2 else protected[(number * SET + place) // 2 % len(protected)]
        has_guarantee = runs[column].method.unit() is not None
        request = _single(replace(grid, pictures=upload_of(grid, name)), column, attack)
        questions.append(BlindQuestion(name, has_guarantee, request, choices(name, labels, signature)))
    random.Random(f"{signature}/{number}").shuffle(questions)
    return questions


def settings_text(grid: AttackGrid) -> str:
    """All settings of a grid except its pictures, as JSON. Equal texts make equal questions.

    Only pictures that a page shows besides are left out, so that no one has seen an original.
    """
    settings = [
        grid.run.id, grid.view, grid.round, grid.upload, grid.attacks, list(grid.runs()), grid.iterations,
        grid.restarts, grid.seed, len(grid.pictures),
    ]  # fmt: skip
    return json.dumps(settings)


def public_labels(grid: AttackGrid) -> list[int]:
    """The labels of the first half of the test pictures. An attack may have been trained on the second."""
    labels: list[int] = grid.run.dataset.facts().test_y.tolist()
    return labels[: len(labels) // 2]


def originals(grid: AttackGrid, number: int, count: int) -> list[str]:
    """The originals of one set: test pictures from the first `count` that a page does not show."""
    end = count - len(grid.pictures) + 1  # the neighbours in the upload are from the first half, too
    names = [f"test-{place}" for place in range(SHOWN, end)]
    random.Random(settings_text(grid)).shuffle(names)
    seen = {*grid.pictures, *offered(grid.pictures[0])}
    unseen = [name for name in names if name not in seen]
    start = number * SET % max(1, len(unseen))
    return [*unseen[start:], *unseen[:start]][:SET]


def offered(name: str) -> tuple[str, ...]:
    """The test pictures that a page offers: the first ones, or those around a chosen one that is further on."""
    kind, _, place = name.partition("-")
    first = int(place) - SHOWN // 2 if kind == "test" and int(place) >= SHOWN else 0
    return tuple(f"test-{first + offset}" for offset in range(SHOWN))


def upload_of(grid: AttackGrid, name: str) -> tuple[str, ...]:
    """This test picture and the next ones, as many as the upload of the grid has."""
    first = _place(name)
    return tuple(f"test-{first + offset}" for offset in range(len(grid.pictures)))


def choices(name: str, labels: Sequence[int], signature: str) -> tuple[str, ...]:
    """The original among pictures of its class. A small class is filled up with pictures of other classes."""
    generator = random.Random(f"{signature}/{name}")
    original = _place(name)
    places = [place for place in range(len(labels)) if place != original]
    generator.shuffle(places)
    same_class = [place for place in places if labels[place] == labels[original]]
    other_classes = [place for place in places if labels[place] != labels[original]]
    decoys = (same_class + other_classes)[: CHOICES - 1]
    names = [name, *(f"test-{place}" for place in decoys)]
    generator.shuffle(names)
    return tuple(names)


def _place(name: str) -> int:
    return int(name.partition("-")[2])
