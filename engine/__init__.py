"""LeakLens: what federated learning leaks, and what differential privacy costs.

The public interface is six names. Each is imported on first use, so `import engine` loads no torch.

run(spec)        trains, and yields events: `Started`, then several for each round, then `Finished`
attack(spec)     attacks one upload of a run, and yields events
forecast(spec)   returns ε in every view, problems and the expected time, without training
RunSpec          a frozen, validated training run
AttackSpec       a frozen, validated attack on pictures
MembershipSpec   a frozen, validated attack on membership

Everything else in this package may be renamed from one version to the next.
"""

from __future__ import annotations

import os
from importlib import import_module

TYPE_CHECKING = False  # true for type checkers; importing typing would take ten times as long as this module
if TYPE_CHECKING:
    from engine.leakage.attack import attack
    from engine.specs.attack import AttackSpec, MembershipSpec
    from engine.specs.run import RunSpec
    from engine.training.forecast import forecast
    from engine.training.loop import run

__all__ = ["AttackSpec", "MembershipSpec", "RunSpec", "attack", "forecast", "run"]

PUBLIC = {  # public name: module, name in the module
    "run": ("engine.training.loop", "run"),
    "attack": ("engine.leakage.attack", "attack"),
    "forecast": ("engine.training.forecast", "forecast"),
    "RunSpec": ("engine.specs.run", "RunSpec"),
    "AttackSpec": ("engine.specs.attack", "AttackSpec"),
    "MembershipSpec": ("engine.specs.attack", "MembershipSpec"),
}

# One thread for numpy's algebra: with more, the last bits of an ε depend on their number, and idle ones use up cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def __getattr__(name: str) -> object:
    """A public name on first use: it needs torch, and most imports of the package do not."""
    if name not in PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = PUBLIC[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
