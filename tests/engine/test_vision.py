"""torchvision opens, on this machine too."""

from __future__ import annotations

import subprocess
import sys

import pytest

import engine.datasets.files
from engine.vision import torchvision


def test_it_opens_and_stays_open():
    package = torchvision()
    assert package is torchvision()
    assert package.datasets.CIFAR10.base_folder == "cifar-10-batches-py"


@pytest.mark.slow
def test_nobody_pays_for_it_before_asking():
    code = "import sys, engine.datasets as d; d.DATASETS.names(); sys.exit('torchvision' in sys.modules)"
    root = str(engine.datasets.files.__file__).removesuffix("engine/datasets/files.py")
    assert subprocess.run([sys.executable, "-c", code], cwd=root, timeout=60, check=False).returncode == 0
