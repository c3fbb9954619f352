"""An attack from beginning to end: what comes back without protection, what does not with it, who may see what."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

import engine.attacks
from engine.errors import BadInput
from engine.events import Event, Finished, Judged, Pictured, Seen, Started, decode, encode
from engine.leakage.compatibility import refuse
from engine.leakage.pictures import attack
from engine.leakage.target import AttackResources
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec

pytestmark = pytest.mark.slow

CIFAR: dict[str, Any] = {
    "dataset": "cifar10", "model": "lenet-sigmoid", "clients": 10, "sampled": 5, "epochs": 1, "rounds": 2,
}  # fmt: skip
FULL = {"name": "udp-fedavg", "noise": 1.0, "noise-split": "full-local"}
QUICK = {"name": "map", "iterations": 60}


def told(run: dict[str, Any] | None = None, threads: int = 2, **asked: Any) -> list[Event]:
    spec = AttackSpec(run={**CIFAR, "method": "fedsgd", **(run or {})}, **{"pictures": ["test-0"], **asked})
    return list(attack(spec, threads=threads))


def judged(run: dict[str, Any] | None = None, **asked: Any) -> Judged:
    return next(event for event in told(run, **asked) if isinstance(event, Judged))


def above(answer: Judged) -> float:
    """By how much the worst of the pictures beats its mean colour."""
    return min(own - other for own, other in zip(answer.numbers["psnr"], answer.trivial["psnr"], strict=True))


# --- what it says ------------------------------------------------------------------------------------------


def test_it_tells_its_story_in_order() -> None:
    events = told(attack=QUICK, restarts=2)
    kinds = [type(event) for event in events]
    assert kinds[:2] == [Started, Seen] and kinds[-2:] == [Judged, Finished]
    assert set(kinds[2:-2]) == {Pictured}
    written = [json.dumps(encode(event), allow_nan=False) for event in events]
    assert [json.dumps(encode(decode(json.loads(line))), allow_nan=False) for line in written] == written
    frames = [event for event in events if isinstance(event, Pictured)]
    assert {frame.restart for frame in frames} == {0, 1}
    for restart in (0, 1):
        own = [frame.iteration for frame in frames if frame.restart == restart]
        assert own == sorted(set(own)) and own[-1] == frames[0].of == 60


def test_of_several_restarts_its_own_objective_chooses() -> None:
    answer = judged(attack={"name": "map", "iterations": 15}, restarts=4)
    losses = [row["loss"] for row in answer.restarts]
    assert answer.restart == losses.index(min(losses)) and len(set(losses)) == 4
    assert answer.numbers["psnr"][0] == pytest.approx(answer.restarts[answer.restart]["psnr"])


def test_the_same_question_gives_the_same_answer_on_one_thread_and_on_two() -> None:
    one, two = (
        next(event for event in told(attack=QUICK, restarts=2, threads=threads) if isinstance(event, Judged))
        for threads in (1, 2)
    )
    assert one == two


def test_asked_to_stop_it_ends_without_a_verdict() -> None:
    spec, heard = AttackSpec(run={**CIFAR, "method": "fedsgd"}, pictures=["test-0"]), list[Event]()
    for event in attack(spec, stop=lambda: len(heard) > 4):
        heard.append(event)
    assert len(heard) < 8 and not any(isinstance(event, Judged | Finished) for event in heard)


def test_a_recorded_upload_is_attacked_as_it_was() -> None:
    seen = next(event for event in told(attack=QUICK, pictures=[]) if isinstance(event, Seen))
    assert seen.facts["probe"] is False and seen.facts["pictures"] == len(seen.originals) == 32
    later = next(event for event in told(attack=QUICK, pictures=[], round="last") if isinstance(event, Seen))
    assert later.round == 2 and later.facts["trained"] == 1


def test_several_pictures_are_matched_to_their_originals() -> None:
    answer = judged({"model": {"name": "mlp", "bias": True}, "dataset": "fashion-mnist"}, attack="analytic",
                    pictures=["test-0", "test-1", "test-2"])  # fmt: skip
    assert answer.places == (0, 1, 2) and answer.labels == (9, 2, 1)
    assert min(answer.numbers["psnr"]) > 60 and answer.state == "converged"


# --- what comes back without protection --------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("method", ["fedsgd", "fedavg"])
def test_the_first_layer_gives_its_picture_away(bias: bool, method: str) -> None:
    run = {"method": method, "model": {"name": "mlp", "bias": bias}, "dataset": "fashion-mnist", "epochs": 3}
    for picture in ("test-0", "test-7", "train-3"):
        assert judged(run, attack="analytic", pictures=[picture]).numbers["psnr"][0] > 60


@pytest.mark.slow
def test_a_smooth_network_gives_its_pictures_away() -> None:
    answers = [judged(attack={"name": "map", "iterations": 1000}, pictures=[f"test-{place}"]) for place in range(5)]
    assert all(answer.state == "converged" for answer in answers)
    assert sum(answer.numbers["psnr"][0] >= 25 for answer in answers) >= 4


@pytest.mark.slow
def test_a_network_with_relus_gives_its_pictures_away() -> None:
    attack = {"name": "inverting-gradients", "iterations": 300}
    answers = [judged({"model": "lenet5"}, attack=attack, restarts=4, pictures=[f"test-{place}"]) for place in range(5)]
    assert sum(answer.numbers["psnr"][0] >= 22 and above(answer) >= 8 for answer in answers) >= 4


# --- what does not, with it --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "attacks"),
    [
        ("lenet-sigmoid", ({"name": "map", "iterations": 600}, {"name": "inverting-gradients", "iterations": 200})),
        ({"name": "mlp", "bias": True}, ("analytic", {"name": "map", "iterations": 400})),
    ],
)
def test_under_real_noise_nothing_comes_back(model: Any, attacks: Sequence[Any]) -> None:
    counted = 0
    for place in range(5):
        asked = [{"attack": attack, "pictures": [f"test-{place}"]} for attack in attacks]
        if not any(judged({"model": model}, **one).state == "converged" for one in asked):
            continue
        counted += 1
        best = max(judged({"model": model, "method": FULL}, **one, restarts=2).numbers["psnr"][0] for one in asked)
        trivial = judged({"model": model}, **asked[0]).trivial["psnr"][0]
        assert best <= trivial + 3
    assert counted == 5


@pytest.mark.slow
def test_what_converged_is_the_victims_picture_and_nobody_elses() -> None:
    data = RunSpec(**CIFAR).dataset.load().test_x
    counted = 0
    for place in range(20):
        other = data[(place + 1) % 20]
        events = told(attack={"name": "map", "iterations": 600}, pictures=[f"test-{place}"])
        answer = next(event for event in events if isinstance(event, Judged))
        if answer.state != "converged":
            continue
        counted += 1
        last = [event for event in events if isinstance(event, Pictured)][-1]
        guess = decoded(last.pictures[0])
        own, wrong, apart = psnr(guess, data[place]), psnr(guess, other), psnr(data[place], other)
        assert own > wrong and wrong <= apart + 1
    assert counted >= 18


def decoded(picture: str) -> torch.Tensor:
    import base64

    from engine.images import pixels

    return pixels(base64.b64decode(picture), (3, 32, 32))


def psnr(one: torch.Tensor, other: torch.Tensor) -> float:
    return -10 * math.log10(max(1e-16, float(functional.mse_loss(one, other))))


def test_an_attack_gets_the_clipped_and_noised_upload() -> None:
    bare = next(event for event in told({"method": "fedavg"}, attack=QUICK) if isinstance(event, Seen))
    clipped = {"name": "udp-fedavg", "noise-split": "full-local", "clip": 0.5}
    quiet = next(
        event for event in told({"method": {**clipped, "noise": 0.0}}, attack=QUICK) if isinstance(event, Seen)
    )
    loud = next(event for event in told({"method": {**clipped, "noise": 2.0}}, attack=QUICK) if isinstance(event, Seen))
    assert bare.facts["norm"] > 0.5
    assert quiet.facts["norm"] == pytest.approx(0.5, rel=1e-4)
    assert quiet.facts["noise-to-signal"] == 0
    noise = 2.0 * 0.5 * math.sqrt(loud.facts["numbers"])
    assert loud.facts["norm"] == pytest.approx(math.hypot(0.5, noise), rel=0.02)
    assert loud.facts["noise-to-signal"] == pytest.approx(noise / 0.5, rel=0.02)


def test_noise_that_drowns_the_picture_is_not_called_a_result() -> None:
    answer = judged({"method": FULL}, attack=QUICK)
    assert answer.state == "not converged" and "noise drowns" in answer.reason


def test_noise_taken_for_a_picture_is_not_called_a_result() -> None:
    answer = judged({"method": {"name": "udp-fedavg", "noise": 3e-4}}, attack="idlg")
    assert above(answer) < 0 and answer.restarts[0]["left"] < 0
    assert answer.state == "not converged" and "too loud" in answer.reason


def test_what_did_not_get_there_is_not_called_converged() -> None:
    answer = judged(attack={"name": "map", "iterations": 3})
    assert answer.state == "not converged" and "unexplained" in answer.reason


# --- who may know what -------------------------------------------------------------------------------------


def test_no_attack_can_reach_the_truth() -> None:
    forbidden = {"datasets", "metrics", "matching", "exposing", "case", "leak", "breach", "plan", "rounds", "runs"}
    for file in sorted(Path(engine.attacks.__path__[0]).glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [f"{node.module}.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) else []
            assert not any(set(name.split(".")[1:]) & forbidden for name in names if name.startswith("engine")), file


@pytest.mark.parametrize(
    ("run", "asked", "said"),
    [
        ({}, {"attack": "analytic"}, "needs a model whose first layer is linear"),
        ({}, {"pictures": ["test-600"]}, "must be test-0 to test-599"),
        ({}, {"pictures": ["test-300"], "attack": "gias"}, "learns from the second half"),
        ({}, {"client": 11}, "must be one that took part"),
        ({}, {"round": 3}, "must be between 1 and 2"),
        ({"rounds": 0}, {}, "nobody took part"),
        ({}, {"attack": "imprint", "pictures": []}, "no run records that"),
        ({}, {"attack": "imprint", "view": "outsider"}, "works only for the server"),
        ({}, {"pictures": ["own-0123456789abcdef-3"]}, "picture: no 0123456789abcdef"),
    ],
)
def test_what_cannot_be_attacked_is_said_before_it_begins(run: Any, asked: Any, said: str) -> None:
    spec = AttackSpec(run={**CIFAR, "method": "fedsgd", **run}, **{"pictures": ["test-0"], **asked})
    with pytest.raises(BadInput, match=said):
        refuse(spec, AttackResources())


@pytest.mark.parametrize("view", ["aggregate", "outsider", "client"])
@pytest.mark.parametrize("method", ["fedsgd", "fedavg", "udp-fedavg"])
def test_every_view_can_be_attacked(method: str, view: str) -> None:
    events = told({"method": method, "clients": 4, "sampled": 4, "sampling": "all"}, attack=QUICK, view=view)
    answer = next(event for event in events if isinstance(event, Judged))
    assert answer.state in ("converged", "not converged") and math.isfinite(answer.numbers["psnr"][0])
