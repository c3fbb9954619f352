"""The contract of every partition on the shelf; a new partition is tested without a change here."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import BadInput
from engine.partitions import PARTITIONS, split
from engine.seeds import Seeds
from tests.engine.makers import parts_with_one_change

NAMES = PARTITIONS.names()


def balanced_labels(per_class: int, classes: int = 10) -> torch.Tensor:
    return torch.arange(classes).repeat(per_class)


@pytest.mark.parametrize("name", NAMES)
def test_a_partition_has_a_title_a_source_and_a_summary(name):
    part = PARTITIONS.make(name)
    assert part.title and part.source and part.remedy and part.summary().endswith(".")
    for field in type(part).model_fields.values():
        assert field.title and field.description and field.description.endswith(".")
    assert PARTITIONS.make(json.loads(json.dumps(PARTITIONS.dump(part)))) == part


@pytest.mark.parametrize("name", NAMES)
def test_every_changed_field_changes_the_dump(name):
    part = PARTITIONS.make(name)
    others = list(parts_with_one_change(part))
    dumps = [PARTITIONS.dump(partition) for partition in (part, *others)]
    assert all(dumps.count(dump) == 1 for dump in dumps) and len(others) == len(type(part).model_fields)
    assert [PARTITIONS.make(json.loads(json.dumps(dump))) for dump in dumps] == [part, *others]


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        ("dirichlet", {"alpha": 0}, "dirichlet: alpha: must be a number above 0 and at most 1000000, got 0"),
        (
            "dirichlet",
            {"alpha": float("nan")},
            "dirichlet: alpha: must be a number above 0 and at most 1000000, got nan",
        ),
        ("shards", {"per-client": 0}, "shards: per-client: must be a whole number between 1 and 100, got 0"),
        ("classes-per-client", {"classes": "two"}, "must be a whole number between 1 and 1000, got two"),
        ("iid", {"alpha": 1.0}, "iid: alpha: no such parameter"),
    ],
)
def test_a_bad_value_gives_an_error_with_the_rule(name, values, sentence):
    with pytest.raises(BadInput) as caught:
        PARTITIONS.make({"name": name, **values})
    assert sentence in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_picture_goes_to_exactly_one_client(name, data):
    classes = data.draw(st.integers(1, 6))
    per_class = data.draw(st.integers(1, 40))
    clients = data.draw(st.integers(1, 12))
    extra = data.draw(st.lists(st.integers(0, classes - 1), max_size=30))
    train_y = torch.cat([balanced_labels(per_class, classes), torch.tensor(extra, dtype=torch.int64)])
    test_y = torch.tensor(data.draw(st.lists(st.integers(0, classes - 1), max_size=30)), dtype=torch.int64)
    try:
        train, test = split(PARTITIONS.make(name), train_y, test_y, clients, Seeds(data.draw(st.integers(0, 99))))
    except BadInput as error:
        assert str(error).startswith(f"{name}: ") and "must" in error.message and "got" in error.message
        return
    for parts, labels in ((train, train_y), (test, test_y)):
        assert len(parts) == clients
        assert torch.equal(torch.cat(parts).sort().values, torch.arange(len(labels)))
        assert all(torch.equal(part, part.sort().values) and part.dtype == torch.int64 for part in parts)
    assert all(len(part) for part in train)


@pytest.mark.parametrize("name", NAMES)
def test_the_shares_of_each_class_sum_to_one(name):
    frequencies = torch.tensor([1200.0, 0.0, 37.0, 5000.0, 1.0])
    shares = PARTITIONS.make(name).shares(frequencies, 40, Seeds(1).rng("law"))
    assert shares.shape == (5, 40) and shares.dtype == torch.float64
    assert bool((shares >= 0).all())
    torch.testing.assert_close(shares.sum(1), torch.ones(5, dtype=torch.float64))


@pytest.mark.parametrize("name", NAMES)
def test_training_and_test_pictures_follow_the_same_shares(name):
    train_y, test_y = balanced_labels(6000), balanced_labels(1500)
    train, test = split(PARTITIONS.make(name), train_y, test_y, 10, Seeds(3))
    for train_places, test_places in zip(train, test, strict=True):
        train_shares = torch.bincount(train_y[train_places], minlength=10) / 6000
        test_shares = torch.bincount(test_y[test_places], minlength=10) / 1500
        # iid draws pictures at random, the others cut at rounded shares
        tolerance = 0.05 if name == "iid" else 1 / 1500 + 1 / 6000
        torch.testing.assert_close(train_shares, test_shares, atol=tolerance, rtol=0)


@pytest.mark.parametrize("name", NAMES)
def test_equal_seeds_give_equal_parts_and_the_global_generator_is_not_used(name):
    before = torch.get_rng_state()
    first, same, other = (
        split(PARTITIONS.make(name), balanced_labels(50), balanced_labels(20), 10, Seeds(seed)) for seed in (5, 5, 6)
    )
    assert torch.equal(before, torch.get_rng_state())
    for parts, same_parts in zip(first, same, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(parts, same_parts, strict=True))
    assert any(not torch.equal(a, b) for a, b in zip(first[0], other[0], strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_more_clients_than_pictures_is_an_error(name):
    for clients in (0, 11):
        message = f"^{name}: clients: must be between 1 and the 10 training pictures, got {clients}"
        with pytest.raises(BadInput, match=message):
            split(PARTITIONS.make(name), balanced_labels(1), balanced_labels(1), clients, Seeds(0))


@pytest.mark.parametrize("name", NAMES)
def test_the_problems_that_a_form_shows(name):
    facts = SimpleNamespace(train_y=balanced_labels(20), test_y=balanced_labels(5))
    spec = SimpleNamespace(dataset=SimpleNamespace(facts=lambda: facts, noun="sentences"), clients=5, seed=0)
    assert PARTITIONS.make(name).problems(spec) == ()
    spec.clients = 1000
    [problem] = PARTITIONS.make(name).problems(spec)
    message = f"{name}: clients: must be between 1 and the 200 training sentences"
    assert problem.fatal and problem.reason.startswith(message)
