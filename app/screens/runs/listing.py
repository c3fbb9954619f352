"""The runs of the store as the Runs screen lists them: what was asked, how far it is, what came of it, whose it is."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from app.session import limits as class_limits
from app.session import owners, run_settings, services, session
from app.texts import attacks as attack_texts
from app.texts import runs as run_texts
from app.texts import states
from engine.errors import LeakLensError, UnknownName
from engine.jobs.status import ListedRun

MOVING = ("queued", "running")
STOPPED = ("failed", "cancelled", "interrupted")  # may go on
STATUSES = (*MOVING, "finished", *STOPPED)


@dataclass(frozen=True)
class RunResult:
    """What a run has told so far, boiled down to the list's numbers."""

    accuracy: float | None = None
    epsilon: float | None = None  # of an outsider
    unit: str = ""
    promised: bool = False  # whether an outsider's ε was told at all
    failure: str = ""
    psnr: float | None = None  # of an attack: the mean over its pictures, and how it ended
    ending: str = ""


@dataclass(frozen=True)
class RunRow:
    """One run of the list."""

    listed: ListedRun
    mine: bool

    @property
    def id(self) -> str:
        return self.listed.id

    @property
    def moving(self) -> bool:
        return self.listed.status in MOVING

    @property
    def attack(self) -> bool:
        """Whether it looks for pictures in an upload, instead of training."""
        return "attack" in self.listed.spec

    @property
    def deletable(self) -> bool:
        """By this visitor, now."""
        return self.mine and not self.moving

    @cached_property
    def sentence(self) -> str:
        return _said(_written(self.listed.spec), services.shared().ready())[0]

    @cached_property
    def unusual(self) -> str:
        return _said(_written(self.listed.spec), services.shared().ready())[1]

    @cached_property
    def result(self) -> RunResult:
        listed = self.listed
        try:
            return _result(str(services.store().home.path), listed.id, listed.edition, listed.events)
        except UnknownName:  # deleted a moment ago
            return RunResult()
        except LeakLensError as error:  # one that cannot be read leaves the others as they are
            return RunResult(failure=str(error))

    def matches(self, text: str) -> bool:
        """Whether every word occurs in what is said of it, or begins its name."""
        here = f"{self.sentence} {self.unusual} {states.STATES[self.listed.status]}".lower()
        return all(word in here or self.id.startswith(word) for word in text.lower().split())


def read() -> list[RunRow]:
    """Every run that this visitor may see, the newest first."""
    anybody, me = not class_limits.class_mode(), session.visitor()
    runs = [run for run in services.store().runs() if services.may_see(run)]
    return [RunRow(run, anybody or owners.requested_by(run.options, me)) for run in runs]


def chosen(rows: Iterable[RunRow], statuses: Collection[str], text: str) -> list[RunRow]:
    """Those that a filter lets through; no state chosen means all."""
    return [one for one in rows if (not statuses or one.listed.status in statuses) and one.matches(text)]


# --- the question in words -------------------------------------------------------------------------------


def _written(spec: Mapping[str, Any]) -> str:
    return json.dumps(spec)


@lru_cache(maxsize=4000)
def _said(written: str, ready: bool) -> tuple[str, str]:
    """The sentence, and what beside it is not as usual; titles and usual values are known once shelves are loaded."""
    spec = json.loads(written)
    if "attack" in spec:
        return _attack_said(spec, _title if ready else lambda part, name: name)
    return run_texts.question(spec, _title if ready else lambda part, name: name), _unusual(spec) if ready else ""


def _attack_said(spec: Mapping[str, Any], title: run_texts.Title) -> tuple[str, str]:
    run = run_settings.flat(spec["run"]) if isinstance(spec.get("run"), Mapping) else {}
    name = {part: title(part, str(run.get(part, ""))) for part in ("method", "model", "dataset")}
    attack = spec["attack"]
    called = title("attack", str(attack.get("name", "") if isinstance(attack, Mapping) else attack))
    return attack_texts.row_of_runs(spec, called, name["method"]), attack_texts.beside(
        spec, name["model"], name["dataset"]
    )


def _title(part: str, name: str) -> str:
    try:
        if part == "attack":
            return run_settings.attack_title(name)
        return run_settings.part_class(part, name).title if name else ""
    except LeakLensError:  # of another version
        return name


def _unusual(spec: Mapping[str, Any]) -> str:
    flat = run_settings.flat(spec)
    try:
        usual = run_settings.settled({part: flat[part] for part in run_settings.PARTS if part in flat})
    except LeakLensError:
        return ""
    apart = {
        path: value
        for path, value in flat.items()
        if path not in run_texts.SETTLED and not path.startswith("partition.") and value != usual.get(path)
    }
    return ", ".join(f"{path.rpartition('.')[2].replace('-', ' ')} {run_texts.plain(apart[path])}" for path in apart)


# --- what came of it -------------------------------------------------------------------------------------


@lru_cache(maxsize=2000)
def _result(home: str, run: str, edition: str, events: int) -> RunResult:
    """Read once for each state of a run: the edition and the number of events name that state."""
    del home, edition, events
    return boiled([body for _, body in services.store().bodies(run)])


def boiled(bodies: Sequence[Mapping[str, Any]]) -> RunResult:
    """The last word on each thing counts."""
    accuracy: float | None = None
    spent: Mapping[str, Any] = {}
    psnr, ending = None, ""
    for body in bodies:
        kind = body.get("event")
        if kind == "measured" and (body["name"], body["who"]) == ("accuracy", "global"):
            accuracy = body["value"] if body["value"] is not None else accuracy
        elif kind == "spent" and body["view"] == "outsider":
            spent = body
        elif kind == "judged" and (values := [one for one in body["numbers"].get("psnr", ()) if one is not None]):
            psnr, ending = sum(values) / len(values), body["state"]
    last = bodies[-1] if bodies else {}
    failure = str(LeakLensError(last["reason"], last["remedy"])) if last.get("event") == "failed" else ""
    return RunResult(accuracy, spent.get("epsilon"), spent.get("unit", ""), bool(spent), failure, psnr, ending)
