"""ε of one view with the terms that every display of it must name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Epsilon:
    """ε as one view has it. Without its view, unit, adjacency, δ and accountant the number would mean nothing."""

    value: float | None  # None: there is no finite number
    view: str
    unit: str
    adjacency: str
    delta: float
    accountant: str
    sampling: str
    bound: str = ""  # `upper bound`: the true ε may be lower; `approximation`: it may be much higher
    reason: str = ""  # why `value` is None
    worst: int | None = None  # the client with the largest ε; None: it is equal for all
    quantiles: tuple[float, ...] = ()  # over clients: minimum, quartiles and maximum

    def sentence(self) -> str:
        """`ε = 4.19 in the outsider view (per user, zero-out, δ = 1e-05, prv, worst user)`"""
        if self.value is None:
            return f"no finite ε in the {self.view} view: {self.reason}"
        return f"ε = {self.value:.4g} in the {self.view} view ({self.terms()})"

    def terms(self) -> str:
        note = f", {self.bound}" if self.bound else ""
        terms = (f"per {self.unit}", self.adjacency, f"δ = {self.delta:.2g}", self.accountant, f"worst {self.unit}")
        return ", ".join(terms) + note

    def json(self) -> dict[str, Any]:
        """The number and its terms as flat JSON."""
        return {
            "epsilon": self.value,
            "reason": self.reason,
            "unit": self.unit,
            "adjacency": self.adjacency,
            "delta": self.delta,
            "accountant": self.accountant or None,
            "sampling": self.sampling or None,
            "bound": self.bound,
        }

    @classmethod
    def from_json(cls, view: str, body: Mapping[str, Any]) -> Epsilon:
        """From the flat JSON of one view. A term that is missing is left empty."""
        return cls(
            value=body["epsilon"],
            view=view,
            unit=body.get("unit") or "user",
            adjacency=body.get("adjacency") or "",
            delta=body.get("delta") or 0.0,
            accountant=body.get("accountant") or "",
            sampling=body.get("sampling") or "",
            bound=body.get("bound") or "",
            reason=body.get("reason") or "",
        )


# The JSON of a view about which nothing is known.
NO_EPSILON: Mapping[str, Any] = {
    "epsilon": None,
    "reason": "",
    "unit": None,
    "adjacency": None,
    "delta": None,
    "accountant": None,
    "sampling": None,
    "bound": "",
}


def of_report(body: Mapping[str, Any]) -> dict[str, Epsilon]:
    """ε by view, from the report of a run. A view that does not apply has no number, and the reason why."""
    absent = (body.get("guarantee") or {}).get("absent") or {}
    reasons = {**absent, **(body.get("reason") or {})}
    values = body.get("epsilon") or {}
    by_view: dict[str, Epsilon] = {}
    for view in dict.fromkeys((*values, *reasons)):
        terms = {name: body.get(name) for name in ("unit", "adjacency", "delta")}
        for name in ("accountant", "sampling", "bound"):
            terms[name] = (body.get(name) or {}).get(view)
        by_view[view] = Epsilon.from_json(view, {**terms, "epsilon": values.get(view), "reason": reasons.get(view)})
    return by_view


def shown_noise(noise: float) -> float:
    """A solved noise with three digits, as a page prints it. It is rounded up: less noise would have a larger ε."""
    if noise <= 0:
        return noise
    step = 10.0 ** (math.floor(math.log10(noise)) - 2)
    return float(f"{math.ceil(noise / step - 1e-9) * step:.6g}")
