"""What an ε means: who observes, what is protected, and the odds."""

from __future__ import annotations

from app.texts.numbers import percent, times, tiny

VIEWS = ("outsider", "client", "aggregate", "server")  # the least seeing first


SEES = {
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


WHAT_IS_TOLD = {
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


VACUOUS = 10.0  # from this ε on a promise says nothing as a worst case


NOTHING = 50.0  # and from this ε on nothing at all


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
    "The noise of a run comes from its seed, and the seed is shown: whoever knows it can subtract the noise. "
    "This is a simulation. A deployment needs secret cryptographic randomness.",
    "A server that breaks the rules is covered only where the noise is added inside the client.",
)


PER = {"user": "per client", "record": "per record"}  # a picture or a sentence


def odds(view: str, unit: str, epsilon: float | None) -> str:
    """What an ε means, as odds, in the one sentence that fits the view."""
    if epsilon is None:
        return "No finite ε: nothing is promised in this view."
    told = WHAT_IS_TOLD[view].format(**UNITS[unit])
    if epsilon == 0:
        return f"An observer who {SEES[view]} learns nothing about {told}."
    words = f"An observer's odds of telling {told} grow at most {times(epsilon)} times."
    if epsilon > NOTHING:
        return f"{words} That is no protection worth the name."
    return f"{words} As a worst-case promise that says nothing." if epsilon > VACUOUS else words


def terms(
    unit: str, view: str, adjacency: str, delta: float, accountant: str, bound: str = "", sampling: str = ""
) -> str:
    """The words without which an ε means nothing."""
    note = f", {bound}" if bound else ""
    per = PER[unit].removeprefix("per ")
    drawn = f", {sampling} sampling" if sampling else ""
    return f"per {per}, {SEEN_BY[view]}, {adjacency}, δ = {tiny(delta)}{drawn}, {accountant}, worst {per}{note}"


def cost(mine: float | None, twin: float | None) -> str:
    """The price of protection in one sentence."""
    if mine is None or twin is None:
        return ""
    points = 100 * (twin - mine)
    both = f"{percent(twin)} without protection, {percent(mine)} with it"
    if points < 0.5:
        return f"Protection costs almost nothing here: {both}."
    return f"Protection costs {points:.0f} points of accuracy here: {both}."
