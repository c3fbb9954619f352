"""The texts of the Leak screen, and the sentences about the results of attacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.texts import numbers, privacy, states
from engine.epsilon import Epsilon
from engine.errors import plain_number
from engine.results.attack_summary import AttackCell

PROMISE = "What comes back?"
LEAD = (
    "In federated learning a phone keeps its pictures and sends only what its model learnt. "
    "Attackers try to rebuild one picture from that, with and without protection."
)
EASIEST = "Easiest case for an attacker: one picture in the upload."
OWN_UPLOAD = "Without protection the same client sends {pictures} pictures in {steps}."
ORDINARY = "An ordinary upload"
UPLOAD_KINDS = {"ordinary": "an ordinary upload", "cheat": "an ordinary upload to a server that cheats"}
VIEWS = {
    "server": "the server: one upload",
    "aggregate": "anyone who sees only the sum of a round",
    "client": "another participant",
    "outsider": "an outsider",
}
ALL = "The reconstructed pictures of the upload"
ALL_COUNT = "All {count} reconstructed pictures:"
SHOW_OTHERS = "Show pictures that come back"
FEW_STORED = (
    "The stored example has {count} of the {guessed} reconstructed pictures, with the best of those that come back. "
    "Run it live to see all."
)
ALL_BY = "Attack and protection"
ALL_NOTE = "Each guess is next to the picture that it fits best. Among so many, some fit by chance."
PROBE_EPSILON = (
    "An ε per record is that of the run, whose clients draw batches from all their records. A client that held only "
    "the chosen pictures would use them in every step of every round, and the ε of such a run would be larger."
)
UNITS = "ε per client and ε per record promise different things: the same number does not protect the same."
SHOW = "Show picture"
ATTACK = "Attack"
NOTHING = "Choose at least one attack that fits this model."
ORIGINAL, BEST, BEST_NOTE = "original", "best of {count}", "nearest to the original"
NONE, RUN = "no protection", "the run"
NOT_REQUESTED, WAITING, FORMING, STOPPED = "not run yet", "waiting", "forming", "stopped"
NO_PROOF = "A failed attack is no proof of protection: a better one may come. Only ε is a promise."
BUSY = ("another grid of yours is still under way", "Wait for it, or cancel it")
KEYS = {
    "play": "Play",
    "pause": "Pause",
    "step": "Next moment",
    "scrub": "How far each attack has come",
    "wipe": "Wipe between the original and what came back",
    "wiped": "left: the original; right: {what}",
    "choose": "Compare with the original",
    "hint": "Choose a picture in the grid, then drag over this one.",
    "original": "Show the original",
    "rebuilt": "Show what came back",
    "moving": "Scores are those of the last moment.",
    "scores": "PSNR, SSIM: longer is closer to the original. LPIPS: shorter is closer. The line marks a grey square.",
    "strength": "Protection, from none to strong",
    "less": "◀ less protection",
    "more": "more protection ▶",
}
GRID = "What each attack got back, by protection"
BY = "by {attack}"
ORIGINAL_ALT = "The picture that its owner never sent"
ITERATION, SHARE = "iteration {now:,} of {of:,}", "{share} % of each attack"
TABLE = "All scores: lower PSNR and SSIM and higher LPIPS mean that less came back"
CURVES = "How near each attack came, by iteration"
LIVE = "Run it live"
METRICS = "PSNR in dB / SSIM / LPIPS"
UNPROMISED = "No promise: there is no finite ε here."


WHOLE_RUN = "for the whole run, of which this is one upload"
TABLE_CSS = """
<style>
.ll-numbers { overflow-x: auto; }
.ll-numbers table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
.ll-numbers th, .ll-numbers td { text-align: left; vertical-align: top; padding: .25rem 1.1rem .25rem 0; border: 0;
  border-bottom: 1px solid var(--hair); font-weight: 400; white-space: nowrap; }
.ll-numbers thead th { color: var(--faint); white-space: normal; }
.ll-numbers small { display: block; color: var(--faint); }
</style>
"""
TITLES = {  # of the stored grid, which the screen shows before the shelves are loaded
    "udp-fedavg": "UDP-FedAvg",
    "analytic": "Read off the first layer",
    "map": "Most probable picture",
    "inverting-gradients": "Inverting Gradients",
}
GREY = "a grey square"
NOISE = ", noise "  # between a method and its noise
BUDGETED = " at ε "  # between a method and its budget


def terms(answers: Sequence[Epsilon]) -> str:
    """The terms of the ε above the columns, which are all of one observer. Units may differ."""
    units = dict.fromkeys(f"{privacy.PER[answer.unit]} with δ = {numbers.tiny(answer.delta)}" for answer in answers)
    against = privacy.AGAINST[answers[0].view]
    text = f"Above each column: what is promised {against}, {WHOLE_RUN} ({', '.join(units)})."
    return f"{text} {UNITS}" if len({answer.unit for answer in answers}) > 1 else text


def easiest(facts: Mapping[str, Any]) -> str:
    """One picture alone, next to what the same client uploads in the run."""
    own = ""
    if int(facts.get("own-pictures", 0)) > 1:
        own = OWN_UPLOAD.format(pictures=facts["own-pictures"], steps=_steps(int(facts["own-steps"])))
    return " ".join(filter(None, [EASIEST, own]))


def decibel(value: float | None) -> str:
    """A PSNR with its unit, and a dash for None."""
    return "–" if value is None else f"{value:.1f} dB"


def column(title: str, level: float | None) -> str:
    """The title of a column: a method and its noise."""
    return title if level is None else f"{title}{NOISE}{plain_number(level)}"


def run(title: str, level: float | None, target: float | None, view: str | None) -> str:
    """The column of a run from another screen. With a target ε, the engine solves its noise for one observer."""
    if target is None:
        return f"{RUN}: {column(title, level)}"
    against = f" {privacy.AGAINST[view]}" if view else ""
    return f"{RUN}: {at_budget(title, target)}{against}"


def at_budget(title: str, epsilon: float) -> str:
    """The column of a method with the noise that keeps its ε at a budget."""
    return f"{title}{BUDGETED}{epsilon:,g}"


def head(title: str) -> tuple[str, str]:
    """The heading of a column, and in small print the part that it shares with its neighbours."""
    name, separator, level = title.partition(NOISE)
    if separator:
        return f"noise {level}", name
    name, separator, budget = title.partition(BUDGETED)
    return name, f"budget ε {budget}" if separator else ""


def loudness(ratio: float | None) -> str:
    """The noise over signal of one upload, in words."""
    if ratio is None:
        return ""
    return "no noise" if ratio == 0 else f"noise / signal {numbers.ratio(ratio)}"


def epsilon(value: float | None, promised: bool) -> str:
    """The ε above a column. `promised`: the view has a guarantee, which may be infinite."""
    if not promised:
        return "no ε"
    if value is None or value < 1e6:
        return f"ε {numbers.epsilon(value)}"
    mantissa, _, power = f"{value:.0e}".partition("e")
    return f"ε {mantissa}·10{str(int(power)).translate(numbers.RAISED)}"


# --- what happened -----------------------------------------------------------------------------------------


def realistic(facts: Mapping[str, Any], view: str) -> str:
    """The attacked upload in words, and how it compares with the uploads of the run itself."""
    trained = int(facts["trained"])
    upload = f"{_content(facts)}, {_steps(int(facts['steps']))}"
    model = "a model no one trained yet"
    if trained:
        model = f"a model trained for {trained} round{'s' if trained > 1 else ''}"
    seen = "What would have been seen" if facts.get("probe") else "What was seen"
    sentences = [f"{seen}: {upload}, {model}, {_way(view)}.", _comparison(facts)]
    if facts.get("lacks"):
        sentences.append(lacks(str(facts["lacks"])))
    return " ".join(filter(None, sentences))


def lacks(what: str) -> str:
    """What an observer of this view does not know."""
    return f"This observer does not know {what}, so the attack is blurred."


def _content(facts: Mapping[str, Any]) -> str:
    pictures = int(facts["pictures"])
    content = "one picture" if pictures == 1 else f"{pictures} pictures"
    alone = " alone" if facts.get("probe") and facts.get("upload", "listed") == "listed" else ""
    return f"{content}{alone} in an upload"


def _steps(steps: int) -> str:
    return f"{steps} local step{'s' if steps > 1 else ''}"


def _way(view: str) -> str:
    """How the observer of a view reads the upload."""
    if view == "server":
        return "read by the server"
    if view == "aggregate":
        return "added to the uploads of the others"
    observer = "a participant" if view == "client" else "an outsider"
    return f"seen only through the next model, by {observer}"


def _comparison(facts: Mapping[str, Any]) -> str:
    """The upload of a probe beside what the same client uploads in the run. Nothing for a recorded upload."""
    upload = facts.get("upload")
    if upload is None:
        return ""
    if upload == "ordinary":
        return "That is an ordinary upload of this run, with the chosen picture in the place of one record."
    if upload == "cheat":
        return "That is an ordinary upload of this run, but for the model, which the server changed before it sent it."
    own_pictures, own_steps = int(facts["own-pictures"]), int(facts["own-steps"])
    own = "one picture" if own_pictures == 1 else f"{own_pictures} pictures"
    sends = f"in this run the same client sends {own} in {_steps(own_steps)}"
    if int(facts["pictures"]) < own_pictures:
        return f"That is easier for an attacker than an ordinary upload: {sends}."
    return f"For comparison: {sends}."


def state(cell: AttackCell) -> str:
    """The progress of an attack that has not finished, in words."""
    if cell.status == "running":
        if cell.path:
            return f"{FORMING}, {100 * cell.share:.0f} %"
        return cell.doing or FORMING
    if cell.problem:
        return "does not fit" if not cell.status else "failed"
    return {"": NOT_REQUESTED, "queued": WAITING, "failed": "failed"}.get(cell.status, STOPPED)


def stored(count: int, requested: int, total: int, made: str) -> str:
    """How many attacks come from the stored example. `requested`: how many ran here or wait for it."""
    if count == total:
        return states.STORED.format(made=made)
    text = f"{count} of these {total} attacks come from a stored example, run on {made}."
    return f"{text} {requested} were requested here." if requested else text


def so_far(attack: str, done: int, of: int) -> str:
    """Which attack a picture is from, and how many have finished if not all have."""
    by = BY.format(attack=attack)
    return by if done == of else f"{by}; {done} of {count(of)} so far"


def _photo(picture: str) -> str:
    """A picture that is not of the data set, in words; empty for one that is."""
    return {"portrait": "the portrait", "own": "a picture of your own"}.get(picture.partition("-")[0], "")


def batch_title(picture: str, attacks: int) -> str:
    """The title of attacks that were requested together."""
    name = _photo(picture) or f"picture {picture}"
    return f"{count(attacks)} on {name}"


def attack(missing: int, of: int) -> str:
    """The label of the button."""
    return ATTACK if missing == of else f"{ATTACK}: {missing} more"


def left_out(title: str, reason: str) -> str:
    """An attack that fits no column, with the reason from the engine."""
    it = "it " if reason.partition(" ")[0] in ("changes", "is", "learns", "leaves", "needs", "works") else ""
    return f"{title} is left out: {it}{reason}"


def noisy(key: str) -> str:
    """The title of a column before the shelves are loaded."""
    name, _, level = key.partition(":")
    return column(TITLES.get(name, name), float(level) if level else None)


def count(number: int) -> str:
    """A number of attacks in words."""
    return "1 attack" if number == 1 else f"{number} attacks"


# --- text alternatives and rows of lists -------------------------------------------------------------------


def alt(attack: str, column: str, state: str) -> str:
    """The text alternative of a guess."""
    return f"Attack {attack} against {column}: {state}" if state else f"Attack {attack} against {column}"


def metric(name: str, value: float | None) -> str:
    """A score with its unit, and a dash for None."""
    if name == "psnr" or value is None:
        return decibel(value)
    return f"{value:.2f}"


def row_title(spec: Mapping[str, Any], attack: str, method: str) -> str:
    """The title of an attack in the list of runs."""
    pictures = _pictures(spec.get("pictures") or ())
    run = spec.get("run")
    part = run.get("method") if isinstance(run, Mapping) else None
    level = part.get("noise") if isinstance(part, Mapping) else None
    target = run.get("target-epsilon") if isinstance(run, Mapping) else None
    against = method or "a method"
    if isinstance(target, int | float):
        against = at_budget(against, target)
    elif level is not None:
        against += f" noise {plain_number(level)}"
    return f"{attack or 'An attack'} on {pictures}, {against}, {when(spec)}"


def when(spec: Mapping[str, Any]) -> str:
    """The attacked round."""
    return {"first": "first round", "last": "last round"}.get(str(spec.get("round")), f"round {spec.get('round')}")


def row_details(spec: Mapping[str, Any], model: str, dataset: str) -> str:
    """Further facts about an attack in the list of runs: model, data set, view and restarts."""
    restarts = spec.get("restarts", 1)
    more = f"{restarts} restarts" if restarts != 1 else ""
    upload = UPLOAD_KINDS.get(str(spec.get("upload")), "")
    seen = privacy.SEEN_BY.get(str(spec.get("view")), "")
    return ", ".join(filter(None, [f"{model} on {dataset}", upload, seen, more]))


def _pictures(names: Sequence[str]) -> str:
    if not names:
        return "a recorded upload"
    kind, _, place = str(names[0]).partition("-")
    first = _photo(str(names[0])) or f"{kind} picture {place}"
    return first if len(names) == 1 else f"{first} and {len(names) - 1} more"
