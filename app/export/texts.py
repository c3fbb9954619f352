"""Every text of an exported page that the dashboard does not say as well."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from app.texts import attacks as attack_texts

ON = "{what} on {data}: what it learnt, and what leaked"
AGAINST = "{attack} against {what} on {data}"
PLAIN = "{what} on {data}: what it learnt, and what each observer could learn"
LEAK = "What came back out of an upload"
CASE = "{pictures}, {when}, {eyes}"
NO_ATTACK = (
    "Nobody has attacked this run yet. `python3 -m engine attack {id}` does; export the run again afterwards to see "
    "what comes back."
)
NO_CONTROL = (
    "The same attack was not run where nothing is protected. Without that control, an attack that failed says "
    "nothing about protection."
)
HAS_CONTROL = "The same attack on the same pictures without any protection stands beside each: it is the control."
CAME = "Of {title}, {what} came back: {near}, where a grey square reaches {plain}."
HELD = "From {title}, no attack here came more than {better:g} dB nearer than a grey square, which reaches {plain}."
ENVELOPE = "Nearest of all attacks here: {attack}, {near} (worst case, known only to us: no attacker could tell)."
SCRUB, PLAY, PAUSE, STEP = "How far each attack has come", "Play", "Pause", "Next moment"
NOW, AT = "{share} % of each attack", "iteration {now} of {of}"
TABLE = "Originals and what each attack got back"
NUMBERS = "Every number: lower PSNR and SSIM and higher LPIPS mean that less came back"
CURVES = "How near each attack came, by iteration"
SHARE_AXIS, PSNR_AXIS = "how far each attack has come, %", "PSNR, dB: lower is more private"
LOUD = "The noise on the upload is {ratio:.2g} times as loud as the upload itself. {where}"
QUIET = "There is no noise on the upload."
PLACES = (
    "Below {low:g}, pictures are expected to come back.",
    "Between {low:g} and {high:g}, pictures are expected to fade.",
    "Above {high:g}, no attack is expected to get a picture back.",
)
END = "in the end {numbers}"
VACUOUS = "But no ε here is below {limit:g}: as a worst case it says next to nothing."
RESTARTS = "best of {many} restarts by its own objective"
TAMPERED = "The server broke the rules here: it changed the model that it sent in order to read the upload."
FEWER = "The upload holds {of} pictures; {many} of them were matched with a guess and are shown."
OWN = "Pictures that somebody brought are on this page: whoever gets the file sees them."
LEFT_OUT = "{many} older attacks on this run are not shown."
ACCURACY, EPSILON = "What it learnt", "What each observer could learn"
ACCURACY_AXIS, EPSILON_AXIS, ROUND_AXIS = "accuracy on test data, %", "ε so far", "round"
NOT_RUN = (
    "Nobody ran the whole training, so there is no accuracy to show. The ε below is that of the whole run: it is "
    "known without running it."
)
WHOLE_RUN = "Each ε is that of the whole run, of which an attacked upload is one part."
NOT_PROMISED = "Nothing is promised here, so there is no ε."
STANDS = "ε, what it means and what it stands on"
ASKED, SETTINGS, ATTACK_SETTINGS = "What was asked", "Settings of the run", "Settings of the attack: {title}"
AGAIN = "The same in a terminal"
AGAIN_OWN = "A picture that somebody brought is named by its content: it must be on the machine that asks."
LIMITS, NOT_COVERED = "Limits of what this says", "Not covered by any number here"
SAYS = (
    attack_texts.NO_PROOF,
    "An attack that did not converge has not found what it looked for. That is never the same as protection.",
    "Of several restarts the attack shows the one it chose by its own objective; it never saw the originals.",
    "A probe shows what would have been seen if these pictures had been in the upload; the run itself had others.",
    "ε holds for the worst case over everybody who takes part; a picture that did not come back has no ε of its own.",
)
FOOT = "LeakLens{version}. {kind} {id}, asked on {asked}, {status}. "
MADE = "Exported on {made}."
NAMES = {"run": "Run", "attack": "Attack"}
VALUES = {True: "yes", False: "no", None: "none"}


def when(value: object) -> str:
    return {"first": "first round", "last": "last round"}.get(str(value), f"round {value}")


def pictures(names: object) -> str:
    """Whose pictures: as the list of attacks names them."""
    found = list(names) if isinstance(names, list | tuple) else []
    if not found:
        return "A recorded upload"
    said = [_picture(str(name)) for name in found]
    return ", ".join([said[0][:1].upper() + said[0][1:], *said[1:]])


def _picture(name: str) -> str:
    kind, _, place = name.partition("-")
    return "a picture that somebody brought" if kind == "own" else f"{kind} picture {place}"


def command(spec: Mapping[str, Any], run: str) -> str:
    """The line that asks the same attack in a terminal, once the run is there."""
    part = spec["attack"]
    line = ["python3", "-m", "engine", "attack", run, "--attack", str(part["name"])]
    for name, value in part.items():
        if name != "name":
            line += ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    for name in spec["pictures"]:
        line += ["--picture", str(name)]
    line += ["--round", str(spec["round"]), "--view", str(spec["view"])]
    line += ["--restarts", str(spec["restarts"]), "--seed", str(spec["seed"])]
    if spec.get("client") is not None:
        line += ["--client", str(spec["client"])]
    return shlex.join(line)


def value(given: object) -> str:
    """A setting as people read it."""
    if isinstance(given, bool) or given is None:
        return VALUES[given]
    if isinstance(given, list | tuple):
        return ", ".join(map(str, given)) or "none"
    return f"{given:g}" if isinstance(given, float) else str(given)


def loudness(ratio: float | None, region: tuple[float, float]) -> str:
    if ratio is None:
        return ""
    if ratio == 0:
        return QUIET
    low, high = region
    return LOUD.format(ratio=ratio, where=PLACES[(ratio >= low) + (ratio > high)].format(low=low, high=high))
