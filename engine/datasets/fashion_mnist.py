"""Fashion-MNIST: grey pictures of clothes, with the file names of MNIST."""

from __future__ import annotations

from typing import ClassVar

from engine.datasets.base import DATASETS, DataFolders, PartlyBundled, PictureDataset
from engine.datasets.files import FileLayout, Idx

MNIST = (5, 0, 4, 1, 9, 2, 1, 3, 1, 4)  # how MNIST's training labels begin


@DATASETS.add("fashion-mnist", title="Fashion-MNIST", source="Xiao, Rasul, Vollgraf 2017; MIT licence")
class FashionMnist(PictureDataset, PartlyBundled):
    """Grey 28 x 28 pictures of ten kinds of clothes."""

    shape: ClassVar[tuple[int, ...]] = (1, 28, 28)
    classes: ClassVar[tuple[str, ...]] = (
        "T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
    )  # fmt: skip
    centre: ClassVar[tuple[float, ...]] = (0.2860,)
    spread: ClassVar[tuple[float, ...]] = (0.3530,)
    bundle: ClassVar[str] = "fashion_mnist.npz"
    torch_name: ClassVar[str] = "FashionMNIST"
    obtain: ClassVar[str] = (
        "Install the Debian package dataset-fashion-mnist; or put its four idx files in a folder named in LEAKLENS_DATA"
    )

    def layouts(self, places: DataFolders) -> tuple[FileLayout, ...]:
        named = [folder / name for folder in places.folders for name in ("FashionMNIST/raw", "fashion-mnist", "")]
        return tuple(Idx(place, strangers=(MNIST,)) for place in (*named, places.system / "fashion-mnist"))
