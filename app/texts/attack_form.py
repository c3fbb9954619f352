"""The texts of the form of the Leak screen: the picture, the upload, the attacker and the columns."""

from __future__ import annotations

from app.texts import privacy

LOST = "What is lost"
TABS = {"pictures": "Pictures", "sentences": "Sentences", "membership": "“Was this person in it?”"}
NO_SENTENCES = "LeakLens does not rebuild sentences yet. Pictures show what an upload gives away."
NO_MEMBERSHIP = (
    "This page does not test yet whether one person was in the data. The command line does, for a finished run: "
    "python3 -m engine attack RUN_ID --attack loss-threshold. Each row of Runs has its id."
)
TO_PICTURES, TO_RUNS = "Show the pictures", "Open Runs"
WHOSE, OWN, DELETE = "Whose picture?", "Your own picture", "Delete this picture"
ADDED = (
    "The page uses the middle square of your picture at {side} x {side} pixels. It counts as “{title}” until you say "
    "below what it shows: training needs a label, and the upload depends on it."
)
OWN_HELP = "It stays on this computer until you delete it. Every attack on it is deleted with it."
OWN_HELP_CLASS = (
    "Your picture goes to the computer that runs this dashboard ({name}). Other visitors cannot open it. It is deleted "
    "within 30 minutes after you close the page, or when the server starts again, with every attack on it."
)
UPLOAD, CAMERA, CAMERA_ON, LABEL = "PNG or JPEG, up to 10 MB", "Take a picture", "Use the camera", "What does it show?"
LABEL_HELP = "The label that its owner's phone would have given it: training needs one, and the upload depends on it."
WHEN, EPOCHS, MANY = "In which round?", "Local steps", "Pictures in the upload"
UPLOADED = "What is in the upload?"
CONTENTS = {
    "1": "one picture",
    "8": "8 pictures",
    "ordinary": "an ordinary upload",
    "cheat": "ordinary, and the server cheats",
}
EPOCHS_OF_CLIENT = "Local epochs"
UPLOADED_HELP = (
    "One picture alone is the easiest case. Eight pictures are the chosen one and the seven after it. In an ordinary "
    "upload the chosen picture is one of all the records of a client. A server that cheats changes the model that it "
    "sends."
)
MODEL_DATA, GRID_OF = "Model and data", "Choose columns"
COMPARE = "Compare"
MODES = {"strength": "strengths of one method", "budget": "methods at the same budget"}
ALWAYS_A_COLUMN = "the first column is always without protection"
BUDGET = "Budget: ε {against}"
BUDGET_HELP = "Each method gets the noise that keeps its ε at this budget. Equal noise would not be equal protection."
MODEL, DATASET, ROUNDS = "Model", "Data set", "Rounds of the run"
AGAINST, ATTACKS, RESTARTS, ATTACK_SEED = "Columns", "Attacks", "Restarts", "Attack seed"
ITERATIONS = "Iterations"
AGAINST_HELP = "The column without protection is always there: without it, a failed attack would say nothing."
RESTARTS_HELP = "How often each attack starts again. It then picks its answer without knowing the picture."
EACH = "each attacker"
EACH_HELP = "Show a row for each attack. Otherwise only the best result of all attacks is shown."
ROUNDS_OF = {"first": "the first: an untrained model", "last": "the last: a trained model"}
GONE_PICTURE = "This picture is not yours, or it was deleted. Upload it, or choose another."
NO_PICTURE = "The data set has no picture {name}. Choose another."
DELETED = "The picture and {many} on it are deleted."
PLAIN_PICTURE = (
    "This picture has one colour. A square of that colour needs no attack, so no verdict can call it recognised."
)
GIVEN_UP = "The picture is no longer on your pages. Another visitor uploaded it, too, so it stays theirs."


def content(kind: str) -> str:
    """What is in an upload, as the form names it. A link may have any number of pictures up to 8."""
    return CONTENTS.get(kind) or f"{kind} pictures"


def budget(epsilon: float) -> str:
    """A budget on offer, with the size of its promise."""
    return f"ε {epsilon:,g}: {privacy.size(epsilon).word}"


def thumbnail_alt(title: str, name: str, chosen: bool, number: int = 0) -> str:
    """The text alternative of a thumbnail. `number` tells own pictures apart."""
    kind, _, place = name.partition("-")
    ending = ", chosen" if chosen else ""
    if kind == "portrait":
        return f"the portrait, counted as {title}{ending}"
    if kind == "own":
        return f"your own picture {number}, counted as {title}{ending}"
    return f"{title}, {kind} picture {place}{ending}"


def not_pictures(title: str, other: str) -> str:
    """A note that another data set replaces one with text."""
    return f"Only pictures are attacked here, and {title} is about text: {other} is used."
