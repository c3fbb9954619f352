"""Who is before whom: methods ranked by what they reached here, beside the order in which a paper has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, pstdev


@dataclass(frozen=True)
class Standing:
    """One method: its accuracy here by seed, and in the paper."""

    label: str
    accuracies: Mapping[int, float]
    reported: float

    @property
    def mean(self) -> float:
        return fmean(self.accuracies.values())


@dataclass(frozen=True)
class Order:
    """What became of the paper's order; `clearly` is what a lead is that exceeds its own spread over the seeds."""

    seeds: int
    pairs: int
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
        begin = "The paper's order appears" if self.kept == self.pairs else "The paper's order does not appear"
        pairs = f"{self.kept} of {self.pairs} pairs stand as there"
        many = self.seeds > 1
        pairs += f", {self.clearly_kept} of them by more than the spread" if many else ""
        turned = f"; {self.clearly_turned} stand the other way round by more than it" if many else ""
        spread = f" ± {100 * self.spread:.1f}" if many else ""
        way = "before" if self.lead > 0 else "behind"
        here = f"{self.champion} is {100 * abs(self.lead):.1f}{spread} points {way} {self.rival}"
        return f"{begin}: {pairs}{turned}. {here}, in the paper {100 * self.lead_reported:.1f} before {self.second}."


def order(standings: Sequence[Standing]) -> Order | None:
    """None where there is nothing to compare."""
    if len(standings) < 2:
        return None
    pairs = list(combinations(standings, 2))
    leads = [lead(one, other) for one, other in pairs]
    kept = [gap * (one.reported - other.reported) > 0 for (gap, _), (one, other) in zip(leads, pairs, strict=True)]
    clear = [abs(gap) > spread for gap, spread in leads]
    here = sorted(standings, key=lambda one: one.mean, reverse=True)
    there = sorted(standings, key=lambda one: one.reported, reverse=True)
    rival = next(one for one in here if one is not there[0])
    gap, spread = lead(there[0], rival)
    return Order(
        seeds=min(len(one.accuracies) for one in standings),
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


def lead(one: Standing, other: Standing) -> tuple[float, float]:
    """Mean and spread, seed by seed where there are such: both began with the same data, weights and clients."""
    both = one.accuracies.keys() & other.accuracies.keys()
    leads = [one.accuracies[seed] - other.accuracies[seed] for seed in sorted(both)]
    return (fmean(leads), pstdev(leads)) if leads else (one.mean - other.mean, 0.0)
