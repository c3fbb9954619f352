"""What every attack must keep; a new file on the shelf is tested with no edit."""

from __future__ import annotations

import ast
import json
import math
from itertools import islice
from pathlib import Path

import pytest
import torch

from engine.attacks import ATTACKS
from engine.attacks import base as contract
from engine.leakage.compatibility import obstacle
from engine.models import MODELS
from engine.records import Guess
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from engine.training.plan import make_plan
from tests.engine.attacks.pictures.makers import Case, copied, inversion_scene, quick
from tests.engine.makers import changed

pytestmark = pytest.mark.slow

NAMES = ATTACKS.names()
FILES = sorted(Path(contract.__file__).parent.rglob("*.py"))
CASES: tuple[Case, ...] = (
    ("fedsgd", 1, "server"),
    ("fedsgd", 3, "server"),
    ("fedavg", 1, "server"),
    ("fedavg", 3, "aggregate"),
    ("fedavg", 1, "outsider"),
    ("fedsgd", 1, "client"),
    ("udp-fedavg", 1, "server"),  # one clip around the whole update, and noise
    ("udp-fedavg", 3, "outsider"),
    ("dp-fedavg", 3, "server"),  # each picture clipped, and noise
)

each = pytest.mark.parametrize("name", NAMES)


@each
def test_it_declares_itself(name: str) -> None:
    part = ATTACKS.make(name)
    assert part.title and part.source and part.summary().endswith(".")
    for field in type(part).model_fields.values():
        assert field.title and field.description and field.description.endswith(".")
    assert 0 < part.leaves < 1 and set(part.learns) <= set(type(part).model_fields)


@each
def test_every_parameter_is_told(name: str) -> None:
    parts = [ATTACKS.make(name), *changed(ATTACKS.make(name))]
    dumps = [json.dumps(ATTACKS.dump(part)) for part in parts]
    assert len(set(dumps)) == len(parts) == 1 + len(ATTACKS[name].model_fields)
    assert [ATTACKS.make(json.loads(dump)) for dump in dumps] == parts


@each
@pytest.mark.parametrize("model", MODELS.names())
def test_it_fits_a_model_or_says_why_not(name: str, model: str) -> None:
    text = bool(MODELS.make(model).misfit((1, 28, 28)))
    dataset = "movie-reviews" if text else "fashion-mnist"
    spec = AttackSpec(run=RunSpec(dataset=dataset, model=model, clients=2, sampled=2, rounds=1), attack=name)
    plan = make_plan(spec.run)
    world, module = plan.world, plan.world.build(torch.Generator())
    if text:
        found = obstacle(spec, plan, module)
        assert found is not None and "pictures" in found.reason and found.remedy
        return
    said = ATTACKS.make(name).misfit(world, module)
    assert said == said.strip().rstrip(".") and "\n" not in said
    assert not said or len(said.split()) > 3


def sound(guess: Guess, many: int, shape: tuple[int, ...], classes: int) -> None:
    assert tuple(guess.pictures.shape) == (many, *shape) and tuple(guess.labels.shape) == (many,)
    assert bool(((guess.pictures >= 0) & (guess.pictures <= 1)).all())  # also false for what is no number
    assert guess.labels.dtype == torch.int64 and bool(((guess.labels >= 0) & (guess.labels < classes)).all())
    assert math.isfinite(guess.loss) or guess.loss == math.inf
    assert math.isfinite(guess.unexplained) and 0 <= guess.residual_scale.floor <= 1
    assert not guess.pictures.requires_grad


@each
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_its_guesses_are_pictures(name: str, case: Case) -> None:
    attack = quick(name)
    if attack.malicious and case[2] != "server":
        pytest.skip("a tampered model is seen through by the server alone")
    there = inversion_scene(attack, case)
    if not attack.malicious:
        built = there.bare.world.build(torch.Generator())
        assert attack.tamper(built, there.exposure.sent, there.bare.world) == (built, there.exposure.sent)
    guesses = list(there.guesses())
    many = min(8, there.exposure.protocol.pictures or there.exposure.protocol.batch)
    for guess in guesses:
        sound(guess, many, there.exposure.shape, there.exposure.classes)
    places = [guess.iteration for guess in guesses]
    assert places == sorted(set(places)) and places[-1] == guesses[-1].of
    assert all(guess.iteration < guess.of for guess in guesses[:-1])
    assert math.isfinite(guesses[-1].loss)


def bits(guesses: list[Guess]) -> list[tuple[object, ...]]:
    return [(one.iteration, one.of, one.pictures.numpy().tobytes(), one.labels.tolist(), one.loss) for one in guesses]


@each
def test_only_its_seeds_decide(name: str) -> None:
    there = inversion_scene(quick(name))
    first, other = (bits(list(there.guesses(seed))) for seed in (0, 1))
    torch.rand(7)  # whatever torch's own generator holds
    assert bits(list(there.guesses(0))) == first
    assert (first != other) is ATTACKS[name].chance


@each
def test_it_leaves_everything_alone(name: str) -> None:
    there = inversion_scene(quick(name), ("fedavg", 1, "server"))
    module, exposure = there.module(), there.exposure
    sent, received, prior = copied(exposure.sent), copied(exposure.received), copied(there.prior or {})
    list(there.guesses(module=module))
    held = dict(module.named_parameters())
    assert held.keys() == sent.keys()
    for name_, tensor in sent.items():
        assert torch.equal(held[name_], tensor) and held[name_].grad is None
    for kept, now in ((sent, exposure.sent), (received, exposure.received), (prior, there.prior or {})):
        assert kept.keys() == now.keys() and all(torch.equal(kept[one], now[one]) for one in kept)


@each
def test_guesses_come_while_it_works(name: str) -> None:
    long = {field: 10_000 for field in ("iterations", "bends") if field in ATTACKS[name].model_fields}
    there = inversion_scene(quick(name, **long))
    guesses = there.guesses()
    first = list(islice(guesses, 2))
    assert all(guess.iteration <= 2 for guess in first) and (not long or first[-1].of >= 10_000)
    guesses.close()  # type: ignore[attr-defined]  # whoever stops it is heard


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_truth_is_not_in_reach(path: Path) -> None:
    """What was received is all there is: no data, no measure of nearness, no run."""
    names = {alias.name for node in ast.walk(parsed(path)) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(parsed(path)) if isinstance(node, ast.ImportFrom)}
    ours = {name.split(".")[1] for name in names if name.startswith("engine.")}
    leaves = {"attacks", "part", "records", "registry", "seeds", "errors", "compute"}
    assert ours <= leaves, f"{path.name} imports {', '.join(sorted(ours - leaves))}"


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
