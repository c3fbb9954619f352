"""Who is before whom: methods ranked by what they reached here, beside the order in which a paper has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, pstdev

LEVEL = 0.0005  # a lead that rounds to 0.0 points


@dataclass(frozen=True)
class MethodScore:
    """One method: its accuracy here by seed, and in the paper."""

    label: str
    accuracies: Mapping[int, float]  # empty where no run finished
    reported: float


@dataclass(frozen=True)
class PaperOrder:
    """What became of the paper's order; `clearly` is what a lead is that exceeds its own spread over the seeds."""

    asked: int  # methods
    methods: int  # that finished: the others are not ranked
    seeds: int  # that all of these finished: no other counts
    pairs: int  # that the paper tells apart
    kept: int  # pairs that stand as in the paper
    clearly_kept: int
    clearly_turned: int
    first: str  # here
    champion: str  # in the paper
    rival: str  # the best of the others here
    lead: float  # of the champion before the rival
    spread: float
    second: str  # in the paper
    lead_reported: float

    def words(self) -> str:
        """For a person: shares are told in points of a hundred."""
        some = f", of the {self.methods} of {self.asked} methods that finished" if self.methods < self.asked else ""
        here = f"{self.champion} is {self._lead()}"
        there = f"in the paper {100 * self.lead_reported:.1f} before {self.second}"
        return f"{self._verdict()}{some}: {self._pairs()}. {here}, {there}."

    def _verdict(self) -> str:
        appears = "appears" if self.kept == self.pairs else "does not appear"
        if self.seeds < 2:
            return f"The paper's order {appears}, on one seed"
        within = self.kept == self.pairs > self.clearly_kept
        return f"The paper's order {appears}{', partly within the spread' if within else ''}"

    def _pairs(self) -> str:
        pairs = f"{self.kept} of {self.pairs} pairs stand as there"
        if self.seeds < 2:
            return pairs
        other = f"{self.clearly_turned} stand the other way round by more than it"
        return f"{pairs}, {self.clearly_kept} of them by more than the spread; {other}"

    def _lead(self) -> str:
        spread = f" ± {100 * self.spread:.1f}" if self.seeds > 1 else ""
        if abs(self.lead) < LEVEL:
            return f"level with {self.rival}{f' ({spread.strip()} points)' if spread else ''}"
        return f"{100 * abs(self.lead):.1f}{spread} points {'before' if self.lead > 0 else 'behind'} {self.rival}"


def paper_order(standings: Sequence[MethodScore]) -> PaperOrder | None:
    """On the seeds that all have finished; None where there is nothing to compare."""
    done = [one for one in standings if one.accuracies]
    seeds = sorted(set.intersection(*(set(one.accuracies) for one in done))) if done else []
    pairs = [(one, other) for one, other in combinations(done, 2) if one.reported != other.reported]
    if not (pairs and seeds):
        return None
    leads = [lead(one, other, seeds) for one, other in pairs]
    apart = [0.0 if abs(gap) < LEVEL else gap for gap, _ in leads]
    kept = [gap * (one.reported - other.reported) > 0 for gap, (one, other) in zip(apart, pairs, strict=True)]
    clear = [len(seeds) > 1 and abs(gap) > spread for gap, (_, spread) in zip(apart, leads, strict=True)]
    here = sorted(done, key=lambda one: fmean(one.accuracies[seed] for seed in seeds), reverse=True)
    there = sorted(done, key=lambda one: one.reported, reverse=True)
    rival = next(one for one in here if one is not there[0])
    gap, spread = lead(there[0], rival, seeds)
    return PaperOrder(
        asked=len(standings),
        methods=len(done),
        seeds=len(seeds),
        pairs=len(pairs),
        kept=sum(kept),
        clearly_kept=sum(same and sure for same, sure in zip(kept, clear, strict=True)),
        clearly_turned=sum(sure and not same for same, sure in zip(kept, clear, strict=True)),
        first=here[0].label,
        champion=there[0].label,
        rival=rival.label,
        lead=gap,
        spread=spread,
        second=there[1].label,
        lead_reported=there[0].reported - there[1].reported,
    )


def lead(one: MethodScore, other: MethodScore, seeds: Sequence[int]) -> tuple[float, float]:
    """Mean and spread, seed by seed: both began with the same data, weights and clients."""
    leads = [one.accuracies[seed] - other.accuracies[seed] for seed in seeds]
    return fmean(leads), pstdev(leads)
