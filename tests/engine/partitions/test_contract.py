"""What every partition promises; a new file on the shelf is tested with no edit."""

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
from tests.engine.makers import changed

NAMES = PARTITIONS.names()


def even(each: int, classes: int = 10) -> torch.Tensor:
    return torch.arange(classes).repeat(each)


@pytest.mark.parametrize("name", NAMES)
def test_it_declares_itself(name):
    part = PARTITIONS.make(name)
    assert part.title and part.source and part.remedy and part.summary().endswith(".")
    for field in type(part).model_fields.values():
        assert field.title and field.description and field.description.endswith(".")
    assert PARTITIONS.make(json.loads(json.dumps(PARTITIONS.dump(part)))) == part


@pytest.mark.parametrize("name", NAMES)
def test_every_changed_field_changes_the_dump(name):
    part = PARTITIONS.make(name)
    others = list(changed(part))
    dumps = [PARTITIONS.dump(one) for one in (part, *others)]
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
def test_bad_values_are_refused_with_a_sentence(name, values, sentence):
    with pytest.raises(BadInput) as caught:
        PARTITIONS.make({"name": name, **values})
    assert sentence in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_picture_goes_to_exactly_one_client(name, data):
    classes = data.draw(st.integers(1, 6))
    each = data.draw(st.integers(1, 40))
    clients = data.draw(st.integers(1, 12))
    extra = data.draw(st.lists(st.integers(0, classes - 1), max_size=30))
    train_y = torch.cat([even(each, classes), torch.tensor(extra, dtype=torch.int64)])
    test_y = torch.tensor(data.draw(st.lists(st.integers(0, classes - 1), max_size=30)), dtype=torch.int64)
    try:
        train, test = split(PARTITIONS.make(name), train_y, test_y, clients, Seeds(data.draw(st.integers(0, 99))))
    except BadInput as bad:
        assert str(bad).startswith(f"{name}: ") and "must" in bad.message and "got" in bad.message
        return
    for parts, labels in ((train, train_y), (test, test_y)):
        assert len(parts) == clients
        assert torch.equal(torch.cat(parts).sort().values, torch.arange(len(labels)))
        assert all(torch.equal(part, part.sort().values) and part.dtype == torch.int64 for part in parts)
    assert all(len(part) for part in train)


@pytest.mark.parametrize("name", NAMES)
def test_the_law_sums_to_one_for_each_class(name):
    frequencies = torch.tensor([1200.0, 0.0, 37.0, 5000.0, 1.0])
    shares = PARTITIONS.make(name).shares(frequencies, 40, Seeds(1).rng("law"))
    assert shares.shape == (5, 40) and shares.dtype == torch.float64
    assert bool((shares >= 0).all())
    torch.testing.assert_close(shares.sum(1), torch.ones(5, dtype=torch.float64))


@pytest.mark.parametrize("name", NAMES)
def test_training_and_test_follow_one_law(name):
    train_y, test_y = even(6000), even(1500)
    train, test = split(PARTITIONS.make(name), train_y, test_y, 10, Seeds(3))
    for mine, judged in zip(train, test, strict=True):
        have = torch.bincount(train_y[mine], minlength=10) / 6000
        seen = torch.bincount(test_y[judged], minlength=10) / 1500
        tolerance = 0.05 if name == "iid" else 1 / 1500 + 1 / 6000  # iid deals cards, the others cut at rounded shares
        torch.testing.assert_close(have, seen, atol=tolerance, rtol=0)


@pytest.mark.parametrize("name", NAMES)
def test_equal_seeds_deal_equally_and_the_global_generator_rests(name):
    before = torch.get_rng_state()
    first, again, other = (split(PARTITIONS.make(name), even(50), even(20), 10, Seeds(seed)) for seed in (5, 5, 6))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(a, b) for side in (0, 1) for a, b in zip(first[side], again[side], strict=True))
    assert any(not torch.equal(a, b) for a, b in zip(first[0], other[0], strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_more_clients_than_pictures_is_refused(name):
    for clients in (0, 11):
        with pytest.raises(
            BadInput, match=f"^{name}: clients: must be between 1 and the 10 training pictures, got {clients}"
        ):
            split(PARTITIONS.make(name), even(1), even(1), clients, Seeds(0))


@pytest.mark.parametrize("name", NAMES)
def test_what_a_form_shows_before_the_click(name):
    facts = SimpleNamespace(train_y=even(20), test_y=even(5))
    spec = SimpleNamespace(dataset=SimpleNamespace(facts=lambda: facts, noun="sentences"), clients=5, seed=0)
    assert PARTITIONS.make(name).problems(spec) == ()
    spec.clients = 1000
    [problem] = PARTITIONS.make(name).problems(spec)
    assert problem.fatal and problem.reason.startswith(
        f"{name}: clients: must be between 1 and the 200 training sentences"
    )
