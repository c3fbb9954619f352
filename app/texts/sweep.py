"""Every text of the Trade-off screen, and the sentences that are computed from a frontier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from app.texts import numbers, privacy
from app.texts.runs import plain, runs
from engine.results.summary import common, each

if TYPE_CHECKING:
    from engine.results.summary import PointResult, PointSummary

# adjacency, δ, accountant, bound and sampling
Stand = tuple[str | None, float | None, str | None, str | None, str | None]
Promise = tuple[str | None, float | None, str | None, str | None]  # the same without the accountant
PROMISE = "How much accuracy does each protection cost, and what does it buy?"

# --- the question ------------------------------------------------------------------------------------------

METHODS, NOISES, STEPS, SEEDS = "comparing", "at noise σ", "server steps tried", "over seeds"
NOISES_HELP = "Noise over sensitivity, with commas between: 0.5, 1, 2. More noise is more private and less accurate."
STEPS_HELP = (
    "How far the server follows the mean update, with commas between. At each noise every method keeps the step that "
    "does best. That choice is made on test data, and no ε counts it. Leave it empty to take each method's usual one."
)
SEEDS_HELP = "Each point is run with so many seeds; the band reaches from the worst to the best of them."
PLAIN, PLAIN_HELP = "and without protection", "A broken line: what there is to lose."
OF = "Settings of single methods"
IN_LAB = "Change the rest in the Lab →"
IN_LAB_HELP = "Everything else about the run; from there a button leads back, with what you changed."
OF_THE_RUN = "This is a setting of the run: change it in the Lab."
FROM_LAB, FROM_LAB_HELP = "Trade-off", "The question of the form under several methods, noises and seeds."
ASK, OF_OWN, OF_PAPER = "Ask", "your own", "a paper's table"
ROW, SCALE, READING = "row", "size", "the paper is read"
SCALES = {"quick": "small enough for this machine", "paper": "as in the paper, which takes days"}
IN_PAPER = "in the paper"
BESIDE_PAPER = "The paper's numbers stand beside runs of ours."
RANKS = "The paper's order, and ours, by global accuracy"
RUN, RUN_REST = "Start {many}", "Start the other {many}"
ALL_KNOWN, NOTHING_TO_ASK = "Everything is known", "Nothing can be asked here"
MEND = "First mend what is marked above."
LAST_GOOD = "The question on the left cannot be asked yet. This is the last one that could."
NO_METHOD = "There is no method with noise called {name} here: it is left out."
NOT_MEANT = "{pair} cannot be meant: the usual value is used."
BY_TURNS = "You may have {most} runs at once here, so this page asks for them a few at a time: keep it open."
UNDER_WAY = "Under way"
PAUSED = "No more than {waiting} runs may wait here, of all visitors together: the rest is asked when some have begun."

# --- the picture -------------------------------------------------------------------------------------------

EYES = "ε as seen by"
WHOSE = "Accuracy of"
MODELS = {"global": "the shared model", "personal": "each client's own model"}
UNITS = {"user": "Protecting each client", "record": "Protecting each record"}
APART = (
    "Noise and ε mean other things where a client is protected than where one record is, a picture or a sentence: "
    "never compare across the two."
)
BY_NOISE, BY_EPSILON = "Accuracy by noise", "Accuracy by ε"
ACCURACY = "accuracy on test data, %"
NOISE_AXIS = "noise σ"
VACUOUS, NOTHING = "says nothing as<br>a worst case", "no protection<br>worth the name"
NO_PROTECTION = "no protection"
WAITING = "No point is known yet."
BUYS = "What each noise would buy, known before anything runs: ε {per}, {seen}, first seed; lower is more private."
NONE_SHOWN = "No method here has a finite ε in this view."
UNPROMISED = "nothing is promised in this view"
ZERO = "ε = 0 {seen}, for nothing is learnt; a log axis cannot show that"
READ_AS = "Read as {numbers}. A decimal has a point: 0.5."
MORE_TOLD = "{many} more settings of this link cannot be meant."
NOTHING_SAID = "says nothing"  # beside an ε so large
CHOOSE = "Click a point, or choose a line of the table, to open its runs in the Lab."
OPEN, OPEN_LIVE = "Open in the Lab", "Run it live and open it in the Lab"
TABLE, TABLE_ALT = "Every point", "Accuracy and ε of every method at every noise"
HEADS = {
    "method": "method", "noise": "noise σ", "step": "server step", "accuracy": "accuracy", "low": "worst seed",
    "high": "best seed", "seeds": "seeds",
}  # fmt: skip
AWAY = "Take it away: command line, data, pictures"
PROMISES = "What each method promises"
SHARE, SHARE_TEXT = "Share", "The address of this page holds every setting. Whoever opens it sees the same question."
LIVE, CANCEL, GO_ON, RETRY = "Run it live", "Cancel", "Go on", "Try these again"
STOPPED = "{known} of {all} runs are known. Nothing of them is lost."
LOST = "The record of run {run} cannot be read. {then}"
LOST_MINE = "Trying again deletes it for good and runs it anew."
LOST_THEIRS = "Only the visitor who asked for it may delete it, on the screen Runs; then it can be asked again."
OWN_MODELS = "ε covers only what is shared: clients' own models that are published carry no guarantee."
REFERENCE = "The line “{line}” is the shared model of {titles}."
HEADLESS = (
    "{titles}: nobody shares a last layer there. The accuracy is that of the shared layers under the mean of the "
    "clients' own last layers, which never leave them. No ε covers that mean."
)


def table(number: str, title: str) -> str:
    return f"Table {number}: {title}"


def run(missing: int, all_of_them: int, known: int) -> str:
    """What the button does."""
    if not missing:
        return ALL_KNOWN if known >= all_of_them else NOTHING_TO_ASK
    return (RUN if missing == all_of_them else RUN_REST).format(many=runs(missing))


def expected(all_of_them: int, known: int, seconds: float | None) -> str:
    """What a click would cost."""
    if known >= all_of_them:
        return f"{runs(all_of_them).capitalize()}, and all of them are known."
    said = f", {known:,} of them known already" if known else ""
    time = f" Expected time here: {numbers.duration(seconds)}." if seconds is not None else ""
    return f"{runs(all_of_them).capitalize()}{said}.{time}"


def rest(run: Mapping[str, Any], partition: str, unusual: Mapping[str, Any]) -> str:
    """What of the run is not asked on this screen; of what mostly stays as usual, what is not."""
    first = run.get("seed") or 0
    more = "".join(f", {path.replace('.', ' ').replace('-', ' ')} {plain(value)}" for path, value in unusual.items())
    return (
        f"Dealt out {partition}, {run['epochs']} local epoch{'s' if run['epochs'] != 1 else ''}, batch {run['batch']}, "
        f"learning rate {run['lr']:g}, {run['sampling']} sampling, seeds from {first}{more}."
    )


def lost(run: str, mine: bool) -> str:
    """Of a run that finished, and whose record says no longer what it came to."""
    return LOST.format(run=run, then=LOST_MINE if mine else LOST_THEIRS)


def own_models(references: Sequence[str]) -> str:
    """What is said beside accuracies of the clients' own models."""
    level = REFERENCE.format(line=NO_PROTECTION, titles=_and(references)) if references else ""
    return f"{OWN_MODELS} {level}".strip()


def stored(many: int, made: str) -> str:
    """Where some of the points come from."""
    return f"{many:,} of these runs {'comes' if many == 1 else 'come'} from a stored example, run on {made}."


def progress(done: int, many: int, seconds: float | None) -> str:
    left = "" if seconds is None else f" · about {numbers.duration(seconds)} left"
    return f"{done:,} of {runs(many)}{left}"


# --- one point ---------------------------------------------------------------------------------------------


def noise(value: float | None) -> str:
    return "no noise" if value is None else f"noise {value:g}"


def at(method: str, value: float | None) -> str:
    return f"{method} at {noise(value)}"


def read_as(numbers: Sequence[float]) -> str:
    return READ_AS.format(numbers=_and([f"{one:g}" for one in numbers]))


def absent(spot: PointSummary, view: str) -> str:
    """Why a point has no place by ε."""
    if spot.epsilon.get(view) == 0:
        return ZERO.format(seen=privacy.SEEN_BY[view])
    return no_epsilon(view, spot.why.get(view) or UNPROMISED)


def no_epsilon(view: str, why: str) -> str:
    return f"no ε {privacy.SEEN_BY[view]}, because {why}"


def scores(spot: PointSummary, own: bool) -> str:
    """`70.6 % (69.9 to 71.4 over 3 seeds)`"""
    found, mean = spot.scores(own), numbers.percent(spot.score(own))
    if len(found) == 1:
        return f"{mean} (one seed)"
    return f"{mean} ({100 * min(found):.1f} to {100 * max(found):.1f} over {len(found)} seeds)"


def dearest(spot: PointSummary, view: str) -> str:
    """The ε of a point with its words; where there is none, why."""
    one = spot.dearest(view)
    if one is None:
        return f"no ε {privacy.SEEN_BY[view]}: {spot.why.get(view) or UNPROMISED}"
    seed = ", worst seed" if spot.seeds > 1 else ""
    return f"ε = {numbers.epsilon(one.epsilon[view])} ({terms(one, view)}{seed})"


def terms(one: PointResult, view: str) -> str:
    return privacy.terms(
        one.unit or "user", view, one.adjacency or "", one.delta or 0.0, one.accountant.get(view, ""),
        one.bound.get(view, ""), one.sampling.get(view, ""),
    )  # fmt: skip


def all_terms(found: Sequence[tuple[str, PointResult]], view: str) -> list[str]:
    """What all points of a picture stand on, each with the method it is of."""
    told = []
    for title, one in found:
        terms = (one.adjacency, one.delta, one.accountant.get(view), one.bound.get(view), one.sampling.get(view))
        told.append((title, one.point.noise, terms))
    return stands(found[0][1].unit or "user", view, told) if found else []


def stands(unit: str, view: str, told: Sequence[tuple[str, float | None, Stand]]) -> list[str]:
    """What several ε stand on: a sentence for all that stand on the same, and whose they are where they differ.

    Two accountants of one and the same promise do not part them: each point names its own.
    """
    promises = [(title, level, (adjacency, delta, bound, sampling), accountant)
                for title, level, (adjacency, delta, accountant, bound, sampling) in told]  # fmt: skip
    of_method: dict[str, set[Promise]] = {}
    for title, _, promise, _ in promises:
        of_method.setdefault(title, set()).add(promise)
    groups: dict[Promise, tuple[dict[str, None], list[str | None]]] = {}
    for title, level, promise, accountant in promises:
        who, accountants = groups.setdefault(promise, ({}, []))
        who[title if len(of_method[title]) == 1 else at(title, level)] = None
        accountants.append(accountant)
    said = []
    for (adjacency, delta, bound, sampling), (who, accountants) in groups.items():
        whose = f"{', '.join(who)}: " if len(groups) > 1 else ""
        by = each(accountants)
        said.append(
            f"{whose}ε {privacy.terms(unit, view, adjacency or '', delta or 0.0, by, bound or '', sampling or '')}."
        )
    return said


def point(title: str, spot: PointSummary, own: bool) -> str:
    """`FedCEO, noise 1, server step 0.3: 70.6 % (…)`"""
    return f"{title}, {noise(spot.noise)}, server step {spot.step:g}: {scores(spot, own)}"


def line(title: str, personal: bool, own: bool, headless: bool = False) -> str:
    """What a line is called: whose accuracy it shows is said as soon as it may differ from line to line."""
    if not own:
        return f"{title} · heads averaged" if headless else title
    return f"{title} · own models" if personal else f"{title} · shared model"


# --- what the picture says ---------------------------------------------------------------------------------


def verdict(lines: Mapping[str, Sequence[PointSummary]], plain: PointSummary | None, view: str, own: bool) -> str:
    """The two best at the middle noise that most methods share, and whether their difference means anything."""
    levels = [level for level in _shared(lines) if _ranked(lines, level, own)]
    if not levels:
        return ""
    at = levels[len(levels) // 2]
    there = _ranked(lines, at, own)
    seeds = common(spot for _, spot in there)
    fewer = any(spot.seeds > len(seeds) for title, _ in there for spot in lines[title] if spot.noise == at)
    said = [_compared(there[:2], at, own, fewer)]
    if plain and (same := plain.on(seeds)):
        said.append(f"Without protection it would be {numbers.percent(same.score(own))}.")
    said.append(_prices(there, view))
    said.append(_elsewhere(lines, levels, own))
    return " ".join(filter(None, said))


def _shared(lines: Mapping[str, Sequence[PointSummary]]) -> list[float]:
    """Noises at which at least two methods are known."""
    found = [spot.noise for spots in lines.values() for spot in spots if spot.noise is not None]
    return sorted({noise for noise in found if found.count(noise) > 1})


def _ranked(lines: Mapping[str, Sequence[PointSummary]], at: float, own: bool) -> list[tuple[str, PointSummary]]:
    """The best first, on the seeds that all have: while runs go on, means over others would compare chance."""
    there = [(title, spot) for title, spots in lines.items() for spot in spots if spot.noise == at]
    seeds = common(spot for _, spot in there)
    same = [(title, some) for title, spot in there if (some := spot.on(seeds))]
    return sorted(same, key=lambda pair: -pair[1].score(own))


def _compared(two: Sequence[tuple[str, PointSummary]], at: float, own: bool, fewer: bool) -> str:
    (first, best), (second, other) = two
    values = best.score(own), other.score(own)
    on = f", on the {'one seed' if best.seeds == 1 else f'{best.seeds} seeds'} that all have" if fewer else ""
    reach = f"At noise {at:g}{on}, {first} reaches {numbers.percent(values[0])}, {second} {numbers.percent(values[1])}"
    if min(best.seeds, other.seeds) < 2:
        return f"{reach}: with one seed nobody can tell whether that is more than chance."
    more = "larger" if clear(best, other, own) else "not larger"
    return f"{reach}: the difference is {more} than that between seeds."


def clear(best: PointSummary, other: PointSummary, own: bool) -> bool:
    """Whether two methods, on the same seeds, differ by more than the seeds of either do."""
    ranges = [max(one.scores(own)) - min(one.scores(own)) for one in (best, other)]
    return min(best.seeds, other.seeds) > 1 and best.score(own) - other.score(own) > max(ranges)


def _prices(there: Sequence[tuple[str, PointSummary]], view: str) -> str:
    """The same noise need not buy the same ε; on the same seeds, for who takes part differs between them."""
    same = [(title, one) for title, spot in there if (one := spot.dearest(view))]
    known = sorted(((one.epsilon[view] or 0.0, title, one.accountant.get(view, "")) for title, one in same))
    if len(known) < 2 or known[-1][0] <= 1.05 * known[0][0]:
        return ""
    several = len({accountant for _, _, accountant in known}) > 1
    prices: dict[str, list[str]] = {}
    for value, title, accountant in known:
        prices.setdefault(f"{numbers.epsilon(value)}{f' ({accountant})' if several else ''}", []).append(title)
    each = "; ".join(f"ε {price} for {_and(titles)}" for price, titles in prices.items())
    return f"That noise does not buy them the same, {privacy.SEEN_BY[view]}: {each}."


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _elsewhere(lines: Mapping[str, Sequence[PointSummary]], levels: Sequence[float], own: bool) -> str:
    """How it stands over all noises."""
    ranked = [_ranked(lines, at, own)[:2] for at in levels]
    if len(levels) < 2 or any(spot.seeds < 2 for two in ranked for _, spot in two):
        return ""
    ahead: dict[str, int] = {}
    for (first, best), (_, other) in ranked:
        if clear(best, other, own):
            ahead[first] = ahead.get(first, 0) + 1
    if not ahead:
        return "At no noise do the two best differ by more than seeds do."
    said = " and ".join(f"{title} at {many}" for title, many in ahead.items())
    return f"Ahead by more than seeds differ: {said} of {len(levels)} noises."


def bands(spots: Sequence[PointSummary], several: bool) -> str:
    """How the picture is to be read; `several` server steps were tried."""
    many = max((spot.seeds for spot in spots), default=1)
    band = (
        "Each point is the mean over seeds, its band reaches from the worst to the best, "
        "and ε is the largest that any seed has."
    )
    step = (
        "At each noise a method stands with the server step that did best there, on the seeds that all steps have: "
        "a choice made on test data, which no ε counts."
    )
    return " ".join([*([band] if many > 1 else []), *([step] if several else [])])
