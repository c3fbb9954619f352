"""The texts of the section "How close is this to your system?"."""

from __future__ import annotations

from collections.abc import Mapping

TITLE = "How close is this to your system?"
LEAD = "Choose the values of your system. The page finds the nearest stored result, and says what differs."
CHOICES: Mapping[str, str] = {
    "pictures": "Pictures per upload",
    "steps": "Local steps per upload",
    "server": "The server",
    "aggregation": "Secure aggregation",
    "noise": "Noise is added",
    "trained": "The model that is attacked",
}
VALUES: Mapping[str, Mapping[str, str]] = {
    "pictures": {"one": "one", "few": "2 to 16", "many": "more than 16"},
    "steps": {"one": "one", "several": "several"},
    "server": {"honest": "keeps the rules", "cheats": "changes the model"},
    "aggregation": {"no": "no, it sees each upload", "yes": "yes, it sees only the sum"},
    "noise": {
        "none": "nowhere",
        "client": "by each client",
        "shared": "by the clients together",
        "server": "by the server",
    },
    "trained": {"first": "not trained yet", "later": "trained before"},
}
TABLE, TABLE_HEADS = "The six values of this result", ("choice", "this result")
OTHER_OBSERVER = "Here the attacker is not the server but an observer ({observer}), who sees no more than the sum."

SENTENCE = "A simulation on {data}. {tested} It did not test: {rest}. It is not evidence that your system is safe."
SENTENCE_OF_PART = (
    "A simulation on {data}. This page shows {shown} of {all} results of attacks. {tested} The results that it shows "
    "did not test: {rest}. It is not evidence that your system is safe."
)
PUBLIC, WITH_OWN = "public {noun}", "public pictures and uploaded ones"
TESTED = {0: "It tested no attack.", 1: "It tested this 1 attack: {names}."}
TESTED_MANY = "It tested these {count} attacks: {names}."
NO_MEMBERSHIP = "whether a person was in the data"
REST = ("larger models", "real private data", "attacks that no one has published")
NOUNS = ("pictures", "sentences")

# --- what the script of the page writes --------------------------------------------------------------------

OWN_RESULT = "{title}, on this page"
ALONE, AMONG = "alone", "in an upload of {count} pictures"
RESULT = "{upload} Attacks: {attacks}."
WORDS: Mapping[str, str] = {
    "nearest": "Nearest stored result: {title}",
    "equal": "{count} stored results are equally near ({verdicts}).",
    "most": "This one gave away most.",
    "alike": "All have this verdict.",
    "only": "No other stored result is as near.",
    "own": "It is the result of this page.",
    "same": "None of the six choices differs. The data, the model and the attackers of your system still may.",
    "differs": "It differs from your system in {count} of 6:",
    "change": '{choice}: "{old}" in the stored result, "{new}" in your system.',
    "together": "Each direction is that of one difference by itself. Several may not add up.",
    "pairs": "The stored pairs",
    "ids": "Stored as {ids}.",
}
DIRECTIONS: Mapping[str, str] = {
    "more": "↑ More leaks.",
    "less": "↓ Less leaks.",
    "same": "= No difference.",
    "mixed": "↕ The pairs disagree.",
    "unknown": "? Not measured.",
}
MEASURED = "Measured on {pairs}: {counts}."
PAIRS = {1: "1 pair of stored results that differ in this alone, with one method, model and data set"}
PAIRS_MANY = "{count} pairs of stored results that differ in this alone, each with one method, model and data set"
COUNTS = {"more": "more came back in {count}", "less": "less came back in {count}", "same": "no difference in {count}"}
NOTES: Mapping[str, str] = {
    "noise": "The strength of the noise decides: weak noise hides nothing.",
    "server": "The attacks differ, too: one needs a server that changes the model.",
}
NOT_MEASURED = "No stored pair differs in this alone, and no paper here says it."
CITED = "We did not measure it alone. {claim} ({citation})."
