"""ε in a table of runs: over several seeds the largest, with all the words of the run that it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.results.summary import Spot

Bill = Mapping[str, Any]


def bill(spot: Spot, view: str) -> dict[str, Any]:
    """What stands beside the ε of one view; where a seed has none, why."""
    one = spot.telling(view)
    return {
        "epsilon": one.epsilon.get(view),
        "reason": one.why.get(view, ""),
        "unit": one.unit,
        "adjacency": one.adjacency,
        "delta": one.delta,
        "accountant": one.accountant.get(view),
        "sampling": one.sampling.get(view),
        "bound": one.bound.get(view, ""),
    }


def terms(bills: Iterable[Bill], seeds: int) -> str:
    """What all of them stand on, said once; where they differ, everything that occurs."""
    told = [one for one in bills if one["epsilon"] is not None]
    if not told:
        return "none is finite"
    said = [f"per {each(one['unit'] for one in told)}", each(one["adjacency"] for one in told)]
    deltas = each(f"{one['delta']:.2g}" for one in told)
    said += [f"δ = {deltas}", each(f"{one['accountant']} for {one['sampling']} sampling" for one in told)]
    said += [f"worst {told[0]['unit']}{' and seed' if seeds > 1 else ''}", each(one["bound"] for one in told)]
    return ", ".join(filter(None, said))


def each(values: Iterable[str | None]) -> str:
    return " or ".join(dict.fromkeys(filter(None, values)))


def reasons(named: Sequence[tuple[str, Bill]], view: str) -> list[str]:
    """Why something has no ε there, each reason once."""
    missing = ((name, one["reason"] or "it promises none") for name, one in named if one["epsilon"] is None)
    return list(dict.fromkeys(f"{name}: no ε in the {view} view: {why}" for name, why in missing))
