"""EMNIST: handwritten letters and digits, in the files of torchvision."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from engine.datasets.base import DATASETS, DataFolders, PictureDataset
from engine.datasets.files import FileLayout, TransposedIdx

# letters whose small form is so like the large one that the balanced split makes one class of both
ALIKE = frozenset("cijklmopsuvwxyz")


@DATASETS.add("emnist", title="EMNIST", source="Cohen, Afshar, Tapson, van Schaik 2017")
class Emnist(PictureDataset):
    """Grey 28 x 28 pictures of handwritten letters, or of digits and letters."""

    shape: ClassVar[tuple[int, ...]] = (1, 28, 28)
    centre: ClassVar[tuple[float, ...]] = (0.1307,)
    spread: ClassVar[tuple[float, ...]] = (0.3081,)
    torch_name: ClassVar[str] = "EMNIST"
    obtain: ClassVar[str] = "Put the four idx files of the split, gzipped or not, into a folder named in LEAKLENS_DATA"

    split: Literal["letters", "balanced"] = Field(
        "letters",
        title="split",
        description="`letters`: 26, large and small alike. `balanced`: 47 digits and letters, equally frequent.",
    )
    normalise: bool = Field(
        True,
        title="normalise",
        description="Shift and scale by the mean and deviation of MNIST, as FedCEO's code does.",
    )

    @property
    def classes(self) -> tuple[str, ...]:
        if self.split == "letters":
            return tuple(string.ascii_uppercase)
        small = (letter for letter in string.ascii_lowercase if letter not in ALIKE)
        return (*string.digits, *string.ascii_uppercase, *small)

    def layouts(self, places: DataFolders) -> tuple[FileLayout, ...]:
        head, first = f"emnist-{self.split}", 1 if self.split == "letters" else 0
        names = (
            f"{head}-train-images-idx3-ubyte",
            f"{head}-train-labels-idx1-ubyte",
            f"{head}-test-images-idx3-ubyte",
            f"{head}-test-labels-idx1-ubyte",
        )
        under = ("EMNIST/raw", "emnist", "gzip", "")  # as torchvision, by its name, and as the archive unpacks
        return tuple(
            TransposedIdx(folder / name, names=names, first=first) for folder in places.folders for name in under
        )

    def _wanted(self) -> Mapping[str, Any]:
        return {"split": self.split}
