"""The rows of the Runs screen: each run of the store with its settings, progress, result and owner."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from app.session import observer, run_settings, services
from app.texts import attacks as attack_texts
from app.texts import membership as membership_texts
from app.texts import runs as run_texts
from app.texts import states
from engine.errors import LeakLensError, UnknownName
from engine.events import Judged, decode
from engine.jobs.status import MOVING, ListedRun
from engine.results.attack_summary import AttackCell
from engine.results.verdict import Verdict

STOPPED = ("failed", "cancelled", "interrupted")  # these can be resumed
STATUSES = (*MOVING, "finished", *STOPPED)


@dataclass(frozen=True)
class RunResult:
    """The numbers of the list, folded from the events of a run so far."""

    accuracy: float | None = None
    epsilon: float | None = None  # against the observer
    unit: str = ""
    promised: bool = False  # whether the run recorded an ε against the observer
    failure: str = ""
    psnr: float | None = None  # of an attack on pictures: of the picture that came back best, and its verdict
    verdict: Verdict | None = None
    auc: tuple[float, float, float] | None = None  # of a membership attack, with its interval


@dataclass(frozen=True)
class RunRow:
    """One run of the list, and whether this visitor owns it."""

    listed: ListedRun
    own: bool
    shared: bool = False  # another visitor wants it, too

    @property
    def id(self) -> str:
        return self.listed.id

    @property
    def moving(self) -> bool:
        """Whether it is queued or running."""
        return self.listed.status in MOVING

    @property
    def attack(self) -> bool:
        """Whether this is an attack on an upload, not a training run."""
        return "attack" in self.listed.spec

    @property
    def membership(self) -> bool:
        """Whether this is an attack on membership, which has no screen yet."""
        return membership_texts.is_membership(self.listed.spec)

    @property
    def deletable(self) -> bool:
        """Whether this visitor may delete it now. What another visitor wants stays theirs."""
        return self.own and not self.moving and not self.shared

    @property
    def sentence(self) -> str:
        """The spec as one sentence."""
        return _sentences(json.dumps(self.listed.spec), services.shared().ready())[0]

    @property
    def unusual(self) -> str:
        """The settings that are not in the sentence and not at their default."""
        return _sentences(json.dumps(self.listed.spec), services.shared().ready())[1]

    @property
    def result(self) -> RunResult:
        """The result so far. A run that cannot be read has the error as its failure; the list goes on."""
        listed = self.listed
        try:
            home = str(services.store().home.path)
            return _result(home, listed.id, listed.edition, listed.events, observer.current())
        except UnknownName:  # deleted a moment ago
            return RunResult()
        except LeakLensError as error:
            return RunResult(failure=str(error))

    def matches(self, text: str) -> bool:
        """Whether every word of the text occurs in the row, or starts its id. Without words it makes no sentence."""
        words = text.lower().split()
        shown = f"{self.sentence} {self.unusual} {states.STATES[self.listed.status]}".lower() if words else ""
        return all(word in shown or self.id.startswith(word) for word in words)


def read() -> list[RunRow]:
    """Every run that this visitor may see, the newest first."""
    runs = services.may_see_all(services.store().runs())
    ids = [run.id for run in runs]
    own = services.requested(ids)
    shared = set() if services.at_home() else services.wanted_by_others(sorted(own))  # at home, every visitor owns all
    return [RunRow(run, run.id in own, run.id in shared) for run in runs]


def chosen(rows: Iterable[RunRow], statuses: Collection[str], text: str) -> list[RunRow]:
    """The rows that match a filter. An empty set of states means all states."""
    return [row for row in rows if (not statuses or row.listed.status in statuses) and row.matches(text)]


# --- the spec in words -------------------------------------------------------------------------------------


@lru_cache(maxsize=4000)
def _sentences(spec_json: str, ready: bool) -> tuple[str, str]:
    """The sentence of a spec, and its settings that are not at their default.

    Titles and defaults come from the shelves. Until these are `ready`, the sentence has the names of the parts.
    """
    spec = json.loads(spec_json)
    title = run_settings.part_title if ready else _name
    try:
        if "attack" in spec:
            return _attack_sentences(spec, title)
        return run_texts.sentence(spec, title), _unusual(spec) if ready else ""
    except (AttributeError, KeyError, TypeError, ValueError):
        return run_texts.DAMAGED, ""


def _name(part: str, name: str) -> str:
    return name


def _attack_sentences(spec: Mapping[str, Any], title: run_texts.Title) -> tuple[str, str]:
    run = run_settings.flat(spec["run"]) if isinstance(spec.get("run"), Mapping) else {}
    titles = {part: title(part, str(run.get(part, ""))) for part in ("method", "model", "dataset")}
    attack = spec["attack"]
    name = str(attack.get("name", "") if isinstance(attack, Mapping) else attack)
    if membership_texts.is_membership(spec):
        when = attack_texts.when(spec)
        sentence = membership_texts.row_title(title("attack", name), titles["method"], when, str(spec.get("unit")))
    else:
        sentence = attack_texts.row_title(spec, title("attack", name), titles["method"])
    return sentence, attack_texts.row_details(spec, titles["model"], titles["dataset"])


def _unusual(spec: Mapping[str, Any]) -> str:
    settings = run_settings.flat(spec)
    try:
        defaults = run_settings.completed({part: settings[part] for part in run_settings.PARTS if part in settings})
    except LeakLensError:
        return ""
    words = []
    for path, value in settings.items():
        if path in run_texts.SETTLED or path.startswith("partition.") or value == defaults.get(path):
            continue
        name = path.rpartition(".")[2].replace("-", " ")
        words.append(f"{name} {run_texts.plain(value)}")
    return ", ".join(words)


# --- the result --------------------------------------------------------------------------------------------


@lru_cache(maxsize=2000)
def _result(home: str, run: str, edition: str, events: int, view: str) -> RunResult:
    """The result of a run, read once for each state. The edition and the number of events identify the state."""
    del home, edition, events
    return fold([body for _, body in services.store().bodies(run)], view)


def fold(bodies: Sequence[Mapping[str, Any]], view: str) -> RunResult:
    """The result from the JSON of all events, with the ε against one observer. The last event of each kind counts."""
    accuracy: float | None = None
    spent: Mapping[str, Any] = {}
    psnr: float | None = None
    verdict: Verdict | None = None
    auc: tuple[float, float, float] | None = None
    for body in bodies:
        kind = body.get("event")
        if kind == "measured" and (body["name"], body["who"]) == ("accuracy", "global"):
            accuracy = body["value"] if body["value"] is not None else accuracy
        elif kind == "spent" and body["view"] == view:
            spent = body
        elif kind == "scored":
            auc = (body["auc"], *body["interval"])
        elif kind == "judged":
            psnr, verdict = _best_picture(body)
    last = bodies[-1] if bodies else {}
    failure = str(LeakLensError(last["reason"], last["remedy"])) if last.get("event") == "failed" else ""
    return RunResult(accuracy, spent.get("epsilon"), spent.get("unit", ""), bool(spent), failure, psnr, verdict, auc)


def _best_picture(body: Mapping[str, Any]) -> tuple[float | None, Verdict | None]:
    """PSNR and verdict of the picture that came back best."""
    judged = decode(body)
    assert isinstance(judged, Judged)
    cell = AttackCell("", judged.attack, "", judged=judged)
    if cell.best_picture is None:
        return None, None
    return cell.psnr(cell.best_picture), cell.best_verdict
