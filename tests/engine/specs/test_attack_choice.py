"""An attacker by three answers, and the attacks that such an attacker uses."""

from __future__ import annotations

import pytest

from engine.attacks import ATTACKS
from engine.errors import LeakLensError
from engine.leakage.compatibility import problem
from engine.specs import attack_choice
from engine.specs.attack import AttackSpec
from engine.specs.attack_choice import CHOICES, AttackChoice
from engine.specs.run import RunSpec

PICTURES = [part.name for part in ATTACKS if part.goal == "pictures" and part.reads != {"samples"}]


def fits(view: str, upload: str, model: str = "mlp") -> list[str]:
    """The attacks that the engine accepts."""
    run = RunSpec(dataset="cifar10", model=model, clients=10, sampled=10)
    accepted = []
    for name in PICTURES:
        try:
            spec = AttackSpec(run=run, attack=name, pictures=("test-0",), view=view, upload=upload)
        except LeakLensError:
            continue
        if problem(spec) is None:
            accepted.append(name)
    return accepted


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("upload", ["listed", "ordinary", "cheat"])
@pytest.mark.parametrize("view", ["server", "outsider"])
@pytest.mark.parametrize("model", ["mlp", "lenet5"])
def test_the_attacks_of_a_choice_are_described_by_a_choice_with_the_same_attacks(
    choice: AttackChoice, upload: str, view: str, model: str
) -> None:
    fitting_run = fits(view, attack_choice.upload_for(upload, choice), model)
    attacks = attack_choice.fitting(fitting_run, choice)
    inverse = attack_choice.choice_of(fitting_run, attacks)
    if not attacks:
        assert inverse is None
        return
    assert inverse is not None and attack_choice.fitting(fitting_run, inverse) == attacks
    assert inverse == attack_choice.described(attacks)  # it needs no more than its attacks do


def test_each_answer_adds_attacks() -> None:
    fitting_run = fits("server", "listed")
    sets = {choice: set(attack_choice.fitting(fitting_run, choice)) for choice in CHOICES}
    assert sets[AttackChoice()] == {"analytic"}
    assert sets[AttackChoice()] < sets[AttackChoice(searches=True)] < sets[AttackChoice(learns=True, searches=True)]
    assert "gias" not in sets[AttackChoice(searches=True)]
    assert sets[AttackChoice(changes=True)] == {"imprint"}


@pytest.mark.parametrize(
    ("upload", "changes", "attacked"),
    [
        ("ordinary", True, "cheat"),
        ("cheat", True, "cheat"),
        ("ordinary", False, "ordinary"),
        ("cheat", False, "ordinary"),
        ("listed", True, "listed"),
        ("listed", False, "listed"),
    ],
)
def test_a_server_that_changes_the_model_attacks_what_it_got_by_that(upload: str, changes: bool, attacked: str) -> None:
    assert attack_choice.upload_for(upload, AttackChoice(changes=changes)) == attacked


def test_only_a_server_can_change_the_model() -> None:
    for view in ("aggregate", "client", "outsider"):
        assert attack_choice.fitting(fits(view, "listed"), AttackChoice(changes=True)) == ()


def test_attacks_that_a_visitor_chose_are_no_choice() -> None:
    fitting_run = fits("server", "listed")
    assert attack_choice.choice_of(fitting_run, ("map",)) is None
    assert attack_choice.choice_of(fitting_run, ()) is None
    assert attack_choice.described(("map", "unknown")) == AttackChoice(searches=True)
