"""The settings of Try: side A is a run, side B is what it changes, and both are attacked in the same way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from app.session import run_settings
from app.session.screen_settings import ScreenSettings, shortened
from app.session.screen_state import ScreenState
from app.texts import links as link_texts
from engine.errors import shown
from engine.specs.attack_grid import AttackGrid

ATTACKS = ("analytic", "map", "inverting-gradients")
PICTURE = r"^((train|test)-\d{1,7}|portrait-\d{1,3}|own-[0-9a-f]{16}-\d{1,3})$"
MOST_PINS = 8


class TrySettings(ScreenSettings):
    """All settings of the screen. `run` is side A."""

    screen: ClassVar[str] = "try"
    later: ClassVar[tuple[str, ...]] = ("b", "pins", "seeds", "whose", "content", "when", "attacks", "closer")
    # The strongest stop of Start: its runs and attacks are stored.
    default_run: ClassVar[Mapping[str, Any]] = {
        "method": "udp-fedavg", "method.noise": 2.0, "method.noise-split": "full-local", "sampling": "poisson",
    }  # fmt: skip
    rules: ClassVar[Mapping[str, str]] = {
        "whose": "must be a picture such as portrait-0 or test-7",
        "b": "must be settings of a run, such as method=fedceo;method.noise=1",
        "closer": "must be an entry of the list Details",
    }

    b: Mapping[str, Any] = {}  # settings in which side B differs from A; empty: no side B
    pins: tuple[str, ...] = ()  # ids of runs in the table
    seeds: int = Field(1, ge=1, le=run_settings.SEEDS)
    whose: str = Field("portrait-0", pattern=PICTURE)
    content: Literal["1", "8", "ordinary", "cheat"] = "1"
    when: Literal["first", "last"] = "last"
    attacks: tuple[str, ...] = ATTACKS
    closer: str = Field("", max_length=20)

    @property
    def other(self) -> dict[str, Any] | None:
        """The settings of side B; None without it."""
        return run_settings.completed({**self.run, **self.b}) if self.b else None

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
        b = {path: value for path, value in self.b.items() if value != run.get(path)}
        attacks = tuple(name for name in self.attacks if name in known) or ATTACKS
        return self.with_(run=run, b=b, attacks=attacks, pins=self.pins[:MOST_PINS])

    # --- the address ---

    def written(self, name: str, value: Any) -> str:
        if name != "b":
            return super().written(name, value)
        return ";".join(f"{path}={_text(setting)}" for path, setting in value.items())

    @classmethod
    def word(cls, name: str, text: str) -> str:
        if name == "attacks":
            return text if text in run_settings.attack_names() else ""
        return text

    @classmethod
    def parsed(cls, name: str, text: str, notes: list[str]) -> Any:
        value = super().parsed(name, text, notes)
        return (value or None) if name == "attacks" else value

    @classmethod
    def read_link(cls, params: Mapping[str, str], now: TrySettings) -> tuple[TrySettings, list[str]]:
        """The settings of an address. Side B names what differs from A, so it is read after A."""
        alone = {name: text for name, text in params.items() if name != "b"}
        settings, notes = super().read_link(alone, now)
        if "b" not in params:
            return settings, notes
        side, refusals = _read_side(params["b"], settings.run)
        if not side:
            refusals.append(link_texts.not_used("b", cls.rules["b"], shown(params["b"])))
        return settings.with_(b=side).settled(), shortened([*notes, *refusals])


def _text(setting: Any) -> str:
    return setting if isinstance(setting, str) else json.dumps(setting)


def _read_side(text: str, run: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The settings in which side B differs from A, and a note for each that is not used."""
    words = [word.partition("=") for word in text.split(";") if word]
    params = {path: value for path, equals, value in words if equals}
    other, notes = run_settings.read_link(params, run)
    return {path: value for path, value in other.items() if value != run.get(path)}, notes


STATE = ScreenState(TrySettings)
