"""The settings of one visitor on one screen, with the notes about them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic

from app.session import observer, session, url
from app.session.screen_settings import S
from engine.errors import BadInput, LeakLensError


@dataclass(frozen=True)
class ScreenState(Generic[S]):
    """What the session of a visitor holds for one screen."""

    settings: type[S]
    about_settings: tuple[str, ...] = ()  # session keys to forget when the settings change

    @property
    def screen(self) -> str:
        return self.settings.screen

    def current(self) -> S:
        """The settings of this visitor, for the one observer: those of the last address or change, else the default."""
        settings: S = session.recall(self.screen) or self.settings.default()
        return settings.with_(eyes=observer.current())

    def take_over(self, settings: S, notes: Iterable[str] = ()) -> None:
        """Use these settings with these notes. Notes about the settings before are dropped."""
        session.remember(self.screen, settings)
        session.remember(f"{self.screen}-notes", list(notes))
        session.remember(f"{self.screen}-trouble", "")
        for name in self.about_settings:
            session.remember(name, None)

    def choose(self, **changes: Any) -> None:
        """Change settings. A value that breaks its rule changes nothing, and the page shows why."""
        try:
            settings = self.current().changed(**changes)
        except BadInput as error:
            self.show_trouble(error)
            return
        self.take_over(settings)
        if "eyes" in changes:
            observer.choose(settings.eyes)
        session.remember("acted", True)  # the next pass must not read the link, which is still the old one

    def choose_run(self, **changes: Any) -> None:
        """Change settings of the run."""
        fields = {name.replace("_", "-"): value for name, value in changes.items()}
        self.choose(run={**self.current().run, **fields})

    def bind(self, name: str) -> dict[str, Any]:
        """The arguments that bind a widget to one setting."""
        value = getattr(self.current(), name)
        chosen = list(value) if isinstance(value, tuple) else value
        return session.bind(f"{self.screen}-{name}", chosen, lambda new: self.choose(**{name: new}))

    def bind_run(self, name: str) -> dict[str, Any]:
        """The arguments that bind a widget to one setting of the run."""
        value = self.current().run[name]
        return session.bind(f"{self.screen}-{name}", value, lambda new: self.choose_run(**{name: new}))

    def open_link(self) -> bool:
        """Take over the settings of an address that this page did not write. Returns whether there was one."""
        params = url.changed_link(self.screen)
        if params is None:
            return False
        self.take_over(*self.settings.read_link(params, self.current()))
        return True

    def write_link(self) -> None:
        url.write_screen_link(self.screen, self.current().link())

    def notes(self) -> list[str]:
        """Notes about the settings."""
        return list(session.recall(f"{self.screen}-notes", []))

    def show_notes(self, notes: Iterable[str]) -> None:
        session.remember(f"{self.screen}-notes", list(notes))

    def trouble(self) -> str:
        """Why the last action was refused."""
        return str(session.recall(f"{self.screen}-trouble", ""))

    def show_trouble(self, error: LeakLensError | str) -> None:
        session.remember(f"{self.screen}-trouble", str(error))
