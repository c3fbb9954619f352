"""An ordinary upload: the run's own client with one chosen picture, attacked as it would be in practice."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import pytest
import torch

from engine import attack, images
from engine.cli.attack import attack_lines, attack_report, write_pictures
from engine.compute.threads import ThreadTeam
from engine.errors import BadInput
from engine.events import Event, Judged, Pictured, Seen
from engine.leakage.compatibility import problem
from engine.leakage.judge import guess_order
from engine.leakage.ordinary import ordinary_victim
from engine.leakage.probe import expose, make_victim, probe_seeds, trained_victim
from engine.results.attack_summary import AttackCell
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from engine.training.exposure import pixels
from engine.training.plan import load_plan
from engine.training.rounds import Exchange, first_state, train_round

MLP = {"name": "mlp", "bias": True, "hidden": 32}
RUN = {"method": "fedavg", "model": MLP, "clients": 100, "sampled": 5, "rounds": 1}


def spec(**values: object) -> AttackSpec:
    return AttackSpec(**{"run": RunSpec(**RUN), "attack": "analytic", "pictures": ("test-7",), **values})


@cache
def cheated() -> tuple[Event, ...]:
    """An attack on an ordinary upload to a server that cheats."""
    return tuple(attack(spec(attack="imprint", upload="cheat"), threads=1))


def test_the_default_is_left_out_of_the_id() -> None:
    assert "upload" not in spec().canonical() and spec(upload="listed").id == spec().id
    assert spec(upload="ordinary").canonical()["upload"] == "ordinary" and spec(upload="ordinary").id != spec().id


@pytest.mark.parametrize("pictures", [(), ("test-1", "test-2")])
def test_an_ordinary_upload_has_one_chosen_picture(pictures: tuple[str, ...]) -> None:
    with pytest.raises(BadInput, match="exactly one picture"):
        spec(upload="ordinary", pictures=pictures)


@pytest.mark.parametrize(
    ("attack", "upload", "reason"),
    [("map", "cheat", "Choose imprint"), ("imprint", "ordinary", "Choose upload cheat")],
)
def test_only_an_attack_that_changes_the_model_cheats(attack: str, upload: str, reason: str) -> None:
    refused = problem(spec(attack=attack, upload=upload))
    assert refused is not None and refused.remedy == reason
    assert problem(spec(attack="imprint", upload="cheat")) is None


def test_with_its_own_record_the_upload_is_that_of_the_run() -> None:
    """Batches of all records: the random streams of the probe draw nothing, so the upload is equal bit for bit."""
    request = spec(run=RunSpec(**RUN, batch=512), upload="ordinary")
    plan = load_plan(request.run)
    recorded: list[Exchange] = []
    with ThreadTeam(1) as team:
        state = first_state(plan)
        train_round(plan, first_state(plan), 1, team, watch=recorded.append)
        client = plan.client(plan.cohort(1)[0])
        own = (pixels(plan, client.x[:1]), client.y[:1])
        victim, truth, labels = ordinary_victim(request, plan, state, 1, own, team, None)
        exposure = expose(plan, state, victim, "server", team)
    assert len(truth) == len(labels) == len(client.y) == exposure.protocol.pictures
    for name, tensor in recorded[0].uploads[0].model.items():
        assert torch.allclose(exposure.upload.model[name], tensor, atol=1e-7), name


def test_a_method_that_draws_batches_draws_the_chosen_picture() -> None:
    request = spec(run=RunSpec(**{**RUN, "method": "fedsgd"}, batch=16), upload="ordinary")
    plan = load_plan(request.run)
    data = request.run.dataset.load()
    picture, label = data.test_x[7:8], data.test_y[7:8]
    with ThreadTeam(1) as team:
        victim, truth, labels = ordinary_victim(request, plan, first_state(plan), 1, (picture, label), team, None)
        exposure = expose(plan, first_state(plan), victim, "server", team)
    assert len(truth) == 16 == exposure.protocol.pictures and exposure.at_once == 128
    assert torch.equal(truth[0], picture[0]) and int(labels[0]) == int(label[0])


@pytest.mark.slow
def test_a_server_that_cheats_reads_pictures_of_an_ordinary_upload() -> None:
    events = cheated()
    seen = next(event for event in events if isinstance(event, Seen))
    judged = next(event for event in events if isinstance(event, Judged))
    assert len(seen.originals) == seen.facts["own-pictures"] == 120 and seen.facts["own-steps"] == seen.facts["steps"]
    words = [AttackCell("", "", "", seen=seen, judged=judged).verdict(place) for place in range(120)]
    assert words.count("comes back") > 40
    assert set(judged.numbers) == {"psnr", "ssim", "lpips"} and not judged.matching  # its classes are often wrong
    cell = AttackCell("", "", "", seen=seen, judged=judged)
    assert cell.works and cell.by_chance is not None and cell.by_chance < cell.leaking_others / 2


@pytest.mark.slow
def test_frames_of_a_large_upload_hold_the_chosen_picture_only() -> None:
    search = {"name": "inverting-gradients", "iterations": 3}
    events = list(attack(spec(attack=search, upload="ordinary"), threads=1))
    frames = [event for event in events if isinstance(event, Pictured)]
    assert len(frames) > 1 and all(frame.places in ((0,), ()) for frame in frames[:-1])
    assert len(frames[-1].pictures) == 120
    judged = next(event for event in events if isinstance(event, Judged))
    assert judged.numbers["psnr"][0] == frames[-1].psnr[frames[-1].places.index(0)]


def test_the_chosen_picture_of_a_large_client_has_the_nearest_guess() -> None:
    rng = torch.Generator().manual_seed(0)
    truth = torch.rand(30, 1, 4, 4, generator=rng, device="cpu")
    guess = truth[10:20] + 0.01
    order = guess_order(guess.clamp(0, 1), truth)
    assert int(order[0]) < len(guess) and sorted(order.tolist())[:10] == list(range(10))


def test_a_client_with_too_many_records_is_refused() -> None:
    crowd = RunSpec(**{**RUN, "clients": 5, "sampled": 5, "dataset": "fashion-mnist"})
    with pytest.raises(BadInput, match="at most 2,000 records, got 2400"):
        list(attack(spec(run=crowd, upload="ordinary"), threads=1))


def test_a12_no_two_uploads_with_the_same_picture_share_their_noise() -> None:
    """With one stream for both, the difference of two uploads would be free of noise."""
    plan = load_plan(RunSpec(**RUN))
    data = plan.spec.dataset.load()
    picture, label = data.test_x[7:8], data.test_y[7:8]
    victims = [make_victim(plan, 1, picture, label)]
    with ThreadTeam(1) as team:
        for upload in ("ordinary", "cheat"):
            request = spec(upload=upload, attack="imprint" if upload == "cheat" else "map")
            victims.append(ordinary_victim(request, plan, first_state(plan), 1, (picture, label), team, None)[0])
        other = (data.test_x[9:10], data.test_y[9:10])
        victims.append(ordinary_victim(spec(upload="ordinary"), plan, first_state(plan), 1, other, team, None)[0])
        trained = [trained_victim(plan, first_state(plan), victim, "server", team) for victim in victims[1::2]]
    seeds = {probe_seeds(plan, victim).seed for victim in victims}
    assert len(seeds) == 4 and plan.spec.seed not in seeds
    assert {part.contexts[part.slot].seeds.seed for part in trained} < seeds  # and these are the streams that are used


def picture_of(file: Path) -> torch.Tensor:
    return images.model_input(file.read_bytes(), (1, 28, 28))


@pytest.mark.slow
def test_the_files_of_an_ordinary_upload_have_the_numbers_of_their_originals(tmp_path: Path) -> None:
    events = cheated()
    write_pictures(events, tmp_path)
    body = attack_report("x", events)
    originals = {place: picture_of(tmp_path / f"original-{place}.png") for place in body["places"]}
    for index, place in enumerate(body["places"]):
        guess = picture_of(tmp_path / f"guess-{place}.png")
        mse = float((guess - originals[place]).square().mean())
        assert -10 * math.log10(max(mse, 1e-12)) == pytest.approx(body["each"]["psnr"][index], abs=0.5) or mse < 1e-4
    assert body["verdict"] == body["verdicts"][body["places"].index(0)]
    assert body["psnr"] == body["each"]["psnr"][body["places"].index(0)]
    lines = attack_lines({**body, "status": "finished"})
    assert lines[1].startswith(f"  imprint: the chosen picture: {body['verdict']} (of 120 guesses, comes back: ")
    assert "an ordinary upload with the chosen picture, for a model that the server changed" in lines[-1]
