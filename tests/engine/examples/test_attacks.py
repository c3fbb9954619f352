"""The attacks that ship: there is one for every request, and an attack today gives the same result."""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import Damaged, NewerVersion
from engine.events import Finished, Judged, Pictured, Seen
from engine.examples import attack_gallery, attacks, publishing
from engine.leakage.pictures import attack
from engine.results.attack_summary import AttackEvents, collect_cell
from engine.specs.attack import AttackSpec
from engine.specs.attack_grid import RequestedAttack
from tests.app.screens.leak.makers import finished_attack, judged

MOST_BYTES = 3_000_000


@pytest.mark.slow
def test_nothing_that_ships_is_outdated() -> None:
    assert attack_gallery.outdated() == ()


def test_a_request_without_a_result_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    request = attack_gallery.read_request()
    monkeypatch.setattr(attack_gallery, "read_request", lambda: replace(request, pictures=13, budget=20.0))
    names = attack_gallery.outdated()
    missing = [name for name in names if "is missing" in name]
    assert any("map on test-12, none" in name for name in missing)
    assert any("map on test-0, fedceo@20" in name for name in missing)
    assert any("is not requested any more" in name for name in names)


def test_each_example_holds_what_the_page_shows() -> None:
    assert attacks.RESULT_FILE.stat().st_size <= MOST_BYTES
    for example in attacks.attack_examples():
        assert AttackSpec(**example.spec).id == example.id
        cell = collect_cell(RequestedAttack("", "", None), AttackEvents("stored", example.events))
        assert cell.seen and cell.judged and cell.path and isinstance(example.events[-1], Finished)
        assert cell.picture_count >= len(example.spec["pictures"])
        for guess in cell.path:  # no guess without its original
            assert guess.places and all(cell.seen.originals[place] for place in guess.places)
        leaking = [place for place in cell.judged.places if cell.leaks(place)]
        assert len(set(leaking) & set(cell.path[-1].places)) == min(len(leaking), publishing.COMING_BACK)


def test_the_best_attack_of_each_column_has_its_way_there() -> None:
    frames = [sum(isinstance(event, Pictured) for event in example.events) for example in attacks.attack_examples()]
    assert max(frames) == attack_gallery.FRAMES
    assert frames.count(attack_gallery.FRAMES) >= 12  # without protection some search is the best, or the exact attack


@pytest.mark.slow
def test_an_attack_today_gives_the_result_that_ships() -> None:
    exact = [example for example in attacks.attack_examples() if example.spec["attack"]["name"] == "analytic"]
    alone = [example for example in exact if len(example.spec["pictures"]) == 1 and "upload" not in example.spec]
    for example in alone[::9]:  # other pictures, noises, methods and a budget
        actual = next(event for event in attack(AttackSpec(**example.spec)) if isinstance(event, Judged))
        shipped = next(event for event in example.events if isinstance(event, Judged))
        assert actual.state == shipped.state and actual.labels == shipped.labels
        assert actual.numbers["psnr"][0] == pytest.approx(shipped.numbers["psnr"][0], abs=0.5)


def test_an_unreadable_file_gives_no_grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "results.json.xz"
    monkeypatch.setattr(attacks, "RESULT_FILE", file)
    assert attacks.attack_examples() == ()
    whole = lzma.compress(json.dumps({"format": 1, "made": "2026-01-01", "cells": []}).encode())
    damaged = [b"{", whole[:-5], whole[:20], b""]
    for text in ("{", "[]", json.dumps({"format": 1, "made": "2026-01-01", "cells": [{"events": []}]})):
        damaged.append(lzma.compress(text.encode()))
    for body in damaged:
        file.write_bytes(body)
        with pytest.raises(Damaged, match="Make it again: python3 -m engine gallery leaks"):
            attacks.read(file)
    file.write_bytes(lzma.compress(json.dumps({"format": 9, "made": "", "cells": []}).encode()))
    with pytest.raises(NewerVersion):
        attacks.read(file)


def test_a_few_guesses_from_the_first_to_the_last() -> None:
    guesses = [Pictured("map", place, 40, 0, 1.0, ("png",), (0,), (20.0,)) for place in range(41)]
    curves = {"psnr": tuple(float(place) for place in range(41))}
    judged = Judged("map", "converged", "", 0, (0,), (3,), {"psnr": (30.0,)}, {}, curves, (), 0.0)
    events = [Seen("server", 1, 0, {}, ("png",), {}), *guesses, judged, Finished(0, 1.0)]
    kept = publishing.keep(events, 8)
    path = [event.iteration for event in kept if isinstance(event, Pictured)]
    assert len(path) == 8 and path[0] == 0 and path[-1] == 40
    ending = next(event for event in kept if isinstance(event, Judged))
    assert ending.curves["psnr"] == tuple(map(float, path))
    assert [event.iteration for event in publishing.keep(events, 1) if isinstance(event, Pictured)] == [40]


def test_the_guesses_of_a_column_go_to_the_attack_that_brought_most_back() -> None:
    request = attack_gallery.read_request()
    specs = [cell for cell in attack_gallery.cells(request) if cell.column == "test-0 none"]
    results = [finished_attack("x", [psnr]) for psnr in (18.0, 30.0, 14.0)]
    assert [cell.attack for cell in specs] == ["analytic", "map", "inverting-gradients"]
    assert attack_gallery._best_of_columns(specs, results) == {specs[1].spec.id}


def test_of_an_ordinary_upload_the_first_pictures_ship_and_the_best_that_come_back() -> None:
    scores = [14.0, *(float(place) for place in range(17, 37)), *[14.0] * 9]  # from 17 dB on, outlines come back
    kept = publishing._pictures(judged(scores))
    best = sorted(range(len(scores)), key=lambda place: -scores[place])[: publishing.COMING_BACK]
    assert kept == {*range(publishing.FIRST), *best}
