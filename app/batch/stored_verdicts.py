"""What stored attacks brought back of a picture at several noises of one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from app.batch import attack_cells
from engine.examples.attacks import AttackExample
from engine.results.attack_summary import AttackEvents, collect_cell
from engine.results.estimates import RunPlace, place_of
from engine.results.verdict import Verdict, rank
from engine.specs.attack_grid import AttackGrid, RequestedAttack

Question = tuple[str, tuple[str, ...], str, str, str]  # the setting of the run, pictures, upload, observer and round


@dataclass(frozen=True)
class StoredVerdict:
    """The best of the stored attacks on one picture at one noise."""

    noise: float
    verdict: Verdict


def by_noise(grid: AttackGrid, run: Mapping[str, Any]) -> list[StoredVerdict]:
    """The verdicts on the first picture of the grid under this run, at each noise of which attacks are stored."""
    place = place_of(run)
    if place is None:
        return []
    question = (place.setting, tuple(grid.pictures), grid.upload, grid.view, str(grid.round))
    best: dict[float, Verdict] = {}
    for attack, noise, verdict in _stored().get(question, ()):
        if attack in grid.attacks and (noise not in best or rank(verdict) > rank(best[noise])):
            best[noise] = verdict
    return [StoredVerdict(noise, best[noise]) for noise in sorted(best)]


@cache
def _stored() -> dict[Question, list[tuple[str, float, Verdict]]]:
    """The attacks that ship: the name, the noise and the verdict of each, by what they attack."""
    known: dict[Question, list[tuple[str, float, Verdict]]] = {}
    for example in attack_cells.stored().values():
        run = example.spec.get("run")
        place = place_of(run) if isinstance(run, Mapping) else None
        verdict = _verdict(example)
        if place is not None and verdict is not None:
            row = (str(example.spec["attack"]["name"]), place.noise, verdict)
            known.setdefault(_question(place, example.spec), []).append(row)
    return known


def _question(place: RunPlace, spec: Mapping[str, Any]) -> Question:
    upload = str(spec.get("upload", "listed"))
    return place.setting, tuple(spec["pictures"]), upload, str(spec["view"]), str(spec["round"])


def _verdict(example: AttackExample) -> Verdict | None:
    """The verdict on the first picture of the upload."""
    cell = collect_cell(RequestedAttack("", "", None), AttackEvents("stored", example.events))
    return cell.verdict(0)
