"""The command `attack`: from its words to an AttackSpec, followed in a terminal, answered in one line."""

from __future__ import annotations

import argparse
import base64
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli.arguments import emit, literal, read_threads
from engine.cli.progress import at_work, say, watched
from engine.cli.run import is_finished
from engine.errors import BadInput, RunFailed, refusal
from engine.events import Event, Failed, Finished, Judged, Pictured, Seen, finite
from engine.part import hyphened

if TYPE_CHECKING:
    from engine.jobs.store import Store
    from engine.specs.attack import AttackSpec

TOLD = ("psnr", "ssim", "lpips", "mse")  # by these names in the answer
LARGEST_MB = 10


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN_ID", help="the run whose upload is attacked")
    parser.add_argument("--attack", default="map", metavar="NAME", help="see `list attacks`; by default map")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the attack")
    parser.add_argument("--restarts", type=literal, default=1, metavar="X", help="the best by its own objective counts")
    parser.add_argument(
        "--picture",
        action="append",
        default=[],
        metavar="N|NAME|FILE",
        help="a probe with test picture N, with train-7, or with a PNG or JPEG; without it the recorded upload",
    )
    parser.add_argument("--label", type=literal, default=0, metavar="N", help="the class of a picture from a file")
    parser.add_argument("--round", type=literal, default=None, metavar="N", help="first, last, or a number")
    parser.add_argument("--client", type=literal, default=None, metavar="N", help="whose seat; by default the first")
    parser.add_argument("--view", default="server", metavar="NAME", help="server, aggregate, outsider or client")
    parser.add_argument("--seed", type=literal, default=0, metavar="N", help="the attacker's own chance")
    parser.add_argument("--out", metavar="DIR", help="a folder for the pictures")
    parser.add_argument("--threads", type=literal, default=None, metavar="N", help="by default all cores")


def run(asked: argparse.Namespace) -> int:
    options = {"threads": read_threads(asked.threads)}
    with at_work() as (store, supervisor, mine):
        spec = read_attack(asked, store)
        mine.add(spec.id)
        if not is_finished(store, spec.id) and not watched(store, supervisor, spec, options, asked.json):
            return 130
    status, events = store.status(spec.id), [event for _, event in store.events(spec.id)]
    body = {**attack_report(spec.id, events), "status": status}
    if asked.out and status == "finished":
        body["files"] = write_pictures(events, Path(asked.out))
    if asked.json:
        emit(body)
    if status == "failed":
        error = failed(body)
        say(str(error))
        return error.exit_code
    if not asked.json:
        print("\n".join(attack_lines(body)))
    return 0 if status == "finished" else 1


def read_attack(asked: argparse.Namespace, store: Store) -> AttackSpec:
    """The question; a picture from a file joins the home's own."""
    from engine.jobs.entries import HomeResources
    from engine.leakage.compatibility import refuse
    from engine.specs.attack import AttackSpec

    run = store.run(asked.run).spec
    if "attack" in run:
        raise BadInput(f"attack: {asked.run} is an attack itself", "Name the run that it attacks")
    attack: dict[str, Any] = {"name": hyphened(asked.attack)}
    for pair in asked.set:
        name, found, value = pair.partition("=")
        if not found or not name:
            raise refusal("attack: --set", "must be NAME=VALUE", pair)
        attack[hyphened(name)] = literal(value)
    spec = AttackSpec(
        run=dict(run),
        attack=attack,
        pictures=[_picture(word, asked.label, store) for word in asked.picture],
        round=asked.round if asked.round is not None else "last",
        view=hyphened(asked.view),
        restarts=asked.restarts,
        client=asked.client,
        seed=asked.seed,
    )
    refuse(spec, HomeResources(store.home))
    return spec


def _picture(word: str, label: Any, store: Store) -> str:
    if re.fullmatch(r"\d+", word):
        return f"test-{word}"
    if re.fullmatch(r"(train|test)-\d+|own-[0-9a-f]{16}-\d+", word):
        return word
    if not isinstance(label, int) or isinstance(label, bool) or label < 0:
        raise refusal("attack: label", "must be a whole number at least 0", label)
    from engine.jobs.uploads import UploadedPictures

    file = Path(word)
    try:
        if file.stat().st_size > LARGEST_MB * 1_000_000:
            raise BadInput(f"attack: {file.name}: must be at most {LARGEST_MB} MB", "Choose a smaller picture")
        data = file.read_bytes()
    except OSError as error:
        law = f"attack: picture: must be a number, train-N, test-N or a file, got {word} ({error.strerror or error})"
        raise BadInput(law, "Name a file that can be read") from None
    return f"own-{UploadedPictures(store.home).add(data)}-{label}"


def attack_report(run_id: str, events: Iterable[Event]) -> dict[str, Any]:
    """What an attack said, boiled down to one object; of several pictures the mean."""
    told = list(events)
    judged = next((event for event in told if isinstance(event, Judged)), None)
    seen = next((event for event in told if isinstance(event, Seen)), None)
    ending = told[-1] if told else None
    body: dict[str, Any] = {"id": run_id}
    if seen:
        body |= {"view": seen.view, "round": seen.round, "client": seen.client, **seen.facts}
    if judged:
        numbers, trivial = judged.numbers, judged.trivial
        body |= {
            "attack": judged.attack,
            "state": judged.state,
            "reason": judged.reason,
            **{name: _mean(numbers[name]) for name in TOLD},
            "kl": _mean(numbers["kl-squeezenet"]) if "kl-squeezenet" in numbers else None,
            "trivial-psnr": _mean(trivial["psnr"]),
            "each": {name: list(values) for name, values in numbers.items()},
            "guessed-labels": list(judged.labels),
            "restart": judged.restart,
            "restarts": [dict(row) for row in judged.restarts],
        }
    if isinstance(ending, Failed):
        body |= {"error": ending.reason, "remedy": ending.remedy}
    body["seconds"] = ending.seconds if isinstance(ending, Finished) else None
    answer: dict[str, Any] = finite(body)
    return answer


def attack_lines(body: Mapping[str, Any]) -> list[str]:
    """The report as a person reads it."""
    said = [f"attack {body['id']}: {body['status']}"]
    if "psnr" in body:
        state = body["state"] + (f": {body['reason']}" if body["reason"] else "")
        said.append(f"  {body['attack']} {state}")
        said.append(
            f"  PSNR {body['psnr']:.1f} dB (lower is more private; the mean colour alone reaches "
            f"{body['trivial-psnr']:.1f}), SSIM {body['ssim']:.2f}, LPIPS {body['lpips']:.2f}"
        )
        seen = "what would have been seen" if body["probe"] else "as it was recorded"
        noise = body["noise-to-signal"]
        said.append(
            f"  seen by: {body['view']}, round {body['round']}, {counted(body['pictures'], 'picture')} in "
            f"{counted(body['steps'], 'step')}, "
            f"{seen}; the noise is {noise:.3g} times the signal"
        )
    return said


def counted(many: int, noun: str) -> str:
    return f"{many} {noun}" if many == 1 else f"{many} {noun}s"


def write_pictures(events: Iterable[Event], folder: Path) -> list[str]:
    """The originals and the chosen restart's last guess, as PNG."""
    told = list(events)
    judged = next((event for event in told if isinstance(event, Judged)), None)
    seen = next((event for event in told if isinstance(event, Seen)), None)
    last = [one for one in told if isinstance(one, Pictured) and judged and one.restart == judged.restart]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = []
        for kind, pictures in (
            ("original", seen.originals if seen else ()),
            ("guess", last[-1].pictures if last else ()),
        ):
            for place, picture in enumerate(pictures):
                names.append(f"{kind}-{place}.png")
                (folder / names[-1]).write_bytes(base64.b64decode(picture))
        return names
    except OSError as error:
        raise BadInput(
            f"attack: out: {folder}: {error.strerror or error}", "Name a folder that can be written"
        ) from None


def _mean(values: tuple[float, ...]) -> float:
    return sum(values) / len(values)


def failed(body: Mapping[str, Any]) -> RunFailed:
    return RunFailed(f"attack {body['id']}: {body.get('error') or 'failed'}", body.get("remedy") or "")
