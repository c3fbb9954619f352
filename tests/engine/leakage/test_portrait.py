"""The portrait is attacked like an uploaded picture, and needs no home."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.errors import BadInput, Damaged
from engine.events import Judged, Seen
from engine.jobs.entries import HomeResources
from engine.jobs.home import Home
from engine.jobs.owners import own_pictures
from engine.jobs.thumbnails import thumbnails
from engine.jobs.uploads import UploadedPictures
from engine.leakage import portrait
from engine.leakage.compatibility import refuse
from engine.leakage.pictures import attack
from engine.leakage.target import AttackResources
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec

RUN = RunSpec(method="fedavg", model={"name": "mlp"}, clients=20, sampled=5, epochs=1, rounds=1)


def results(name: str, resources: AttackResources) -> tuple[Seen, Judged]:
    events: list[Any] = list(attack(AttackSpec(run=RUN, attack="analytic", pictures=[name]), resources))
    return next(e for e in events if isinstance(e, Seen)), next(e for e in events if isinstance(e, Judged))


@pytest.mark.slow
def test_the_portrait_gives_the_result_of_the_same_file_uploaded(tmp_path: Path) -> None:
    home = Home(tmp_path)
    uploaded = UploadedPictures(home).add(portrait.FILE.read_bytes())
    seen, judged = results("portrait-3", AttackResources())
    own_seen, own_judged = results(f"own-{uploaded}-3", HomeResources(home))
    assert seen.originals == own_seen.originals and judged == own_judged
    assert judged.labels == (3,) and judged.numbers["psnr"][0] > 60
    assert not judged.nearest  # it is of no class of the data set, so it has no rank among neighbours
    assert thumbnails("fashion-mnist", ["portrait-3"], home)[0].png == seen.originals[0]


def test_the_portrait_belongs_to_no_visitor() -> None:
    assert own_pictures({"pictures": ["portrait-0"]}) == frozenset()


def test_a_label_that_the_data_set_lacks_is_refused(tmp_path: Path) -> None:
    spec = AttackSpec(run=RUN, pictures=["portrait-10"])
    with pytest.raises(BadInput, match="must have a label between 0 and 9, got portrait-10"):
        refuse(spec, AttackResources())
    with pytest.raises(BadInput, match="must be like test-7, train-7, portrait-LABEL or own-NAME-LABEL"):
        AttackSpec(run=RUN, pictures=["portrait"])


def test_a_missing_portrait_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portrait, "FILE", tmp_path / "portrait.png")
    with pytest.raises(Damaged, match=r"portrait\.png: cannot be read"):
        refuse(AttackSpec(run=RUN, pictures=["portrait-0"]), AttackResources())
