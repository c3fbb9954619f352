"""Fashion-MNIST: grey pictures of clothes, with the file names of MNIST."""

from __future__ import annotations

from typing import ClassVar

from engine.datasets.base import DATASETS, DataFolders, PartlyBundled, PictureDataset
from engine.datasets.files import FileLayout, Idx

MNIST_LABELS = (5, 0, 4, 1, 9, 2, 1, 3, 1, 4)  # the first training labels of MNIST


@DATASETS.add("fashion-mnist", title="Fashion-MNIST", source="Xiao, Rasul, Vollgraf 2017; MIT licence")
class FashionMnist(PictureDataset, PartlyBundled):
    """Grey 28 x 28 pictures of ten kinds of clothes."""

    shape: ClassVar[tuple[int, ...]] = (1, 28, 28)
    classes: ClassVar[tuple[str, ...]] = (
        "T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
    )  # fmt: skip
    channel_mean: ClassVar[tuple[float, ...]] = (0.2860,)
    channel_std: ClassVar[tuple[float, ...]] = (0.3530,)
    bundle: ClassVar[str] = "fashion_mnist.npz"
    torchvision_name: ClassVar[str] = "FashionMNIST"
    obtain: ClassVar[str] = (
        "Install the Debian package dataset-fashion-mnist; or put its four idx files in a folder named in LEAKLENS_DATA"
    )

    def layouts(self, locations: DataFolders) -> tuple[FileLayout, ...]:
        paths = [folder / name for folder in locations.folders for name in ("FashionMNIST/raw", "fashion-mnist", "")]
        paths.append(locations.system / "fashion-mnist")
        return tuple(Idx(path, other_sets=(MNIST_LABELS,)) for path in paths)
