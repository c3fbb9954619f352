"""AttackSpec: one attack on one upload, frozen, validated, and named by a short hash of its canonical JSON."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, PlainSerializer, PlainValidator, field_validator, model_validator

from engine.attacks import ATTACKS, Attack
from engine.errors import BadInput, refusal
from engine.part import Part, Problem, as_written
from engine.records import View
from engine.specs.base import Spec
from engine.specs.run import RunSpec

PICTURE = re.compile(r"(train|test)-(\d{1,7})|own-([0-9a-f]{16})-(\d{1,3})")
MOST_PICTURES = 8  # of one probe


class AttackSpec(Spec):
    """One attack on one upload: an upload that a run recorded, or one of a probe with chosen pictures."""

    run: Annotated[RunSpec, PlainValidator(lambda value: _as_run(value)), PlainSerializer(RunSpec.canonical)] = Field(
        title="run", description="The training run whose upload is attacked"
    )
    attack: Annotated[Attack, *ATTACKS.field()] = Field(
        "map", title="attack", description="How the pictures are reconstructed"
    )  # type: ignore[assignment]
    pictures: tuple[str, ...] = Field(
        (),
        title="pictures",
        description="train-7 or test-7 of the data set, own-NAME-LABEL of your own; none: the recorded upload",
    )
    round: int | Literal["first", "last"] = Field("first", title="round", description="The round of the upload")
    client: int | None = Field(
        None, ge=0, title="client", description="The client of the upload; by default the first one of the round"
    )
    view: View = Field("server", title="view", description="Who observes the upload")
    restarts: int = Field(
        1, ge=1, le=64, title="restarts", description="How often the attack starts again from another guess"
    )
    seed: int = Field(0, ge=0, le=2**53, title="seed", description="The attack seed: the attack's random numbers")

    def __init__(self, /, **values: Any) -> None:  # parts are given by their name, as JSON, or as an object
        super().__init__(**values)

    @classmethod
    def label(cls) -> str:
        return "attack"

    @field_validator("round", mode="before")
    @classmethod
    def _check_round(cls, value: Any) -> Any:
        if value in ("first", "last"):
            return value
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        raise refusal("attack: round", "must be first, last, or a whole number at least 1", as_written(value))

    @field_validator("pictures")
    @classmethod
    def _check_pictures(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(value) > MOST_PICTURES:
            raise refusal("attack: pictures", f"must be at most {MOST_PICTURES}", len(value))
        for name in value:
            if not isinstance(name, str) or not PICTURE.fullmatch(name):
                raise refusal("attack: pictures", "must be like test-7, train-7 or own-NAME-LABEL", name)
        return value

    @model_validator(mode="after")
    def _resolve_attack(self) -> AttackSpec:
        if not self.attack.chance:  # another start would give the same result
            object.__setattr__(self, "restarts", 1)
        if not self.pictures and self.view != "server":
            raise BadInput(f"attack: view: only server uploads are recorded, got {self.view}", "Choose a picture")
        return self

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.attack,)

    def replay_problem(self) -> Problem | None:
        return super().replay_problem() or self.run.replay_problem()


def _as_run(value: Any) -> RunSpec:
    return value if isinstance(value, RunSpec) else RunSpec(**value)
