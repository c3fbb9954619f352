"""MNIST: grey pictures of handwritten digits."""

from __future__ import annotations

from typing import ClassVar

from engine.datasets.base import DATASETS, DataFolders, PartlyBundled, PictureDataset
from engine.datasets.files import FileLayout, Idx

FASHION_LABELS = (9, 0, 0, 3, 0, 2, 7, 2, 5, 5)  # the first training labels of Fashion-MNIST


@DATASETS.add("mnist", title="MNIST", source="LeCun, Cortes, Burges 1998; CC BY-SA 3.0")
class Mnist(PictureDataset, PartlyBundled):
    """Grey 28 x 28 pictures of handwritten digits."""

    shape: ClassVar[tuple[int, ...]] = (1, 28, 28)
    classes: ClassVar[tuple[str, ...]] = tuple(str(digit) for digit in range(10))
    channel_mean: ClassVar[tuple[float, ...]] = (0.1307,)
    channel_std: ClassVar[tuple[float, ...]] = (0.3081,)
    bundle: ClassVar[str] = "mnist.npz"
    torchvision_name: ClassVar[str] = "MNIST"
    obtain: ClassVar[str] = "Put the four idx files into a folder named in LEAKLENS_DATA"

    def layouts(self, locations: DataFolders) -> tuple[FileLayout, ...]:
        paths = [folder / name for folder in locations.folders for name in ("MNIST/raw", "mnist", "")]
        paths.append(locations.system / "mnist")
        return tuple(Idx(path, other_sets=(FASHION_LABELS,)) for path in paths)
