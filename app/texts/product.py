"""The name of the product, the titles of its screens, and the texts that several screens share."""

from __future__ import annotations

PRODUCT = "LeakLens"
PROMISE = "What does federated learning leak, and what does protection cost?"
EXPECTED = "Expected time here: {time}{twice}."
WITH_BASELINE = ", and about as long again for the same without protection"
FEWER_SEEDS = "A question is asked with at most {most} seeds: this link wants {asked}."
BROKEN_SHELVES = (
    "The engine could not be loaded ({error}). Delete .venv and start `python3 -m app`: it installs everything again."
)
GETTING_READY = "Getting ready: the form is here in a moment."
LEAK = "Leak"
LAB = "Lab"
TRADEOFF = "Trade-off"
RUNS = "Runs"
MACHINE = "Machine"


SERVER_SEES = "Choose a picture, and see what comes back out of one upload of this run."
SERVER_SEES_TEXT = "Only pictures are attacked here, and this run learns from text."
SHARED = "This dashboard is shared. One visitor may ask for at most: {limits}."
PRIVATE_END, LEAKY_END = "more private", "more leaky"
NO_PROTECTION = "no protection"
