"""The texts of the Leak screen, and the sentences about the results of attacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.texts import numbers, privacy, states
from engine.errors import plain_number
from engine.results.attack_summary import AttackCell

TITLE = "Leak"
PROMISE = "Can a picture come back out of what its owner sent?"
LEAD = (
    "In federated learning a phone keeps its pictures and sends only what its model learnt. "
    "Below, attackers try to rebuild one picture from that, with and without noise on it."
)
WHOSE, OWN, DELETE = "Whose picture?", "Your own picture", "Delete this picture"
OWN_HELP = "It stays on this computer until you delete it. Every attack on it is deleted with it."
OWN_HELP_CLASS = (
    "Your picture goes to the computer that runs this dashboard ({name}). Other visitors cannot open it. It is deleted "
    "within 30 minutes after you close the page, or when the server starts again, with every attack on it."
)
UPLOAD, CAMERA, CAMERA_ON, LABEL = "PNG or JPEG, up to 10 MB", "Take a picture", "Use the camera", "What does it show?"
LABEL_HELP = "The label that its owner's phone would have given it: training needs one, and the upload depends on it."
SEEN_BY, WHEN, EPOCHS, MANY = "Seen by", "In which round?", "Local steps", "Pictures in the upload"
UPLOADED = "What is in the upload?"
UPLOADS = {
    "listed": "only the chosen pictures",
    "ordinary": "an ordinary upload of a client",
    "cheat": "the same, and the server cheats",
}
UPLOAD_KINDS = {"ordinary": "an ordinary upload", "cheat": "an ordinary upload to a server that cheats"}
EPOCHS_OF_CLIENT = "Local epochs"
UPLOADED_HELP = (
    "One picture alone is the easiest case. In an ordinary upload the chosen picture is one of all the records of a "
    "client. A server that cheats changes the model that it sends."
)
ALL = "All {count} reconstructed pictures of the upload"
ALL_BY = "Attack and protection"
ALL_NOTE = "Each guess is next to the picture that it fits best. Among so many, some fit by chance."
PROBE_EPSILON = (
    "This ε is that of the run, whose clients draw batches. The attacked upload has the chosen pictures in every step, "
    "so its own ε can only be larger."
)
MODEL_DATA, GRID_OF = "Model and data", "Protections and attacks"
MODEL, DATASET, ROUNDS = "Model", "Data set", "Rounds of the run"
AGAINST, ATTACKS, RESTARTS, ATTACK_SEED = "Protections", "Attacks", "Restarts", "Attack seed"
ITERATIONS = "Iterations"
AGAINST_HELP = "The column without protection is always there: without it, a failed attack would say nothing."
RESTARTS_HELP = "How often each attack starts again. It then picks its answer without knowing the picture."
SHOW = "Show picture"
EACH = "each attacker"
EACH_HELP = "Show a row for each attack. Otherwise only the best result of all attacks is shown."
ATTACK, CANCEL = "Attack", "Cancel"
NOTHING = "Choose at least one attack that fits this model."
VIEWS = {
    "server": "the server: one upload",
    "aggregate": "anyone who sees only the sum of a round",
    "client": "another participant",
    "outsider": "an outsider",
}
ROUNDS_OF = {"first": "the first: an untrained model", "last": "the last: a trained model"}
ORIGINAL, BEST, BEST_NOTE = "original", "best of all", "chosen by comparing with the original"
NONE, RUN = "no protection", "the run"
NOT_REQUESTED, WAITING, FORMING, STOPPED = "not asked yet", "waiting", "forming", "stopped"
NO_PROOF = "A failed attack is no proof of protection: a better one may come. Only ε is a promise."
GONE_PICTURE = (
    "There is no such picture here. A picture is deleted when its owner has left and when the server starts again. "
    "Bring it again, or choose another."
)
DELETED = "The picture and {many} on it are gone."
GIVEN_UP = "The picture is gone from your pages. Another visitor brought it, too, so it stays theirs."
BUSY = ("another grid of yours is still under way", "Wait for it, or cancel it")
KEYS = {
    "play": "Play",
    "pause": "Pause",
    "step": "Next moment",
    "scrub": "How far each attack has come",
    "wipe": "Wipe between the original and what came back",
    "wiped": "left: the original; right: {what}",
    "choose": "Compare with the original",
    "hint": "Choose a picture in the grid to lay it over the original.",
    "strength": "Protection, from none to strong",
    "less": "◀ less protection",
    "more": "more protection ▶",
}
GRID = "What each attack got back, by protection"
TRIVIAL, BY = "a grey square of its mean colour reaches {value}", "by {attack}"
ORIGINAL_ALT = "The picture that its owner never sent"
ITERATION, SHARE = "iteration {now:,} of {of:,}", "{share} % of each attack"
TABLE = "Every number: lower PSNR and SSIM and higher LPIPS mean that less came back"
CURVES = "How near each attack came, by iteration"
COLUMNS = "What each protection promises"
HOW, LIVE = "How each attack works", "Run it live"
METRICS = "PSNR in dB / SSIM / LPIPS"
UNPROMISED = "Nothing is promised in this view: there is no finite ε"


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


def terms(unit: str, view: str, delta: float) -> str:
    """The terms of the ε above the columns."""
    per = "client" if unit == "user" else "picture"
    return f"ε above each column: per {per}, {privacy.SEEN_BY[view]}, δ = {numbers.tiny(delta)}, {WHOLE_RUN}."


def decibel(value: float | None) -> str:
    """A PSNR with its unit, and a dash for None."""
    return "–" if value is None else f"{value:.1f} dB"


def column(title: str, level: float | None) -> str:
    """The title of a column: a method and its noise."""
    return title if level is None else f"{title}{NOISE}{plain_number(level)}"


def run(title: str, level: float | None, target: float | None) -> str:
    """The column of a run from another screen. With a target ε, the engine solves its noise."""
    if target is None:
        return f"{RUN}: {column(title, level)}"
    return f"{RUN}: {title} at ε {target:g}"


def head(title: str) -> tuple[str, str]:
    """The heading of a column, and in small print the part that it shares with its neighbours."""
    name, separator, level = title.partition(NOISE)
    return (f"noise {level}", name) if separator else (title, "")


def loudness(ratio: float | None) -> str:
    """The noise over signal of one upload, in words."""
    if ratio is None:
        return ""
    return "no noise" if ratio == 0 else f"noise / signal {ratio:.2g}"


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
        sentences.append(f"This observer does not know {facts['lacks']}, so the attack is blurred.")
    return " ".join(filter(None, sentences))


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


def stored(count: int, total: int, made: str) -> str:
    """How many attacks come from the stored example."""
    if count == total:
        return states.STORED.format(made=made)
    return f"{count} of these {total} attacks come from a stored example, run on {made}; the others ran here."


def batch_title(picture: str, attacks: int) -> str:
    """The title of attacks that were requested together."""
    name = "a picture of your own" if picture.startswith("own-") else f"picture {picture}"
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


def alt(attack: str, column: str, psnr: float | None, state: str) -> str:
    """The text alternative of a guess."""
    near = "" if psnr is None else f", {decibel(psnr)}"
    return f"Attack {attack} against {column}: {state}{near}"


def hover(numbers: Mapping[str, float], remark: str) -> str:
    """The label at the pointer: further scores, and a remark on the attack."""
    scores = []
    if "ssim" in numbers:
        scores.append(f"SSIM {numbers['ssim']:.2f}")
    if "lpips" in numbers:
        scores.append(f"LPIPS {numbers['lpips']:.2f}")
    sentences = [", ".join(scores), remark[:1].upper() + remark[1:]]
    return ". ".join(filter(None, sentences))


def thumbnail_alt(title: str, name: str, chosen: bool) -> str:
    """The text alternative of a thumbnail."""
    kind, _, place = name.partition("-")
    which = "your own picture" if kind == "own" else f"{kind} picture {place}"
    return f"{title}, {which}{', chosen' if chosen else ''}"


def not_pictures(title: str, other: str) -> str:
    """A note that another data set replaces one with text."""
    return f"Only pictures are attacked here, and {title} is about text: {other} is used."


def row_title(spec: Mapping[str, Any], attack: str, method: str) -> str:
    """The title of an attack in the list of runs."""
    pictures = _pictures(spec.get("pictures") or ())
    run = spec.get("run")
    part = run.get("method") if isinstance(run, Mapping) else None
    level = part.get("noise") if isinstance(part, Mapping) else None
    against = method or "a method"
    if level is not None:
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
    first = "a picture of your own" if kind == "own" else f"{kind} picture {place}"
    return first if len(names) == 1 else f"{first} and {len(names) - 1} more"
