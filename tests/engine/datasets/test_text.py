"""The text data sets: the bundled one, and Sentiment140 in its published format."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from engine.datasets import DATASETS, DataFolders
from engine.errors import BadInput, MissingData
from engine.methods import METHODS
from tests.engine.datasets.makers import TWEETS, write_tweets

PAIRS = [(0, f"so sad {number}") for number in range(100)] + [(4, f"so glad {number}") for number in range(100)]


def places(tmp_path):
    return DataFolders(tmp_path / "assets", (tmp_path / "own", tmp_path / "home"), tmp_path / "system")


def tweets(**values):
    return DATASETS.make({"name": "sentiment140", **values})


@pytest.mark.parametrize("folder", ["own", "own/sentiment140", "home"])
def test_the_messages_are_found_and_read(tmp_path, folder):
    write_tweets(tmp_path / folder, PAIRS)
    part = tweets(**{"one-in": 1})
    locations = places(tmp_path)
    data = part.load(locations)
    assert data.train_x.shape == (160, 40) and data.test_x.shape == (40, 40)
    assert data.train_y.bincount().tolist() == [80, 80] and data.test_y.bincount().tolist() == [20, 20]
    assert data.origin == "Sentiment140, full set: 160 training and 40 test sentences"
    assert [place for place, exists in part.places(locations) if exists] == [str(tmp_path / folder / TWEETS)]
    short = tweets(**{"one-in": 10}, length=4)
    assert short.load(locations).train_x.shape == (16, 4) == (len(short.facts(locations).train_y), *short.shape)
    assert short.load(locations).origin.startswith("Sentiment140, one message in 10: 16 training and 4 test")


def test_the_error_for_a_missing_file_names_the_folder(tmp_path):
    with pytest.raises(MissingData, match=r"^sentiment140: the full set is not on this machine") as caught:
        tweets().load(places(tmp_path))
    assert caught.value.remedy == f"Put its file {TWEETS} into a folder named in LEAKLENS_DATA"


def test_a_private_method_warns_that_no_epsilon_covers_the_list_of_words():
    reviews = DATASETS.make("movie-reviews")
    assert reviews.problems(SimpleNamespace(method=METHODS.make("fedavg"))) == ()
    for method in ("udp-fedavg", "dp-fedavg"):
        [problem] = reviews.problems(SimpleNamespace(method=METHODS.make(method)))
        assert not problem.fatal and "training sentences of all clients" in problem.reason
        assert "public" in problem.remedy


def test_a_length_out_of_bounds_gives_an_error():
    with pytest.raises(BadInput, match=r"^movie-reviews: length: must be a whole number between 4 and 256, got 3"):
        DATASETS.make({"name": "movie-reviews", "length": 3})
    with pytest.raises(BadInput, match=r"^sentiment140: one-in: must be a whole number between 1 and 10000, got 0"):
        tweets(**{"one-in": 0})
