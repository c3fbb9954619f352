"""The command `attack`: reads the spec of an attack, follows the attack in the terminal, and prints its report."""

from __future__ import annotations

import argparse
import base64
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.cli.arguments import device_option, emit, literal, read_threads, refuse_device
from engine.cli.membership import membership_lines, membership_report, read_membership
from engine.cli.progress import say, submit_and_follow, supervised
from engine.cli.run import is_finished
from engine.errors import BadInput, RunFailed, refusal
from engine.events import Event, Failed, Finished, Judged, Pictured, Seen, finite
from engine.part import hyphened
from engine.results import attack_summary
from engine.results.attack_summary import LOUD, SIGNIFICANT, AttackCell
from engine.results.report import run_facts
from engine.results.verdict import LEAKS, VERDICTS

if TYPE_CHECKING:
    from engine.jobs.store import Store
    from engine.specs.attack import MembershipSpec, PictureAttackSpec

SOURCES = {
    "listed": "a probe with chosen pictures",
    "ordinary": "an ordinary upload with the chosen picture",
    "cheat": "an ordinary upload with the chosen picture, for a model that the server changed",
}
SCORES = ("psnr", "ssim", "lpips", "mse")  # reported under these names
LARGEST_MB = 10


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN_ID", help="the run whose upload is attacked")
    parser.add_argument("--attack", default="map", metavar="NAME", help="see `list attacks`; the default is map")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the attack")
    restarts_help = "the number of starts; the one with the best objective counts"
    parser.add_argument("--restarts", type=literal, default=1, metavar="X", help=restarts_help)
    parser.add_argument(
        "--picture",
        action="append",
        default=[],
        metavar="N|NAME|FILE",
        help="probe with test picture N, train-7, portrait-0, a PNG or a JPEG; the default is the recorded upload",
    )
    upload_help = "what the upload of a probe holds: listed, ordinary or cheat; the default is listed"
    parser.add_argument("--upload", default="listed", metavar="NAME", help=upload_help)
    parser.add_argument("--label", type=literal, default=0, metavar="N", help="the class of a picture from a file")
    parser.add_argument("--round", type=literal, default=None, metavar="N", help="first, last, or a number")
    client_help = "the client that is attacked; the default is the first one"
    parser.add_argument("--client", type=literal, default=None, metavar="N", help=client_help)
    parser.add_argument("--view", default="server", metavar="NAME", help="server, aggregate, outsider or client")
    parser.add_argument(
        "--unit",
        default=None,
        metavar="NAME",
        help="record or user: what a membership attack scores (user: not with --view server)",
    )
    parser.add_argument("--seed", type=literal, default=0, metavar="N", help="the attack seed")
    parser.add_argument("--out", metavar="DIR", help="a folder for the pictures")
    device_option(parser)
    parser.add_argument("--threads", type=literal, default=None, metavar="N", help="the default is all cores")


def run(args: argparse.Namespace) -> int:
    options = {"device": args.device, "threads": read_threads(args.threads)}
    refuse_device(args.device)
    with supervised() as (store, supervisor, run_ids):
        spec = read_attack(args, store)
        run_ids.add(spec.id)
        finished = is_finished(store, spec.id)
        if not finished and not submit_and_follow(store, supervisor, spec, options, args.json):
            return 130
    status = store.status(spec.id)
    events = [event for _, event in store.events(spec.id)]
    report = membership_report if spec.kind == "membership" else attack_report
    last = events[-1] if events else None
    body = {**finite({**report(spec.id, events), **ending(last)}), "status": status}
    body["device"] = run_facts(events).get("device", "cpu")
    if args.out and status == "finished":
        body["files"] = write_pictures(events, Path(args.out))
    return _answer(body, args.json)


def _answer(body: Mapping[str, Any], as_json: bool) -> int:
    """Print the report. Returns the exit code."""
    if as_json:
        emit(body)
    if body["status"] == "failed":
        error = failed(body)
        say(str(error))
        return error.exit_code
    if not as_json:
        lines = membership_lines if body.get("kind") == "membership" else attack_lines
        print("\n".join(lines(body)))
    return 0 if body["status"] == "finished" else 1


def read_attack(args: argparse.Namespace, store: Store) -> PictureAttackSpec | MembershipSpec:
    """The attack that the options describe. A picture from a file is stored with the uploaded pictures."""
    from engine.attacks import ATTACKS
    from engine.jobs.entries import HomeResources
    from engine.leakage.compatibility import refuse
    from engine.specs.attack import PictureAttackSpec

    run = store.run(args.run).spec
    if "attack" in run:
        raise BadInput(f"attack: {args.run} is an attack itself", "Name the run that it attacks")
    attack: dict[str, Any] = {"name": hyphened(args.attack)}
    for pair in args.set:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise refusal("attack: --set", "must be NAME=VALUE", pair)
        if hyphened(name) == "name":
            raise refusal("attack: --set", "must name a parameter of the attack", pair, "Use --attack to choose it")
        attack[hyphened(name)] = literal(value)
    if ATTACKS[attack["name"]].goal == "membership":
        return read_membership(args, run, attack)
    if args.unit is not None:
        raise BadInput("attack: --unit: is for attacks on membership", "Leave it out")
    spec = PictureAttackSpec(
        run=dict(run),
        attack=attack,
        pictures=[_picture(word, args.label, store) for word in args.picture],
        upload=args.upload,
        round=args.round if args.round is not None else "last",
        view=hyphened(args.view),
        restarts=args.restarts,
        client=args.client,
        seed=args.seed,
    )
    refuse(spec, HomeResources(store.home))
    return spec


def _picture(word: str, label: Any, store: Store) -> str:
    """The name of a picture in a spec: `test-7`, `train-7`, `portrait-0`, or `own-<id>-<label>` for a file."""
    if re.fullmatch(r"\d+|(train|test|portrait)-\d+|own-[0-9a-f]{16}-\d+", word):
        return f"test-{word}" if word.isdecimal() else word
    if not isinstance(label, int) or isinstance(label, bool) or label < 0:
        raise refusal("attack: label", "must be a whole number at least 0", label)
    from engine.jobs.uploads import UploadedPictures

    file = Path(word)
    try:
        if file.stat().st_size > LARGEST_MB * 1_000_000:
            raise BadInput(f"attack: {file.name}: must be at most {LARGEST_MB} MB", "Choose a smaller picture")
        data = file.read_bytes()
    except OSError as error:
        known = "a number, train-N, test-N, portrait-LABEL or a file"
        rule = f"attack: picture: must be {known}, got {word} ({error.strerror or error})"
        raise BadInput(rule, "Name a file that can be read") from None
    return f"own-{UploadedPictures(store.home).add(data)}-{label}"


def attack_report(run_id: str, events: Iterable[Event]) -> dict[str, Any]:
    """The events of an attack as one object. Scores of several pictures are means."""
    events = list(events)
    judged = _first_judged(events)
    seen = _first_seen(events)
    body: dict[str, Any] = {"id": run_id}
    if seen:
        body |= {"view": seen.view, "round": seen.round, "client": seen.client, **seen.facts}
    if judged:
        body |= _scores(judged, seen)
    return body


def ending(last: Event | None) -> dict[str, Any]:
    """The seconds of a finished attack, or the error of a failed one."""
    if isinstance(last, Failed):
        return {"error": last.reason, "remedy": last.remedy, "seconds": None}
    return {"seconds": last.seconds if isinstance(last, Finished) else None}


def _first_judged(events: Iterable[Event]) -> Judged | None:
    return next((event for event in events if isinstance(event, Judged)), None)


def _first_seen(events: Iterable[Event]) -> Seen | None:
    return next((event for event in events if isinstance(event, Seen)), None)


def _scores(judged: Judged, seen: Seen | None) -> dict[str, Any]:
    numbers = judged.numbers
    words = attack_summary.verdicts(judged)
    cell = AttackCell("", judged.attack, "", seen=seen, judged=judged)

    def score(values: tuple[float, ...]) -> float:
        """The mean over the pictures; of an ordinary upload, the score of the chosen one."""
        chosen = cell.ordinary and 0 in judged.places
        return values[judged.places.index(0)] if chosen else _mean(values)

    matching = cell.matching
    return {
        "attack": judged.attack,
        "verdict": cell.best_verdict,
        "verdicts": list(words),
        "matching": None if matching is None else asdict(matching) | {"chance": matching.chance},
        "state": judged.state,
        "reason": judged.reason,
        **{name: score(numbers[name]) if name in numbers else None for name in SCORES},
        "kl": score(numbers["kl-squeezenet"]) if "kl-squeezenet" in numbers else None,
        "trivial-psnr": score(judged.trivial["psnr"]),
        "places": list(judged.places),
        "each": {name: list(values) for name, values in numbers.items()},
        "guessed-labels": list(judged.labels),
        "restart": judged.restart,
        "restarts": [dict(row) for row in judged.restarts],
    }


def attack_lines(body: Mapping[str, Any]) -> list[str]:
    """The report as text."""
    lines = [f"attack {body['id']}: {body['status']}"]
    if "psnr" not in body:
        return lines
    lines.append(f"  {body['attack']}: {_verdict(body)}")
    lpips = "not computed" if body["lpips"] is None else f"{body['lpips']:.2f}"
    lines.append(
        f"  PSNR {body['psnr']:.1f} dB (lower is more private; the mean colour alone reaches "
        f"{body['trivial-psnr']:.1f}), SSIM {body['ssim']:.2f}, LPIPS {lpips}"
    )
    if body["matching"] and body["verdict"] not in LEAKS:
        lines.append(f"  matching: {_matching(body['matching'])}")
    state = f"{body['state']}: {body['reason']}" if body["reason"] else body["state"]
    lines.append(f"  remark: {state}")
    source = SOURCES[body.get("upload", "listed")] if body["probe"] else "the recorded upload"
    if body.get("tampered") and body.get("upload", "listed") == "listed":
        source += ", for a model that the server changed"
    pictures = counted(body["pictures"], "picture")
    steps = counted(body["steps"], "step")
    noise = body["noise-to-signal"]
    lines.append(
        f"  seen by: {body['view']}, round {body['round']}, {pictures} in {steps}, "
        f"{source}; the noise is {noise:.3g} times the signal"
    )
    return lines


def _verdict(body: Mapping[str, Any]) -> str:
    """The verdict, and for several pictures how many have each."""
    if body["verdict"] is None:
        return "no guess"
    loud = body["noise-to-signal"] > LOUD and body["verdict"] in LEAKS
    first = f"{body['verdict']}: readable though noisy" if loud else str(body["verdict"])
    words = [word for word in body["verdicts"] if word]
    if len(words) < 2:
        return first
    counts = Counter(words)
    each = ", ".join(f"{word}: {counts[word]}" for word in reversed(VERDICTS) if word in counts)
    which = "the chosen picture" if body.get("upload", "listed") != "listed" else "the best picture"
    return f"{which}: {first} (of {len(words)} guesses, {each})"


def _matching(test: Mapping[str, Any]) -> str:
    """The matching test of an upload in which no picture is recognisable."""
    votes = f"{test['hits']} of {test['guesses']} guesses are nearest to a picture of the upload"
    meaning = "this tells whose pictures were in it"
    if test["p"] >= SIGNIFICANT:
        meaning = "no better than chance, which is not a promise"
    return f"{votes}; chance {test['chance']:g}, p = {test['p']:.3f}: {meaning}"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def write_pictures(events: Iterable[Event], folder: Path) -> list[str]:
    """Write the originals and the last guess of the chosen restart as PNG. Returns the file names."""
    events = list(events)
    judged = _first_judged(events)
    seen = _first_seen(events)
    originals = seen.originals if seen else ()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = _write_all(folder, "original", dict(enumerate(originals)))
        names += _write_all(folder, "guess", _last_guesses(events, judged))
    except OSError as error:
        rule = f"attack: out: {folder}: {error.strerror or error}"
        raise BadInput(rule, "Name a folder that can be written") from None
    return names


def _last_guesses(events: Iterable[Event], judged: Judged | None) -> Mapping[int, str]:
    """The last guess of each original that has one, by its place."""
    guesses = [event for event in events if isinstance(event, Pictured)]
    of_restart = [guess for guess in guesses if judged and guess.restart == judged.restart]
    return dict(zip(of_restart[-1].places, of_restart[-1].pictures, strict=True)) if of_restart else {}


def _write_all(folder: Path, kind: str, pictures: Mapping[int, str]) -> list[str]:
    names = []
    for place, picture in sorted(pictures.items()):
        name = f"{kind}-{place}.png"
        (folder / name).write_bytes(base64.b64decode(picture))
        names.append(name)
    return names


def _mean(values: tuple[float, ...]) -> float:
    return sum(values) / len(values)


def failed(body: Mapping[str, Any]) -> RunFailed:
    return RunFailed(f"attack {body['id']}: {body.get('error') or 'failed'}", body.get("remedy") or "")
