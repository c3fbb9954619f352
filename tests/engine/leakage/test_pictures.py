"""An attack from start to end: what it reconstructs without protection, what noise hides, and who receives what."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

import engine.attacks
from engine.errors import BadInput
from engine.events import Event, Finished, Judged, Pictured, Seen, Started, Warned, decode, encode
from engine.leakage.compatibility import refuse
from engine.leakage.pictures import attack
from engine.leakage.target import AttackResources
from engine.metrics.pictures import networks
from engine.results.attack_summary import verdicts
from engine.results.verdict import VERDICTS
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec

pytestmark = pytest.mark.slow

CIFAR: dict[str, Any] = {
    "dataset": "cifar10", "model": "lenet-sigmoid", "clients": 10, "sampled": 5, "epochs": 1, "rounds": 2,
}  # fmt: skip
FULL = {"name": "udp-fedavg", "noise": 1.0, "noise-split": "full-local"}
QUICK = {"name": "map", "iterations": 60}


def attack_spec(run: dict[str, Any] | None = None, **fields: Any) -> AttackSpec:
    return AttackSpec(run={**CIFAR, "method": "fedsgd", **(run or {})}, **{"pictures": ["test-0"], **fields})


def attack_events(run: dict[str, Any] | None = None, threads: int = 2, **fields: Any) -> list[Event]:
    return list(attack(attack_spec(run, **fields), threads=threads))


def judged(run: dict[str, Any] | None = None, threads: int = 2, **fields: Any) -> Judged:
    return next(event for event in attack_events(run, threads, **fields) if isinstance(event, Judged))


def seen(run: dict[str, Any] | None = None, **fields: Any) -> Seen:
    return next(event for event in attack_events(run, **fields) if isinstance(event, Seen))


def gain_over_trivial(verdict: Judged) -> float:
    """By how many dB the worst guess exceeds the mean colour of its original."""
    pairs = zip(verdict.numbers["psnr"], verdict.trivial["psnr"], strict=True)
    return min(psnr - trivial for psnr, trivial in pairs)


# --- events ------------------------------------------------------------------------------------------------


def test_its_events_come_in_order() -> None:
    events = attack_events(attack=QUICK, restarts=2)
    kinds = [type(event) for event in events]
    assert kinds[:2] == [Started, Seen] and kinds[-2:] == [Judged, Finished]
    assert set(kinds[2:-2]) == {Pictured}
    written = [json.dumps(encode(event), allow_nan=False) for event in events]
    assert [json.dumps(encode(decode(json.loads(line))), allow_nan=False) for line in written] == written
    frames = [event for event in events if isinstance(event, Pictured)]
    assert {frame.restart for frame in frames} == {0, 1}
    for restart in (0, 1):
        iterations = [frame.iteration for frame in frames if frame.restart == restart]
        assert iterations == sorted(set(iterations)) and iterations[-1] == frames[0].of == 60


def test_the_restart_with_the_lowest_loss_is_chosen() -> None:
    verdict = judged(attack={"name": "map", "iterations": 15}, restarts=4)
    losses = [row["loss"] for row in verdict.restarts]
    assert verdict.restart == losses.index(min(losses)) and len(set(losses)) == 4
    assert verdict.numbers["psnr"][0] == pytest.approx(verdict.restarts[verdict.restart]["psnr"])


def test_the_result_is_the_same_with_one_thread_and_with_two() -> None:
    assert judged(threads=1, attack=QUICK, restarts=2) == judged(threads=2, attack=QUICK, restarts=2)


def test_a_stopped_attack_ends_without_a_verdict() -> None:
    events: list[Event] = []
    for event in attack(attack_spec(), stop=lambda: len(events) > 4):
        events.append(event)
    assert len(events) < 8 and not any(isinstance(event, Judged | Finished) for event in events)


def test_a_recorded_upload_keeps_its_round_and_its_pictures() -> None:
    first = seen(attack=QUICK, pictures=[])
    assert first.facts["probe"] is False and first.facts["pictures"] == len(first.originals) == 32
    last = seen(attack=QUICK, pictures=[], round="last")
    assert last.round == 2 and last.facts["trained"] == 1


def test_several_pictures_are_matched_to_their_originals() -> None:
    verdict = judged({"model": {"name": "mlp", "bias": True}, "dataset": "fashion-mnist"}, attack="analytic",
                    pictures=["test-0", "test-1", "test-2"])  # fmt: skip
    assert verdict.places == (0, 1, 2) and verdict.labels == (9, 2, 1)
    assert min(verdict.numbers["psnr"]) > 60 and verdict.state == "converged"


# --- without protection ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("method", ["fedsgd", "fedavg"])
def test_the_first_layer_reveals_the_picture(bias: bool, method: str) -> None:
    run = {"method": method, "model": {"name": "mlp", "bias": bias}, "dataset": "fashion-mnist", "epochs": 3}
    for picture in ("test-0", "test-7", "train-3"):
        assert judged(run, attack="analytic", pictures=[picture]).numbers["psnr"][0] > 60


@pytest.mark.slow
def test_a_smooth_network_reveals_its_pictures() -> None:
    attack = {"name": "map", "iterations": 1000}
    verdicts = [judged(attack=attack, pictures=[f"test-{place}"]) for place in range(5)]
    assert all(verdict.state == "converged" for verdict in verdicts)
    assert sum(verdict.numbers["psnr"][0] >= 25 for verdict in verdicts) >= 4


@pytest.mark.long
def test_a_network_with_relus_reveals_its_pictures() -> None:
    attack = {"name": "inverting-gradients", "iterations": 300}
    revealed = 0
    for place in range(5):
        verdict = judged({"model": "lenet5"}, attack=attack, restarts=4, pictures=[f"test-{place}"])
        revealed += verdict.numbers["psnr"][0] >= 22 and gain_over_trivial(verdict) >= 8
    assert revealed >= 4


# --- with noise --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "attacks"),
    [
        pytest.param(
            "lenet-sigmoid",
            ({"name": "map", "iterations": 600}, {"name": "inverting-gradients", "iterations": 200}),
            marks=pytest.mark.long,
        ),
        ({"name": "mlp", "bias": True}, ("analytic", {"name": "map", "iterations": 400})),
    ],
)
def test_realistic_noise_hides_the_pictures(model: Any, attacks: Sequence[Any]) -> None:
    counted = 0
    for place in range(5):
        pictures = [f"test-{place}"]
        baselines = [judged({"model": model}, attack=attack, pictures=pictures) for attack in attacks]
        if not any(verdict.state == "converged" for verdict in baselines):
            continue
        counted += 1
        noisy_run = {"model": model, "method": FULL}
        noisy = [judged(noisy_run, attack=attack, pictures=pictures, restarts=2) for attack in attacks]
        best = max(verdict.numbers["psnr"][0] for verdict in noisy)
        assert best <= baselines[0].trivial["psnr"][0] + 3
    assert counted == 5


@pytest.mark.long
def test_a_converged_guess_is_the_victims_picture_and_no_other() -> None:
    data = RunSpec(**CIFAR).dataset.load().test_x
    counted = 0
    for place in range(20):
        original = data[place]
        other = data[(place + 1) % 20]
        events = attack_events(attack={"name": "map", "iterations": 600}, pictures=[f"test-{place}"])
        verdict = next(event for event in events if isinstance(event, Judged))
        if verdict.state != "converged":
            continue
        counted += 1
        last = [event for event in events if isinstance(event, Pictured)][-1]
        guess = decoded(last.pictures[0])
        assert psnr(guess, original) > psnr(guess, other)
        assert psnr(guess, other) <= psnr(original, other) + 1
    assert counted >= 18


def decoded(picture: str) -> torch.Tensor:
    import base64

    from engine.images import model_input

    return model_input(base64.b64decode(picture), (3, 32, 32))


def psnr(first: torch.Tensor, second: torch.Tensor) -> float:
    return -10 * math.log10(max(1e-16, float(functional.mse_loss(first, second))))


def test_an_attack_gets_the_clipped_and_noised_upload() -> None:
    method = {"name": "udp-fedavg", "noise-split": "full-local", "clip": 0.5}
    baseline = seen({"method": "fedavg"}, attack=QUICK)
    clipped = seen({"method": {**method, "noise": 0.0}}, attack=QUICK)
    noisy = seen({"method": {**method, "noise": 2.0}}, attack=QUICK)
    assert baseline.facts["norm"] > 0.5
    assert clipped.facts["norm"] == pytest.approx(0.5, rel=1e-4)
    assert clipped.facts["noise-to-signal"] == 0
    noise = 2.0 * 0.5 * math.sqrt(noisy.facts["numbers"])
    assert noisy.facts["norm"] == pytest.approx(math.hypot(0.5, noise), rel=0.02)
    assert noisy.facts["noise-to-signal"] == pytest.approx(noise / 0.5, rel=0.02)


def test_an_attack_on_noise_that_hides_the_picture_has_not_converged() -> None:
    verdict = judged({"method": FULL}, attack=QUICK)
    assert verdict.state == "not converged" and "noise drowns" in verdict.reason


def test_an_attack_that_fits_the_noise_has_not_converged() -> None:
    verdict = judged({"method": {"name": "udp-fedavg", "noise": 3e-4}}, attack="idlg")
    assert gain_over_trivial(verdict) < 0 and verdict.restarts[0]["left"] < 0
    assert verdict.state == "not converged" and "too loud" in verdict.reason


def test_an_attack_with_too_few_steps_has_not_converged() -> None:
    verdict = judged(attack={"name": "map", "iterations": 3})
    assert verdict.state == "not converged" and "unexplained" in verdict.reason


# --- what an attack may use --------------------------------------------------------------------------------


def test_no_attack_can_reach_the_truth() -> None:
    """Privacy: with the truth or a metric in reach, an attack could choose its guess by comparing it with the truth."""
    forbidden = {"datasets", "metrics", "pairing", "leakage", "target", "probe", "training", "plan", "rounds", "jobs"}
    for file in sorted(Path(engine.attacks.__path__[0]).rglob("*.py")):
        for name in imported_names(file):
            parts = name.split(".")
            assert parts[0] != "engine" or not forbidden & set(parts[1:]), file


def imported_names(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize(
    ("run", "fields", "message"),
    [
        ({}, {"attack": "analytic"}, "needs a model whose first layer is linear"),
        ({}, {"pictures": ["test-600"]}, "must be test-0 to test-599"),
        ({}, {"pictures": ["test-300"], "attack": "gias"}, "learns from the second half"),
        ({}, {"client": 11}, "must be one that took part"),
        ({}, {"round": 3}, "must be between 1 and 2"),
        ({"rounds": 0}, {}, "no client took part"),
        ({}, {"attack": "imprint", "pictures": []}, "no run sent one"),
        ({}, {"attack": "imprint", "view": "outsider"}, "works only for the server"),
        ({}, {"pictures": ["own-0123456789abcdef-3"]}, "picture: no 0123456789abcdef"),
    ],
)
def test_an_impossible_attack_is_refused_before_it_begins(run: Any, fields: Any, message: str) -> None:
    spec = attack_spec(run, **fields)
    with pytest.raises(BadInput, match=message):
        refuse(spec, AttackResources())


@pytest.mark.parametrize("view", ["aggregate", "outsider", "client"])
@pytest.mark.parametrize("method", ["fedsgd", "fedavg", "udp-fedavg"])
def test_every_view_can_be_attacked(method: str, view: str) -> None:
    verdict = judged({"method": method, "clients": 4, "sampled": 4, "sampling": "all"}, attack=QUICK, view=view)
    assert verdict.state in ("converged", "not converged") and math.isfinite(verdict.numbers["psnr"][0])


def test_c04_a_missing_lpips_file_is_said_before_the_attack(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(networks, "FEATURES", tmp_path / "gone.safetensors")
    events = attack_events(attack={"name": "map", "iterations": 3})
    kinds = [type(event) for event in events]
    assert kinds.index(Warned) < kinds.index(Pictured)
    (warned,) = (event for event in events if isinstance(event, Warned))
    assert "PSNR and SSIM alone judge this attack" in warned.reason
    (judged,) = (event for event in events if isinstance(event, Judged))
    assert "lpips" not in judged.numbers and "psnr" in judged.numbers and not judged.nearest
    assert verdicts(judged) in {(word,) for word in VERDICTS}
