"""CIFAR-10: small colour photographs."""

from __future__ import annotations

from typing import ClassVar

from engine.datasets.base import DATASETS, DataFolders, PartlyBundled, PictureDataset
from engine.datasets.files import CifarBinary, CifarPython, FileLayout


@DATASETS.add(
    "cifar10", title="CIFAR-10", source="Krizhevsky 2009, Learning Multiple Layers of Features from Tiny Images"
)
class Cifar10(PictureDataset, PartlyBundled):
    """Colour 32 x 32 photographs of ten kinds of animals and vehicles."""

    shape: ClassVar[tuple[int, ...]] = (3, 32, 32)
    classes: ClassVar[tuple[str, ...]] = (
        "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
    )  # fmt: skip
    channel_mean: ClassVar[tuple[float, ...]] = (0.4914, 0.4822, 0.4465)
    channel_std: ClassVar[tuple[float, ...]] = (0.2470, 0.2435, 0.2616)
    bundle: ClassVar[str] = "cifar10.npz"
    torchvision_name: ClassVar[str] = "CIFAR10"
    obtain: ClassVar[str] = (
        "Unpack the archive of the set, binary or python version, in a folder named in LEAKLENS_DATA"
    )

    def layouts(self, locations: DataFolders) -> tuple[FileLayout, ...]:
        binary = [CifarBinary(folder / name) for folder in locations.folders for name in ("cifar-10-batches-bin", "")]
        pickled = [CifarPython(folder / "cifar-10-batches-py") for folder in locations.folders]
        return (*binary, *pickled)
