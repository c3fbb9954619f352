"""Thumbnails: pictures of a data set, and uploaded pictures with the pixels that a model receives."""

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


def test_a_thumbnail_is_the_picture_with_that_name() -> None:
    data = DATASETS["cifar10"]().load()
    pictures = thumbnails("cifar10", ["test-3", "train-5"], Home.find())
    inputs = (data.test_x[3], data.train_x[5])
    labels = (data.test_y[3], data.train_y[5])
    for thumbnail, x, y in zip(pictures, inputs, labels, strict=True):
        pixels = np.asarray(Image.open(BytesIO(base64.b64decode(thumbnail.png)))) / 255
        assert np.allclose(pixels, x.permute(1, 2, 0).numpy(), atol=1 / 255)
        assert (thumbnail.label, thumbnail.title) == (int(y), data.classes[int(y)])
    assert classes("cifar10") == data.classes


def test_an_uploaded_picture_has_the_shape_of_the_data_set() -> None:
    home = Home.find()
    name = UploadedPictures(home).add(saved(photo(40, 40), "PNG"))
    (thumbnail,) = thumbnails({"name": "mnist"}, [f"own-{name}-7"], home)
    assert Image.open(BytesIO(base64.b64decode(thumbnail.png))).size == (28, 28)
    assert (thumbnail.label, thumbnail.title) == (7, classes("mnist")[7])
    UploadedPictures(home).remove(name)
    with pytest.raises(UnknownName):
        thumbnails("mnist", [f"own-{name}-7"], home)


@pytest.mark.parametrize("name", ["cat", "test-999999", "own-0123456789abcdef-99", "test-"])
def test_a_picture_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(BadInput):
        thumbnails("cifar10", [name], Home.find())
