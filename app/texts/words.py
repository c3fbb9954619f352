"""Every text a visitor reads that is not declared by a part."""

from __future__ import annotations

import math

PRODUCT = "LeakLens"
PROMISE = "What does federated learning leak, and what does protection cost?"
EXPECTED = "Expected time here: {time}{twice}."
TWICE = ", and about as long again for the same without protection"
FEWER_SEEDS = "A question is asked with at most {most} seeds: this link wants {asked}."
BROKEN_SHELVES = (
    "The engine could not be loaded ({error}). Delete .venv and start `python3 -m app`: it installs everything anew."
)
GETTING_READY = "Getting ready: the form is here in a moment."
LEAK, LAB, TRADEOFF, RUNS, MACHINE = "Leak", "Lab", "Trade-off", "Runs", "Machine"

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
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
OBSERVERS = {"outsider": "outsider", "client": "participant", "aggregate": "aggregator", "server": "server"}
VACUOUS, NOTHING = 10.0, 50.0  # ε from which a promise says nothing as a worst case, and nothing at all

STATUSES = {
    "formal": ("Protected", "private", "The promise holds against the adversary the method names."),
    "formal-other-view": ("Protected in some views", "private", "The promise holds, but not against every adversary."),
    "claimed-refuted": ("Claim does not hold", "leaking", "What was claimed is not true; here is why."),
    "empirical": ("No proof", "leaking", "It may help in practice, but nothing is proven."),
    "none": ("Not protected", "leaking", "Nothing is promised."),
}
STATES = {
    "queued": "waiting",
    "running": "running",
    "finished": "finished",
    "failed": "failed",
    "cancelled": "cancelled",
    "interrupted": "interrupted",
    "stored": "stored example",
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
SERVER_SEES = "Choose a picture, and see what comes back out of one upload of this run."
SERVER_SEES_TEXT = "Only pictures are attacked here, and this run learns from text."
SHARED = "This dashboard is shared. One visitor may ask for at most: {limits}."
PRIVATE_END, LEAKY_END = "more private", "more leaky"
STORED = "A stored example, run on {made}."
TWIN = "no protection"

PER = {"user": "per client", "record": "per record"}  # a picture or a sentence


def shared(many: int, what: str) -> str:
    """What a click on Cancel leaves alone."""
    it = "it: it goes" if many == 1 else "them: they go"
    return f"Somebody else asked for {many:,} of these {what} or watches {it} on."


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


def times(epsilon: float) -> str:
    """e to the ε as people say it."""
    if epsilon > math.log(1e6):
        return "10" + f"{epsilon / math.log(10):.0f}".translate(RAISED)
    grown = math.exp(epsilon)
    return f"{grown:.3g}" if grown < 100 else f"{float(f'{grown:.2g}'):,.0f}"


def terms(
    unit: str, view: str, adjacency: str, delta: float, accountant: str, bound: str = "", sampling: str = ""
) -> str:
    """The words without which an ε means nothing."""
    note = f", {bound}" if bound else ""
    per = PER[unit].removeprefix("per ")
    drawn = f", {sampling} sampling" if sampling else ""
    return f"per {per}, {SEEN_BY[view]}, {adjacency}, δ = {tiny(delta)}{drawn}, {accountant}, worst {per}{note}"


def tiny(value: float) -> str:
    """1e-05 as people write it."""
    return f"{value:.2g}".replace("e-0", "e-")


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def epsilon(value: float | None) -> str:
    if value is None:
        return "∞"
    return f"{value:.3g}" if value < 1000 else f"{float(f'{value:.2g}'):,.0f}"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 1:
        return "under a second"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def cost(mine: float | None, twin: float | None) -> str:
    """The price of protection in one sentence."""
    if mine is None or twin is None:
        return ""
    points = 100 * (twin - mine)
    both = f"{percent(twin)} without protection, {percent(mine)} with it"
    if points < 0.5:
        return f"Protection costs almost nothing here: {both}."
    return f"Protection costs {points:.0f} points of accuracy here: {both}."
