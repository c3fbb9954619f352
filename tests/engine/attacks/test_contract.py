"""The contract of every attack; a new file on the shelf is tested without an edit."""

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
from engine.attacks.pictures.base import PictureAttack
from engine.leakage.compatibility import first_problem
from engine.models import MODELS
from engine.records import Guess
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from engine.training.plan import make_plan
from tests.engine.attacks.pictures.makers import Case, copied, inversion_scene, quick
from tests.engine.makers import parts_with_one_change

pytestmark = pytest.mark.slow

PICTURE_ATTACKS = {part.name: part for part in ATTACKS if issubclass(part, PictureAttack)}
NAMES = tuple(PICTURE_ATTACKS)
FILES = sorted(Path(contract.__file__).parent.rglob("*.py"))
CASES: tuple[Case, ...] = (
    ("fedsgd", 1, "server"),
    ("fedsgd", 3, "server"),
    ("fedavg", 1, "server"),
    ("fedavg", 3, "aggregate"),
    ("fedavg", 1, "outsider"),
    ("fedsgd", 1, "client"),
    ("udp-fedavg", 1, "server"),  # the whole update clipped, and noise
    ("udp-fedavg", 3, "outsider"),
    ("dp-fedavg", 3, "server"),  # each picture clipped, and noise
)

each_attack = pytest.mark.parametrize("name", NAMES)
SEARCHES = [name for name in NAMES if "gradient" in PICTURE_ATTACKS[name].reads]
each_search = pytest.mark.parametrize("name", SEARCHES)  # of gradients or updates; `look` has tests in leakage


@each_attack
def test_it_declares_itself(name: str) -> None:
    part = PICTURE_ATTACKS[name]()
    assert part.title and part.source and part.summary().endswith(".")
    for field in type(part).model_fields.values():
        assert field.title and field.description and field.description.endswith(".")
    assert 0 < part.leaves < 1 and set(part.learns) <= set(type(part).model_fields)


@each_attack
def test_every_parameter_is_in_the_json(name: str) -> None:
    parts = [ATTACKS.make(name), *parts_with_one_change(ATTACKS.make(name))]
    dumps = [json.dumps(ATTACKS.dump(part)) for part in parts]
    assert len(set(dumps)) == len(parts) == 1 + len(ATTACKS[name].model_fields)
    assert [ATTACKS.make(json.loads(dump)) for dump in dumps] == parts


@each_attack
@pytest.mark.parametrize("model", MODELS.names())
def test_it_fits_a_model_or_gives_a_reason(name: str, model: str) -> None:
    text = bool(MODELS.make(model).misfit((1, 28, 28)))
    dataset = "movie-reviews" if text else "fashion-mnist"
    spec = AttackSpec(run=RunSpec(dataset=dataset, model=model, clients=2, sampled=2, rounds=1), attack=name)
    plan = make_plan(spec.run)
    world = plan.world
    module = world.build(torch.Generator())
    if text:
        problem = first_problem(spec, plan, module)
        assert problem is not None and "pictures" in problem.reason and problem.remedy
        return
    reason = PICTURE_ATTACKS[name]().misfit(world, module)
    assert reason == reason.strip().rstrip(".") and "\n" not in reason
    assert not reason or len(reason.split()) > 3


def check_guess(guess: Guess, many: int, shape: tuple[int, ...], classes: int) -> None:
    assert tuple(guess.pictures.shape) == (many, *shape) and tuple(guess.labels.shape) == (many,)
    assert bool(((guess.pictures >= 0) & (guess.pictures <= 1)).all())  # also false for NaN
    assert guess.labels.dtype == torch.int64 and bool(((guess.labels >= 0) & (guess.labels < classes)).all())
    assert math.isfinite(guess.loss) or guess.loss == math.inf
    assert math.isfinite(guess.unexplained) and 0 <= guess.residual_scale.floor <= 1
    assert not guess.pictures.requires_grad


@each_search
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_its_guesses_are_pictures(name: str, case: Case) -> None:
    attack = quick(name)
    if attack.malicious and case[2] != "server":
        pytest.skip("only the server can read a tampered model")
    scene = inversion_scene(attack, case)
    if not attack.malicious:
        module = scene.plan.world.build(torch.Generator())
        assert attack.tamper(module, scene.exposure.packet, scene.plan.world) == (
            module,
            scene.exposure.packet,
        )
    guesses = list(scene.guesses())
    many = min(8, scene.exposure.protocol.pictures or scene.exposure.protocol.batch)
    for guess in guesses:
        check_guess(guess, many, scene.exposure.shape, scene.exposure.classes)
    iterations = [guess.iteration for guess in guesses]
    assert iterations == sorted(set(iterations)) and iterations[-1] == guesses[-1].of
    assert all(guess.iteration < guess.of for guess in guesses[:-1])
    assert math.isfinite(guesses[-1].loss)


def bits(guesses: list[Guess]) -> list[tuple[object, ...]]:
    return [(guess.iteration, guess.of, pixel_bytes(guess), guess.labels.tolist(), guess.loss) for guess in guesses]


def pixel_bytes(guess: Guess) -> bytes:
    return guess.pictures.numpy().tobytes()


@each_search
def test_only_its_seeds_decide(name: str) -> None:
    scene = inversion_scene(quick(name))
    first = bits(list(scene.guesses(0)))
    other = bits(list(scene.guesses(1)))
    torch.rand(7)  # the state of torch's own generator has no influence
    assert bits(list(scene.guesses(0))) == first
    assert (first != other) is PICTURE_ATTACKS[name].chance


@each_search
def test_it_changes_none_of_its_inputs(name: str) -> None:
    scene = inversion_scene(quick(name), ("fedavg", 1, "server"))
    module = scene.module()
    exposure = scene.exposure
    prior = scene.prior or {}
    sent = copied(exposure.packet.model)
    received = copied(exposure.upload.model)
    prior_copy = copied(prior)
    list(scene.guesses(module=module))
    parameters = dict(module.named_parameters())
    assert parameters.keys() == sent.keys()
    for parameter, tensor in sent.items():
        assert torch.equal(parameters[parameter], tensor) and parameters[parameter].grad is None
    for before, after in ((sent, exposure.packet.model), (received, exposure.upload.model), (prior_copy, prior)):
        assert before.keys() == after.keys() and all(torch.equal(before[key], after[key]) for key in before)


@each_search
def test_guesses_come_while_it_works(name: str) -> None:
    long = {field: 10_000 for field in ("iterations", "bends") if field in ATTACKS[name].model_fields}
    scene = inversion_scene(quick(name, **long))
    guesses = scene.guesses()
    first = list(islice(guesses, 2))
    assert all(guess.iteration <= 2 for guess in first) and (not long or first[-1].of >= 10_000)
    guesses.close()  # type: ignore[attr-defined]  # it can be stopped between two guesses


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_truth_is_not_in_reach(path: Path) -> None:
    """Privacy: an attack imports no data set, no metric and no run, so it cannot compare a guess with the truth."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    imported = {name.split(".")[1] for name in names if name.startswith("engine.")}
    allowed = {"attacks", "capabilities", "part", "records", "registry", "seeds", "errors", "compute"}
    assert imported <= allowed, f"{path.name} imports {', '.join(sorted(imported - allowed))}"
