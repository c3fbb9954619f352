"""What the judge compares guesses with: which split, which pictures have a class, and what chance alone reaches."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import torch

from engine import attack
from engine.compute import weights
from engine.compute.threads import ThreadTeam
from engine.events import Judged, Seen
from engine.leakage.judge import make_truth
from engine.leakage.matching import _candidates
from engine.leakage.ordinary import ordinary_victim
from engine.leakage.probe import expose, make_victim, probe_seeds
from engine.records import Upload
from engine.results.attack_summary import AttackCell
from engine.results.verdict import PictureScores, verdict
from engine.seeds import Seeds
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from engine.training.plan import LoadedPlan, load_plan
from engine.training.rounds import first_state
from tests.engine.leakage.test_ordinary import MLP, RUN, spec

PROTECTED = {"name": "udp-fedavg", "noise": 1.0, "noise-split": "full-local"}
NOISY = {**RUN, "method": PROTECTED, "sampling": "all", "sampled": 100}
OWN = f"own-{'a' * 16}-3"


@cache
def plan() -> LoadedPlan:
    return load_plan(RunSpec(**RUN))


@pytest.mark.parametrize(
    ("request_fields", "training"),
    [
        ({"pictures": ("test-7", "test-8")}, False),
        ({"pictures": ("train-7",)}, True),
        ({"pictures": ("test-7",), "upload": "ordinary"}, True),
        ({"pictures": (OWN,), "upload": "ordinary"}, True),
        ({"pictures": ()}, True),
    ],
)
def test_other_pictures_come_from_the_split_of_the_upload(request_fields: dict[str, object], training: bool) -> None:
    """The splits of MNIST follow different laws: with the other one, the matching test has no uniform p."""
    data = plan().spec.dataset.load()
    truth = make_truth(spec(**request_fields), plan(), data.test_x[:2], data.test_y[:2])
    assert truth.training is training


def test_only_a_picture_of_ones_own_has_no_class() -> None:
    data = plan().spec.dataset.load()
    pictures, labels = data.test_x[:3], data.test_y[:3]
    assert make_truth(spec(pictures=(OWN, "test-1", "test-2")), plan(), pictures, labels).own == 1
    assert make_truth(spec(), plan(), pictures, labels).own == 0


@cache
def ordinary() -> tuple[Seen, Judged]:
    """An attack on an ordinary upload that reads its rows."""
    events = list(attack(spec(upload="ordinary"), threads=1))
    seen = next(event for event in events if isinstance(event, Seen))
    return seen, next(event for event in events if isinstance(event, Judged))


@pytest.mark.slow
def test_an_attack_works_where_it_reads_clearly_more_than_chance() -> None:
    """Among a hundred guesses some fit some picture. The same guesses against pictures never sent show how many."""
    seen, judged = ordinary()
    cell = AttackCell("", "", "", seen=seen, judged=judged)
    assert len(judged.control["psnr"]) > 100 and cell.by_chance is not None
    assert not replace(cell, judged=replace(judged, control={})).works  # an older result has no control
    same = {name: judged.numbers[name] for name in ("psnr", "ssim", "lpips")}
    same |= {f"trivial-{name}": judged.trivial[name] for name in ("psnr", "ssim", "lpips")}
    same |= {f"mean-{name}": judged.mean_picture[name] for name in ("psnr", "ssim", "lpips")}
    chance = replace(cell, judged=replace(judged, control=same, nearest={}))
    assert chance.by_chance is not None and chance.by_chance >= chance.leaking_others and not chance.works


@pytest.mark.slow
def test_a_tampered_upload_has_no_matching_test() -> None:
    seen, judged = ordinary()
    cell = AttackCell("", "", "", seen=seen, judged=judged)
    assert cell.matching is not None
    assert replace(cell, seen=replace(seen, facts={**seen.facts, "tampered": True})).matching is None


def test_a_guess_must_beat_the_trivial_ssim_for_its_vote() -> None:
    scores = PictureScores(20.0, 0.95, 0.1, {"psnr": 30.0, "ssim": 0.9, "lpips": 0.5})
    assert verdict(scores) == "comes back"
    assert verdict(replace(scores, trivial={**scores.trivial, "ssim": 0.96})) != "comes back"


def test_candidates_are_drawn_at_random() -> None:
    pictures = torch.arange(20.0, device="cpu").view(20, 1, 1, 1)
    labels = torch.zeros(20, dtype=torch.long, device="cpu")
    candidates = _candidates(0, (pictures[:3], labels[:3]), (pictures[3:], labels[3:]), Seeds(0))
    assert candidates is not None
    shown, is_member = candidates
    others = sorted(shown.flatten()[torch.from_numpy(~is_member)].tolist())
    assert len(others) == 3 and others != [3.0, 4.0, 5.0]


# --- noise of probes ---------------------------------------------------------------------------------------


def test_a12_the_noise_of_a_probe_depends_on_its_round_client_and_pictures() -> None:
    noisy = load_plan(RunSpec(**{**NOISY, "rounds": 2}))
    data = noisy.spec.dataset.load()
    picture, label = data.test_x[7:8], data.test_y[7:8]
    victims = [make_victim(noisy, round, picture, label, client) for round in (1, 2) for client in (0, 1)]
    with ThreadTeam(1) as team:
        for other in (label, (label + 1) % 10):
            request = spec(run=noisy.spec, upload="ordinary")
            victims.append(ordinary_victim(request, noisy, first_state(noisy), 1, (picture, other), team, None)[0])
    assert len({probe_seeds(noisy, victim).seed for victim in victims}) == len(victims)


def noises_of(*attacks: dict[str, object]) -> list[torch.Tensor]:
    """The noise of the upload of each attack that changes the model."""
    noisy = load_plan(RunSpec(**NOISY))
    clean = load_plan(RunSpec(**{**NOISY, "method": {**PROTECTED, "noise": 0.0}}))
    data = noisy.spec.dataset.load()
    picture, label = data.test_x[7:8], data.test_y[7:8]
    noises = []
    with ThreadTeam(1) as team:
        for part in attacks:
            request = AttackSpec(run=noisy.spec, attack=part, pictures=("test-7",))

            def tamper(module: object, packet: object, request: AttackSpec = request) -> object:
                return request.attack.tamper(module, packet, noisy.world)  # type: ignore[arg-type]

            uploads: list[Upload] = []
            for each in (noisy, clean):
                victim = make_victim(each, 1, picture, label)
                uploads.append(expose(each, first_state(each), victim, "server", team, tamper).upload)  # type: ignore[arg-type]
            difference = weights.subtract(uploads[0].model, uploads[1].model)
            noises.append(torch.cat([tensor.flatten() for tensor in difference.values()]))
    return noises


def test_a12_two_models_of_a_cheating_server_do_not_share_their_noise() -> None:
    """A server that sends two models and subtracts the uploads would be rid of the noise."""
    first, second = noises_of({"name": "imprint", "spread": 0.5}, {"name": "imprint", "spread": 0.51})
    correlation = float(torch.corrcoef(torch.stack([first, second]))[0, 1])
    assert abs(correlation) < 0.02 and float((first - second).norm()) > 1.2 * float(first.norm())


def test_a12_two_aggregates_do_not_share_the_noise_of_the_others() -> None:
    noisy = load_plan(RunSpec(**{**NOISY, "clients": 5, "sampled": 5, "model": MLP, "dataset": "mnist"}))
    data = noisy.spec.dataset.load()
    sums = []
    with ThreadTeam(1) as team:
        for place in (7, 8):
            victim = make_victim(noisy, 1, data.test_x[place : place + 1], data.test_y[place : place + 1])
            sums.append(expose(noisy, first_state(noisy), victim, "aggregate", team).upload.model)
    difference = weights.subtract(sums[0], sums[1])
    spread = float(torch.cat([tensor.flatten() for tensor in difference.values()]).std())
    # Each client adds noise of std 1: five and five of them are in the difference. With shared noise it were 1.4.
    assert spread > 2.5
