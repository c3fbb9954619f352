"""Methods ranked by the accuracy they reached here, compared with their order in a paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, pstdev

LEVEL = 0.0005  # a smaller lead rounds to 0.0 points


@dataclass(frozen=True)
class MethodScore:
    """One method: its accuracy here by seed, and its accuracy in the paper."""

    label: str
    accuracies: Mapping[int, float]  # empty where no run finished
    reported: float


@dataclass(frozen=True)
class PaperOrder:
    """How far our ranking agrees with the paper's. The fields are keys of the JSON of a table.

    A pair of methods is ordered clearly if the lead of one exceeds the spread of that lead over the seeds.
    """

    asked: int  # methods of the table
    methods: int  # methods that finished; the others are not ranked
    seeds: int  # seeds that all of these finished; no other seed counts
    pairs: int  # pairs with different accuracies in the paper
    kept: int  # pairs in the paper's order
    clearly_kept: int
    clearly_turned: int
    first: str  # the best method here
    champion: str  # the best method of the paper
    rival: str  # the best of the other methods here
    lead: float  # of the champion over the rival
    spread: float
    second: str  # the second method of the paper
    lead_reported: float

    def words(self) -> str:
        """The comparison in words for a person, with accuracies in percentage points."""
        finished = f", of the {self.methods} of {self.asked} methods that finished" if self.methods < self.asked else ""
        ours = f"{self.champion} is {self._lead()}"
        reported = f"in the paper {100 * self.lead_reported:.1f} before {self.second}"
        return f"{self._verdict()}{finished}: {self._pairs()}. {ours}, {reported}."

    def _verdict(self) -> str:
        verdict = "appears" if self.kept == self.pairs else "does not appear"
        if self.seeds < 2:
            return f"The paper's order {verdict}, on one seed"
        partly = self.kept == self.pairs > self.clearly_kept
        return f"The paper's order {verdict}{', partly within the spread' if partly else ''}"

    def _pairs(self) -> str:
        pairs = f"{self.kept} of {self.pairs} pairs are in the paper's order"
        if self.seeds < 2:
            return pairs
        turned = f"{self.clearly_turned} are in the opposite order by more than the spread"
        return f"{pairs}, {self.clearly_kept} of them by more than the spread; {turned}"

    def _lead(self) -> str:
        spread = f"± {100 * self.spread:.1f}" if self.seeds > 1 else ""
        if abs(self.lead) < LEVEL:
            note = f" ({spread} points)" if spread else ""
            return f"level with {self.rival}{note}"
        points = f"{100 * abs(self.lead):.1f} {spread}".strip()
        return f"{points} points {'before' if self.lead > 0 else 'behind'} {self.rival}"


def paper_order(scores: Sequence[MethodScore]) -> PaperOrder | None:
    """The comparison on the seeds that all methods finished; None where there is nothing to compare."""
    finished = [score for score in scores if score.accuracies]
    seeds = _common_seeds(finished)
    pairs = [pair for pair in combinations(finished, 2) if pair[0].reported != pair[1].reported]
    if not (pairs and seeds):
        return None
    kept, clearly_kept, clearly_turned = _count_pairs(pairs, seeds)
    ours = sorted(finished, key=lambda score: fmean(score.accuracies[seed] for seed in seeds), reverse=True)
    reported = sorted(finished, key=lambda score: score.reported, reverse=True)
    champion, second = reported[0], reported[1]
    rival = next(score for score in ours if score is not champion)
    gap, spread = lead(champion, rival, seeds)
    return PaperOrder(
        asked=len(scores),
        methods=len(finished),
        seeds=len(seeds),
        pairs=len(pairs),
        kept=kept,
        clearly_kept=clearly_kept,
        clearly_turned=clearly_turned,
        first=ours[0].label,
        champion=champion.label,
        rival=rival.label,
        lead=gap,
        spread=spread,
        second=second.label,
        lead_reported=champion.reported - second.reported,
    )


def _common_seeds(scores: Sequence[MethodScore]) -> list[int]:
    if not scores:
        return []
    return sorted(set.intersection(*(set(score.accuracies) for score in scores)))


def _count_pairs(pairs: Sequence[tuple[MethodScore, MethodScore]], seeds: Sequence[int]) -> tuple[int, int, int]:
    """The pairs in the paper's order, those that are so clearly, and those that are clearly in the opposite order."""
    kept = clearly_kept = clearly_turned = 0
    for score, other in pairs:
        gap, spread = lead(score, other, seeds)
        distinct = abs(gap) >= LEVEL
        clear = distinct and len(seeds) > 1 and abs(gap) > spread
        same = distinct and gap * (score.reported - other.reported) > 0
        kept += same
        clearly_kept += same and clear
        clearly_turned += clear and not same
    return kept, clearly_kept, clearly_turned


def lead(score: MethodScore, other: MethodScore, seeds: Sequence[int]) -> tuple[float, float]:
    """Mean and spread of the lead, taken seed by seed: a seed gives both the same data, weights and clients."""
    leads = [score.accuracies[seed] - other.accuracies[seed] for seed in seeds]
    return fmean(leads), pstdev(leads)
