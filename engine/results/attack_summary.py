"""The results of the attacks of a grid: guesses, measured numbers, and the best of several attacks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.events import Event, Failed, Judged, Pictured, Seen, Step
from engine.results.verdict import LEAKS, PictureScores, Verdict, rank, verdict
from engine.specs.attack_grid import RequestedAttack

LOUD = 1.0  # noise over signal: from here on, a picture that leaks is readable though noisy
CLEARLY = 3.0  # standard deviations of a count
SIGNIFICANT = 0.01  # p of a matching test, divided by the number of attacks that tried
MOVING = ("queued", "running")
METRICS = ("psnr", "ssim", "lpips")
BETTER = {"psnr": max, "ssim": max, "lpips": min}  # which of two scores is the better one


@dataclass(frozen=True)
class Matching:
    """How many guesses of an upload are nearest to one of its pictures, and whether that is more than chance."""

    hits: int
    guesses: int
    p: float

    @property
    def chance(self) -> float:
        """The hits expected by chance: half of all candidates are pictures of the upload."""
        return self.guesses / 2


@dataclass(frozen=True)
class ProtectionResult:
    """The best result of all attacks against one protection."""

    title: str
    verdict: Verdict | None  # of the picture that came back best; None: some attacks have not finished
    psnr: float = 0.0  # of that picture
    trivial: float = 0.0  # and of its mean colour
    pictures: int = 1  # in the upload
    others: int | None = None  # of an ordinary upload: how many pictures besides the chosen one leak
    chance: int | None = None  # and how many that were never sent would; None: not measured
    matching: Matching | None = None  # the test with the smallest p, corrected for the number of attacks

    @property
    def leaks(self) -> bool:
        """Whether something of a picture was recovered."""
        return self.verdict in LEAKS


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

    def verdict(self, picture: int) -> Verdict | None:
        """What people see in the final guess of one picture; None before the end, or without a guess."""
        scores = picture_scores(self.judged, picture) if self.judged else None
        return verdict(scores) if scores else None

    def leaks(self, picture: int) -> bool:
        """Whether something of this picture was recovered."""
        return self.verdict(picture) in LEAKS

    @property
    def best_picture(self) -> int | None:
        """The picture that came back best: one leaked picture makes the upload a leak.

        Of an ordinary upload it is the chosen one: among a hundred, some guess fits some picture.
        """
        if self.judged is None:
            return None
        if self.ordinary:
            return 0 if 0 in self.judged.places else None
        return max(self.judged.places, key=self._recovery, default=None)

    def _recovery(self, picture: int) -> tuple[int, float]:
        psnr = self.psnr(picture)
        return rank(self.verdict(picture)), -math.inf if psnr is None else psnr

    @property
    def ordinary(self) -> bool:
        """Whether the upload holds all records of a client, and the chosen picture is the first of them."""
        return self.seen is not None and self.seen.facts.get("upload", "listed") != "listed"

    @property
    def leaking_others(self) -> int:
        """How many pictures besides the first leak."""
        places = self.judged.places if self.judged else ()
        return sum(self.leaks(place) for place in places if place != 0)

    @property
    def by_chance(self) -> int | None:
        """How many pictures that were never sent fit a guess as well as one that leaks; None where not measured."""
        return leaks_by_chance(self.judged) if self.judged else None

    @property
    def works(self) -> bool:
        """Whether the attack brings something back; of an ordinary upload, also clearly more pictures than chance."""
        chance = self.by_chance if self.ordinary else None
        many = chance is not None and self.leaking_others > chance + CLEARLY * math.sqrt(chance + 1)
        return many or self.best_verdict in LEAKS

    @property
    def best_verdict(self) -> Verdict | None:
        """The verdict on the picture that came back best."""
        return None if self.best_picture is None else self.verdict(self.best_picture)

    @property
    def noise_ratio(self) -> float | None:
        """The noise of the upload over its signal."""
        value = self.seen.facts.get("noise-to-signal") if self.seen else None
        return None if value is None else float(value)

    @property
    def loud(self) -> bool:
        """Whether the upload is more noise than signal."""
        return self.noise_ratio is not None and self.noise_ratio > LOUD

    @property
    def matching(self) -> Matching | None:
        """The matching test, for an upload of several pictures that have classes.

        None where the server changed the model: the classes of such guesses are often wrong, which blinds the test.
        """
        tampered = self.seen is not None and bool(self.seen.facts.get("tampered"))
        return None if tampered or self.judged is None else matching_of(self.judged)


def picture_scores(judged: Judged, picture: int) -> PictureScores | None:
    """The scores of the guess of one picture, and of the better trivial guess; None without a guess."""

    def score(values: Mapping[str, Sequence[float]], name: str) -> float | None:
        return _of_picture(values.get(name, ()), judged.places, picture)

    psnr = score(judged.numbers, "psnr")
    ssim = score(judged.numbers, "ssim")
    if psnr is None or ssim is None:
        return None
    classed = [int(place) for place in judged.nearest.get("places", judged.places)]
    trivial: dict[str, float] = {}
    for name, better in BETTER.items():
        values = [score(guess, name) for guess in (judged.trivial, judged.mean_picture)]
        known = [value for value in values if value is not None]
        if known:
            trivial[name] = better(known)
    return PictureScores(
        psnr=psnr,
        ssim=ssim,
        lpips=score(judged.numbers, "lpips") if "lpips" in trivial else None,
        trivial=trivial,
        nearer=_of_picture(judged.nearest.get("nearer", ()), classed, picture),
        kind=_of_picture(judged.nearest.get("kind", ()), classed, picture),
    )


def leaks_by_chance(judged: Judged) -> int | None:
    """How many guesses fit a picture that was never sent, as if it had come back. None before version 0.5."""
    control = {name: values for name, values in judged.control.items() if values}
    if "psnr" not in control:
        return None
    count = 0
    for index in range(len(control["psnr"])):
        scores = {name: values[index] for name, values in control.items() if index < len(values)}
        trivial = {}
        for name, better in BETTER.items():
            if name in scores:
                trivial[name] = better(scores[f"trivial-{name}"], scores[f"mean-{name}"])
        known = PictureScores(
            psnr=scores["psnr"],
            ssim=scores["ssim"],
            lpips=scores.get("lpips"),
            trivial=trivial,
            nearer=scores.get("nearer"),
            kind=scores.get("kind"),
        )
        count += verdict(known) in LEAKS
    return count


def verdicts(judged: Judged) -> tuple[Verdict | None, ...]:
    """The verdict on each guess, in the order of `judged.places`."""
    scores = [picture_scores(judged, picture) for picture in judged.places]
    return tuple(verdict(each) if each else None for each in scores)


def matching_of(judged: Judged) -> Matching | None:
    """The matching test of a finished attack, if it has one."""
    test = judged.matching
    return Matching(int(test["hits"]), int(test["guesses"]), float(test["p"])) if test else None


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
    """The attack that leaks most by its verdict, then by PSNR; until all have ended, by PSNR.

    An attacker could not choose it without the original.
    """
    known = [(cell, cell.psnr(picture)) for cell in cells]
    shown = [(cell, psnr) for cell, psnr in known if psnr is not None]
    ended = all(cell.done for cell, _ in shown)

    def recovery(result: tuple[AttackCell, float]) -> tuple[int, float]:
        cell, psnr = result
        return rank(cell.verdict(picture)) if ended else 0, psnr

    return max(shown, key=recovery)[0] if shown else None


def working_attacks(cells: Sequence[AttackCell], baseline: str) -> tuple[str, ...]:
    """The attacks that leak in the column of the baseline, whatever their state.

    Only these show anything about protection.
    """
    return tuple(cell.attack for cell in of_column(cells, baseline) if cell.works)


def protection_result(cells: Sequence[AttackCell], column: str, title: str) -> ProtectionResult:
    """The best result against one protection, once all its attacks have finished."""
    able = [cell for cell in of_column(cells, column) if not cell.problem or cell.done]
    done = [(cell, cell.best_picture) for cell in able if cell.best_picture is not None]
    if not done or not all(cell.done for cell in able):
        return ProtectionResult(title, None)

    def recovery(result: tuple[AttackCell, int]) -> tuple[int, float]:
        cell, picture = result
        return rank(cell.verdict(picture)), cell.psnr(picture) or -math.inf

    cell, picture = max(((cell, picture) for cell, picture in done if picture is not None), key=recovery)
    widest = max((each for each, _ in done), key=lambda each: each.leaking_others)
    return ProtectionResult(
        title=title,
        verdict=cell.verdict(picture),
        psnr=cell.psnr(picture) or 0.0,
        trivial=cell.trivial(picture) or 0.0,
        pictures=cell.picture_count,
        others=widest.leaking_others if cell.ordinary else None,
        chance=widest.by_chance if cell.ordinary else None,
        matching=best_matching([cell for cell, _ in done]),
    )


def best_matching(cells: Sequence[AttackCell]) -> Matching | None:
    """The matching test with the smallest p. Each attack was one try, so p is multiplied by their number."""
    tests = [cell.matching for cell in cells]
    known = [test for test in tests if test is not None]
    if not known:
        return None
    best = min(known, key=lambda test: test.p)
    return Matching(best.hits, best.guesses, min(1.0, best.p * len(known)))


def done_fraction(cells: Sequence[AttackCell]) -> float:
    """The fraction of all requested attacks that is done."""
    requested = [cell for cell in cells if cell.status]
    return sum(cell.share for cell in requested) / len(requested) if requested else 0.0
