"""The settings of the Leak screen: the picture, what the attacker sees, the protections and the attacks.

The settings make a grid. Each cell is an AttackSpec, so equal cells run once for all visitors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from app.session import run_settings
from app.session.links import AGAINST
from app.session.run_settings import attack_class, attack_names, is_about_pictures
from app.texts import attacks as attack_texts
from app.texts import privacy
from engine.capabilities import HasIterations, HasNoise
from engine.errors import LeakLensError, shown
from engine.specs.attack_grid import NOISY, NONE, OF_RUN, RequestedAttack

if TYPE_CHECKING:
    from engine.specs.attack import AttackSpec
    from engine.specs.run import RunSpec

# Ten clients that take part in every round: the smallest run with a guarantee in every view.
RUN: Mapping[str, Any] = {
    "method": "fedavg", "dataset": "cifar10", "model": "mlp", "model.bias": True, "clients": 10, "sampled": 10,
    "sampling": "all", "epochs": 1, "rounds": 10,
}  # fmt: skip
NOISES = (1e-5, 1e-4, 1e-3, 3e-3, 0.01, 0.1, 1.0)
ATTACKS = ("analytic", "map", "inverting-gradients")
MOST_COLUMNS = 8
MOST_RESTARTS = 16
OFFERED = 12  # test pictures that the form offers
EPOCHS = (1, 2, 5)
ROUNDS = ("first", "last")
UPLOADS = ("listed", "ordinary", "cheat")
VIEWS = ("server", "aggregate", "client", "outsider")
PICTURE = re.compile(r"(train|test)-\d{1,7}|own-[0-9a-f]{16}-\d{1,3}")
# The parameters of a link that belong to this screen. The others are settings of the run.
LINK_FIELDS = ("whose", "many", "upload", "eyes", "when", "against", "attacks", "restarts", "iterations", "chance")
METHOD_ONLY = ("target-epsilon", "budget", "view")  # fields of a run that another protection does not take over
LIMITS = {"many": (1, 8), "restarts": (1, MOST_RESTARTS), "iterations": (1, 100_000), "chance": (0, 2**53 - 1)}


@dataclass(frozen=True)
class LeakSettings:
    """All settings of the screen."""

    run: Mapping[str, Any] = field(default_factory=lambda: dict(RUN))  # settings of the run, as in the Lab
    whose: str = "test-0"
    many: int = 1
    upload: str = "listed"  # what the upload holds: the chosen pictures only, or all records of a client
    eyes: str = "server"
    when: str = "first"
    against: tuple[str, ...] = AGAINST
    attacks: tuple[str, ...] = ATTACKS
    restarts: int = 1
    iterations: int | None = None  # of attacks that search; None: the default of each attack
    chance: int = 0

    @property
    def pictures(self) -> tuple[str, ...]:
        """The chosen picture, and the next pictures of its split, which fill the same upload."""
        if self.upload != "listed":
            return (self.whose,)
        kind, _, place = self.whose.partition("-")
        first, split = (0, "test") if kind == "own" else (int(place) + 1, kind)
        neighbours = [f"{split}-{first + offset}" for offset in range(self.many - 1)]
        return (self.whose, *neighbours)


def records(leak: LeakSettings) -> int:
    """The pictures of the upload. A client holds about the same share of the training pictures as any other."""
    if leak.upload == "listed":
        return len(leak.pictures)
    run = run_settings.spec_of(leak.run)
    return max(1, len(run.dataset.facts().train_y) // run.clients)


@dataclass(frozen=True)
class GridColumn:
    """One protection."""

    key: str
    title: str
    spec: RunSpec
    noise: float | None

    @property
    def split(self) -> str:
        """Who adds the noise, in small print; empty if the method has no such option, or no noise."""
        return privacy.noise_split(self.spec.method.values())


# --- columns -----------------------------------------------------------------------------------------------


def columns(leak: LeakSettings) -> tuple[GridColumn, ...]:
    """Return the baseline and the protections. Two keys with the same run make one column."""
    base = run_settings.spec_of(leak.run)
    by_run: dict[str, GridColumn] = {}
    for key in (NONE, *leak.against):
        spec = run_of(base, key)
        if spec.id not in by_run:
            by_run[spec.id] = GridColumn(key, column_title(key, spec), spec, noise_of(spec))
    return tuple(by_run.values())


def run_of(base: RunSpec, key: str) -> RunSpec:
    """Return the same run under the protection with this key."""
    from engine.specs.run import RunSpec

    if key == NONE:
        return run_settings.baseline_of(base) or base
    if key == OF_RUN:
        return base
    name, _, noise = key.partition(":")
    fields = run_settings.own_fields("method", name)
    method: dict[str, Any] = {"name": name}
    if noise and "noise" in fields:
        method["noise"] = float(noise)
    if "noise-split" in fields:
        # Each upload carries the whole noise, so the guarantee holds against a server that sees single uploads.
        # With another split, an upload carries a part of the noise or none, and the server view loses this ε.
        method["noise-split"] = "full-local"
    left_out = ("format", "method", *METHOD_ONLY)
    kept = {field: value for field, value in base.canonical().items() if field not in left_out}
    return RunSpec(**kept, method=method)


def column_title(key: str, spec: RunSpec) -> str:
    if key == NONE:
        return attack_texts.NONE
    title = type(spec.method).title
    if key == OF_RUN:
        return attack_texts.run(title, noise_of(spec), spec.target_epsilon)
    return attack_texts.column(title, noise_of(spec))


def noise_of(spec: RunSpec) -> float | None:
    """Return the noise of the method; None if it has no noise."""
    return spec.method.noise_level if isinstance(spec.method, HasNoise) else None


def offered(leak: LeakSettings) -> tuple[str, ...]:
    """Return the keys of the columns that a visitor may choose, the chosen ones included."""
    keys = [NONE, OF_RUN]
    keys += [f"{NOISY}:{attack_texts.noise(noise)}" for noise in NOISES]
    for name in run_settings.names("method"):
        if name in ("fedavg", NOISY):
            continue
        has_noise = "noise" in run_settings.own_fields("method", name)
        keys.append(f"{name}:1" if has_noise else name)
    return tuple(dict.fromkeys((*keys, *leak.against)))


def _normal_key(key: str) -> str:
    """Return the key of a column as this screen writes it, or an empty string for an unknown key."""
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
    """Return every attack against every protection, row by row."""
    requests = []
    grid_columns = columns(leak)
    for attack in leak.attacks:
        for column in grid_columns:
            try:
                request = RequestedAttack(column.key, attack, _attack_spec(leak, attack, column.spec))
            except LeakLensError as error:
                request = RequestedAttack(column.key, attack, None, str(error))
            requests.append(request)
    return tuple(requests)


def _attack_spec(leak: LeakSettings, attack: str, run: RunSpec) -> AttackSpec:
    from engine.specs.attack import AttackSpec

    part: dict[str, Any] = {"name": attack}
    if leak.iterations is not None and issubclass(attack_class(attack), HasIterations):
        part["iterations"] = leak.iterations
    return AttackSpec(
        run=run, attack=part, pictures=leak.pictures, upload=leak.upload, view=leak.eyes,
        round=int(leak.when) if leak.when.isdecimal() else leak.when,
        restarts=leak.restarts, seed=leak.chance,
    )  # fmt: skip


def cost(spec: AttackSpec) -> int:
    """Return the number of search steps, 0 for an attack that does not search."""
    return (spec.attack.iterations if isinstance(spec.attack, HasIterations) else 0) * spec.restarts


def in_order(requests: Sequence[RequestedAttack]) -> list[RequestedAttack]:
    """Return the attacks in the order to submit: those without a search, the baseline, then column by column.

    Requests without a spec are left out.
    """
    columns_in_order = list(dict.fromkeys(request.column for request in requests))
    ranked = []
    for request in requests:
        if request.spec is not None:
            steps = cost(request.spec)
            rank = (steps > 0, columns_in_order.index(request.column), steps)
            ranked.append((rank, request))
    ranked.sort(key=lambda pair: pair[0])
    return [request for _, request in ranked]


def default_cells() -> list[AttackSpec]:
    """Return the grid of a first visit, in the order to submit, without attacks that do not fit."""
    from engine.leakage.compatibility import problem

    specs = [request.spec for request in in_order(cells(default()))]
    return [spec for spec in specs if spec is not None and problem(spec) is None]


# --- the link ----------------------------------------------------------------------------------------------


def default() -> LeakSettings:
    """Return the default settings, with every field of the run."""
    return settled(LeakSettings())


def settled(leak: LeakSettings) -> LeakSettings:
    """Return the settings with known attacks only and with every field of the run."""
    known = attack_names()
    attacks = tuple(name for name in leak.attacks if name in known)
    return replace(leak, run=run_settings.completed(leak.run), attacks=attacks)


def fitting_attacks(upload: str, attacks: Sequence[str]) -> tuple[str, ...]:
    """The attacks that can read this upload. Only some read a model that the server changed, and all of those need one.

    Without any, a server that cheats uses all that can.
    """
    if upload == "listed":
        return tuple(attacks)
    fitting = tuple(name for name in attacks if run_settings.changes_model(name) == (upload == "cheat"))
    if upload == "cheat" and not fitting:
        return tuple(name for name in run_settings.attack_names() if run_settings.changes_model(name))
    return fitting


def link(leak: LeakSettings) -> dict[str, str]:
    """Return every setting by its parameter in the link."""
    params = {
        "whose": leak.whose, "many": str(leak.many), "eyes": leak.eyes, "when": leak.when,
        "against": ",".join(leak.against), "attacks": ",".join(leak.attacks), "restarts": str(leak.restarts),
        "chance": str(leak.chance),
    }  # fmt: skip
    if leak.upload != "listed":
        params["upload"] = leak.upload
    if leak.iterations is not None:
        params["iterations"] = str(leak.iterations)
    return {**params, **run_settings.link(leak.run)}


def is_lab_link(params: Mapping[str, str]) -> bool:
    """Return whether a link to the first page comes from the time when the Lab was the first page."""
    return bool(params) and not set(params) & set(LINK_FIELDS)


def read_link(params: Mapping[str, str]) -> tuple[LeakSettings, list[str]]:
    """Return the settings of a link, and a note for each value that is not valid and therefore left out."""
    start = default()
    run_params = {name: text for name, text in params.items() if name not in LINK_FIELDS}
    run, notes = run_settings.read_link(run_params, start.run)
    leak = replace(start, run=_about_pictures(run, start.run, notes))
    fields = run_settings.read_fields(params, LINK_FIELDS, _read_value, notes)
    leak = replace(leak, **fields)
    if "attacks" not in fields:  # the usual attacks do not read every upload
        leak = replace(leak, attacks=fitting_attacks(leak.upload, leak.attacks))
    return settled(leak), notes


def _about_pictures(run: run_settings.Settings, default: Mapping[str, Any], notes: list[str]) -> run_settings.Settings:
    """Return the run with the default data set and model where its own are about text: attacks need pictures."""
    settings = dict(run)
    for part in ("dataset", "model"):
        if is_about_pictures(part, run[part]):
            continue
        title = run_settings.part_class(part, run[part]).title
        default_title = run_settings.part_class(part, default[part]).title
        notes.append(attack_texts.not_pictures(title, default_title))
        for name, value in default.items():
            if name.partition(".")[0] == part:
                settings[name] = value
    return run_settings.completed(settings)


def _read_value(name: str, text: str, notes: list[str]) -> Any:
    """Return one setting of a link, or None for a value that is not valid."""
    if name == "whose":
        return text if PICTURE.fullmatch(text) else None
    if name == "eyes":
        return text if text in VIEWS else None
    if name == "upload":
        return text if text in UPLOADS else None
    if name == "when":
        return text if text in ROUNDS or _is_round(text) else None
    if name in LIMITS:
        return _read_number(name, text)
    return _read_columns(text, notes) if name == "against" else _read_attacks(text, notes)


def _is_round(text: str) -> bool:
    return text.isdecimal() and 1 <= int(text[:9]) <= 10_000


def _read_number(name: str, text: str) -> int | None:
    if not text.isdecimal() or len(text) >= 17:
        return None
    least, most = LIMITS[name]
    return int(text) if least <= int(text) <= most else None


def _read_columns(text: str, notes: list[str]) -> tuple[str, ...]:
    known = _known_names("protection", text, _normal_key, notes)
    if len(known) > MOST_COLUMNS:
        notes.append(f"A grid has at most {MOST_COLUMNS} protections: the first {MOST_COLUMNS} are shown.")
    return known[:MOST_COLUMNS]


def _read_attacks(text: str, notes: list[str]) -> tuple[str, ...] | None:
    return _known_names("attack", text, _attack_name, notes) or None


def _attack_name(word: str) -> str:
    return word if word in attack_names() else ""


def _known_names(kind: str, text: str, name_of: Callable[[str], str], notes: list[str]) -> tuple[str, ...]:
    """Return each known name once, and add a note for each word without a name."""
    known = []
    for word in text.split(","):
        if not word:
            continue
        name = name_of(word)
        if name:
            known.append(name)
        else:
            notes.append(f"There is no {kind} {shown(word)} here: it is left out.")
    return tuple(dict.fromkeys(known))


def key_of(method: Mapping[str, Any]) -> str:
    """Return the column of a method in JSON. A stored example needs it before the shelves are loaded."""
    name, noise = str(method.get("name", "")), method.get("noise")
    if name == RUN["method"]:
        return NONE
    return name if noise is None else f"{name}:{attack_texts.noise(float(noise))}"
