"""Small pictures are those of the data set, and those that people brought as a model sees them."""

from __future__ import annotations

import base64
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from engine.datasets import DATASETS
from engine.errors import BadInput, UnknownName
from engine.jobs.home import Home
from engine.jobs.thumbnails import classes, thumbnails
from engine.jobs.uploads import UploadedPictures
from tests.engine.jobs.makers import photo, saved


def test_a_thumb_is_the_picture_of_that_name() -> None:
    data = DATASETS["cifar10"]().load()
    found = thumbnails("cifar10", ["test-3", "train-5"], Home.find())
    for one, x, y in zip(found, (data.test_x[3], data.train_x[5]), (data.test_y[3], data.train_y[5]), strict=True):
        shown = np.asarray(Image.open(BytesIO(base64.b64decode(one.png)))) / 255
        assert np.allclose(shown, x.permute(1, 2, 0).numpy(), atol=1 / 255)
        assert (one.label, one.title) == (int(y), data.classes[int(y)])
    assert classes("cifar10") == data.classes


def test_a_picture_of_ones_own_has_the_shape_of_the_data_set() -> None:
    home = Home.find()
    name = UploadedPictures(home).add(saved(photo(40, 40), "PNG"))
    (found,) = thumbnails({"name": "mnist"}, [f"own-{name}-7"], home)
    assert Image.open(BytesIO(base64.b64decode(found.png))).size == (28, 28)
    assert (found.label, found.title) == (7, classes("mnist")[7])
    UploadedPictures(home).remove(name)
    with pytest.raises(UnknownName):
        thumbnails("mnist", [f"own-{name}-7"], home)


@pytest.mark.parametrize("name", ["cat", "test-999999", "own-0123456789abcdef-99", "test-"])
def test_what_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(BadInput):
        thumbnails("cifar10", [name], Home.find())
