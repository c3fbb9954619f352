"""The texts of Start. A sentence follows from a verdict, an accuracy and an ε, never from a place on the slider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.texts import attacks as attack_texts
from app.texts import numbers, privacy, verdicts
from engine.epsilon import Epsilon
from engine.results.verdict import COMES_BACK, KIND, LEAKS, NOT_RECOGNISED, OUTLINES, Verdict

PROTECTION, OFF, STRONG = "Protection: noise that each phone adds", "off", "strong"
ON_PHONE = "on the phone"
REBUILT = "what {who} {rebuilt}"
# The server holds the upload itself. Others see what follows from it.
REBUILDS, COULD_REBUILD = "rebuilt", "could rebuild"
TURN_ORIGINAL, TURN_REBUILT = "Show the original", "Show what was rebuilt"
IN_UPLOAD = "In the upload"
CONTENTS = {
    "1": "one picture",
    "8": "8 pictures",
    "ordinary": "an ordinary upload",
    "cheat": "ordinary, and the server cheats",
}
SERVER_ONLY = "Choose the server above to see 8 pictures, or a server that cheats."
INSTANT_ONLY = "The instant attack reads your photo alone in the upload. Leak has the other uploads."
SERVER_READS = "Your photo is attacked by the server, and the promise is the one against the server."
NOTHING_STORED = "Start has no stored attack by {who}. Choose another observer above."
NO_PROTECTION = "none"
ACCURACY_SHORT = "accuracy"
ACCURACY, PROMISE = "accuracy of the model", "promise"
HEADLINE = "Her photo never left the phone. This is what {who} {rebuilt} from what did."
LEAD = (
    "Phones train a model together: it learns to tell ten kinds of clothes. Each phone sends what its model learnt, as "
    "numbers. An attacker calculates a picture from these numbers."
)
OWN_LEAD = "A phone with only your photo would send these numbers. An attacker calculates a picture from them."
OWN_HEADLINE = "This is what the server would rebuild from an upload of your photo. Instant attack only."
OWN_HOME = f"Your photo stays on this computer. {OWN_HEADLINE}"
LESSON = "Hiding a picture is cheap. A promise is expensive."
EASIEST, ORDINARY = attack_texts.EASIEST, attack_texts.ORDINARY
NOT_SENT = "{failed} That is not a promise."
ONLY_EPSILON = "{failed} That is not a promise: only the ε is."
FAILED, ONE_FAILED = "None of our {count} attackers succeeded here.", "Our one attacker did not succeed here."
TITLES = {**attack_texts.TITLES, "imprint": "Robbing the Fed"}  # of attacks, before the shelves are loaded
SIZES = "An ε of at most 1 is a strong promise, of at most 3 a limited one, of at most 10 a weak one."
JUDGED = "Three measures of the picture decide the verdict: PSNR, SSIM and LPIPS."
CHEATS = "This server sends a changed model, so that the numbers in the upload contain pictures."
NEAR, MUCH = 0.1, 0.2  # of accuracy: lost without much harm, and a high price

USE_PHOTO, DELETE = "Use your photo", "Delete your photo"
UPLOAD = "PNG or JPEG, up to 10 MB"
PORTRAIT = "Back to the portrait"
ATTACK = "Attack this photo"
BUSY = ("another photo of yours is under way", "Wait for it")
MISSING = "The stored table of Start is missing. Download LeakLens again."
NOT_ATTACKED = "not attacked yet"
LOADING = "The engine loads. The attacks start in a moment."
BATCH = "instant attacks on a photo of your own"
TRY, TRADEOFF = "Try a protection →", "See the trade-off →"
QUESTIONS = "Common questions"
SAFE, HIDES, HALF = (
    "Is FedCEO safe against the server?", "How much noise hides a picture from the server?",
    "What does half the noise cost?",
)  # fmt: skip
WHO_ELSE, COST, YOURSELF = (
    "Who else could see it?", "What does a promise cost?", "Can you recognise what the server got?",
)  # fmt: skip


@dataclass(frozen=True)
class PictureWords:
    """How the sentences name a picture."""

    it: str  # subject of a verdict
    object: str  # what an attacker brings back
    recognised: str  # what a recognised picture gives away
    attacker: str  # the only one


PORTRAIT_WORDS = PictureWords("her face", "her", "who she is", "The one attacker")
OWN_WORDS = PictureWords("your picture", "it", "what it shows", "The instant attack")


@dataclass(frozen=True)
class StopResult:
    """What a sentence depends on: the results of one stop for one observer."""

    verdict: Verdict | None  # None: no attack has ended
    accuracy: float | None
    baseline: float | None  # the accuracy without noise
    epsilon: Epsilon | None
    attacks: int  # that ran

    @property
    def leaks(self) -> bool:
        return self.verdict in LEAKS

    @property
    def protected(self) -> bool:
        """Whether there is an ε at all, however large."""
        return self.epsilon is not None and self.epsilon.value is not None

    @property
    def promises(self) -> bool:
        """Whether the ε means something."""
        if self.epsilon is None or self.epsilon.value is None:
            return False
        return privacy.size_of(self.epsilon) != privacy.NO_PROMISE


def headline(view: str, own: bool, at_home: bool) -> str:
    """The title of the page."""
    if own:
        return OWN_HOME if at_home else OWN_HEADLINE
    return HEADLINE.format(who=who(view), rebuilt=rebuilt(view))


def rebuilt(view: str) -> str:
    """What an observer did with the upload, as a verb."""
    return REBUILDS if view == "server" else COULD_REBUILD


def who(view: str) -> str:
    """The observer, as the subject of a sentence."""
    return privacy.WHO[view]


def word(verdict: Verdict | None, words: PictureWords, state: str) -> str:
    """The verdict on a picture, as a heading. `state` is shown before the end."""
    if verdict is None:
        return _capital(state)
    return _capital(verdicts.ALONE[verdict].format(it=words.it))


def alt(verdict: Verdict | None, words: PictureWords, state: str) -> str:
    """What is seen in the rebuilt picture."""
    seen = {
        COMES_BACK: f"{_capital(words.it)}, rebuilt from numbers alone. Recognisable.",
        OUTLINES: f"Outlines of {words.it}, rebuilt from numbers alone.",
        KIND: "A picture of the same kind of thing, rebuilt from numbers alone.",
        NOT_RECOGNISED: f"A picture rebuilt from numbers alone. {_capital(words.it)} is not recognisable.",
    }
    return seen[verdict] if verdict else _capital(state)


def attackers(count: int) -> str:
    """A number of attackers in words."""
    return "1 attacker" if count == 1 else f"{count} attackers"


def sentence(result: StopResult, words: PictureWords, view: str) -> str:
    """What this stop means."""
    if result.verdict is None:
        return ""
    picture = "" if result.promises and not result.leaks else _picture(result, words, view)
    return " ".join(filter(None, [picture, _promise(result)]))


def _picture(result: StopResult, words: PictureWords, view: str) -> str:
    """What the observer sees, as a sentence."""
    if result.verdict == COMES_BACK:
        if not result.protected:
            return f"Without protection, {who(view)} can tell {words.recognised}."
        return f"You can still tell {words.recognised}."
    if result.verdict == OUTLINES:
        return f"You can {'still ' if result.protected else ''}see outlines of {words.it}."
    if result.verdict == KIND:
        return f"You can tell what kind of thing it is, but not {words.recognised}."
    if not result.protected:
        return NOT_SENT.format(failed=_failed(result.attacks))
    back = f"{_none(result.attacks, words)} brings {words.object} back"
    return f"{back}; accuracy {share(result.accuracy)}. Still no promise."


def _none(attacks: int, words: PictureWords) -> str:
    return f"{words.attacker} no longer" if attacks == 1 else f"None of {attacks} attackers"


def _failed(attacks: int) -> str:
    return ONE_FAILED if attacks == 1 else FAILED.format(count=attacks)


def _promise(result: StopResult) -> str:
    """The promise and its price, where there is a promise."""
    if not result.promises or result.epsilon is None:
        return ""
    kind = privacy.size_of(result.epsilon).word
    article = "" if kind.startswith("an ") else "a "
    promise = f"Now there is {article}{kind} (ε {privacy.rounded_text(result.epsilon)})."
    return f"{promise} {_price(result.accuracy, result.baseline)}".strip()


def _price(accuracy: float | None, baseline: float | None) -> str:
    """What the accuracy was without protection and is now."""
    if accuracy is None or baseline is None:
        return ""
    before, after = round(100 * baseline), round(100 * accuracy)
    if before - after < 1:
        return f"Accuracy stays at {after} %."
    return f"Accuracy fell from {before} to {after} %."


def note(result: StopResult, easiest: bool) -> str:
    """What limits the verdict. `easiest`: one picture is alone in the upload."""
    if result.leaks:
        return EASIEST if easiest else ""
    if result.verdict is not None and result.promises:
        return ONLY_EPSILON.format(failed=_failed(result.attacks))
    return ""


def lesson(stops: Sequence[StopResult]) -> str:
    """The sentence of the last stop, where the numbers say so; else empty.

    The picture comes back without protection, some stop hides it at nearly the same accuracy, and the first stop whose
    promise means something costs much.
    """
    first = stops[0]
    promised = next((stop for stop in stops if stop.promises), None)
    if not first.leaks or promised is None:
        return ""
    hidden = [stop for stop in stops if stop.verdict is not None and not stop.leaks]
    cheap = any(_loss(stop, first) <= NEAR for stop in hidden)
    return LESSON if cheap and _loss(promised, first) >= MUCH else ""


def _loss(stop: StopResult, first: StopResult) -> float:
    return (first.accuracy or 0.0) - (stop.accuracy or 0.0)


def share(value: float | None) -> str:
    """A fraction as a whole percentage, and a dash for None."""
    return "–" if value is None else f"{round(100 * value)} %"


def spread(accuracies: Sequence[float]) -> str:
    """The accuracies of several seeds; empty for one."""
    if len(accuracies) < 2:
        return ""
    low, high = round(100 * min(accuracies)), round(100 * max(accuracies))
    between = f"{low} %" if low == high else f"{low} to {high} %"
    return f"{between} in {len(accuracies)} runs"


def tick(noise: float) -> str:
    """A noise as a short label below the slider."""
    return NO_PROTECTION if noise == 0 else f"{noise:g}".removeprefix("0")


def place(noise: float, word: str, accuracy: float | None, promise: str) -> str:
    """A stop in words, for the slider."""
    level = "no protection" if noise == 0 else f"noise {noise:g}"
    return f"{level}: {word}, accuracy {share(accuracy)}, {promise}"


def delta(result: StopResult) -> str:
    """The δ of a promise with a number, in one line. The text of the promise has the unit."""
    if not result.promises or result.epsilon is None:
        return ""
    return f"δ\u00a0=\u00a0{numbers.tiny(result.epsilon.delta)}"


def terms(epsilon: Epsilon | None) -> str:
    """The ε with its terms, in small print; empty without one."""
    if epsilon is None or epsilon.value is None:
        return ""
    small = [f"ε {privacy.rounded_text(epsilon)} {privacy.terms(epsilon)}."]
    if privacy.size_of(epsilon) != privacy.NO_PROMISE:
        small.append(privacy.odds(epsilon))
        small.append(SIZES)
    return " ".join(small)


def best_of(title: str, attacks: int, leaks: bool) -> str:
    """The attack whose picture is shown. Where none succeeded, it is the nearest."""
    if attacks == 1:
        return f"attack: {title}"
    return f"{'best' if leaks else 'nearest'} of {attacks} attacks: {title}"


def upload(pictures: int, steps: int) -> str:
    """What an ordinary upload holds."""
    return f"The upload holds {pictures} pictures, used in {steps} training step{'s' if steps > 1 else ''}."


def others(count: int, pictures: int, chance: int | None) -> str:
    """How many of the other pictures of an upload come back; empty if none does."""
    if not count:
        return ""
    leaking = f"{count} of the other {pictures - 1} {'comes' if count == 1 else 'come'} back, at least in outlines"
    likely = verdicts.UNKNOWN_CHANCE if chance is None else verdicts.BY_CHANCE.format(count=chance)
    return f"{leaking}; {likely}."


def training(spec: Mapping[str, Any], step: float, tried: int, made: str) -> str:
    """The run behind a stop, in small print."""
    people = f"{spec.get('clients')} people, {spec.get('sampled')} a round, {spec.get('rounds')} rounds"
    return f"Stored on {made}: {people}, server step {step:g}, the best of the {tried} tried. {JUDGED}"


def original_alt(words: PictureWords) -> str:
    """What is seen in the original picture."""
    return f"The original: {words.it}, as the phone has it."


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
