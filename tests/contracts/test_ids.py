"""The id of a run or an attack never changes: links, stores and examples name runs by it.

Where today's code gives other results, the same request has a new id (`today` in ids.json). The old one stays readable,
and is refused for everything that would compute it again.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.contracts.doors import AttackSpec, RunSpec
from tests.contracts.goldens import compact, entries

SPECS, ATTACKS = entries("ids", "specs"), entries("ids", "attacks")
KNOWN = [
    *(pytest.param(RunSpec, known, id=f"run: {name}") for name, known in SPECS.items()),
    *(pytest.param(AttackSpec, known, id=f"attack: {name}") for name, known in ATTACKS.items()),
]


@pytest.mark.parametrize(("kind", "known"), KNOWN)
def test_a_spec_keeps_its_canonical_form_and_its_id(
    kind: type[RunSpec] | type[AttackSpec], known: dict[str, Any]
) -> None:
    spec = kind(**known["input"])
    today = known.get("today")
    if today is None:
        assert compact(spec.canonical()) == compact(known["canonical"])
        assert spec.id == known["id"]
    else:
        assert spec.id == today["id"] != known["id"]
        assert of_format(today["format"], spec.canonical()) == compact(known["canonical"])


def of_format(format: int, canonical: dict[str, Any]) -> str:
    """The canonical form of version 0.4.0, for a run, an attack, or the run of an attack that has this format today."""
    assert format in (canonical["format"], canonical.get("run", {}).get("format"))
    old = {**canonical, "format": 1}
    if "run" in canonical:
        old["run"] = {**canonical["run"], "format": 1}
    return compact(old)


@pytest.mark.parametrize(("kind", "known"), KNOWN)
def test_a_spec_of_an_older_format_is_refused_with_the_fix(
    kind: type[RunSpec] | type[AttackSpec], known: dict[str, Any]
) -> None:
    problem = kind(**known["canonical"]).replay_problem()
    today = kind(**known["input"])
    written = "format" in known["input"].get("run", {})  # a request that names its format keeps its id
    if "today" not in known and not written:
        assert problem is None
    else:
        changed: RunSpec | AttackSpec = today
        verb = "run it"
        if isinstance(today, AttackSpec) and (today.newest_format == 1 or today.run.newest_format > 1):
            changed = today.run
        elif isinstance(today, AttackSpec):
            verb = "attack"
        assert problem and problem.fatal and problem.remedy == f"Remove `format` to {verb} as this version does"
        rule = f"must be {changed.newest_format} to be replayed, got 1"
        assert problem.reason == f"{changed.label()}: format: {rule}"


@pytest.mark.parametrize(("kind", "known"), KNOWN)
def test_a_canonical_form_is_a_spec(kind: type[RunSpec] | type[AttackSpec], known: dict[str, Any]) -> None:
    spec = kind(**known["canonical"])
    assert compact(spec.canonical()) == compact(known["canonical"])
    assert spec.id == known["id"]


def test_every_part_has_an_example() -> None:
    canonical = [known["canonical"] for known in SPECS.values()]
    assert {request["method"]["name"] for request in canonical} >= {
        "centaur", "dp-fedavg", "fedavg", "fedceo", "fedceo-released", "fedsgd", "ppsgd", "udp-fedavg",
    }  # fmt: skip
    assert {request["dataset"]["name"] for request in canonical} >= {
        "cifar10", "emnist", "fashion-mnist", "mnist", "movie-reviews", "sentiment140",
    }  # fmt: skip
    assert {request["model"]["name"] for request in canonical} >= {
        "alexnet", "convnet", "lenet-sigmoid", "lenet5", "lstm", "mlp",
    }  # fmt: skip
    assert {request["partition"]["name"] for request in canonical} >= {
        "classes-per-client",
        "dirichlet",
        "iid",
        "shards",
    }
    assert {known["canonical"]["attack"]["name"] for known in ATTACKS.values()} >= {
        "analytic", "dlg", "gias", "gradinversion", "idlg", "imprint", "inverting-gradients", "map",
    }  # fmt: skip
    assert len(SPECS) + len(ATTACKS) >= 20
