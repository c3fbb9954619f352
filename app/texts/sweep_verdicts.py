"""The verdict on a sweep in words: which method keeps more accuracy, within a budget of ε or at the same noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.texts import numbers, privacy
from engine.results.summary import PointSummary, common_seeds

Lines = Mapping[str, Sequence[PointSummary]]  # the points of each method by its title


# --- within a budget of ε ----------------------------------------------------------------------------------


def at_budget(lines: Lines, plain: PointSummary | None, view: str, own: bool) -> str:
    """Compares the two best methods that keep ε within the largest promise that still means something."""
    smallest = _smallest_epsilons(lines, view)
    if not smallest:
        return f"No method here makes a promise {privacy.AGAINST[view]}."
    budget = privacy.VACUOUS
    silent = _silent(lines, smallest, view)
    if min(smallest.values()) > budget:
        title = min(smallest, key=smallest.__getitem__)
        least = f"the smallest is {numbers.epsilon(smallest[title])}, with {title}"
        return f"No method here keeps ε at most {budget:g} {privacy.AGAINST[view]}: {least}. {silent}".rstrip()
    ranked = _within(lines, view, own, budget)
    where = f"With ε at most {budget:g} {privacy.AGAINST[view]}"
    seeds = common_seeds(summary for _, summary in ranked)
    first, best = ranked[0]
    if len(ranked) == 1:
        sentences = [f"{where}, {first} reaches {numbers.percent(best.score(own))}."]
    else:
        sentences = [_compared(ranked[:2], where, own)]
    baseline = plain.of_seeds(seeds) if plain else None
    if baseline:
        sentences.append(f"Without protection it would be {numbers.percent(baseline.score(own))}.")
    return " ".join(filter(None, [*sentences, silent]))


def _smallest_epsilons(lines: Lines, view: str) -> dict[str, float]:
    """The smallest ε of each method that has a finite one in this view."""
    smallest = {}
    for title, summaries in lines.items():
        values = [epsilon.value for summary in summaries if (epsilon := summary.finite_epsilon(view))]
        known = [value for value in values if value is not None]
        if known:
            smallest[title] = min(known)
    return smallest


def _silent(lines: Lines, smallest: Mapping[str, float], view: str) -> str:
    """Which methods promise nothing in this view."""
    titles = [title for title in lines if title not in smallest]
    if not titles:
        return ""
    return f"{numbers.joined(titles)} {'makes' if len(titles) == 1 else 'make'} no promise {privacy.AGAINST[view]}."


def _within(lines: Lines, view: str, own: bool, budget: float) -> list[tuple[str, PointSummary]]:
    """The best point of each method within the budget, the best first, on their common seeds."""
    chosen = []
    for title, summaries in lines.items():
        affordable = []
        for summary in summaries:
            epsilon = summary.finite_epsilon(view)
            if epsilon and epsilon.value is not None and epsilon.value <= budget:
                affordable.append(summary)
        if affordable:
            chosen.append((title, max(affordable, key=lambda summary: summary.score(own))))
    return _on_common_seeds(chosen, own)


# --- at the same noise ---------------------------------------------------------------------------------------


def at_noise(lines: Lines, plain: PointSummary | None, view: str, own: bool) -> str:
    """Compares the two best methods at the middle noise that methods share. `plain` is the baseline."""
    levels = [level for level in _shared(lines) if _ranked(lines, level, own)]
    if not levels:
        return ""
    level = levels[len(levels) // 2]
    ranked = _ranked(lines, level, own)
    seeds = common_seeds(summary for _, summary in ranked)
    fewer = any(summary.seeds > len(seeds) for title, _ in ranked for summary in lines[title] if summary.noise == level)
    where = f"At noise {level:g}"
    if fewer:  # some method has more seeds than the comparison uses
        where += f", on the {'one seed' if len(seeds) == 1 else f'{len(seeds)} seeds'} that all have"
    sentences = [_compared(ranked[:2], where, own)]
    baseline = plain.of_seeds(seeds) if plain else None
    if baseline:
        sentences.append(f"Without protection it would be {numbers.percent(baseline.score(own))}.")
    sentences.append(_prices(ranked, view))
    sentences.append(_elsewhere(lines, levels, own))
    return " ".join(filter(None, sentences))


def _shared(lines: Lines) -> list[float]:
    """The noises with points of at least two methods."""
    noises = [summary.noise for summaries in lines.values() for summary in summaries if summary.noise is not None]
    return sorted({noise for noise in noises if noises.count(noise) > 1})


def _ranked(lines: Lines, level: float, own: bool) -> list[tuple[str, PointSummary]]:
    """The methods at one noise, the best first, on their common seeds.

    While runs are unfinished, means over different seeds would compare the seeds and not the methods.
    """
    points = [(title, summary) for title, summaries in lines.items() for summary in summaries if summary.noise == level]
    return _on_common_seeds(points, own)


def _on_common_seeds(points: Sequence[tuple[str, PointSummary]], own: bool) -> list[tuple[str, PointSummary]]:
    """These points on the seeds that all of them have, the best first."""
    seeds = common_seeds(summary for _, summary in points)
    comparable = []
    for title, summary in points:
        on_seeds = summary.of_seeds(seeds)
        if on_seeds:
            comparable.append((title, on_seeds))
    return sorted(comparable, key=lambda pair: -pair[1].score(own))


def _compared(two: Sequence[tuple[str, PointSummary]], where: str, own: bool) -> str:
    """The accuracy of the two best methods."""
    (first, best), (second, other) = two
    higher = numbers.percent(best.score(own))
    lower = numbers.percent(other.score(own))
    reach = f"{where}, {first} reaches {higher}, {second} {lower}"
    if min(best.seeds, other.seeds) < 2:
        return f"{reach}: with one seed no one can tell whether that is more than chance."
    more = "larger" if clearly_ahead(best, other, own) else "not larger"
    return f"{reach}: the difference is {more} than that between seeds."


def clearly_ahead(best: PointSummary, other: PointSummary, own: bool) -> bool:
    """Whether two methods, on the same seeds, differ by more than the seeds of either method."""
    ranges = [max(summary.scores(own)) - min(summary.scores(own)) for summary in (best, other)]
    return min(best.seeds, other.seeds) > 1 and best.score(own) - other.score(own) > max(ranges)


def _prices(ranked: Sequence[tuple[str, PointSummary]], view: str) -> str:
    """A note that the same noise gives the methods different ε. Empty if it does not.

    All points have the same seeds, because the clients that take part differ between seeds.
    """
    priced = []
    for title, summary in ranked:
        epsilon = summary.finite_epsilon(view)
        if epsilon:
            priced.append((epsilon.value or 0.0, title, epsilon.accountant))
    priced.sort()
    if len(priced) < 2 or priced[-1][0] <= 1.05 * priced[0][0]:
        return ""
    several = len({accountant for _, _, accountant in priced}) > 1
    titles_of: dict[str, list[str]] = {}
    for value, title, accountant in priced:
        price = numbers.epsilon(value)
        if several:
            price += f" ({accountant})"
        titles_of.setdefault(price, []).append(title)
    prices = "; ".join(f"ε {price} for {numbers.joined(titles)}" for price, titles in titles_of.items())
    return f"The same noise gives these methods different ε {privacy.AGAINST[view]}: {prices}."


def _elsewhere(lines: Lines, levels: Sequence[float], own: bool) -> str:
    """How often a method leads clearly, over all noises."""
    pairs = [_ranked(lines, level, own)[:2] for level in levels]
    if len(levels) < 2 or any(summary.seeds < 2 for pair in pairs for _, summary in pair):
        return ""
    ahead: dict[str, int] = {}
    for (first, best), (_, other) in pairs:
        if clearly_ahead(best, other, own):
            ahead[first] = ahead.get(first, 0) + 1
    if not ahead:
        return "At no noise do the two best differ by more than seeds do."
    leaders = " and ".join(f"{title} at {count}" for title, count in ahead.items())
    return f"Ahead by more than seeds differ: {leaders} of {len(levels)} noises."
