"""The public names of the package exist, are the documented objects, and load torch only on first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

import engine
from engine.environment import ROOT
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from engine.training.forecast import forecast
from engine.training.loop import run


def test_the_public_names_are_the_documented_objects() -> None:
    assert engine.run is run
    assert engine.forecast is forecast
    assert engine.RunSpec is RunSpec
    assert engine.AttackSpec is AttackSpec
    assert callable(engine.attack)
    assert set(engine.__all__) == set(engine.PUBLIC) <= set(dir(engine))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'trane'"):
        _ = engine.trane


def test_no_public_name_is_also_a_module() -> None:
    modules = {path.stem for path in (ROOT / "engine").iterdir() if path.suffix == ".py" or path.is_dir()}
    assert not modules & set(engine.__all__)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "loads_torch"),
    [("import engine", False), ("from engine import jobs, environment", False), ("from engine import RunSpec", True)],
)
def test_only_a_public_name_loads_torch(statement: str, loads_torch: bool) -> None:
    code = f"import sys; {statement}; print('torch' in sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert process.stdout.strip() == str(loads_torch)
