"""The question of the Leak screen: whose picture, what the attacker sees, which protections, which attacks.

One question is a grid: each cell is an AttackSpec, so equal cells are asked once however many visitors want them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from app.session import run_settings
from app.session.links import AGAINST
from app.session.run_settings import attack_class, attack_names, is_about_pictures
from app.texts import attacks as attack_texts
from engine.errors import LeakLensError, shown
from engine.specs.attack_grid import NOISY, NONE, OF_RUN, RequestedAttack

if TYPE_CHECKING:
    from engine.specs.attack import AttackSpec
    from engine.specs.run import RunSpec

RUN: Mapping[str, Any] = {  # ten phones that all take part: the smallest run with a promise in every view
    "method": "fedavg", "dataset": "cifar10", "model": "mlp", "model.bias": True, "clients": 10, "sampled": 10,
    "sampling": "all", "epochs": 1, "rounds": 10,
}  # fmt: skip
NOISES = (1e-5, 1e-4, 1e-3, 3e-3, 0.01, 0.1, 1.0)
ATTACKS = ("analytic", "map", "inverting-gradients")
MOST_COLUMNS, MOST_RESTARTS = 8, 16
FEW = 12  # pictures that are offered
EPOCHS = (1, 2, 5)
WHENS, EYES = ("first", "last"), ("server", "aggregate", "client", "outsider")
PICTURE = re.compile(r"(train|test)-\d{1,7}|own-[0-9a-f]{16}-\d{1,3}")
OWN = ("whose", "many", "eyes", "when", "against", "attacks", "restarts", "iterations", "chance")  # of a link
LOST = ("target-epsilon", "budget", "view")  # of a run that are about its own method only


@dataclass(frozen=True)
class LeakSettings:
    """Everything that the screen asks."""

    run: Mapping[str, Any] = field(default_factory=lambda: dict(RUN))  # settings of the run, as the Lab has them
    whose: str = "test-0"
    many: int = 1
    eyes: str = "server"
    when: str = "first"
    against: tuple[str, ...] = AGAINST
    attacks: tuple[str, ...] = ATTACKS
    restarts: int = 1
    iterations: int | None = None  # of those that search; None: as many as each usually takes
    chance: int = 0

    @property
    def pictures(self) -> tuple[str, ...]:
        """The chosen picture, and its neighbours in the same upload."""
        kind, _, place = self.whose.partition("-")
        first, beside = (0, "test") if kind == "own" else (int(place) + 1, kind)
        return (self.whose, *(f"{beside}-{first + more}" for more in range(self.many - 1)))


@dataclass(frozen=True)
class GridColumn:
    """One protection."""

    key: str
    title: str
    spec: RunSpec
    noise: float | None


# --- columns -----------------------------------------------------------------------------------------------


def columns(leak: LeakSettings) -> tuple[GridColumn, ...]:
    """The control and the protections, those that ask the same only once."""
    base = run_settings.spec_of(leak.run)
    found: dict[str, GridColumn] = {}
    for key in (NONE, *leak.against):
        spec = run_of(base, key)
        if spec.id not in {one.spec.id for one in found.values()}:
            found[key] = GridColumn(key, column_title(key, spec), spec, getattr(spec.method, "noise", None))
    return tuple(found.values())


def run_of(base: RunSpec, key: str) -> RunSpec:
    """The same run under another protection."""
    from engine.specs.run import RunSpec

    if key == NONE:
        return run_settings.baseline_of(base) or base
    if key == OF_RUN:
        return base
    name, _, noise = key.partition(":")
    fields = run_settings.own_fields("method", name)
    part: dict[str, Any] = {"name": name}
    if noise and "noise" in fields:
        part["noise"] = float(noise)
    if "noise-split" in fields:
        part["noise-split"] = "full-local"  # the whole noise in every upload: the server is an adversary here
    kept = {name: value for name, value in base.canonical().items() if name not in ("format", "method", *LOST)}
    return RunSpec(**kept, method=part)


def column_title(key: str, spec: RunSpec) -> str:
    if key == NONE:
        return attack_texts.NONE
    title, level = type(spec.method).title, getattr(spec.method, "noise", None)
    if key == OF_RUN:
        return attack_texts.run(title, level, spec.target_epsilon)
    return attack_texts.column(title, level)


def offered(leak: LeakSettings) -> tuple[str, ...]:
    """Columns that a visitor may choose, those of the question among them."""
    rest = [name for name in run_settings.names("method") if name not in ("fedavg", NOISY)]
    noisy = {name: "noise" in run_settings.own_fields("method", name) for name in rest}
    others = [f"{name}:1" if noisy[name] else name for name in rest]
    usual = (NONE, OF_RUN, *(f"{NOISY}:{attack_texts.noise(noise)}" for noise in NOISES), *others)
    return tuple(dict.fromkeys((*usual, *leak.against)))


def _known(key: str) -> str:
    """The column as it is written here; empty where it cannot be meant."""
    if key in (NONE, OF_RUN):
        return key
    name, colon, noise = key.partition(":")
    if name not in run_settings.names("method"):
        return ""
    if not colon:
        return name
    try:
        level = float(noise)
    except ValueError:
        return ""
    return f"{name}:{attack_texts.noise(level)}" if 0 <= level <= 1000 else ""


# --- cells -------------------------------------------------------------------------------------------------


def cells(leak: LeakSettings) -> tuple[RequestedAttack, ...]:
    """Row by row, every attack against every protection."""
    found = []
    there = columns(leak)
    for attack in leak.attacks:
        for column in there:
            try:
                found.append(RequestedAttack(column.key, attack, _spec(leak, attack, column.spec)))
            except LeakLensError as error:
                found.append(RequestedAttack(column.key, attack, None, str(error)))
    return tuple(found)


def _spec(leak: LeakSettings, attack: str, run: RunSpec) -> AttackSpec:
    from engine.specs.attack import AttackSpec

    searches = leak.iterations is not None and "iterations" in attack_class(attack).model_fields
    part = {"name": attack, **({"iterations": leak.iterations} if searches else {})}
    return AttackSpec(
        run=run, attack=part, pictures=leak.pictures, view=leak.eyes,
        round=int(leak.when) if leak.when.isdecimal() else leak.when,
        restarts=leak.restarts, seed=leak.chance,
    )  # fmt: skip


def cost(spec: AttackSpec) -> int:
    """What to begin with: the steps of a search, none where nothing is searched."""
    return int(getattr(spec.attack, "iterations", 0)) * spec.restarts


def in_order(asked: Sequence[RequestedAttack]) -> list[RequestedAttack]:
    """What answers at once, then the control, then the rest column by column."""
    order = list(dict.fromkeys(one.column for one in asked))
    with_spec = [(one, cost(one.spec)) for one in asked if one.spec is not None]
    ranked = sorted(with_spec, key=lambda pair: (pair[1] > 0, order.index(pair[0].column), pair[1]))
    return [one for one, _ in ranked]


def default_cells() -> list[AttackSpec]:
    """The grid of a first visit, in the order in which it is asked; what does not fit is left out."""
    from engine.leakage.compatibility import problem

    asked = in_order(cells(usual()))
    return [one.spec for one in asked if one.spec is not None and problem(one.spec) is None]


# --- the link ----------------------------------------------------------------------------------------------


def usual() -> LeakSettings:
    """What a newcomer sees, with every setting of its run."""
    return settled(LeakSettings())


def settled(leak: LeakSettings) -> LeakSettings:
    """Only attacks that are there, and every field of the run."""
    there = attack_names()
    attacks = tuple(name for name in leak.attacks if name in there)
    return replace(leak, run=run_settings.settled(leak.run), attacks=attacks)


def link(leak: LeakSettings) -> dict[str, str]:
    """Every setting by name."""
    own = {
        "whose": leak.whose, "many": str(leak.many), "eyes": leak.eyes, "when": leak.when,
        "against": ",".join(leak.against), "attacks": ",".join(leak.attacks), "restarts": str(leak.restarts),
        "chance": str(leak.chance),
    }  # fmt: skip
    more = {} if leak.iterations is None else {"iterations": str(leak.iterations)}
    return {**own, **more, **run_settings.link(leak.run)}


def elsewhere(params: Mapping[str, str]) -> bool:
    """Whether a link to the first page was made for the Lab, when that was the first page."""
    return bool(params) and not set(params) & set(OWN)


def read_link(params: Mapping[str, str]) -> tuple[LeakSettings, list[str]]:
    """The question of a link; what cannot be meant is left out, each with a sentence."""
    start = usual()
    run, told = run_settings.read_link({key: value for key, value in params.items() if key not in OWN}, start.run)
    found = replace(start, run=_of_pictures(run, start.run, told))
    for name in OWN:
        if name not in params:
            continue
        value = _meant(name, params[name], told)
        if value is None:
            told.append(f"{name} = {shown(params[name])} cannot be meant: the usual value is used.")
        else:
            found = replace(found, **{name: value})
    return settled(found), told


def _of_pictures(run: run_settings.Settings, usual: Mapping[str, Any], told: list[str]) -> run_settings.Settings:
    """Only pictures are attacked: a run on text is asked with the usual data set and model instead."""
    found = dict(run)
    for part in ("dataset", "model"):
        if not is_about_pictures(part, run[part]):
            title, other = (run_settings.part_class(part, one).title for one in (run[part], usual[part]))
            told.append(attack_texts.not_pictures(title, other))
            found |= {name: value for name, value in usual.items() if name.partition(".")[0] == part}
    return run_settings.settled(found)


LIMITS = {"many": (1, 8), "restarts": (1, MOST_RESTARTS), "iterations": (1, 100_000), "chance": (0, 2**53 - 1)}


def _meant(name: str, text: str, told: list[str]) -> Any:
    """One setting of a link; None where it cannot be meant."""
    if name == "whose":
        return text if PICTURE.fullmatch(text) else None
    if name in ("eyes", "when"):
        numbered = name == "when" and text.isdecimal() and 1 <= int(text[:9]) <= 10_000
        return text if text in (EYES if name == "eyes" else WHENS) or numbered else None
    if name in LIMITS:
        least, most = LIMITS[name]
        return int(text) if text.isdecimal() and len(text) < 17 and least <= int(text) <= most else None
    asked = [one for one in text.split(",") if one]
    known = {one: _known(one) if name == "against" else one if one in attack_names() else "" for one in asked}
    told += [f"There is no {name[:-1] if name == 'attacks' else 'protection'} {shown(one)} here: it is left out."
             for one in asked if not known[one]]  # fmt: skip
    found = tuple(dict.fromkeys(filter(None, known.values())))
    if name == "against" and len(found) > MOST_COLUMNS:
        told.append(f"A grid has at most {MOST_COLUMNS} protections: the first {MOST_COLUMNS} are shown.")
    return found[:MOST_COLUMNS] if name == "against" else found or None


def key_of(method: Mapping[str, Any]) -> str:
    """The column of a method as JSON: how a stored example is laid out before the shelves are loaded."""
    name, noise = str(method.get("name", "")), method.get("noise")
    if name == RUN["method"]:
        return NONE
    return name if noise is None else f"{name}:{attack_texts.noise(float(noise))}"
