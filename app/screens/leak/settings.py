"""The settings of the Leak screen: the picture, what the attacker sees, the protections and the attacks.

The settings make a grid. Each cell is an AttackSpec, so equal cells run once for all visitors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from app.session import run_settings
from app.session.links import AGAINST
from app.session.run_settings import attack_names, is_about_pictures
from app.session.screen_settings import ScreenSettings, shortened
from app.texts import attack_form as form_texts
from engine.errors import plain_number
from engine.specs.attack_grid import NOISY, NONE, OF_RUN, AttackGrid, budget_key, budget_of, column_key

DEFAULT_NOISES = (0.01, 0.1)
NOISES = (1e-5, 1e-4, 1e-3, 3e-3, 0.01, 0.1, 1.0)
ATTACKS = ("analytic", "map", "inverting-gradients")
COMPARED = (NOISY, "dp-fedavg", "fedceo")  # methods of a first comparison at the same budget
BUDGETS = (1.0, 3.0, 10.0, 100.0, 1000.0, 10_000.0, 100_000.0)
BUDGET = 10.0
MOST_BUDGET = 1_000_000.0
MOST_COLUMNS = 8
EPOCHS = (1, 2, 5)
ROUNDS = ("first", "last")
MOST_ROUNDS = 10_000
PICTURE = r"^((train|test)-\d{1,7}|(own-[0-9a-f]{16}|portrait)-\d{1,3})$"
WHEN = r"^(first|last|[1-9]\d{0,3}|10000)$"


class LeakSettings(ScreenSettings):
    """All settings of the screen."""

    screen: ClassVar[str] = "leak"
    later: ClassVar[tuple[str, ...]] = ("upload", "iterations", "each", "closer", "tab")
    # Ten clients that take part in every round: the smallest run with a guarantee in every view.
    default_run: ClassVar[Mapping[str, Any]] = {
        "method": "fedavg", "dataset": "cifar10", "model": "mlp", "model.bias": True, "clients": 10, "sampled": 10,
        "sampling": "all", "epochs": 1, "rounds": 10,
    }  # fmt: skip

    rules: ClassVar[Mapping[str, str]] = {
        "whose": "must be a picture such as test-0, train-7 or portrait-0",
        "when": f"must be first, last or a round up to {MOST_ROUNDS}",
        "closer": "must be an entry of the list Look closer",
    }

    whose: str = Field("test-0", pattern=PICTURE, title=form_texts.WHOSE)
    many: int = Field(1, ge=1, le=8, title=form_texts.MANY)
    upload: Literal["listed", "ordinary", "cheat"] = Field(
        "listed", title=form_texts.UPLOADED, description=form_texts.UPLOADED_HELP
    )
    when: str = Field("first", pattern=WHEN, title=form_texts.WHEN)
    against: tuple[str, ...] = Field(AGAINST, title=form_texts.AGAINST, description=form_texts.AGAINST_HELP)
    attacks: tuple[str, ...] = Field(ATTACKS, title=form_texts.ATTACKS)
    restarts: int = Field(1, ge=1, le=16, title=form_texts.RESTARTS, description=form_texts.RESTARTS_HELP)
    iterations: int | None = Field(None, ge=1, le=100_000, title=form_texts.ITERATIONS)
    each: bool = Field(False, title=form_texts.EACH, description=form_texts.EACH_HELP)
    closer: Literal["", "cliff", "ladder", "test", "scores", "curves", "upload", "promises", "attacks"] = ""
    tab: Literal["pictures", "sentences", "membership"] = "pictures"
    chance: int = Field(0, ge=0, le=2**53 - 1, title=form_texts.ATTACK_SEED)

    @property
    def pictures(self) -> tuple[str, ...]:
        """The chosen picture, and the next pictures of its split, which fill the same upload."""
        if self.upload != "listed":
            return (self.whose,)
        kind, _, place = self.whose.partition("-")
        first, split = (0, "test") if kind in ("own", "portrait") else (int(place) + 1, kind)
        neighbours = [f"{split}-{first + offset}" for offset in range(self.many - 1)]
        return (self.whose, *neighbours)

    @property
    def content(self) -> str:
        """What is in the upload, as one word: a number of pictures, `ordinary` or `cheat`."""
        return str(self.many) if self.upload == "listed" else self.upload

    def with_content(self, content: str) -> LeakSettings:
        """The same settings for another upload, with attacks that can read it."""
        upload, many = ("listed", int(content)) if content.isdecimal() else (content, self.many)
        kept = self.attacks
        if upload != "cheat":  # only that server changes the model
            kept = tuple(name for name in kept if not run_settings.changes_model(name)) or ATTACKS
        return self.with_(upload=upload, many=many, attacks=fitting_attacks(upload, kept))

    @property
    def budget(self) -> float | None:
        """The budget of the columns; None where each column has a strength of its own."""
        budgets = (budget_of(key) for key in self.against)
        return next((budget for budget in budgets if budget is not None), None)

    @property
    def method(self) -> str:
        """The method whose strengths are the columns: that of the first column that names one."""
        named = (key.partition(":")[0].partition("@")[0] for key in self.against if key not in (NONE, OF_RUN))
        return next(named, NOISY)

    @property
    def grid(self) -> AttackGrid:
        """The attacks that these settings request."""
        return AttackGrid(
            run=run_settings.spec_of(self.run),
            columns=self.against,
            attacks=self.attacks,
            pictures=self.pictures,
            upload=self.upload,
            view=self.eyes,
            round=int(self.when) if self.when.isdecimal() else self.when,
            restarts=self.restarts,
            iterations=self.iterations,
            seed=self.chance,
        )

    def settled(self) -> LeakSettings:
        known = attack_names()
        attacks = tuple(name for name in self.attacks if name in known)
        return self.with_(run=run_settings.completed(self.run), attacks=attacks)

    # --- the address ---

    @classmethod
    def word(cls, name: str, text: str) -> str:
        if name == "against":
            return _normal_key(text)
        return text if text in attack_names() else ""

    @classmethod
    def parsed(cls, name: str, text: str, notes: list[str]) -> Any:
        value = super().parsed(name, text, notes)
        if name == "against" and len(value) > MOST_COLUMNS:
            notes.append(f"A grid has at most {MOST_COLUMNS} protections: the first {MOST_COLUMNS} are shown.")
            return value[:MOST_COLUMNS]
        return (value or None) if name == "attacks" else value

    @classmethod
    def read_link(cls, params: Mapping[str, str], now: LeakSettings) -> tuple[LeakSettings, list[str]]:
        del now  # an address holds all settings
        start = cls.default()
        run, notes = run_settings.read_link(cls.run_params(params), start.run)
        run = _about_pictures(run, start.run, notes)
        own = cls.read(params, notes)
        leak = start.with_(run=run, **own)
        if "attacks" not in own:  # the default attacks do not read every upload
            leak = leak.with_(attacks=fitting_attacks(leak.upload, leak.attacks))
        return leak.settled(), shortened(notes)


def _about_pictures(run: run_settings.Settings, default: Mapping[str, Any], notes: list[str]) -> run_settings.Settings:
    """Return the run with the default data set and model where its own are about text: attacks need pictures."""
    settings = dict(run)
    for part in ("dataset", "model"):
        if is_about_pictures(part, run[part]):
            continue
        title = run_settings.part_class(part, run[part]).title
        default_title = run_settings.part_class(part, default[part]).title
        notes.append(form_texts.not_pictures(title, default_title))
        for name, value in default.items():
            if name.partition(".")[0] == part:
                settings[name] = value
    return run_settings.completed(settings)


def records(leak: LeakSettings) -> int:
    """The pictures of the upload. A client holds about the same share of the training pictures as any other."""
    if leak.upload == "listed":
        return len(leak.pictures)
    run = run_settings.spec_of(leak.run)
    return max(1, len(run.dataset.facts().train_y) // run.clients)


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


def has_noise(method: str) -> bool:
    """Whether a method has a noise, so that it has strengths and can keep a budget."""
    return "noise" in run_settings.own_fields("method", method)


def at_strengths(method: str, noises: Sequence[float] = DEFAULT_NOISES) -> tuple[str, ...]:
    """The columns of one method: without protection, then at each noise. A method without noise has one column."""
    if not has_noise(method):
        return (NONE, method)
    return (NONE, *(column_key(method, noise) for noise in noises))


def at_budget(methods: Sequence[str], epsilon: float) -> tuple[str, ...]:
    """The columns of several methods at the same budget, and without protection."""
    return (NONE, *(budget_key(method, epsilon) for method in methods))


def offered(leak: LeakSettings) -> tuple[str, ...]:
    """Return the keys of the columns that a visitor may choose, the chosen ones included."""
    if leak.budget is not None:
        methods = [name for name in run_settings.names("method") if has_noise(name)]
        keys = at_budget(methods, leak.budget)
    else:
        keys = at_strengths(leak.method, NOISES)
    return tuple(dict.fromkeys((*keys, *leak.against)))


def _normal_key(key: str) -> str:
    """Return the key of a column as this screen writes it, or an empty string for an unknown key."""
    if key in (NONE, OF_RUN):
        return key
    name, sign, text = key.partition("@" if "@" in key else ":")
    if name not in run_settings.names("method"):
        return ""
    if not sign:
        return name
    try:
        level = float(text)
    except ValueError:
        return ""
    written = float(plain_number(level)) if math.isfinite(level) else 0.0  # as the key has it
    if level > 0 and written == 0:
        return ""
    if sign == "@":
        return budget_key(name, level) if has_noise(name) and 0 < level <= MOST_BUDGET else ""
    return column_key(name, level) if 0 <= level <= 1000 else ""


def key_of(method: Mapping[str, Any]) -> str:
    """Return the column of a method in JSON. A stored example needs it before the shelves are loaded."""
    name, noise = str(method.get("name", "")), method.get("noise")
    if name == LeakSettings.default_run["method"]:
        return NONE
    return name if noise is None else column_key(name, float(noise))
