"""The texts of an exported page that no screen of the dashboard has, and the command that repeats an attack."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from app.texts import attacks as attack_texts
from app.texts import numbers

# --- titles and the attacks --------------------------------------------------------------------------------

ON = "{method} on {data}: accuracy, privacy and attacks"
AGAINST = "{attack} against {method} on {data}"
PLAIN = "{method} on {data}: accuracy and privacy"
LEAK = "What attackers reconstructed from an upload"
UPLOAD = "{pictures}, {when}, {view}"
NO_ATTACK = (
    "No attack on this run has finished. Start one with `python3 -m engine attack {id}`, then export the run again."
)
NO_BASELINE = (
    "The same attack was not run without protection. Without that baseline, a failed attack shows nothing about "
    "protection."
)
HAS_BASELINE = "Next to each result is its baseline: the same attack on the same pictures without protection."
BEST = "Best of all attacks here: {attack}, {psnr} (worst case: an attacker cannot tell which attack is best)."
SCRUB, PLAY, PAUSE, STEP = "How far each attack has come", "Play", "Pause", "Next moment"
NOW, AT = "{share} % of each attack", "iteration {now} of {of}"
TABLE = "Originals and reconstructions"
NUMBERS = "All scores. Lower PSNR, lower SSIM and higher LPIPS mean a worse reconstruction."
CURVES = "PSNR of each attack, by iteration"
SHARE_AXIS, PSNR_AXIS = "progress of each attack, %", "PSNR, dB: lower is more private"
LOUDNESS = "The noise on the upload is {ratio} times as large as the upload itself. {forecast}"
NO_NOISE = "There is no noise on the upload."
FORECASTS = (
    "With this model, attacks are expected to reconstruct pictures below {low:.2g}.",
    "With this model, reconstructions are expected to fade between {low:.2g} and {high:.2g}.",
    "With this model, no attack measured here is expected to reconstruct a picture above {high:.2g}.",
)
END = "final {numbers}"
RESTARTS = "best of {count} restarts by its own objective"
TAMPERED = "The server broke the rules. It changed the model that it sent, in order to read the upload."
FEWER = "The upload holds {of} pictures. The page shows the {shown} that are paired with a guess."
OWN = "This page contains a visitor's own pictures. Anyone who gets the file sees them."
NOT_HERE = "{count} attacks on this run belong to packages that are not installed here, and are not shown."
LEFT_OUT = "{count} older attacks on this run are not shown."

# --- the run -----------------------------------------------------------------------------------------------

ACCURACY, EPSILON, COST = "Accuracy", "Privacy", "Accuracy and promise"
RUN = "Run: {title}, seed {seed}"  # the head of a run on a page that shows more than it
ACCURACY_AXIS, EPSILON_AXIS, ROUND_AXIS = "accuracy on test data, %", "ε so far", "round"
NOT_RUN = (
    "This run was not trained, so it has no accuracy. The ε below is the forecast for the whole run. It needs no "
    "training."
)
WHOLE_RUN = "Each ε covers the whole run. An attacked upload is one part of it."
SOLVED = "found from the target ε"
NOT_PROMISED = "Nothing is guaranteed here, so there is no ε."
TERMS = "ε, its meaning and its terms"
TERM_HEADS = ("observer", "ε", "meaning", "terms")
REQUEST, SETTINGS, ATTACK_SETTINGS = (
    "Settings and commands",
    "Settings of the run",
    "Settings of the attack: {title}",
)
AGAIN = "Run it again in a terminal"
AGAIN_OWN = "A visitor's own picture is identified by its content. It must be on the machine that runs the command."

# --- limits and the foot -----------------------------------------------------------------------------------

LIMITS, NOT_COVERED = "Limits of these results", "What no number here covers"
LIMIT_TEXTS = (
    attack_texts.NO_PROOF,
    "Whether an attack converged says how well its guesses explain the upload, not whether a picture came back.",
    "An attack with several restarts shows the one with the best objective. It never saw the originals.",
    "A probe shows what an observer would see if these pictures were in the upload. The run itself used others.",
    "ε holds for the worst case over all who take part. A single picture has no ε of its own.",
)
FOOT = "LeakLens{version}. {kind} {id}, requested on {submitted}, {status}."
MADE = "Exported on {made}."
NAMES = {"run": "Run", "attack": "Attack"}
VALUES = {True: "yes", False: "no", None: "none"}


def when(value: object) -> str:
    """The round of an upload in words."""
    return {"first": "first round", "last": "last round"}.get(str(value), f"round {value}")


def upload(spec: Mapping[str, Any]) -> str:
    """What the attacked upload holds."""
    kind = str(spec.get("upload", "listed"))
    held = pictures(spec["pictures"])
    return held if kind == "listed" else f"{held} in {attack_texts.UPLOAD_KINDS[kind]}"


def pictures(names: object) -> str:
    """The pictures of an attack, as the list of runs names them."""
    stored = list(names) if isinstance(names, list | tuple) else []
    if not stored:
        return "A recorded upload"
    words = ", ".join(_picture(str(name)) for name in stored)
    return words[:1].upper() + words[1:]


def _picture(name: str) -> str:
    kind, _, place = name.partition("-")
    if kind == "portrait":
        return "the portrait"
    return "a visitor's own picture" if kind == "own" else f"{kind} picture {place}"


def command(spec: Mapping[str, Any], run: str) -> str:
    """The command that starts the same attack in a terminal. It needs the run in the store."""
    part = spec["attack"]
    words = ["python3", "-m", "engine", "attack", run, "--attack", str(part["name"])]
    for name, setting in part.items():
        if name != "name":
            written = setting if isinstance(setting, str) else json.dumps(setting)
            words += ["--set", f"{name}={written}"]
    for name in spec.get("pictures", ()):
        words += ["--picture", str(name)]
    words += ["--round", str(spec["round"]), "--view", str(spec["view"])]
    for option in ("unit", "upload", "restarts"):
        if option in spec:
            words += [f"--{option}", str(spec[option])]
    words += ["--seed", str(spec["seed"])]
    if spec.get("client") is not None:
        words += ["--client", str(spec["client"])]
    return shlex.join(words)


def value(setting: object) -> str:
    """A setting for people to read."""
    if isinstance(setting, bool) or setting is None:
        return VALUES[setting]
    if isinstance(setting, list | tuple):
        return ", ".join(map(str, setting)) or "none"
    return f"{setting:g}" if isinstance(setting, float) else str(setting)


def loudness(ratio: float | None, region: tuple[float, float] | None) -> str:
    """The noise over signal of the upload, with the forecast for it if the region is known. Empty if it is unknown."""
    if ratio is None:
        return ""
    if ratio == 0:
        return NO_NOISE
    forecast = ""
    if region is not None:
        low, high = region
        forecast = FORECASTS[(ratio >= low) + (ratio > high)].format(low=low, high=high)
    return LOUDNESS.format(ratio=numbers.ratio(ratio), forecast=forecast).rstrip()
