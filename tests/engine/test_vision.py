"""The lazy import of torchvision."""

from __future__ import annotations

import subprocess
import sys

import pytest

import engine.datasets.files
from engine.vision import torchvision


def test_it_is_imported_once():
    package = torchvision()
    assert package is torchvision()
    assert package.datasets.CIFAR10.base_folder == "cifar-10-batches-py"


@pytest.mark.slow
def test_it_is_not_imported_before_its_first_use():
    code = "import sys, engine.datasets as d; d.DATASETS.names(); sys.exit('torchvision' in sys.modules)"
    root = str(engine.datasets.files.__file__).removesuffix("engine/datasets/files.py")
    assert subprocess.run([sys.executable, "-c", code], cwd=root, timeout=60, check=False).returncode == 0
