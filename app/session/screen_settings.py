"""The settings of a screen, declared once like the parameters of a part.

The declaration of a field gives its default, its check, its parameter in the address, and its widget.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeVar, get_origin

from pydantic import Field
from pydantic.fields import FieldInfo

from app.session import run_settings
from app.texts import links as link_texts
from app.texts import privacy
from engine.errors import BadInput, shown
from engine.part import Declared, hyphened, rule_of

S = TypeVar("S", bound="ScreenSettings")
MOST_NOTES = 20  # about one link


class ScreenSettings(Declared):
    """All settings of a screen. A subclass declares them; `run` is there for screens that are about a run."""

    screen: ClassVar[str] = ""
    default_run: ClassVar[Mapping[str, Any]] = {}  # what differs from the defaults of a run

    rules: ClassVar[Mapping[str, str]] = {}  # of texts, whose declaration is a pattern that no one reads

    run: Mapping[str, Any] = Field(default_factory=dict)
    # Who observes: the same on every screen. `session/observer` holds it, and the address of each screen has it.
    eyes: Literal["server", "aggregate", "client", "outsider"] = Field("server", title=privacy.HEADER)

    @classmethod
    def label(cls) -> str:
        return cls.screen

    @classmethod
    def default(cls: type[S]) -> S:
        """The settings of a first visit, with every field of the run."""
        return cls(run=cls.default_run).settled()

    def settled(self: S) -> S:
        """The settings with every field of the run and no others. A subclass drops what this version does not know."""
        return self.with_(run=run_settings.completed(self.run)) if self.default_run else self

    def changed(self: S, **changes: Any) -> S:
        """The settings after a change in the form. A new part of the run brings its own fields."""
        return self.with_(**changes).settled()

    # --- the address ---

    @classmethod
    def own_fields(cls) -> dict[str, FieldInfo]:
        """The settings that belong to the screen alone, by their parameter in the address."""
        return {hyphened(name): info for name, info in cls.model_fields.items() if name != "run"}

    def link(self) -> dict[str, str]:
        """Every setting by its parameter in the address. A later one is left out at its default."""
        identity = self.identity()
        params = {}
        for name in self.own_fields():
            if name in identity and getattr(self, name.replace("-", "_")) is not None:
                params[name] = self.written(name, getattr(self, name.replace("-", "_")))
        return {**params, **run_settings.link(self.run)}

    def written(self, name: str, value: Any) -> str:
        """A setting as the address has it."""
        if isinstance(value, tuple):
            return ",".join(value)
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    @classmethod
    def parsed(cls, name: str, text: str, notes: list[str]) -> Any:
        """The value of a parameter, before it is checked; None if the text is no value of this kind."""
        info = cls.own_fields()[name]
        if get_origin(info.annotation) is tuple:
            return cls.known_words(name, text, notes)
        if info.annotation is str:
            return text
        return run_settings.parsed(text, info)

    @classmethod
    def known_words(cls, name: str, text: str, notes: list[str]) -> tuple[str, ...]:
        """The words of a list, each once. One that this version does not know becomes a note.

        Without any known word there is no note here: the whole list is not used, which is a note of `read`.
        """
        words = []
        refused = []
        for word in filter(None, text.split(",")):
            known = cls.word(name, word)
            if known:
                words.append(known)
            else:
                refused.append(word)
        if words:
            notes += [link_texts.unknown_word(name, shown(word)) for word in refused]
        return tuple(dict.fromkeys(words))

    @classmethod
    def word(cls, name: str, text: str) -> str:
        """A word of a list as this version writes it; empty if it does not know the word."""
        del name
        return text

    @classmethod
    def read(cls, params: Mapping[str, str], notes: list[str]) -> dict[str, Any]:
        """The settings that an address holds. A value that breaks its rule becomes a note with the rule."""
        values: dict[str, Any] = {}
        for name, info in cls.own_fields().items():
            if name not in params:
                continue
            value = cls.parsed(name, params[name], notes)
            all_refused = value == () and params[name].strip(",") != ""
            if value is None or all_refused or not cls.accepts(name, value):
                notes.append(link_texts.not_used(name, cls.rule(name, info), shown(params[name])))
            else:
                values[name.replace("-", "_")] = value
        return values

    @classmethod
    def rule(cls, name: str, info: FieldInfo) -> str:
        """The rule of a setting in words. That of a list is about its words."""
        is_list = get_origin(info.annotation) is tuple
        rule = link_texts.WORD_RULES.get(name, link_texts.LIST) if is_list else rule_of(info)
        return cls.rules.get(name) or rule

    @classmethod
    def accepts(cls, name: str, value: Any) -> bool:
        """Whether a setting may have this value."""
        try:
            cls(**{name: value})
        except BadInput:
            return False
        return True

    @classmethod
    def run_params(cls, params: Mapping[str, str]) -> dict[str, str]:
        """The parameters that are settings of the run."""
        return {name: text for name, text in params.items() if name not in cls.own_fields()}

    @classmethod
    def read_link(cls: type[S], params: Mapping[str, str], now: S) -> tuple[S, list[str]]:
        """The settings of an address, and a note for each parameter that is not used.

        `now` are the settings before. Most screens do not need them: an address holds all settings.
        """
        del now
        start = cls.default()
        notes: list[str] = []
        run = start.run
        if cls.default_run:
            run, notes = run_settings.read_link(cls.run_params(params), start.run)
        return start.with_(run=run, **cls.read(params, notes)).settled(), shortened(notes)


def shortened(notes: list[str]) -> list[str]:
    """The first notes, and the number of the others."""
    more = len(notes) - MOST_NOTES
    return notes if more <= 0 else [*notes[:MOST_NOTES], link_texts.MORE.format(many=more)]
