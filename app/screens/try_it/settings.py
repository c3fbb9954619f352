"""The settings of Try: side A is a run, side B is what it changes, and both are attacked in the same way."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from app.batch.view import find
from app.screens.try_it import texts as try_texts
from app.screens.try_it.details import texts as details_texts
from app.session import run_settings, services, session
from app.session.screen_settings import ScreenSettings, shortened
from app.session.screen_state import ScreenState
from app.texts import attack_form as form_texts
from app.texts import links as link_texts
from app.texts import numbers
from engine.errors import LeakLensError, shown
from engine.jobs.owners import own_pictures
from engine.specs.attack_grid import AttackGrid

ATTACKS = ("analytic", "map", "inverting-gradients")
PICTURE = r"^((train|test)-\d{1,7}|portrait-\d{1,3}|own-[0-9a-f]{16}-\d{1,3})$"
RUN = r"[0-9a-f]{12}"
MOST_PINS = 8
# Fields of a run that are its protection, next to the method and its own fields. Each side has its own.
OF_PROTECTION = ("target-epsilon", "view", "budget", "delta", "honest-share")


class TrySettings(ScreenSettings):
    """All settings of the screen. `run` is side A."""

    screen: ClassVar[str] = "try"
    later: ClassVar[tuple[str, ...]] = ("b", "pins", "seeds", "whose", "content", "when", "attacks", "closer", "opened")
    # The strongest stop of Start: its runs and attacks are stored.
    default_run: ClassVar[Mapping[str, Any]] = {
        "method": "udp-fedavg", "method.noise": 2.0, "method.noise-split": "full-local", "method.server-step": 0.02,
        "sampling": "poisson",
    }  # fmt: skip
    rules: ClassVar[Mapping[str, str]] = {
        "whose": "must be a picture such as portrait-0 or test-7",
        "b": "must be settings of a run, such as method=fedceo;method.noise=1",
        "closer": "must be an entry of the list Details",
        "opened": "must be the id of a run",
    }

    b: Mapping[str, Any] = {}  # settings in which side B differs from A; empty: no side B
    pins: tuple[str, ...] = ()  # ids of runs in the table
    seeds: int = Field(1, ge=1, le=run_settings.SEEDS)
    whose: str = Field("portrait-0", pattern=PICTURE)
    content: Literal["1", "8", "ordinary", "cheat"] = "1"
    when: Literal["first", "last"] = "last"
    attacks: tuple[str, ...] = ATTACKS
    closer: str = Field("", max_length=20)
    opened: str = Field("", pattern=f"^({RUN})?$")  # a run that an earlier version made, shown as side A

    @property
    def other(self) -> dict[str, Any] | None:
        """The settings of side B; None without it."""
        return _with_side(self.run, self.b) if self.b else None

    @property
    def runs(self) -> tuple[Mapping[str, Any], ...]:
        """The settings of the run of each side."""
        return (self.run,) if self.other is None else (self.run, self.other)

    @property
    def pictures(self) -> tuple[str, ...]:
        """The chosen picture, and for eight the first test pictures, which fill the same upload."""
        if self.content != "8":
            return (self.whose,)
        kind, _, place = self.whose.partition("-")
        first = int(place) + 1 if kind in ("test", "train") else 0
        split = kind if kind == "train" else "test"
        return (self.whose, *(f"{split}-{first + offset}" for offset in range(7)))

    def grid(self, run: Mapping[str, Any]) -> AttackGrid:
        """The attacks on one side, seen by the observer."""
        upload = self.content if self.content in ("ordinary", "cheat") else "listed"
        return AttackGrid(
            run=run_settings.spec_of(run), columns=("run",), attacks=self.attacks, pictures=self.pictures,
            upload=upload, view=self.eyes, round=self.when,
        )  # fmt: skip

    def settled(self) -> TrySettings:
        known = run_settings.attack_names()
        run = run_settings.completed(self.run)
        b = _differing(self.b, run)
        attacks = tuple(name for name in self.attacks if name in known) or ATTACKS
        return self.with_(run=run, b=b, attacks=attacks, pins=self.pins[:MOST_PINS])

    # --- the address ---

    def link(self) -> dict[str, str]:
        return {name: text for name, text in super().link().items() if name != "b" or text}

    def written(self, name: str, value: Any) -> str:
        if name != "b":
            return super().written(name, value)
        return ";".join(f"{path}={_text(setting)}" for path, setting in value.items() if setting is not None)

    @classmethod
    def word(cls, name: str, text: str) -> str:
        if name == "attacks":
            return text if text in run_settings.attack_names() else ""
        if name == "pins":
            return text if re.fullmatch(RUN, text) else ""
        return text

    @classmethod
    def accepts(cls, name: str, value: Any) -> bool:
        known = name != "closer" or value in ("", *details_texts.ENTRIES)
        return known and super().accepts(name, value)

    @classmethod
    def parsed(cls, name: str, text: str, notes: list[str]) -> Any:
        value = super().parsed(name, text, notes)
        return (value or None) if name == "attacks" else value

    @classmethod
    def read_link(cls, params: Mapping[str, str], now: TrySettings) -> tuple[TrySettings, list[str]]:
        """The settings of an address. Side B names what differs from A, so it is read after A."""
        alone = {name: text for name, text in params.items() if name != "b"}
        notes: list[str] = []
        if "run" in params:
            alone, notes = _with_run(alone)
        alone = {**_defaults_of_method(alone), **alone}
        settings, refusals = super().read_link(alone, now)
        notes += refusals
        if "pins" not in params:  # runs that the visitor pinned on another screen stay
            settings = settings.with_(pins=now.pins)
        if "attacks" not in params and settings.content == "cheat":
            settings = settings.with_(attacks=attackers_of_cheat())
        if "b" not in params:
            return settings, shortened(notes)
        side, refusals = _read_side(params["b"], settings.run)
        if not side:
            refusals.append(link_texts.not_used("b", cls.rules["b"], shown(params["b"])))
        return settings.with_(b=side).settled(), shortened([*notes, *refusals])


def _defaults_of_method(params: Mapping[str, str]) -> dict[str, str]:
    """The default fields of a method that a link names. What the first visit shows belongs to its own method alone."""
    if params.get("method") not in run_settings.names("method"):
        return {}
    run = run_settings.link(run_settings.completed({"method": params["method"]}))
    return {path: text for path, text in run.items() if path.startswith("method.")}


def attackers_of_cheat() -> tuple[str, ...]:
    """The attackers that read a model which the server changed. The others do not."""
    return tuple(name for name in run_settings.attack_names() if run_settings.changes_model(name))


def _with_run(params: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The parameters of a link that names runs, with the settings of the first one that this machine has."""
    ids = [word for word in params["run"].split(",") if word]
    rest = {name: text for name, text in params.items() if name != "run"}
    if len(ids) > 1:
        rest.setdefault("seeds", str(min(len(ids), run_settings.SEEDS)))
    is_id = bool(ids) and re.fullmatch(RUN, ids[0]) is not None
    stored = services.read(ids[0]) if is_id else None
    example = services.stored_example(ids[0]) if is_id else None
    if stored and "attack" in stored[0].spec:
        return rest, [try_texts.IS_ATTACK]
    spec = stored[0].spec if stored else (example.spec if example else None)
    if spec is None:
        return rest, [try_texts.NO_RUN]
    try:
        flat = run_settings.flat(spec)
        if run_settings.spec_of(flat).id != ids[0]:
            rest["opened"] = ids[0]
    except LeakLensError as error:
        return rest, [str(error)]
    return {**rest, **run_settings.link(flat)}, []


def _differing(b: Mapping[str, Any], run: Mapping[str, Any]) -> dict[str, Any]:
    """What side B changes. With a method of its own it keeps all fields of it, whatever A has."""
    kept = {}
    for path, value in b.items():
        own_field = "method" in b and path.startswith("method")
        if own_field or value != run.get(path):
            kept[path] = value
    return {} if _with_side(run, kept) == run_settings.completed(run) else kept


def _with_side(run: Mapping[str, Any], b: Mapping[str, Any]) -> run_settings.Settings:
    """The settings of side B."""
    return run_settings.completed(without_old_method({**run, **b}, b))


def _text(setting: Any) -> str:
    return setting if isinstance(setting, str) else json.dumps(setting)


def _read_side(text: str, run: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The settings in which side B differs from A, and a note for each that is not used."""
    words = [word.partition("=") for word in text.split(";") if word]
    params = {path: value for path, equals, value in words if equals}
    start = without_old_method(run, params)
    implied: dict[str, Any] = {}
    if "method.noise" in params and run.get("target-epsilon") is not None:
        implied = {"target-epsilon": None, "view": None}  # an explicit noise replaces the target of side A
    other, notes = run_settings.read_link(params, {**start, **implied})
    return {**implied, **{path: other[path] for path in params if path in other}}, notes


class TryState(ScreenState[TrySettings]):
    """The settings of this visitor, and changes of one side."""

    def open_link(self) -> bool:
        """Take over the settings of a new address. A picture of another visitor and a run that is gone become notes."""
        if not super().open_link():
            return False
        linked: TrySettings = session.recall(self.screen)
        allowed = self.current()
        notes = []
        if linked.whose != allowed.whose:
            notes.append(form_texts.GONE_PICTURE)
        gone = [pin for pin in allowed.pins if find(pin) is None]
        if gone:
            notes.append(try_texts.NO_PINS.format(ids=numbers.joined(gone)))
        if notes:
            self.take_over(allowed, [*self.notes(), *notes])
        return True

    def current(self) -> TrySettings:
        """The settings.

        Privacy: the owner of an uploaded picture is checked at each use. Without that, settings that hold another
        visitor's picture would show it.
        """
        settings = super().current()
        if all(services.may_see_picture(name) for name in own_pictures({"whose": settings.whose})):
            return settings
        return settings.with_(whose=TrySettings().whose)

    def run_of(self, side: str) -> Mapping[str, Any]:
        """The settings of the run of one side, A or B."""
        settings = self.current()
        return (settings.other or settings.run) if side == "B" else settings.run

    def change(self, side: str, changes: Mapping[str, Any]) -> None:
        """Change settings of one side. B follows the changes of A, but for its own protection and what it changes."""
        settings = self.current()
        changes = _with_view(changes, self.run_of(side), settings.eyes)
        if side == "B":
            self.choose(b=without_old_method({**settings.b, **changes}, changes))
            return
        run = run_settings.completed(without_old_method({**settings.run, **changes}, changes))
        if settings.other is None:
            self.choose(run=run, opened="")
            return
        b = {path: value for path, value in settings.b.items() if not _protects(path)}
        for path, value in settings.other.items():
            if _protects(path) and value != run.get(path):
                b[path] = value
        self.choose(run=run, b=b, opened="")


def _with_view(changes: Mapping[str, Any], run: Mapping[str, Any], view: str) -> dict[str, Any]:
    """The changes of a run; a new target ε or budget is one against the chosen observer."""
    targets = [changes.get(path) for path in ("target-epsilon", "budget")]
    if any(target is not None for target in targets):
        return {"view": view, **changes}
    left = [{**run, **changes}.get(path) for path in ("target-epsilon", "budget")]
    return dict(changes) if any(target is not None for target in left) else {**changes, "view": None}


def without_old_method(run: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run. After a change of the method, no field of the method before is carried over."""
    if "method" not in changes:
        return dict(run)
    kept = {path: value for path, value in run.items() if not path.startswith("method.")}
    return {**kept, **{path: value for path, value in changes.items() if path.startswith("method.")}}


def _protects(path: str) -> bool:
    """Whether a field of a run is part of its protection."""
    return path.partition(".")[0] == "method" or path in OF_PROTECTION


STATE = TryState(TrySettings)
