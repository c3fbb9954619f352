"""The accuracy of a run that was not run, estimated from finished runs that differ from it in few fields.

The rule:

* A neighbour is a finished run that equals the target in every field except noise, server step and seed.
* The neighbours at one noise and one step give a mean over their seeds and its spread. The spread is at least
  `LEAST_SPREAD`: two or three seeds can agree by chance.
* At each noise, the runs with the server step of the target count. Without any, the two nearest steps around it are
  interpolated over the log of the step. Without two, the nearest step counts if it is within a factor of `NEAR_STEP`;
  each factor of ten then adds `OTHER_STEP` to the spread.
* The nearest noise below the target and the nearest above are interpolated over the log of the noise. Noise 0 has no
  log: from 0 to the least positive noise, the noise itself is the scale.
* The band is `SPREADS` spreads to each side. Half way between two neighbours it also has `BEND` of their difference,
  and `OTHER_STEP` for each factor of ten between the server steps that are best at the two noises.
* Outside the range of stored noises there is no estimate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any

LEAST_SPREAD = 0.03  # that of most points of the stored sweep is smaller
SPREADS = 2.0
BEND = 0.1
NEAR_STEP = 4.0
OTHER_STEP = 0.06
NEAR_GUESSING = 0.4  # of the best stored accuracy: below it, the best step is mostly chance
AS_GOOD = 0.01  # two server steps with means this near are about as good
NOISE = "noise"  # the field of most methods
# What is no setting of the training: the format of the result, and the observer of a target or budget.
NO_SETTINGS = ("format", "view")
SOLVED = ("target-epsilon", "budget")  # the noise or the rounds of such a run are not in its spec

Seeds = Mapping[int, float]  # accuracy by seed


@dataclass(frozen=True)
class RunPlace:
    """A spec as its position among its neighbours: `setting` is everything that they share."""

    setting: str
    noise: float
    step: float
    seed: int


@dataclass(frozen=True)
class Outcome:
    """A finished run: its spec, flat or as canonical JSON, and its last accuracy."""

    run: Mapping[str, Any]
    accuracy: float
    noise: str = NOISE  # the name of the method's field

    @cached_property
    def place(self) -> RunPlace | None:
        return place_of(self.run, self.noise)


@dataclass(frozen=True)
class Estimate:
    """An accuracy and its band. `exact`: a run with these very settings was measured."""

    value: float
    low: float
    high: float
    neighbours: int
    exact: bool = False


@dataclass(frozen=True)
class SeedMean:
    """The accuracy at one noise and step: a mean with its spread, over this many runs."""

    value: float
    spread: float
    runs: int


def estimate(outcomes: Iterable[Outcome], target: Mapping[str, Any], noise: str = NOISE) -> Estimate | None:
    """The accuracy of the target; None where nothing stored is near."""
    place = place_of(target, noise)
    if place is None:
        return None
    near = _neighbours(outcomes, place.setting)
    measured = near.get(place.noise, {}).get(place.step, {}).get(place.seed)
    if measured is not None:
        return Estimate(measured, measured, measured, 1, exact=True)
    by_noise = {level: _at_step(steps, place.step) for level, steps in near.items()}
    point = _between({level: mean for level, mean in by_noise.items() if mean}, place.noise)
    if point is None:
        return None
    half = SPREADS * point.spread + _of_other_steps(near, place.noise)
    return Estimate(point.value, max(0.0, point.value - half), min(1.0, point.value + half), point.runs)


def best_step(outcomes: Iterable[Outcome], target: Mapping[str, Any], noise: str = NOISE) -> float | None:
    """The server step with the best mean at the stored noise nearest to that of the target; None without a neighbour.

    Of steps that are about as good, it is the one nearest to that of the target. More noise never gets a larger step:
    where accuracies are near guessing, the best one is chance, and a large step makes the model diverge. There, it is
    the step of the next larger stored noise. It is a choice made on test data, as that of a sweep.
    """
    place = place_of(target, noise)
    near = _neighbours(outcomes, place.setting) if place else {}
    if place is None or not near:
        return None
    level = _level_of_step(near, place.noise)
    if level is None:
        return None
    largest = math.inf
    good: list[float] = []
    for stored in sorted(each for each in near if each <= level):
        means = {step: fmean(seeds.values()) for step, seeds in near[stored].items() if step <= largest}
        if means:
            good = [step for step, mean in means.items() if mean >= max(means.values()) - AS_GOOD]
            largest = max(good)
    return min(good, key=lambda step: abs(math.log(step / place.step)))


def _level_of_step(near: Mapping[float, Mapping[float, Seeds]], noise: float) -> float | None:
    """The stored noise whose best server step goes with this noise."""
    if noise == 0:
        return min(near)
    positive = [stored for stored in near if stored > 0]
    if not positive:
        return None
    level = min(positive, key=lambda stored: abs(math.log(stored / noise)))
    best = {stored: max(fmean(seeds.values()) for seeds in steps.values()) for stored, steps in near.items()}
    if best[level] < NEAR_GUESSING * max(best.values()):
        return min((stored for stored in positive if stored >= noise), default=level)
    return level


def place_of(run: Mapping[str, Any], noise: str = NOISE) -> RunPlace | None:
    """The position of a spec; None for one without a noise of its own."""
    settings = _flat(run)
    level = settings.pop(f"method.{noise}", None)
    if level is None or any(settings.get(name) is not None for name in SOLVED):
        return None
    step = settings.pop("method.server-step", 1.0)
    seed = settings.pop("seed", 0)
    kept = {name: value for name, value in settings.items() if value is not None and name not in NO_SETTINGS}
    return RunPlace(repr(sorted(kept.items())), float(level), float(step), int(seed))


def _flat(run: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a spec by their paths, such as `method.noise`."""
    settings: dict[str, Any] = {}
    for name, value in run.items():
        if not isinstance(value, Mapping):
            settings[name] = value
            continue
        settings[name] = value.get("name")
        for field, inner in value.items():
            if field != "name":
                settings[f"{name}.{field}"] = inner
    return settings


def _neighbours(outcomes: Iterable[Outcome], setting: str) -> dict[float, dict[float, dict[int, float]]]:
    """The accuracies of one setting by noise, step and seed. The same run may be stored twice."""
    near: dict[float, dict[float, dict[int, float]]] = {}
    for outcome in outcomes:
        place = outcome.place
        if place is not None and place.setting == setting:
            near.setdefault(place.noise, {}).setdefault(place.step, {})[place.seed] = outcome.accuracy
    return near


def _at_step(steps: Mapping[float, Seeds], step: float) -> SeedMean | None:
    """The accuracy of one noise at this server step; None where no stored step is near."""
    means = {stored: _mean(tuple(seeds.values())) for stored, seeds in steps.items()}
    around = _between(means, step)
    if around is not None:
        return around
    nearest = min(means, key=lambda stored: abs(math.log(stored / step)))
    factor = abs(math.log(nearest / step))
    if factor > math.log(NEAR_STEP):
        return None
    mean = means[nearest]
    return replace(mean, spread=mean.spread + OTHER_STEP * factor / math.log(10))


def _mean(accuracies: Sequence[float]) -> SeedMean:
    spread = stdev(accuracies) if len(accuracies) > 1 else LEAST_SPREAD
    return SeedMean(fmean(accuracies), max(LEAST_SPREAD, spread), len(accuracies))


def _of_other_steps(near: Mapping[float, Mapping[float, Seeds]], noise: float) -> float:
    """What the band has more where the two stored noises around this one have different best server steps."""
    around = _around(near, noise)
    if noise in near or around is None:
        return 0.0
    low, high, share = around
    factor = _best(near[low]) / _best(near[high])
    return 4 * share * (1 - share) * OTHER_STEP * abs(math.log10(factor))


def _best(steps: Mapping[float, Seeds]) -> float:
    """The server step with the best mean."""
    return max(steps, key=lambda step: fmean(steps[step].values()))


def _between(points: Mapping[float, SeedMean], at: float) -> SeedMean | None:
    """The point at a value between its two nearest neighbours; None outside of all points."""
    if at in points:
        return points[at]
    around = _around(points, at)
    if around is None:
        return None
    low, high, share = around
    return _mixed(points[low], points[high], share)


def _around(levels: Iterable[float], at: float) -> tuple[float, float, float] | None:
    """The two nearest values around this one, and its share of the way between them; None outside of all values."""
    for low, high in pairwise(sorted(levels)):
        if low < at < high:
            return low, high, at / high if low == 0 else math.log(at / low) / math.log(high / low)
    return None


def _mixed(low: SeedMean, high: SeedMean, share: float) -> SeedMean:
    """A point between two, at this share of the way. Half way it is least certain."""
    value = low.value + share * (high.value - low.value)
    spread = low.spread + share * (high.spread - low.spread)
    bend = 4 * share * (1 - share) * BEND * abs(high.value - low.value) / SPREADS
    return SeedMean(value, spread + bend, low.runs + high.runs)
