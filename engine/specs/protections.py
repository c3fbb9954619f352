"""The protections that a picker offers, read from the shelf of methods: suggestions, methods and their variants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from engine.capabilities import Family, HasNoise, Strength, Variant

if TYPE_CHECKING:
    from engine.methods import Method

# Settings of a run that only a method with noise can keep.
NEED_NOISE = ("target-epsilon", "budget")


@dataclass(frozen=True)
class Protection:
    """A method, with the fields that a picker fixes."""

    method: str
    title: str
    sentence: str  # what it does, for a reader who knows no method
    family: Family
    method_title: str
    strength: Strength | None = None
    noisy: bool = False
    fields: Mapping[str, Any] = field(default_factory=dict)  # by their names in JSON
    place: int | None = None  # among the suggestions; None for a method or a variant
    is_variant: bool = False  # of a method that has another default

    @property
    def slug(self) -> str:
        """A name of this method with these fields, for keys of widgets and selectors of tests."""
        return "-".join([self.method, *(str(value) for value in self.fields.values())])

    @property
    def settings(self) -> dict[str, Any]:
        """The flat settings of a run that choose it. What only noise can keep is emptied for a method without."""
        settings: dict[str, Any] = {"method": self.method}
        settings |= {f"method.{name}": value for name, value in self.fields.items()}
        if not self.noisy:
            settings |= dict.fromkeys(NEED_NOISE)
        return settings

    def under(self, fixed: Mapping[str, Any]) -> Protection:
        """The same method with the fields that a screen fixes, where it has them."""
        return replace(self, fields={name: fixed.get(name, value) for name, value in self.fields.items()})

    def applied_to(self, run: Mapping[str, Any]) -> dict[str, Any]:
        """The flat settings of this run under this protection: no field of another method is carried over."""
        kept = {path: value for path, value in run.items() if not path.startswith("method")}
        return kept | self.settings


def suggested() -> tuple[Protection, ...]:
    """What methods suggest, in the order of their places."""
    protections = [protection for method in _methods() for protection in _suggestions(method)]
    return tuple(sorted(protections, key=lambda protection: protection.place or 0))


def by_family() -> dict[Family, tuple[Protection, ...]]:
    """Every method, by its family. Families are in the order of the colours that `Family` declares."""
    families: dict[Family, tuple[Protection, ...]] = {}
    for method in _methods():
        families[method.family()] = (*families.get(method.family(), ()), _protection(method))
    colours = get_args(get_type_hints(Family)["colour"])
    in_order = sorted(families, key=lambda family: (colours.index(family.colour), family.title))
    return {family: families[family] for family in in_order}


def every() -> tuple[Protection, ...]:
    """All that a picker finds: suggestions, methods, and variants that are not the default. Each title once."""
    protections = [*suggested()]
    for method in _methods():
        protections += [_protection(method), *_variants(method)]
    titles = {protection.title: protection for protection in reversed(protections)}
    return tuple(reversed(titles.values()))


def described(run: Mapping[str, Any]) -> Protection:
    """The protection of a run: a suggestion if one has exactly its fields, else its method or variant."""
    from engine.specs.run import SHELVES

    name = str(run["method"])
    method: type[Method] = SHELVES["method"][name]
    for protection in (*_suggestions(method), _protection(method), *_variants(method)):
        if all(run.get(f"method.{field}", value) == value for field, value in protection.fields.items()):
            return protection
    return _protection(method)


def _methods() -> Sequence[type[Method]]:
    from engine.specs.run import SHELVES

    return list(SHELVES["method"])


def _protection(method: type[Method]) -> Protection:
    """A method with the variant that forms choose."""
    chosen = next((variant for variant in method.variants if variant.suggested), None)
    return Protection(
        method.name, method.title, method.summary(), method.family(), method.title, method.strength,
        issubclass(method, HasNoise), dict(chosen.fields) if chosen else {},
    )  # fmt: skip


def _suggestions(method: type[Method]) -> list[Protection]:
    protections = []
    plain = _protection(method)
    for suggestion in vars(method).get("suggestions", ()):
        named = replace(plain, title=suggestion.title, sentence=_sentence(method, suggestion.fields))
        protections.append(replace(named, fields=dict(suggestion.fields), place=suggestion.place))
    return protections


def _variants(method: type[Method]) -> list[Protection]:
    """The variants that forms do not choose by themselves."""
    protections = []
    plain = _protection(method)
    for variant in method.variants:
        if not variant.suggested:
            named = replace(plain, title=f"{method.title}: {variant.title}", sentence=variant.sentence)
            protections.append(replace(named, fields=dict(variant.fields), is_variant=True))
    return protections


def _sentence(method: type[Method], fields: Mapping[str, Any]) -> str:
    """What a method with these fields does: the words of the variant, where two suggestions share the method."""
    several = len(vars(method).get("suggestions", ())) > 1
    variants: Sequence[Variant] = method.variants if several else ()
    sentences = (variant.sentence for variant in variants if variant.fields == fields)
    return next(sentences, method.summary())
