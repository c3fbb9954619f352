"""What the makers of examples share: which events ship, how short their numbers are, and how a file is replaced."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping, Sequence, Set
from dataclasses import MISSING, Field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import Damaged, HomeUnwritable
from engine.events import Event, Finished, Judged, Kept, Measured, Pictured, Round, Seen, Step, encode
from engine.examples import checksums
from engine.examples.files import reason_of
from engine.results.verdict import LEAKS, rank

if TYPE_CHECKING:
    from engine.specs.attack import AttackSpec

RUN_DIGITS = 6  # significant digits of a measured value of a run; an ε keeps all of its digits
DIGITS = 4  # significant digits of every number of an attack
MANY = 8  # pictures of an upload; an ordinary one has more
FIRST, COMING_BACK = 4, 12  # pictures that ship of an ordinary upload: the first, and at most so many that come back
METRICS = ("psnr", "ssim", "lpips")  # of an ordinary upload, whose hundred pictures have many scores


# --- files -------------------------------------------------------------------------------------------------


def publish(file: Path, body: bytes) -> None:
    """Write a new file next to the old one, then replace it: a reader never sees half a file."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        half = file.with_suffix(".half")
        half.write_bytes(body)
        half.replace(file)
    except OSError as error:
        reason = reason_of(error)
        raise HomeUnwritable(f"gallery: {file}: cannot be written: {reason}", "Correct its permissions") from None
    checksums.write()


def publish_packed(file: Path, body: Mapping[str, Any]) -> None:
    """Write JSON, packed as a whole."""
    publish(file, lzma.compress(as_json(body).encode(), preset=9))


def as_json(value: Any) -> str:
    """JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def significant(value: Any, digits: int) -> Any:
    """The value with all of its numbers cut to the digits that a reader needs."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, Mapping):
        return {key: significant(item, digits) for key, item in value.items()}
    if isinstance(value, list):
        return [significant(item, digits) for item in value]
    return value


# --- runs --------------------------------------------------------------------------------------------------


def shipped(event: Event) -> bool:
    """Recorded arrays do not ship, nor does the progress of a round, which depends on the machine."""
    if isinstance(event, Round):
        return event.fraction == 0
    return not isinstance(event, Kept)


def compact(event: Event) -> dict[str, Any]:
    """An event as JSON, without the defaults that `decode` fills in again."""
    if isinstance(event, Measured) and event.value is not None:
        event = replace(event, value=float(f"{event.value:.{RUN_DIGITS}g}"))
    defaults = {field.name: _default(field) for field in fields(event)}
    body: dict[str, Any] = {}
    for name, value in encode(event).items():
        if name == "event" or getattr(event, name) != defaults[name]:
            body[name] = value
    return body


def _default(field: Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


# --- attacks -----------------------------------------------------------------------------------------------


def attack_body(spec: AttackSpec, events: Sequence[Event], frames: int) -> dict[str, Any]:
    """A finished attack as it ships, with so many guesses."""
    kept = [significant(encode(event), DIGITS) for event in keep(events, frames)]
    return {"spec": spec.canonical(), "seconds": _seconds(events), "events": kept}


def attack_row(name: str, spec: AttackSpec, events: Sequence[Event]) -> dict[str, Any]:
    """A finished attack as the command `gallery` prints it."""
    judged = next(event for event in events if isinstance(event, Judged))
    noise = {name: value for name, value in spec.run.method.values().items() if name == "noise"}
    return {
        "name": name,
        "id": spec.id,
        "attack": spec.attack.name,
        "method": spec.run.method.name,
        **noise,
        "psnr": sum(judged.numbers["psnr"]) / len(judged.numbers["psnr"]),
        "state": judged.state,
        "seconds": _seconds(events),
    }


def _seconds(events: Sequence[Event]) -> float:
    ending = events[-1]
    assert isinstance(ending, Finished)
    return ending.seconds


def keep(events: Sequence[Event], frames: int) -> list[Event]:
    """The events that ship: so many guesses of the restart that counts, of the first pictures of the upload."""
    judged = next(event for event in events if isinstance(event, Judged))
    path = [event for event in events if isinstance(event, Pictured) and event.restart == judged.restart]
    places = _spread(len(path), frames)
    shown = {id(path[place]) for place in places}
    ordinary = len(judged.places) > MANY
    pictures = _pictures(judged) if ordinary else set(judged.places)
    kept: list[Event] = []
    for event in events:
        if isinstance(event, Seen):
            kept.append(replace(event, originals=_originals(event, pictures)))
        elif isinstance(event, Pictured):
            if id(event) in shown:
                kept.append(_guesses(event, pictures))
        elif isinstance(event, Judged):
            curves = {name: tuple(values[place] for place in places) for name, values in event.curves.items() if values}
            ending = replace(event, curves=curves)
            kept.append(_with_few_metrics(ending) if ordinary else ending)
        elif not isinstance(event, Step):
            kept.append(event)
    return kept


def _spread(length: int, count: int) -> list[int]:
    """So many places from the first to the last; the last alone for one."""
    if count == 1 or length == 1:
        return [length - 1]
    return sorted({round(step * (length - 1) / (count - 1)) for step in range(count)})


def _pictures(judged: Judged) -> set[int]:
    """The pictures of an ordinary upload that ship: the first ones, and those that came back best."""
    from engine.results.attack_summary import verdicts  # it loads pydantic, and runs are read without

    words = dict(zip(judged.places, verdicts(judged), strict=True))
    psnr = dict(zip(judged.places, judged.numbers["psnr"], strict=True))
    leaking = [place for place, word in words.items() if word in LEAKS]
    leaking.sort(key=lambda place: (rank(words[place]), psnr[place]), reverse=True)
    return {*range(FIRST), *leaking[:COMING_BACK]}


def _originals(seen: Seen, pictures: Set[int]) -> tuple[str, ...]:
    """The originals with an empty text for each one that does not ship: their number stays."""
    return tuple(png if place in pictures else "" for place, png in enumerate(seen.originals))


def _guesses(guess: Pictured, pictures: Set[int]) -> Pictured:
    """A guess without the pictures whose originals do not ship."""
    kept = [index for index, place in enumerate(guess.places) if place in pictures]
    return replace(
        guess,
        pictures=tuple(guess.pictures[index] for index in kept),
        places=tuple(guess.places[index] for index in kept),
        psnr=tuple(guess.psnr[index] for index in kept),
    )


def _with_few_metrics(judged: Judged) -> Judged:
    """The end of an attack with the scores that decide its verdicts."""

    def few(scores: Mapping[str, tuple[float, ...]]) -> dict[str, tuple[float, ...]]:
        return {name: values for name, values in scores.items() if name in METRICS}

    return replace(
        judged, numbers=few(judged.numbers), trivial=few(judged.trivial), mean_picture=few(judged.mean_picture)
    )


def read_preset(file: Path) -> dict[str, Any]:
    """The fields of a request: its run as a spec, and lists as tuples."""
    from engine.specs.run import RunSpec

    try:
        body = json.loads(file.read_text(encoding="utf-8"))
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in body.items()}
        return {**values, "run": RunSpec(**body["run"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise damaged_preset(file, error) from None


def damaged_preset(file: Path, error: Exception) -> Damaged:
    """Why a request cannot be read, with the remedy."""
    return Damaged(f"gallery: preset {file.name}: {error}", "Download LeakLens again")
