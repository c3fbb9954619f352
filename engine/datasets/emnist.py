"""EMNIST: handwritten letters and digits, in the files of torchvision."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from engine.datasets.base import DATASETS, DataFolders, PictureDataset
from engine.datasets.files import FileLayout, TransposedIdx

# letters with a similar small and large form: the balanced split has one class for both
MERGED_LETTERS = frozenset("cijklmopsuvwxyz")


@DATASETS.add("emnist", title="EMNIST", source="Cohen, Afshar, Tapson, van Schaik 2017")
class Emnist(PictureDataset):
    """Grey 28 x 28 pictures of handwritten letters, or of digits and letters."""

    shape: ClassVar[tuple[int, ...]] = (1, 28, 28)
    channel_mean: ClassVar[tuple[float, ...]] = (0.1307,)
    channel_std: ClassVar[tuple[float, ...]] = (0.3081,)
    torchvision_name: ClassVar[str] = "EMNIST"
    obtain: ClassVar[str] = "Put the four idx files of the split, gzipped or not, into a folder named in LEAKLENS_DATA"

    split: Literal["letters", "balanced"] = Field(
        "letters",
        title="split",
        description="`letters`: 26, large and small together. `balanced`: 47 digits and letters, equally frequent.",
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
        small = (letter for letter in string.ascii_lowercase if letter not in MERGED_LETTERS)
        return (*string.digits, *string.ascii_uppercase, *small)

    def layouts(self, locations: DataFolders) -> tuple[FileLayout, ...]:
        prefix = f"emnist-{self.split}"
        names = (
            f"{prefix}-train-images-idx3-ubyte",
            f"{prefix}-train-labels-idx1-ubyte",
            f"{prefix}-test-images-idx3-ubyte",
            f"{prefix}-test-labels-idx1-ubyte",
        )
        first_label = 1 if self.split == "letters" else 0
        # the folder of torchvision, the name of the set, the folder of the archive, the named folder itself
        subfolders = ("EMNIST/raw", "emnist", "gzip", "")
        paths = [folder / name for folder in locations.folders for name in subfolders]
        return tuple(TransposedIdx(path, names=names, first_label=first_label) for path in paths)

    def _download_options(self) -> Mapping[str, Any]:
        return {"split": self.split}
