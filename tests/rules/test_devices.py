"""A tensor is made on a device that the code names: on a graphics card, any other tensor cannot meet the model's.

A random tensor names the processor, where every generator of a run draws, and is moved from there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.rules.sources import SOURCES, Source

FOLDERS = ("engine/compute/", "engine/methods/", "engine/attacks/", "engine/training/", "engine/leakage/")
# `*_like` and `new_*` take the device of a tensor. `from_numpy` and `frombuffer` have no such argument: they share
# memory of the processor.
FACTORIES = {
    "tensor", "as_tensor", "asarray", "scalar_tensor", "sparse_coo_tensor",
    "zeros", "ones", "full", "empty", "empty_strided", "eye", "tril_indices", "triu_indices",
    "arange", "range", "linspace", "logspace", "fftfreq", "rfftfreq",
    "rand", "randn", "randint", "randperm", "normal",
    "bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window",
}  # fmt: skip


def unnamed_devices(source: Source) -> Iterator[str]:
    """Each use of a factory of torch that names no device. An alias of a factory would hide its calls."""
    calls = {id(node.func): node for node in source.nodes if isinstance(node, ast.Call)}
    for node in source.nodes:
        if isinstance(node, ast.ImportFrom) and node.module in ("torch", "torch.fft"):
            for alias in node.names:
                if alias.name in FACTORIES:
                    yield f"{node.lineno}: write torch.{alias.name}, so that its calls can be checked"
        if not isinstance(node, ast.Attribute) or not _is_factory(node):
            continue
        call = calls.get(id(node))
        if call is None:
            yield f"{node.lineno}: call {ast.unparse(node)} here, so that its device can be checked"
        elif _makes_a_tensor(call) and not _names_a_device(call):
            yield f"{node.lineno}: {ast.unparse(node)} names no device: add device=, or use *_like or new_*"


def _is_factory(node: ast.Attribute) -> bool:
    return node.attr in FACTORIES and ast.unparse(node.value) in ("torch", "torch.fft")


def _makes_a_tensor(call: ast.Call) -> bool:
    """Whether the call has no tensor to take the device from: `normal` has two, unless it names a size."""
    if not ast.unparse(call.func).endswith(".normal"):
        return True
    return len(call.args) > 2 or any(key.arg == "size" for key in call.keywords)


def _names_a_device(call: ast.Call) -> bool:
    devices = [key.value for key in call.keywords if key.arg == "device"]
    return bool(devices) and ast.unparse(devices[0]) != "None"


@pytest.mark.parametrize("path", [path for path in SOURCES if path.startswith(FOLDERS)])
def test_every_tensor_is_made_on_a_named_device(path: str) -> None:
    breaches = [f"{path}:{breach}" for breach in unnamed_devices(SOURCES[path])]
    assert not breaches, "\n" + "\n".join(breaches)


# --- the rule can fail -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "torch.zeros(3)",
        "torch.tensor([1.0]).to(x)",
        "torch.randn(3, generator=rng)",
        "torch.arange(3, device=None)",
        "torch.empty(3, **options)",
        "torch.normal(0.0, 1.0, size=(3,))",
        "torch.normal(0.0, 1.0, (3,))",
        "torch.fft.fftfreq(8)",
        "new = torch.empty if full else first.new_zeros",
        "field(default_factory=lambda: torch.empty(0))",
        "from torch import zeros",
    ],
)
def test_a_factory_without_a_device_is_found(text: str) -> None:
    assert len(list(unnamed_devices(Source("engine/compute/a.py", text)))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "torch.zeros(3, device=x.device)",
        'torch.randn(3, generator=rng, device="cpu").to(x.device)',
        "torch.zeros_like(x)",
        "x.new_zeros(3)",
        "torch.normal(mean, std, generator=rng)",
        "torch.from_numpy(values).to(device)",
        "np.zeros(3)",
        "self.rand(3)",
        "def f(x: torch.Tensor) -> torch.device: ...",
        "from torch import Tensor, nn",
    ],
)
def test_a_tensor_on_a_named_device_passes(text: str) -> None:
    assert not list(unnamed_devices(Source("engine/compute/a.py", text)))
