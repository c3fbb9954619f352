"""Texts about ε: the observers, the protected units, the odds and the terms."""

from __future__ import annotations

from app.texts.numbers import percent, times, tiny
from engine.epsilon import Epsilon

VIEWS = ("outsider", "client", "aggregate", "server")  # ordered by what they see, least first


OBSERVER_SEES = {
    "outsider": "sees only the published models",
    "client": "takes part and sees each round's model",
    "aggregate": "sees the sum of a round",
    "server": "sees every upload by itself",
}


SEEN_BY = {
    "outsider": "seen by an outsider",
    "client": "seen by a participant",
    "aggregate": "seen by an aggregator",
    "server": "seen by the server",
}


SECRETS = {
    "outsider": "whether {who} in the data",
    "client": "whether {who} in the data",
    "aggregate": "whether a sum holds {whose} data or none",
    "server": "whether {upload} was made from {whose} data or from none",
}


UNITS = {
    "user": {"who": "you were", "whose": "your", "upload": "your upload"},
    "record": {
        "who": "one record of yours (a picture or a sentence) was",
        "whose": "that record's",
        "upload": "an upload",
    },
}


OBSERVERS = {"outsider": "outsider", "client": "participant", "aggregate": "aggregator", "server": "server"}


VACUOUS = 10.0  # above this ε, a guarantee means nothing as a worst case


NOTHING = 50.0  # above this ε, it is no protection at all


STATUSES = {
    "formal": ("Protected", "private", "The promise holds against the adversary the method names."),
    "formal-other-view": ("Protected in some views", "private", "The promise holds, but not against every adversary."),
    "claimed-refuted": ("Claim does not hold", "leaking", "What was claimed is not true; here is why."),
    "empirical": ("No proof", "leaking", "It may help in practice, but nothing is proven."),
    "none": ("Not protected", "leaking", "Nothing is promised."),
}


NOT_COVERED = (
    "This run only. Sweeps, tuning, picking the best round and runs with other seeds on the same data add up, "
    "and are not counted.",
    "The accuracy and loss shown here are computed on private data; showing them is not counted.",
    "Floating-point effects and side channels, such as how long a step takes, are not covered.",
    "The noise of a run comes from its seed, and the seed is shown: anyone who knows it can subtract the noise. "
    "This is a simulation. A deployment needs secret cryptographic randomness.",
    "A server that breaks the rules is covered only where the noise is added inside the client.",
)


PER = {"user": "per client", "record": "per record"}  # a record is a picture or a sentence


def odds(view: str, unit: str, epsilon: float | None) -> str:
    """The meaning of an ε as odds, in the sentence that fits the view."""
    if epsilon is None:
        return "No finite ε: nothing is promised in this view."
    secret = SECRETS[view].format(**UNITS[unit])
    if epsilon == 0:
        return f"An observer who {OBSERVER_SEES[view]} learns nothing about {secret}."
    sentence = f"An observer's odds of telling {secret} grow at most {times(epsilon)} times."
    if epsilon > NOTHING:
        return f"{sentence} That is no protection worth the name."
    if epsilon > VACUOUS:
        return f"{sentence} As a worst-case promise that says nothing."
    return sentence


def terms(epsilon: Epsilon) -> str:
    """The terms of an ε. Without them the number means nothing."""
    note = f", {epsilon.bound}" if epsilon.bound else ""
    per = PER[epsilon.unit].removeprefix("per ")
    sampled = f", {epsilon.sampling} sampling" if epsilon.sampling else ""
    start = f"per {per}, {SEEN_BY[epsilon.view]}, {epsilon.adjacency}, δ = {tiny(epsilon.delta)}"
    return f"{start}{sampled}, {epsilon.accountant}, worst {per}{note}"


def cost(accuracy: float | None, baseline: float | None) -> str:
    """The accuracy that protection costs, in one sentence."""
    if accuracy is None or baseline is None:
        return ""
    points = 100 * (baseline - accuracy)
    both = f"{percent(baseline)} without protection, {percent(accuracy)} with it"
    if points < 0.5:
        return f"Protection costs almost nothing here: {both}."
    return f"Protection costs {points:.0f} points of accuracy here: {both}."
