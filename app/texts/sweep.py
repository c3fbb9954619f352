"""The texts of the Trade-off screen, and the sentences computed from the points of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from app.texts import numbers, privacy
from app.texts.runs import plain, runs
from engine.epsilon import Epsilon
from engine.results.summary import joined

if TYPE_CHECKING:
    from engine.results.summary import PointSummary

Promise = tuple[str, float, str, str]  # adjacency, δ, bound and sampling of an ε
PROMISE = "What does it cost?"

# --- the form ----------------------------------------------------------------------------------------------

METHODS, NOISES, STEPS, SEEDS = "methods", "noise σ", "server steps", "seeds"
NUMBERS_RULE = "must be numbers with a comma and a space between"
NOISES_HELP = "Noise over sensitivity, for example 0.5, 1, 2. More noise protects more and costs accuracy."
STEPS_HELP = (
    "How far the server follows the mean update, for example 0.1, 0.3, 1. At each noise a method keeps the step with "
    "the best accuracy. This choice uses test data, and no ε counts it. Leave it empty to use each method's default."
)
SEEDS_HELP = "The number of runs of each point. The band reaches from the worst to the best of them."
PLAIN, PLAIN_HELP = "also without protection", "The dashed line: the accuracy that protection is compared with."
OF = "Settings of single methods"
IN_TRY = "Change the rest in Try →"
IN_TRY_HELP = "Try has all other settings of the run. A button there leads back with your changes."
OF_THE_RUN = "This is a setting of the run: change it in Try."
FROM_TRY, FROM_TRY_HELP = "Trade-off", "The same run with several methods, noises and seeds."
ASK, OF_OWN, OF_PAPER = "Sweep", "your own", "a paper's table"
ROW, SCALE, READING = "row", "size", "the paper is read"
SCALES = {"quick": "small enough for this machine", "paper": "as in the paper, which takes days"}
IN_PAPER = "in the paper"
BESIDE_PAPER = "The paper's numbers are next to our own runs."
RANKS = "The paper's order, and ours, by global accuracy"
RUN, RUN_REST = "Start {many}", "Start the other {many}"
ALL_FINISHED, NOTHING_TO_RUN = "All runs finished", "No run is possible here"
FIX_FIELDS = "Fix the marked fields first."
LAST_GOOD = "The settings are not valid yet. This is the result of the last valid ones."
BUSY = ("another sweep of yours is still running", "Wait for it, or cancel it")
UNDER_WAY = "Under way"

# --- the results -------------------------------------------------------------------------------------------

AXIS, AXES = "Axis", {"epsilon": "by ε", "noise": "by noise"}
WHOSE = "Accuracy of"
MODELS = {"global": "the shared model", "personal": "each client's own model"}
UNITS = {"user": "Protecting each client", "record": "Protecting each record"}
APART = (
    "Noise and ε per client differ in meaning from noise and ε per record (a picture or a sentence). "
    "Do not compare the two charts."
)
BY_NOISE, BY_EPSILON = "Accuracy by noise", "Accuracy by ε"
ACCURACY = "accuracy on test data, %"
NOISE_AXIS = "noise σ"
WEAK, VACUOUS = "rules out<br>almost nothing", "no meaningful<br>promise"
NO_PROTECTION = "no protection"
WAITING = "No run has finished yet."
BUYS = "The ε of each noise, computed before any run: {per}, {seen}, first seed. A smaller ε protects more."
NONE_SHOWN = "No method here has a finite ε in this view."
UNPROMISED = "it makes no promise in this view"
ZERO = "ε = 0 {seen}, which a logarithmic axis cannot show"
CHOOSE = "Click a point, or choose a line of the table, to open its runs in Try."
OPEN, OPEN_LIVE = "Open in Try", "Run it live and open it in Try"
TABLE, TABLE_ALT = "Every point", "Accuracy and ε of every method at every noise"
HEADS = {
    "method": "method", "noise": "noise σ", "step": "server step", "accuracy": "accuracy", "low": "worst seed",
    "high": "best seed", "seeds": "seeds",
}  # fmt: skip
AWAY = "Take it away: command line, data, pictures"
PROMISES = "The promise of each method"
SHARE, SHARE_TEXT = "Share", "The address of this page holds every setting. Anyone who opens it sees the same page."
LIVE, GO_ON, RETRY = "Run it live", "Resume", "Try again"
STOPPED = "{known} of {all} runs have finished. Their results stay."
LOST = "The record of run {run} cannot be read. {then}"
LOST_MINE = "Try again deletes it for good and runs it again."
LOST_THEIRS = "Only the visitor who requested it may delete it, on the screen Runs. Then it can run again."
OWN_MODELS = "ε covers only what the clients share. It does not cover their own models."
REFERENCE = "The line “{line}” is the shared model of {titles}."
HEADLESS = (
    "{titles}: clients share no last layer. The accuracy is that of the shared layers with the mean of the clients' "
    "own last layers, which never leave them. No ε covers that mean."
)


def unambiguous(text: str) -> str:
    """The two ways to write numbers whose comma may be a decimal point."""
    return f"Write {text.replace(',', '.', 1)} for one number, or {text.replace(',', ', ')} for two"


def table(number: str, title: str) -> str:
    """The title of a table of the paper."""
    return f"Table {number}: {title}"


def run(missing: int, all_of_them: int, known: int) -> str:
    """The label of the button."""
    if not missing:
        return ALL_FINISHED if known >= all_of_them else NOTHING_TO_RUN
    return (RUN if missing == all_of_them else RUN_REST).format(many=runs(missing))


def batch_title(methods: Sequence[str], noises: Sequence[float], rounds: int, count: int) -> str:
    """The title of runs that were requested together."""
    at = f" at noise {', '.join(f'{value:g}' for value in noises)}" if noises else ""
    return f"{', '.join(methods) or 'no protection'}{at}, {rounds} rounds: {runs(count)}"


def expected(all_of_them: int, known: int, seconds: float | None) -> str:
    """The number of runs that a click starts, and their expected time."""
    if known >= all_of_them:
        return f"{runs(all_of_them).capitalize()}, and all of them have finished."
    finished = f", {known:,} of them finished already" if known else ""
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
    level = REFERENCE.format(line=NO_PROTECTION, titles=numbers.joined(references)) if references else ""
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


def bands(summaries: Sequence[PointSummary], several: bool) -> str:
    """How to read the charts. `several`: several server steps were tried."""
    sentences = []
    if max((summary.seeds for summary in summaries), default=1) > 1:
        sentences.append(
            "Each point is the mean over the seeds. Its band reaches from the worst seed to the best. "
            "Its ε is the largest of any seed."
        )
    if several:
        sentences.append(
            "At each noise a method has the server step with the best accuracy, on the seeds that all steps have. "
            "This choice uses test data, and no ε counts it."
        )
    return " ".join(sentences)
