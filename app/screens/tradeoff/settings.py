"""The question of the Trade-off screen: one run, and what is varied of it: methods, noises, server steps, seeds.

Each point of the frontier is a run like any other, so equal points are asked once however many visitors want them.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from app.session import run_settings
from app.session.links import SOLVED
from app.texts import privacy
from app.texts import sweep as sweep_texts
from engine.errors import BadInput, LeakLensError, refusal, shown
from engine.specs.sweep import SweepGrid, SweepPoint, points

if TYPE_CHECKING:
    from engine.specs.paper_tables import PaperCell
    from engine.specs.run import RunSpec

RUN: Mapping[str, Any] = {"method": "udp-fedavg", "sampling": "poisson"}  # the rest is as usual
FAMILY = ("udp-fedavg", "fedceo", "ppsgd", "centaur")
NOISES, STEPS, SEEDS = "0.25, 0.5, 1, 2", "0.1, 0.3, 1", 3
MOST_SEEDS, MOST_TEXT = 10, 400
WHOSE = ("global", "personal")
OUTSIDER = "outsider"  # who looks, unless another is chosen
MOST_TOLD = 20  # sentences about a link
OWN = ("methods", "noises", "steps", "seeds", "plain", "eyes", "whose", "of", "table")  # of a link
HERE = ("noise", "server-step")  # fields of a method that are varied here
MORE = ("momentum", "weight-decay", "delta", "honest-share")  # of a run, mostly as usual


@dataclass(frozen=True)
class TradeoffSettings:
    """Everything that the screen asks; numbers are kept as they were typed."""

    run: Mapping[str, Any] = field(default_factory=lambda: dict(RUN))  # settings, as the Lab has them
    methods: tuple[str, ...] = FAMILY
    noises: str = NOISES
    steps: str = STEPS
    seeds: int = SEEDS
    plain: bool = True  # the same without protection, to compare with
    eyes: str = OUTSIDER
    whose: str = "global"
    of: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # fields of single methods
    table: str = ""  # of a paper, instead of all this: its number, row, scale and reading, with slashes between

    @property
    def own(self) -> bool:
        """Whether the clients' own models count, where a method has some."""
        return self.whose == "personal"


# --- points ------------------------------------------------------------------------------------------------


def base(asked: TradeoffSettings) -> RunSpec:
    """The run that everything is a variation of: what is varied has no say in whether it can be asked."""
    varied = ("method.noise", *(["method.server-step"] if asked.steps.strip(" ,;") else []))
    run = {name: value for name, value in asked.run.items() if name not in (*SOLVED, *varied)}
    if "noise" not in run_settings.own_fields("method", run["method"]) and asked.methods:
        run["method"] = asked.methods[0]  # else sampling would be settled for a method that protects nobody
    return run_settings.spec_of(run_settings.settled(run))


def grid(asked: TradeoffSettings) -> SweepGrid:
    if not asked.methods:
        raise BadInput("sweep: methods: at least one is needed", "Choose a method to compare")
    first = int(asked.run.get("seed") or 0)
    methods = [{"name": name, **asked.of.get(name, {})} for name in asked.methods]
    plain = [{"name": name} for name in references(asked)] if asked.plain else []
    seeds = tuple(range(first, first + asked.seeds))
    return SweepGrid((*methods, *plain), numbers("noises", asked.noises), seeds, numbers("server-steps", asked.steps))


def references(asked: TradeoffSettings) -> tuple[str, ...]:
    """What does the same without protection."""
    found = (getattr(run_settings.part_class("method", name), "unprotected", "fedavg") for name in asked.methods)
    return tuple(dict.fromkeys(found))


def of_the_run(asked: TradeoffSettings) -> bool:
    """Whether it is the run that cannot be asked, whatever is varied of it: then nothing on this screen mends it."""
    try:
        base(asked)
    except LeakLensError:
        return True
    return False


def unusual(run: Mapping[str, Any]) -> dict[str, Any]:
    """What changes ε or accuracy, is not as usual, and is told nowhere else on the screen."""
    usual = run_settings.settled({part: run[part] for part in run_settings.PARTS})
    parts = ("partition.", "model.", "dataset.")
    return {
        name: value for name, value in run.items()
        if (name in MORE or name.startswith(parts)) and value != usual.get(name)
    }  # fmt: skip


def numbers(name: str, text: str) -> tuple[float, ...]:
    """Numbers as people type them, each once."""
    found = []
    for word in text.replace(";", ",").replace(" ", ",").split(","):
        try:
            found += [float(word)] if word else []
        except ValueError:
            raise refusal(f"sweep: {name}", "must be numbers with commas between", word) from None
    if name == "noises" and not found:
        raise BadInput("sweep: noises: at least one is needed", "Write for example 0.5, 1, 2")
    return tuple(dict.fromkeys(found))


def may_mislead(text: str) -> bool:
    """Whether a comma may have been meant as a decimal point."""
    return "." not in text and bool(re.search(r"\d,\d", text))


def laid_out(asked: TradeoffSettings) -> tuple[SweepPoint, ...]:
    """Every point, or the sentence that refuses the question."""
    if asked.table:
        return tuple(cell.point(seed) for seed in range(asked.seeds) for cell in cells(asked.table))
    return points(base(asked), grid(asked))


def cells(table: str) -> tuple[PaperCell, ...]:
    """Those of one row of a table."""
    from engine.specs import paper_tables

    number, row, scale, reading = table.split("/")
    return paper_tables.cells(paper_tables.table(number), scale, reading, [row])


def blamed(said: str) -> str:
    """The field that a refusal is about: one of this screen, a setting of the run, or empty."""
    who, _, rest = said.partition(": ")
    name, colon, _ = rest.partition(": ")
    if not colon or " " in name:
        return ""
    if who == "sweep":
        return {"server-steps": "steps"}.get(name, name)
    if who == "run":
        return name
    return {"noise": "noises", "server-step": "steps"}.get(name, "of" if who in run_settings.names("method") else who)


def offered(asked: TradeoffSettings) -> tuple[str, ...]:
    """Methods with a noise, the family first."""
    noisy = (name for name in run_settings.names("method") if "noise" in run_settings.own_fields("method", name))
    return tuple(dict.fromkeys((*FAMILY, *noisy, *asked.methods)))


def titles() -> dict[str, str]:
    return {name: run_settings.part_class("method", name).title for name in run_settings.names("method")}


def headless(points: Sequence[SweepPoint]) -> tuple[str, ...]:
    """The methods in which nobody shares a last layer."""
    return tuple(dict.fromkeys(point.method for point in points if point.spec.method.headless))


def in_force(asked: TradeoffSettings, method: str) -> dict[str, Any]:
    """The fields of one method as the frontier asks them, but for those that are varied."""
    one = SweepGrid(({"name": method, **asked.of.get(method, {})},), (1.0,), (0,))
    (found,) = points(base(asked), one)
    return {name: value for name, value in found.spec.method.values().items() if name not in ("name", *HERE)}


def command(asked: TradeoffSettings) -> str:
    """The line that asks the same in a terminal."""
    if asked.table:
        number, row, scale, reading = asked.table.split("/")
        asks = f"table {number} --rows {row} --scale {scale} --reading {reading} --seeds {asked.seeds}"
        return f"python3 -m engine {asks} --view {asked.eyes}"
    found = grid(asked)
    run = base(asked)
    words_of = shlex.split(run_settings.command(run.canonical()))
    words_of[3] = "sweep"
    words_of += ["--methods", ",".join(str(one["name"]) for one in found.methods)]
    words_of += ["--noises", _listed(found.noises), "--seeds", str(asked.seeds)]
    words_of += ["--server-steps", _listed(found.steps)] if found.steps else []
    words_of += ["--view", asked.eyes] if asked.eyes != OUTSIDER else []
    for method, own in asked.of.items():
        if method in asked.methods:
            words_of += [
                word for name, value in own.items() for word in ("--of", f"{method}.{name}={json.dumps(value)}")
            ]
    return shlex.join(words_of)


def _listed(numbers: Sequence[float]) -> str:
    return ",".join(f"{one!r}".removesuffix(".0") for one in numbers)


# --- the link ----------------------------------------------------------------------------------------------


def usual() -> TradeoffSettings:
    """What a newcomer sees, with every setting of its run."""
    return settled(TradeoffSettings())


def settled(asked: TradeoffSettings) -> TradeoffSettings:
    there = run_settings.names("method")
    methods = tuple(name for name in asked.methods if name in there)
    return replace(asked, run=run_settings.settled(asked.run), methods=methods)


def link(asked: TradeoffSettings) -> dict[str, str]:
    """Every setting by name."""
    of = [f"{method}.{name}={json.dumps(value)}" for method, own in asked.of.items() for name, value in own.items()]
    own = {
        "methods": ",".join(asked.methods), "noises": asked.noises, "steps": asked.steps, "seeds": str(asked.seeds),
        "plain": json.dumps(asked.plain), "eyes": asked.eyes, "whose": asked.whose,
    }  # fmt: skip
    run = {name: value for name, value in asked.run.items() if name not in SOLVED}
    rare = {name: text for name, text in (("of", ";".join(of)), ("table", asked.table)) if text}
    return {**own, **rare, **run_settings.link(run)}


def to_run(asked: TradeoffSettings) -> dict[str, str]:
    """The link to the Lab, where the rest of the run is asked: with a method that is compared here."""
    run = {name: value for name, value in asked.run.items() if name not in SOLVED}
    if asked.methods and run["method"] not in asked.methods:
        try:
            own = in_force(asked, asked.methods[0])
        except LeakLensError:  # it is mended there, as it is
            return run_settings.link(run)
        kept = {name: value for name, value in run.items() if not name.startswith("method.") or name[7:] in HERE}
        run = {**kept, "method": asked.methods[0], **{f"method.{name}": value for name, value in own.items()}}
    else:
        run |= {f"method.{name}": value for name, value in asked.of.get(run["method"], {}).items()}
    return run_settings.link(run)


def of_spot(spec: Mapping[str, Any], seeds: Sequence[str]) -> dict[str, str]:
    """The link to the runs of one place in the Lab, as the Lab writes it."""
    most = seeds[: run_settings.SEEDS]
    many = {"seeds": str(len(most))} if len(most) > 1 else {}
    return {**run_settings.link(run_settings.settled(run_settings.flat(spec))), **many, "run": ",".join(most)}


def read_link(params: Mapping[str, str], now: TradeoffSettings) -> tuple[TradeoffSettings, list[str]]:
    """The question of a link; what cannot be meant is left out, each with a sentence.

    A link from the Lab holds a run alone: what is varied of it stays as it is `now`, and its method is among them.
    """
    whole = "noises" in params
    start = usual() if whole else now
    run, told = run_settings.read_link({name: text for name, text in params.items() if name not in OWN}, usual().run)
    of = {method: own for method, own in start.of.items() if method != run["method"]}
    methods = start.methods if whole or "method" not in params else _with(run["method"], start.methods)
    found = replace(start, run={**run, **dict.fromkeys(SOLVED)}, methods=methods, of=of, table="")
    for name in OWN:
        if name in params and (value := _meant(name, params[name], told)) is not None:
            found = replace(found, **{name: value})
        elif name in params:
            told.append(f"{name} = {shown(params[name])} cannot be meant: the usual value is used.")
    more = len(told) - MOST_TOLD
    return settled(found), [*told[:MOST_TOLD], *([sweep_texts.MORE_TOLD.format(many=more)] if more > 0 else [])]


def _with(method: str, methods: tuple[str, ...]) -> tuple[str, ...]:
    """A method of the family is compared with the others, any other by itself; one without noise with none."""
    if method in methods or method not in offered(TradeoffSettings(methods=())):
        return methods
    return (*methods, method) if method in FAMILY else (method,)


def _meant(name: str, text: str, told: list[str]) -> Any:
    """One setting of a link; None where it cannot be meant."""
    if name in ("noises", "steps"):
        return text if len(text) <= MOST_TEXT else None
    if name == "seeds":
        return int(text) if text.isdecimal() and len(text) < 4 and 1 <= int(text) <= MOST_SEEDS else None
    if name == "plain":
        return {"true": True, "false": False}.get(text)
    if name in ("eyes", "whose"):
        return text if text in (privacy.VIEWS if name == "eyes" else WHOSE) else None
    if name == "table":
        return _table(text)
    return _methods(text, told) if name == "methods" else _of(text, told)


def _table(text: str) -> str | None:
    """By the names that the shelf has: a link may have written them otherwise."""
    from engine.specs import paper_tables

    try:
        _, _, scale, reading = text.split("/")
        first = cells(text)[0]
    except (LeakLensError, LookupError, ValueError):
        return None
    return "/".join((first.table.name, first.row.name, scale, reading)) if scale in paper_tables.SCALES else None


def _methods(text: str, told: list[str]) -> tuple[str, ...] | None:
    known = offered(TradeoffSettings(methods=()))
    asked = tuple(dict.fromkeys(filter(None, text.split(","))))
    told += [sweep_texts.NO_METHOD.format(name=shown(name)) for name in asked if name not in known]
    return tuple(name for name in asked if name in known) or None


def _of(text: str, told: list[str]) -> dict[str, dict[str, Any]]:
    """`fedceo.every=5;ppsgd.head-epochs=2`"""
    found: dict[str, dict[str, Any]] = {}
    for pair in filter(None, text.split(";")):
        path, _, value = pair.partition("=")
        method, _, name = path.partition(".")
        try:
            info = run_settings.own_fields("method", method).get(name)
        except LeakLensError:
            info = None
        meant = None if info is None or name in HERE else run_settings.meant(value.strip('"'), info)
        if meant is None:
            told.append(sweep_texts.NOT_MEANT.format(pair=shown(pair)))
        else:
            found.setdefault(method, {})[name] = meant
    return found
