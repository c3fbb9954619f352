"""What papers say about differences between systems that our stored results do not measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class CitedMove:
    """What a paper says about one difference."""

    direction: str  # `more`, `less` or `same` leaks
    claim: str
    citation: str


DIMITROV = "Dimitrov et al., Data Leakage in Federated Averaging, TMLR 2022, arXiv:2206.12395"
DU = "Du et al., SoK: On Gradient Leakage in Federated Learning, 2024, arXiv:2404.05403"
KAIROUZ = "Kairouz, Liu and Steinke, The Distributed Discrete Gaussian Mechanism, ICML 2021, arXiv:2102.06387"
MCMAHAN = "McMahan et al., Learning Differentially Private Recurrent Language Models, 2018, arXiv:1710.06963"

STEPS = (
    "Recovering data is much harder from several local steps than from one. It is possible: the paper recovers over "
    "45 % of the pictures of clients that train for 10 epochs"
)
EARLY = "Attacks recover most early in training"
SHARED = (
    "Noise that the clients share is made for their sum, behind secure aggregation. A server that sees single uploads "
    "meets only a part of it"
)
SERVER = "The server adds the noise after it has received the uploads, so its own view has none"

LITERATURE: Mapping[tuple[str, str, str], CitedMove] = {
    ("steps", "one", "several"): CitedMove("less", STEPS, DIMITROV),
    ("steps", "several", "one"): CitedMove("more", STEPS, DIMITROV),
    ("trained", "first", "later"): CitedMove("less", EARLY, DU),
    ("trained", "later", "first"): CitedMove("more", EARLY, DU),
    ("noise", "client", "shared"): CitedMove("more", SHARED, KAIROUZ),
    ("noise", "shared", "client"): CitedMove("less", SHARED, KAIROUZ),
    ("noise", "client", "server"): CitedMove("more", SERVER, MCMAHAN),
    ("noise", "server", "client"): CitedMove("less", SERVER, MCMAHAN),
    ("noise", "none", "server"): CitedMove("same", SERVER, MCMAHAN),
    ("noise", "server", "none"): CitedMove("same", SERVER, MCMAHAN),
}
