"""How close a result is to another system: six choices, and what stored results say about each difference.

The direction of a difference follows from pairs of stored uploads that differ in exactly one choice, and are equal in
all else that a spec has. Without such a pair it is that of a paper (`literature`), or it was not measured.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations
from typing import TYPE_CHECKING, Any

from engine.capabilities import HasNoise
from engine.examples import start
from engine.examples.attacks import AttackExample, attack_examples
from engine.examples.literature import LITERATURE, CitedMove
from engine.results.attack_summary import AttackCell, AttackEvents, collect_cell
from engine.results.verdict import Verdict, rank
from engine.specs.attack_grid import NOT_IN_BASELINE, RequestedAttack

if TYPE_CHECKING:
    from engine.specs.run import RunSpec

CHOICES: Mapping[str, tuple[str, ...]] = {
    "pictures": ("one", "few", "many"),
    "steps": ("one", "several"),
    "server": ("honest", "cheats"),
    "aggregation": ("no", "yes"),
    "noise": ("none", "client", "shared", "server"),
    "trained": ("first", "later"),
}
OF_NOISE = ("format", "method", "target-epsilon", "budget", "view")  # fields that choose the noise, or hold it
FEW = 16  # pictures of an upload at most, above which there are many
SPLITS = {"paper": "shared", "full-local": "client", "server": "server"}  # of a method, and where its noise is added
OTHER_VIEWS = ("client", "outsider")  # they see the model after a round, which no choice describes
# Every list of attacks that ships.
SHIPPED: tuple[Callable[[], tuple[AttackExample, ...]], ...] = (attack_examples, start.attacks)


@dataclass(frozen=True)
class SystemChoices:
    """One value for each of the six choices."""

    pictures: str
    steps: str
    server: str
    aggregation: str
    noise: str
    trained: str

    @property
    def values(self) -> tuple[str, ...]:
        """The values in the order of CHOICES."""
        return tuple(getattr(self, name) for name in CHOICES)

    def differences(self, other: SystemChoices) -> tuple[str, ...]:
        """The choices in which the two differ."""
        return tuple(name for name in CHOICES if getattr(self, name) != getattr(other, name))


@dataclass(frozen=True)
class AttackOutcome:
    """One finished attack: its id, what tells it apart on the same upload, and how much it gave away."""

    id: str
    title: str  # the name of the attack on the shelf
    key: str
    verdict: Verdict | None


@dataclass(frozen=True)
class MeasuredUpload:
    """All finished attacks on one upload."""

    choices: SystemChoices
    run: Mapping[str, Any]  # its spec
    place: str  # the picture, the round and the client that the attacks share
    view: str
    attacks: tuple[AttackOutcome, ...]

    @property
    def verdict(self) -> Verdict | None:
        """What the best attack gave away."""
        return max((attack.verdict for attack in self.attacks), key=rank)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(attack.id for attack in self.attacks)


@dataclass(frozen=True)
class RiskMove:
    """What one difference does to the risk: pairs of stored uploads, or a paper where no pair exists."""

    choice: str
    old: str
    new: str
    more: int = 0  # pairs in which the new value gave away more
    less: int = 0
    same: int = 0
    ids: tuple[tuple[str, str], ...] = ()  # of each pair: its best attack before and after
    cited: CitedMove | None = None

    @property
    def pairs(self) -> int:
        return self.more + self.less + self.same

    @property
    def direction(self) -> str:
        """`more`, `less` or `same` leaks; `mixed` where pairs disagree; `unknown` where nothing was measured."""
        if not self.pairs:
            return self.cited.direction if self.cited else "unknown"
        if self.more and self.less:
            return "mixed"
        if self.more:
            return "more"
        return "less" if self.less else "same"


# --- one result --------------------------------------------------------------------------------------------


def noise_place(method: Mapping[str, Any]) -> str:
    """Where a method with these fields adds its noise. A method without a choice adds it at each client."""
    from engine.specs.run import SHELVES

    part = SHELVES["method"][str(method["name"])]
    if not issubclass(part, HasNoise) or not method.get(part.noise_name()):
        return "none"
    return SPLITS.get(str(method.get("noise-split")), "client")


def picture_count(pictures: int) -> str:
    """The choice of the pictures per upload."""
    if pictures <= 1:
        return "one"
    return "few" if pictures <= FEW else "many"


def step_count(steps: int) -> str:
    """The choice of the local steps."""
    return "one" if steps <= 1 else "several"


def choices_of(spec: Mapping[str, Any], facts: Mapping[str, Any]) -> SystemChoices:
    """The six choices of an attack on pictures, from its spec and the facts of its upload."""
    tampered = bool(facts.get("tampered")) or spec.get("upload") == "cheat"
    return SystemChoices(
        pictures=picture_count(int(facts.get("pictures", 1))),
        steps=step_count(int(facts.get("steps", 1))),
        server="cheats" if tampered else "honest",
        aggregation="no" if spec["view"] == "server" else "yes",
        noise=noise_place(spec["run"]["method"]),
        trained="later" if int(facts.get("trained", 0)) else "first",
    )


def choices_of_run(run: RunSpec) -> SystemChoices:
    """The six choices of an ordinary upload in the last round of a run, where no attack names one."""
    from engine.records import Seat
    from engine.training.plan import make_plan

    plan = make_plan(run, precise=False)
    seat = Seat(0, 0, 1, 1, 1, max(1, plan.world.sampled))
    protocol = plan.method.protocol(plan.world, seat, "server")
    size = plan.world.sizes[0]
    pictures = size if protocol.drawing == "whole" else min(size, protocol.steps * protocol.batch)
    return SystemChoices(
        pictures=picture_count(pictures),
        steps=step_count(protocol.steps),
        server="honest",
        aggregation="no",
        noise=noise_place(run.canonical()["method"]),
        trained="later" if run.rounds > 1 else "first",
    )


def given_away(cell: AttackCell) -> Verdict | None:
    """The verdict on an upload: the best picture; of an ordinary upload another one, if more than chance come back."""
    if cell.judged is None:
        return None
    if cell.ordinary and cell.works:
        return max((cell.verdict(place) for place in cell.judged.places), key=rank)
    return cell.best_verdict


def uploads(results: Iterable[tuple[str, Mapping[str, Any], AttackCell]]) -> tuple[MeasuredUpload, ...]:
    """The finished attacks on pictures, given as id, spec and cell, grouped by the attacked upload."""
    groups: dict[str, MeasuredUpload] = {}
    for id, spec, cell in results:
        if cell.judged is None or cell.seen is None:
            continue
        place = _key([spec.get("pictures", ())[:1], spec["round"], spec.get("client")])
        choices = choices_of(spec, cell.seen.facts)
        own = {name: spec.get(name) for name in ("attack", "seed", "restarts")}
        outcome = AttackOutcome(id, str(spec["attack"]["name"]), _key(own), given_away(cell))
        key = _key([spec["run"], place, choices.values, str(spec["view"])])
        known = groups.get(key) or MeasuredUpload(choices, spec["run"], place, str(spec["view"]), ())
        groups[key] = replace(known, attacks=(*known.attacks, outcome))
    return tuple(groups.values())


def stored_uploads(examples: Sequence[AttackExample]) -> tuple[MeasuredUpload, ...]:
    """The uploads of stored attacks. What only another participant or an outsider sees is left out."""
    results = []
    for example in examples:
        if example.spec["view"] not in OTHER_VIEWS:
            request = RequestedAttack("", str(example.spec["attack"]["name"]), None)
            cell = collect_cell(request, AttackEvents("stored", example.events))
            results.append((example.id, example.spec, cell))
    return uploads(results)


@cache
def shipped_uploads() -> tuple[MeasuredUpload, ...]:
    """The uploads of all attacks that ship."""
    return stored_uploads([example for examples in SHIPPED for example in examples()])


@cache
def shipped_moves() -> tuple[RiskMove, ...]:
    """What each difference does, by all attacks that ship."""
    return moves(shipped_uploads())


def _key(value: object) -> str:
    return json.dumps(value, sort_keys=True)


# --- pairs that differ in one choice -----------------------------------------------------------------------


def moves(measured: Sequence[MeasuredUpload]) -> tuple[RiskMove, ...]:
    """What every change of one choice does, from the pairs among these uploads."""
    pairs: dict[tuple[str, str, str], list[tuple[AttackOutcome, AttackOutcome]]] = {}
    for before, after in permutations(measured, 2):
        differing = before.choices.differences(after.choices)
        if len(differing) == 1 and _comparable(before, after, differing[0]):
            best = _best_of_both(before, after, differing[0])
            if best:
                name = differing[0]
                move = (name, getattr(before.choices, name), getattr(after.choices, name))
                pairs.setdefault(move, []).append(best)
    return tuple(_move(*change, pairs.get(change, ())) for change in _changes())


def _changes() -> Iterator[tuple[str, str, str]]:
    for name, values in CHOICES.items():
        for old, new in permutations(values, 2):
            yield name, old, new


def _move(choice: str, old: str, new: str, pairs: Sequence[tuple[AttackOutcome, AttackOutcome]]) -> RiskMove:
    steps = [rank(after.verdict) - rank(before.verdict) for before, after in pairs]
    return RiskMove(
        choice=choice,
        old=old,
        new=new,
        more=sum(step > 0 for step in steps),
        less=sum(step < 0 for step in steps),
        same=sum(step == 0 for step in steps),
        ids=tuple((before.id, after.id) for before, after in pairs),
        cited=LITERATURE.get((choice, old, new)),
    )


def _comparable(before: MeasuredUpload, after: MeasuredUpload, choice: str) -> bool:
    """Whether two uploads are equal apart from this choice: the picture, the round, the run and its whole method.

    The server step is a part of the method. With another one, the attacked model would be another model.
    """
    if choice != "trained" and before.place != after.place:
        return False
    if choice == "trained" and _without_round(before.place) != _without_round(after.place):
        return False
    if _shared(before.run, choice) != _shared(after.run, choice):
        return False
    return _same_protection(before.run, after.run, choice)


def _without_round(place: str) -> list[Any]:
    pictures, _, client = json.loads(place)
    return [pictures, client]


def _shared(run: Mapping[str, Any], choice: str) -> dict[str, Any]:
    """The fields of a run that both uploads must share."""
    varied = (*NOT_IN_BASELINE, "epochs") if choice == "steps" else NOT_IN_BASELINE
    return {name: value for name, value in run.items() if name not in varied}


def _same_protection(before: Mapping[str, Any], after: Mapping[str, Any], choice: str) -> bool:
    """Whether the protection is the same. Where the choice is the noise, only its place and strength may differ."""
    if choice != "noise":
        return all(before.get(name) == after.get(name) for name in NOT_IN_BASELINE)
    if any(before.get(name) != after.get(name) for name in NOT_IN_BASELINE if name not in OF_NOISE):
        return False
    added = "none" in (noise_place(before["method"]), noise_place(after["method"]))
    return _method_of(before, added) == _method_of(after, added)


def _method_of(run: Mapping[str, Any], without_noise: bool) -> dict[str, Any]:
    """The fields of the method apart from the place of its noise, and apart from its strength `without_noise`."""
    from engine.specs.run import SHELVES

    left_out = {"noise-split"}
    part = SHELVES["method"][str(run["method"]["name"])]
    if without_noise and issubclass(part, HasNoise):
        left_out.add(part.noise_name())
    return {name: value for name, value in run["method"].items() if name not in left_out}


def _best_of_both(
    before: MeasuredUpload, after: MeasuredUpload, choice: str
) -> tuple[AttackOutcome, AttackOutcome] | None:
    """The best attack on each upload, among the attacks on both. A server that cheats has attacks of its own."""
    shared = {attack.key for attack in before.attacks} & {attack.key for attack in after.attacks}
    if choice == "server":
        return _best(before.attacks), _best(after.attacks)
    if not shared:
        return None
    first = [attack for attack in before.attacks if attack.key in shared]
    second = [attack for attack in after.attacks if attack.key in shared]
    return _best(first), _best(second)


def _best(attacks: Sequence[AttackOutcome]) -> AttackOutcome:
    return max(attacks, key=lambda attack: rank(attack.verdict))
