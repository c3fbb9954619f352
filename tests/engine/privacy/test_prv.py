"""Histories without a reliable PRV result, and the mean compared with the adaptive rule of Opacus."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from opacus.accountants.analysis.prv import PoissonSubsampledGaussianPRV, TruncatedPrivacyRandomVariable

from engine.privacy import prv
from engine.privacy.prv import epsilon_prv


def test_prv_returns_none_without_a_reliable_result():
    assert epsilon_prv([], 1e-5) == 0
    assert epsilon_prv([(1.0, 0.1, 0), (1.0, 0.0, 5)], 1e-5) == 0
    assert epsilon_prv([(0.0, 0.1, 1)], 1e-5) is None
    assert epsilon_prv([(1.0, 0.1, 300)], 1e-13) is None  # rounding would affect the result
    assert epsilon_prv([(1e-3, 0.1, 30)], 1e-5) is None  # the grid would be too large
    assert epsilon_prv([(1.0, 0.1, 10**9)], 1e-5) is None


@pytest.mark.parametrize("failure", [RuntimeError("grid"), ValueError("size"), IndexError("end"), ZeroDivisionError()])
def test_prv_returns_none_after_an_error(monkeypatch, failure):
    def fail(*_):
        raise failure

    monkeypatch.setattr(prv, "_composed", fail)
    assert epsilon_prv([(1.0, 0.1, 3)], 1e-5) is None


@pytest.mark.parametrize("result", [math.inf, math.nan])
def test_prv_returns_none_for_a_number_that_is_not_finite(monkeypatch, result):
    monkeypatch.setattr(prv, "_composed", lambda *_: result)
    assert epsilon_prv([(1.0, 0.1, 3)], 1e-5) is None


@pytest.mark.parametrize("z", [0.3, 1.0, 6.0])
@pytest.mark.parametrize("rate", [0.001, 0.1, 0.9, 1.0])
@pytest.mark.parametrize("reach", [5.0, 60.0])
def test_the_mean_is_that_of_opacus(z, rate, reach):
    law = PoissonSubsampledGaussianPRV(rate, z)
    with np.errstate(all="ignore"):
        adaptive = TruncatedPrivacyRandomVariable(law, -reach, reach).mean()
        assert prv._truncated(law, reach).mean() == pytest.approx(adaptive, abs=1e-6)


def test_a14_the_source_names_the_measured_excess() -> None:
    """0.0124 was found where the comment said at most 0.0115."""
    source = Path(prv.__file__).read_text(encoding="utf-8")
    assert "at most 0.0124" in source and "0.0115" not in source
