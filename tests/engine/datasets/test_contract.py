"""What every data set promises; a new file on the shelf is tested with no edit."""

from __future__ import annotations

import json

import pytest
import torch

from engine.datasets import DATASETS
from engine.errors import BadInput
from tests.engine.declared import changed

NAMES = DATASETS.names()


@pytest.mark.parametrize("name", NAMES)
def test_it_declares_itself(name):
    part = DATASETS.make(name)
    assert part.title and part.source and part.obtain and part.summary().endswith(".")
    for field in type(part).model_fields.values():
        assert field.title and field.description and field.description.endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_every_changed_field_changes_the_dump(name):
    part = DATASETS.make(name)
    others = list(changed(part))
    dumps = [DATASETS.dump(one) for one in (part, *others)]
    assert all(dumps.count(dump) == 1 for dump in dumps) and len(others) == len(type(part).model_fields)
    assert [DATASETS.make(json.loads(json.dumps(dump))) for dump in dumps] == [part, *others]


@pytest.mark.parametrize("name", NAMES)
def test_bad_values_are_refused_with_a_sentence(name):
    with pytest.raises(BadInput, match=f"^{name}: full: must be true or false, got 1$"):
        DATASETS.make({"name": name, "full": 1})
    with pytest.raises(BadInput, match=rf"^{name}: half: no such parameter\. Known here: full, normalise"):
        DATASETS.make({"name": name, "half": True})


@pytest.mark.parametrize("name", NAMES)
def test_the_bundled_part(name):
    part, before = DATASETS.make(name), torch.get_rng_state()
    data, facts = part.load(), part.facts()
    assert torch.equal(before, torch.get_rng_state())
    for x, y in ((data.train_x, data.train_y), (data.test_x, data.test_y)):
        assert x.dtype == torch.float32 and y.dtype == torch.int64
        assert x.shape == (len(y), *part.shape) and x.is_contiguous()
        assert float(x.min()) == 0.0 and float(x.max()) == 1.0
        counts = torch.bincount(y, minlength=len(data.classes))
        assert len(counts) == len(data.classes) and int(counts.min()) == int(counts.max())
    assert facts.shape == data.shape == part.shape and facts.classes == data.classes == part.classes
    assert torch.equal(facts.train_y, data.train_y) and torch.equal(facts.test_y, data.test_y)
    assert data.origin.startswith(f"{part.title}, bundled part: {len(data.train_y):,} training and")


@pytest.mark.parametrize("name", NAMES)
def test_its_constants_describe_its_pixels(name):
    data = DATASETS.make(name).load()
    mean, std = data.train_x.mean((0, 2, 3)), data.train_x.std((0, 2, 3))
    torch.testing.assert_close(mean, torch.tensor(data.mean), atol=0.004, rtol=0)  # a part of the set is not the set
    torch.testing.assert_close(std, torch.tensor(data.std), atol=0.004, rtol=0)
    plain = DATASETS.make({"name": name, "normalise": False}).load()
    assert plain.mean == (0.0,) * len(data.mean) and plain.std == (1.0,) * len(data.mean)
    assert plain.train_x is data.train_x  # pixels never change, and are read once


@pytest.mark.parametrize("name", NAMES)
def test_nothing_stands_in_the_way_of_the_bundled_part(name):
    part = DATASETS.make(name)
    assert part.problems(None) == ()
    [(place, found)] = part.places()
    assert found and place.endswith(f"assets/{part.bundle}")
