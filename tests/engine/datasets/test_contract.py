"""The contract of every data set on the shelf; a new data set is tested without a change here."""

from __future__ import annotations

import json

import pytest
import torch

from engine.datasets import DATASETS
from engine.errors import BadInput
from engine.part import hyphened
from engine.words import PADDING, UNKNOWN
from tests.engine.makers import parts_with_one_change

NAMES = DATASETS.names()
BUNDLED = [name for name in NAMES if DATASETS.make(name).ships]
PICTURES = [name for name in BUNDLED if len(DATASETS.make(name).shape) == 3]
TEXTS = [name for name in BUNDLED if len(DATASETS.make(name).shape) == 1]
WITH_FIELD_FULL = [name for name in NAMES if "full" in DATASETS[name].model_fields]


@pytest.mark.parametrize("name", NAMES)
def test_a_data_set_has_a_title_a_source_and_a_summary(name):
    part = DATASETS.make(name)
    assert part.title and part.source and part.noun and part.summary().endswith(".")
    assert (part.whole() is None) is (part.obtain == "")  # a set that is not bundled says how to get it
    assert len(part.shape) in (1, 3) and len(set(part.classes)) == len(part.classes) > 1
    for field in type(part).model_fields.values():
        assert field.title and field.description and field.description.endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_every_changed_field_changes_the_dump(name):
    part = DATASETS.make(name)
    others = list(parts_with_one_change(part))
    dumps = [DATASETS.dump(dataset) for dataset in (part, *others)]
    assert all(dumps.count(dump) == 1 for dump in dumps) and len(others) == len(type(part).model_fields)
    assert [DATASETS.make(json.loads(json.dumps(dump))) for dump in dumps] == [part, *others]


@pytest.mark.parametrize("name", WITH_FIELD_FULL)
def test_a_bad_value_gives_an_error_with_the_rule(name):
    with pytest.raises(BadInput, match=f"^{name}: full: must be true or false, got 1$"):
        DATASETS.make({"name": name, "full": 1})
    with pytest.raises(BadInput, match=rf"^{name}: half: no such parameter\. Known here: full, normalise"):
        DATASETS.make({"name": name, "half": True})


@pytest.mark.parametrize("name", NAMES)
def test_the_error_for_an_unknown_field_names_the_known_fields(name):
    known = ", ".join(hyphened(field) for field in DATASETS[name].model_fields)
    with pytest.raises(BadInput, match=rf"^{name}: half: no such parameter\. Known here: {known}"):
        DATASETS.make({"name": name, "half": True})


def test_every_bundled_set_holds_pictures_or_text():
    assert sorted([*PICTURES, *TEXTS]) == BUNDLED and set(WITH_FIELD_FULL) <= set(BUNDLED)


@pytest.mark.parametrize("name", BUNDLED)
def test_the_bundled_part(name):
    part = DATASETS.make(name)
    before = torch.get_rng_state()
    data = part.load()
    facts = part.facts()
    assert torch.equal(before, torch.get_rng_state())
    for x, y in ((data.train_x, data.train_y), (data.test_x, data.test_y)):
        assert y.dtype == torch.int64
        assert x.shape == (len(y), *part.shape) and x.is_contiguous()
        counts = torch.bincount(y, minlength=len(data.classes))
        assert len(counts) == len(data.classes) and int(counts.min()) == int(counts.max())
    assert facts.shape == data.shape == part.shape and facts.classes == data.classes == part.classes
    assert torch.equal(facts.train_y, data.train_y) and torch.equal(facts.test_y, data.test_y)
    assert (facts.mean, facts.std) == (data.mean, data.std) == part.moments
    assert data.origin.startswith(f"{part.title}, bundled part: {len(data.train_y):,} training and")


@pytest.mark.parametrize("name", PICTURES)
def test_pixels_are_between_0_and_1(name):
    data = DATASETS.make(name).load()
    for x in (data.train_x, data.test_x):
        assert x.dtype == torch.float32
        assert float(x.min()) == 0.0 and float(x.max()) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_rows_of_words_end_once_and_training_has_no_unknown_words(name):
    part = DATASETS.make(name)
    data = part.load()
    for x in (data.train_x, data.test_x):
        assert x.dtype == torch.int64 and int(x.min()) == PADDING
        assert bool((x[:, 0] != PADDING).all())  # no sentence without a word
        ended = (x == PADDING).long()
        assert bool((ended.diff(dim=1) >= 0).all())  # and no word after its end
    assert not bool((data.train_x == UNKNOWN).any()) and bool((data.test_x == UNKNOWN).any())
    numbers = torch.bincount(data.train_x.flatten())[UNKNOWN + 1 :].float()
    assert bool((numbers[:50] > 10 * numbers[-50:]).all())  # the most frequent words have the smallest numbers
    assert part.moments == ((), ()) and torch.equal(data.normal_(data.train_x.clone()), data.train_x)
    [length] = part.shape
    half = part.with_(length=length // 2).load()
    assert torch.equal(half.train_x, data.train_x[:, : length // 2])


@pytest.mark.parametrize("name", PICTURES)
def test_mean_and_std_describe_the_pixels(name):
    data = DATASETS.make(name).load()
    mean, std = data.train_x.mean((0, 2, 3)), data.train_x.std((0, 2, 3))
    torch.testing.assert_close(
        mean, torch.tensor(data.mean), atol=0.004, rtol=0
    )  # the bundled part differs a little from the full set
    torch.testing.assert_close(std, torch.tensor(data.std), atol=0.004, rtol=0)
    raw = DATASETS.make({"name": name, "normalise": False}).load()
    assert raw.mean == (0.0,) * len(data.mean) and raw.std == (1.0,) * len(data.mean)
    assert raw.train_x is data.train_x  # the pixels are read once, and normalisation does not change them
    shifted = data.normal_(data.test_x.clone())
    channel_std = torch.tensor(data.std).view(-1, 1, 1)
    channel_mean = torch.tensor(data.mean).view(-1, 1, 1)
    torch.testing.assert_close(shifted * channel_std, data.test_x - channel_mean)
    assert torch.equal(raw.normal_(data.test_x.clone()), data.test_x)


@pytest.mark.parametrize("name", BUNDLED)
def test_the_bundled_part_has_no_problems(name):
    part = DATASETS.make(name)
    assert part.problems(None) == ()
    [(place, exists)] = part.places()
    assert exists and place.endswith(f"assets/{part.bundle}")
