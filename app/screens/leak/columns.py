"""The columns of the grid of the Leak screen: each protection with its title."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.screens.leak.settings import LeakSettings, offered
from app.session import run_settings
from app.texts import attacks as attack_texts
from app.texts import privacy
from engine.capabilities import HasNoise
from engine.errors import LeakLensError
from engine.specs.attack_grid import NONE, OF_RUN, run_under

if TYPE_CHECKING:
    from engine.specs.run import RunSpec


@dataclass(frozen=True)
class GridColumn:
    """One protection."""

    key: str
    title: str
    spec: RunSpec
    noise: float | None  # None also where a budget decides

    @property
    def split(self) -> str:
        """Who adds the noise, in small print; empty if the method has no such option, or no noise."""
        return privacy.noise_split(self.spec.method.values())


def columns(leak: LeakSettings) -> tuple[GridColumn, ...]:
    """Return the baseline and the protections."""
    runs = leak.grid.runs()
    return tuple(GridColumn(key, column_title(key, spec), spec, noise_of(spec)) for key, spec in runs.items())


def column_title(key: str, spec: RunSpec) -> str:
    if key == NONE:
        return attack_texts.NONE
    title = type(spec.method).title
    if key == OF_RUN:
        return attack_texts.run(title, noise_of(spec), spec.target_epsilon, spec.view)
    if spec.target_epsilon is not None:
        return attack_texts.at_budget(title, spec.target_epsilon)
    return attack_texts.column(title, noise_of(spec))


def noise_of(spec: RunSpec) -> float | None:
    """Return the noise of the method; None if it has no noise, or if a budget decides."""
    if spec.target_epsilon is not None or not isinstance(spec.method, HasNoise):
        return None
    return spec.method.noise_level


def offered_titles(leak: LeakSettings) -> dict[str, str]:
    """Return the title of each protection on offer. A protection that makes no valid run is left out."""
    base = run_settings.spec_of(leak.run)
    titles = dict[str, str]()
    for key in offered(leak):
        try:
            titles[key] = column_title(key, run_under(base, key, leak.eyes))
        except LeakLensError:
            continue
    return titles
