"""The specs of attacks, one class for each goal. Each is frozen, validated, and named by a hash of its JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PlainSerializer, PlainValidator, field_validator, model_validator

from engine.attacks import ATTACKS, Attack, Goal
from engine.attacks.membership.base import MembershipAttack
from engine.attacks.pictures.base import PictureAttack
from engine.errors import BadInput, UnknownName, refusal, shown
from engine.part import Part, Problem, as_written
from engine.records import View
from engine.registry import Shelf
from engine.specs.base import Spec
from engine.specs.run import RunSpec

PICTURE = re.compile(r"(train|test)-(\d{1,7})|(?:own-([0-9a-f]{16})|portrait)-(\d{1,3})")
PICTURE_NAMES = "must be like test-7, train-7, portrait-LABEL or own-NAME-LABEL"
UNCLASSED = ("own-", "portrait-")  # pictures that are of no class of the data set
MOST_PICTURES = 8  # of one probe


def as_run(value: Any) -> RunSpec:
    if isinstance(value, RunSpec):
        return value
    if not isinstance(value, Mapping):
        raise refusal(
            "attack: run", "must be a run, as an object", as_written(value), "Write its fields, or {} for defaults"
        )
    return RunSpec(**{str(key): item for key, item in value.items()})


def attack_with(goal: Goal, value: Any) -> Attack:
    """The attack, if it has this goal."""
    attack = ATTACKS.make(value)
    if attack.goal != goal:
        rule = f"attack: {attack.name}: is an attack on {attack.goal}, and this request is one on {goal}"
        known = ", ".join(part.name for part in ATTACKS if part.goal == goal)
        other = "MembershipSpec" if attack.goal == "membership" else "AttackSpec"
        raise BadInput(rule, f"Choose one of {known}, or make it a {other} (in JSON: kind {attack.goal})")
    return attack


def attack_field(goal: Goal) -> tuple[PlainValidator, PlainSerializer]:
    """The validator and the serializer of a field that holds an attack with this goal."""
    return PlainValidator(partial(attack_with, goal)), PlainSerializer(Shelf.dump)


def checked_round(value: Any) -> Any:
    if value in ("first", "last"):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise refusal("attack: round", "must be first, last, or a whole number at least 1", as_written(value))


class BaseAttackSpec(Spec):
    """One attack on a run."""

    kind: ClassVar[Goal]
    remedy: ClassVar[str] = "Remove `format` to attack as this version does"

    run: Annotated[RunSpec, PlainValidator(as_run), PlainSerializer(RunSpec.canonical)] = Field(
        title="run", description="The training run that is attacked"
    )
    attack: Attack
    seed: int = Field(0, ge=0, le=2**53, title="seed", description="The attack seed: the attack's random numbers")

    def __init__(self, /, **values: Any) -> None:  # parts are given by their name, as JSON, or as an object
        kind = values.pop("kind", self.kind)
        if kind != self.kind:
            raise refusal("attack: kind", f"must be {self.kind} in this request", kind, "Leave it out")
        super().__init__(**values)

    @classmethod
    def label(cls) -> str:
        return "attack"

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.attack,)

    def body(self) -> dict[str, Any]:
        """The spec as JSON. The kind is left out for pictures, the first kind, so that ids survive."""
        body = super().body()
        return body if self.kind == "pictures" else {"kind": self.kind, **body}

    def replay_problem(self) -> Problem | None:
        return super().replay_problem() or self.run.replay_problem()


class PictureAttackSpec(BaseAttackSpec):
    """One attack on the pictures of an upload: one that a run recorded, or one of a probe with chosen pictures."""

    kind: ClassVar[Goal] = "pictures"
    later: ClassVar[tuple[str, ...]] = ("upload",)

    run: Annotated[RunSpec, PlainValidator(as_run), PlainSerializer(RunSpec.canonical)] = Field(
        title="run", description="The training run whose upload is attacked"
    )
    attack: Annotated[PictureAttack, *attack_field("pictures")] = Field(
        "map", title="attack", description="How the pictures are reconstructed"
    )  # type: ignore[assignment]
    pictures: tuple[str, ...] = Field(
        (),
        title="pictures",
        description="train-7 or test-7 of the data set, portrait-LABEL, or own-NAME-LABEL; none: the recorded upload",
    )
    round: int | Literal["first", "last"] = Field("first", title="round", description="The round of the upload")
    client: int | None = Field(
        None, ge=0, title="client", description="The client of the upload; by default the first one of the round"
    )
    upload: Literal["listed", "ordinary", "cheat"] = Field(
        "listed",
        title="upload",
        description="What a probe's upload holds: only the listed pictures; or all records of the run's own client, "
        "with the listed picture in the place of one (ordinary), also where the server changes the model (cheat)",
    )
    view: View = Field("server", title="view", description="Who observes the upload")
    restarts: int = Field(
        1, ge=1, le=64, title="restarts", description="How often the attack starts again from another guess"
    )

    def __init__(self, /, **values: Any) -> None:
        super().__init__(**values)

    @property
    def suited_attack(self) -> PictureAttack:
        """The attack as it runs: what it leaves to the model is filled."""
        return self.attack.suited_to(normalises=self.run.model.normalises, wide=self.run.model.wide)

    def body(self) -> dict[str, Any]:
        """The spec as JSON, with the attack as it runs. So a stored result names every number that it depends on."""
        return {**super().body(), "attack": Shelf.dump(self.suited_attack)}

    @field_validator("round", mode="before")
    @classmethod
    def _check_round(cls, value: Any) -> Any:
        return checked_round(value)

    @field_validator("pictures")
    @classmethod
    def _check_pictures(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(value) > MOST_PICTURES:
            raise refusal("attack: pictures", f"must be at most {MOST_PICTURES}", len(value))
        for name in value:
            if not isinstance(name, str) or not PICTURE.fullmatch(name):
                raise refusal("attack: pictures", PICTURE_NAMES, name)
        return value

    @model_validator(mode="after")
    def _resolve_attack(self) -> PictureAttackSpec:
        if not self.attack.chance:  # another start would give the same result
            object.__setattr__(self, "restarts", 1)
        if not self.pictures and self.view != "server":
            raise BadInput(f"attack: view: only server uploads are recorded, got {self.view}", "Choose a picture")
        if self.upload != "listed" and len(self.pictures) != 1:
            rule = f"attack: upload: {self.upload} needs exactly one picture, got {len(self.pictures)}"
            raise BadInput(rule, "Name one picture: it takes the place of a record of the client")
        return self


class MembershipSpec(BaseAttackSpec):
    """One attack on membership: it scores records of the training data and held-out records of the same law."""

    kind: ClassVar[Goal] = "membership"

    attack: Annotated[MembershipAttack, *attack_field("membership")] = Field(
        "loss-threshold", title="attack", description="How records are scored"
    )  # type: ignore[assignment]
    view: View = Field("outsider", title="view", description="Who observes the run")
    unit: Literal["record", "user"] = Field(
        "record", title="unit", description="What is scored: a record, or a client by the mean of its records"
    )
    round: int | Literal["first", "last"] = Field("last", title="round", description="The round that is observed")
    client: int | None = Field(
        None, ge=0, title="client", description="The client of the upload, in the server's view; by default the first"
    )

    def __init__(self, /, **values: Any) -> None:
        super().__init__(**values)

    @field_validator("round", mode="before")
    @classmethod
    def _check_round(cls, value: Any) -> Any:
        return checked_round(value)

    @model_validator(mode="after")
    def _check_client(self) -> MembershipSpec:
        if self.client is not None and self.view != "server":
            rule = f"must be left out in the view {self.view}, which has no single upload"
            raise refusal("attack: client", rule, self.client, "Choose the server's view")
        return self


AttackSpec = PictureAttackSpec  # the name of the first kind, which scripts import

KINDS: Mapping[str, type[BaseAttackSpec]] = {"pictures": PictureAttackSpec, "membership": MembershipSpec}


def attack_spec(values: Mapping[str, Any]) -> BaseAttackSpec:
    """The spec of an attack from its JSON. Without a kind, it is an attack on pictures."""
    kind = values.get("kind", "pictures")
    if not isinstance(kind, str) or kind not in KINDS:
        raise UnknownName(f"attack: no kind {shown(kind)}", f"Known here: {', '.join(KINDS)}")
    return KINDS[kind](**values)
