"""The texts of the Trade-off screen, and the sentences computed from the points of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from app.texts import numbers, privacy
from app.texts.runs import plain, runs
from engine.epsilon import Epsilon
from engine.results.summary import common_seeds, joined

if TYPE_CHECKING:
    from engine.results.summary import PointSummary

Promise = tuple[str, float, str, str]  # adjacency, δ, bound and sampling of an ε
PROMISE = "How much accuracy does each protection cost, and what does it buy?"

# --- the form ----------------------------------------------------------------------------------------------

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
ALL_FINISHED, NOTHING_TO_ASK = "Everything is known", "Nothing can be asked here"
FIX_FIELDS = "Fix the marked fields first."
LAST_GOOD = "The question on the left cannot be asked yet. This is the last one that could."
BUSY = ("another sweep of yours is still under way", "Wait for it, or cancel it")
UNDER_WAY = "Under way"

# --- the results -------------------------------------------------------------------------------------------

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
WEAK, VACUOUS = "rules out<br>almost nothing", "no meaningful<br>promise"
NO_PROTECTION = "no protection"
WAITING = "No point is known yet."
BUYS = "What each noise would buy, known before anything runs: ε {per}, {seen}, first seed; lower is more private."
NONE_SHOWN = "No method here has a finite ε in this view."
UNPROMISED = "nothing is promised in this view"
ZERO = "ε = 0 {seen}, for nothing is learnt; a log axis cannot show that"
NOTHING_SAID = "no meaningful promise"  # next to a very large ε
CHOOSE = "Click a point, or choose a line of the table, to open its runs in the Lab."
OPEN, OPEN_LIVE = "Open in the Lab", "Run it live and open it in the Lab"
TABLE, TABLE_ALT = "Every point", "Accuracy and ε of every method at every noise"
HEADS = {
    "method": "method", "noise": "noise σ", "step": "server step", "accuracy": "accuracy", "low": "worst seed",
    "high": "best seed", "seeds": "seeds",
}  # fmt: skip
AWAY = "Take it away: command line, data, pictures"
PROMISES = "What each method promises"
SHARE, SHARE_TEXT = "Share", "The address of this page holds every setting. Anyone who opens it sees the same question."
LIVE, CANCEL, GO_ON, RETRY = "Run it live", "Cancel", "Go on", "Try these again"
STOPPED = "{known} of {all} runs are known. Nothing of them is lost."
LOST = "The record of run {run} cannot be read. {then}"
LOST_MINE = "Trying again deletes it for good and runs it again."
LOST_THEIRS = "Only the visitor who asked for it may delete it, on the screen Runs; then it can be asked again."
OWN_MODELS = "ε covers only what is shared: clients' own models that are published carry no guarantee."
REFERENCE = "The line “{line}” is the shared model of {titles}."
HEADLESS = (
    "{titles}: no one shares a last layer there. The accuracy is that of the shared layers under the mean of the "
    "clients' own last layers, which never leave them. No ε covers that mean."
)


def ambiguous(name: str, text: str) -> str:
    """A comma that may be a decimal point."""
    return f"sweep: {name}: {text} may mean {text.replace(',', '.', 1)}, or {' and '.join(text.split(','))}"


def unambiguous(text: str) -> str:
    return f"Write {text.replace(',', '.', 1)}, or {'; '.join(text.split(','))}"


def table(number: str, title: str) -> str:
    """The title of a table of the paper."""
    return f"Table {number}: {title}"


def run(missing: int, all_of_them: int, known: int) -> str:
    """The label of the button."""
    if not missing:
        return ALL_FINISHED if known >= all_of_them else NOTHING_TO_ASK
    return (RUN if missing == all_of_them else RUN_REST).format(many=runs(missing))


def batch_title(methods: Sequence[str], noises: Sequence[float], rounds: int, count: int) -> str:
    """The title of runs that were requested together."""
    at = f" at noise {', '.join(f'{value:g}' for value in noises)}" if noises else ""
    return f"{', '.join(methods) or 'no protection'}{at}, {rounds} rounds: {runs(count)}"


def expected(all_of_them: int, known: int, seconds: float | None) -> str:
    """The number of runs that a click starts, and their expected time."""
    if known >= all_of_them:
        return f"{runs(all_of_them).capitalize()}, and all of them are known."
    finished = f", {known:,} of them known already" if known else ""
    time = f" Expected time here: {numbers.duration(seconds)}." if seconds is not None else ""
    return f"{runs(all_of_them).capitalize()}{finished}.{time}"


def rest(run: Mapping[str, Any], partition: str, unusual: Mapping[str, Any]) -> str:
    """The settings of the run that this screen has no field for. Rare settings are named only if not at a default."""
    first = run.get("seed") or 0
    more = ""
    for path, value in unusual.items():
        name = path.replace(".", " ").replace("-", " ")
        more += f", {name} {plain(value)}"
    epochs = f"{run['epochs']} local epoch{'s' if run['epochs'] != 1 else ''}"
    return (
        f"Partitioned {partition}, {epochs}, batch {run['batch']}, "
        f"learning rate {run['lr']:g}, {run['sampling']} sampling, seeds from {first}{more}."
    )


def lost(run: str, own: bool) -> str:
    """A note about a finished run whose record cannot be read."""
    return LOST.format(run=run, then=LOST_MINE if own else LOST_THEIRS)


def own_models(references: Sequence[str]) -> str:
    """The note next to the accuracy of the clients' own models."""
    level = REFERENCE.format(line=NO_PROTECTION, titles=_and(references)) if references else ""
    return f"{OWN_MODELS} {level}".strip()


def stored(number: int, made: str) -> str:
    """A note that some points come from a stored example."""
    return f"{number:,} of these runs {'comes' if number == 1 else 'come'} from a stored example, run on {made}."


# --- one point ---------------------------------------------------------------------------------------------


def noise(value: float | None) -> str:
    """A noise in words."""
    return "no noise" if value is None else f"noise {value:g}"


def at(method: str, value: float | None) -> str:
    """A method at a noise."""
    return f"{method} at {noise(value)}"


def absent(summary: PointSummary, view: str) -> str:
    """The reason why a point has no place on the axis of ε."""
    epsilon = summary.epsilon(view)
    if epsilon and epsilon.value == 0:
        return ZERO.format(seen=privacy.SEEN_BY[view])
    return no_epsilon(view, summary.missing_reason(view) or UNPROMISED)


def no_epsilon(view: str, why: str) -> str:
    """A missing ε, with its reason."""
    return f"no ε {privacy.SEEN_BY[view]}, because {why}"


def scores(summary: PointSummary, own: bool) -> str:
    """`70.6 % (69.9 to 71.4 over 3 seeds)`"""
    values = summary.scores(own)
    mean = numbers.percent(summary.score(own))
    if len(values) == 1:
        return f"{mean} (one seed)"
    return f"{mean} ({100 * min(values):.1f} to {100 * max(values):.1f} over {len(values)} seeds)"


def largest_epsilon(summary: PointSummary, view: str) -> str:
    """The largest ε of a point with its terms, or the reason why there is none."""
    epsilon = summary.finite_epsilon(view)
    if epsilon is None:
        return f"no ε {privacy.SEEN_BY[view]}: {summary.missing_reason(view) or UNPROMISED}"
    seed = ", worst seed" if summary.seeds > 1 else ""
    return f"ε = {numbers.epsilon(epsilon.value)} ({privacy.terms(epsilon)}{seed})"


def grouped_terms(rows: Sequence[tuple[str, float | None, Epsilon]]) -> list[str]:
    """One sentence for each group of points with the same terms. With several groups, each sentence names its points.

    A row has a method, its noise and its ε. Points that differ only in the accountant share a sentence, because
    each point names its own accountant.
    """
    promises_of: dict[str, set[Promise]] = {}
    for title, _, epsilon in rows:
        promises_of.setdefault(title, set()).add(_promise(epsilon))
    names: dict[Promise, dict[str, None]] = {}  # an ordered set of points for each promise
    groups: dict[Promise, list[Epsilon]] = {}
    for title, level, epsilon in rows:
        promise = _promise(epsilon)
        name = title if len(promises_of[title]) == 1 else at(title, level)
        names.setdefault(promise, {})[name] = None
        groups.setdefault(promise, []).append(epsilon)
    sentences = []
    for promise, points in names.items():
        prefix = f"{', '.join(points)}: " if len(names) > 1 else ""
        accountants = joined(epsilon.accountant for epsilon in groups[promise])
        terms = privacy.terms(replace(groups[promise][0], accountant=accountants))
        sentences.append(f"{prefix}ε {terms}.")
    return sentences


def _promise(epsilon: Epsilon) -> Promise:
    return epsilon.adjacency, epsilon.delta, epsilon.bound, epsilon.sampling


def point(title: str, summary: PointSummary, own: bool) -> str:
    """`FedCEO, noise 1, server step 0.3: 70.6 % (…)`"""
    return f"{title}, {noise(summary.noise)}, server step {summary.step:g}: {scores(summary, own)}"


def line(title: str, personal: bool, own: bool, headless: bool = False) -> str:
    """The title of a line. It names the models of its accuracy as soon as these may differ between lines."""
    if not own:
        return f"{title} · heads averaged" if headless else title
    return f"{title} · own models" if personal else f"{title} · shared model"


# --- the verdict -------------------------------------------------------------------------------------------


def verdict(lines: Mapping[str, Sequence[PointSummary]], plain: PointSummary | None, view: str, own: bool) -> str:
    """Compares the two best methods at the middle noise that methods share. `plain` is the baseline."""
    levels = [level for level in _shared(lines) if _ranked(lines, level, own)]
    if not levels:
        return ""
    level = levels[len(levels) // 2]
    ranked = _ranked(lines, level, own)
    seeds = common_seeds(summary for _, summary in ranked)
    fewer = any(summary.seeds > len(seeds) for title, _ in ranked for summary in lines[title] if summary.noise == level)
    sentences = [_compared(ranked[:2], level, own, fewer)]
    baseline = plain.of_seeds(seeds) if plain else None
    if baseline:
        sentences.append(f"Without protection it would be {numbers.percent(baseline.score(own))}.")
    sentences.append(_prices(ranked, view))
    sentences.append(_elsewhere(lines, levels, own))
    return " ".join(filter(None, sentences))


def _shared(lines: Mapping[str, Sequence[PointSummary]]) -> list[float]:
    """The noises with points of at least two methods."""
    noises = [summary.noise for summaries in lines.values() for summary in summaries if summary.noise is not None]
    return sorted({noise for noise in noises if noises.count(noise) > 1})


def _ranked(lines: Mapping[str, Sequence[PointSummary]], level: float, own: bool) -> list[tuple[str, PointSummary]]:
    """The methods at one noise, the best first, on their common seeds.

    While runs are unfinished, means over different seeds would compare the seeds and not the methods.
    """
    points = [(title, summary) for title, summaries in lines.items() for summary in summaries if summary.noise == level]
    seeds = common_seeds(summary for _, summary in points)
    comparable = []
    for title, summary in points:
        on_seeds = summary.of_seeds(seeds)
        if on_seeds:
            comparable.append((title, on_seeds))
    return sorted(comparable, key=lambda pair: -pair[1].score(own))


def _compared(two: Sequence[tuple[str, PointSummary]], level: float, own: bool, fewer: bool) -> str:
    """The accuracy of the two best methods. `fewer`: some method has more seeds than the comparison uses."""
    (first, best), (second, other) = two
    on = ""
    if fewer:
        seeds = "one seed" if best.seeds == 1 else f"{best.seeds} seeds"
        on = f", on the {seeds} that all have"
    higher = numbers.percent(best.score(own))
    lower = numbers.percent(other.score(own))
    reach = f"At noise {level:g}{on}, {first} reaches {higher}, {second} {lower}"
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
    prices = "; ".join(f"ε {price} for {_and(titles)}" for price, titles in titles_of.items())
    return f"That noise does not buy them the same, {privacy.SEEN_BY[view]}: {prices}."


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _elsewhere(lines: Mapping[str, Sequence[PointSummary]], levels: Sequence[float], own: bool) -> str:
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


def bands(summaries: Sequence[PointSummary], several: bool) -> str:
    """How to read the charts. `several`: several server steps were tried."""
    sentences = []
    if max((summary.seeds for summary in summaries), default=1) > 1:
        sentences.append(
            "Each point is the mean over seeds, its band reaches from the worst to the best, "
            "and ε is the largest that any seed has."
        )
    if several:
        sentences.append(
            "At each noise a method stands with the server step that did best there, on the seeds that all steps have: "
            "a choice made on test data, which no ε counts."
        )
    return " ".join(sentences)
