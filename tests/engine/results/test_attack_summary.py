"""What became of an attack, and what the page may say about it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from app.screens.leak.grid import ColumnHead, GridSheet, told
from app.texts import attacks
from app.texts import attacks as attack_texts
from engine.events import Event, Failed, Pictured, Step
from engine.results import attack_summary
from engine.results.attack_summary import AttackCell, AttackEvents, collect_cell
from engine.specs.attack_grid import RequestedAttack
from tests.app.screens.leak.makers import GREY, guess, judged, seen, whole

TITLES = {"none": "no protection", "a": "UDP-FedAvg, noise 0.1", "b": "UDP-FedAvg, noise 1"}


def cell(events: Sequence[Event], column: str = "none", attack: str = "map", status: str = "finished") -> AttackCell:
    return collect_cell(RequestedAttack(column, attack, None), AttackEvents(status, tuple(events)))


def ended(psnr: float, column: str = "none", attack: str = "map", state: str = "converged") -> AttackCell:
    return cell(whole("x", [psnr], state), column, attack)


# --- one attack --------------------------------------------------------------------------------------------


def test_nobody_asked_yet() -> None:
    found = collect_cell(RequestedAttack("none", "map", None, "needs another model"), None)
    assert (found.status, found.problem, found.path, found.done) == ("", "needs another model", (), False)
    assert found.psnr(0) is None and found.best is None and found.share == 0


def test_while_it_forms_the_best_explanation_is_shown() -> None:
    events = [seen(), guess(5, [15.0], restart=0, loss=0.5), guess(5, [30.0], restart=1, loss=0.9)]
    found = cell(events, status="running")
    assert found.psnr(0) == 15.0  # by its own objective, not by the truth
    assert found.share == 0.25 and attack_texts.state(found) == "forming, 25 %"


def test_at_the_end_the_chosen_restart_is_shown() -> None:
    events = [seen(), guess(5, [15.0], restart=0, loss=0.1), guess(5, [30.0], restart=1, loss=0.9)]
    found = cell([*events, judged([31.0], restart=1)])
    assert [one.restart for one in found.path] == [1] and found.psnr(0) == 31.0


def test_what_it_does_before_its_first_guess_is_told() -> None:
    found = cell([Step("learning from public pictures", 0.5)], status="running")
    assert attack_texts.state(found) == "learning from public pictures"


def test_guesses_stand_in_the_order_of_the_originals() -> None:
    guess_ = Pictured("map", 20, 20, 0, 1.0, ("second", "first"), (1, 0), (20.0, 30.0))
    end = replace(judged([21.0, 31.0]), places=(1, 0), trivial={"psnr": (11.0, 12.0)})
    forming, found = cell([seen(2), guess_], status="running"), cell([seen(2), guess_, end])
    assert [attack_summary.moment(guess_, at) for at in range(3)] == [("first", 30.0), ("second", 20.0), None]
    assert [forming.psnr(at) for at in range(3)] == [30.0, 20.0, None]
    assert [found.psnr(at) for at in range(3)] == [31.0, 21.0, None]
    assert found.trivial(0) == 12.0 and found.best == (19.0, 31.0)


def test_a_failure_has_its_sentence() -> None:
    found = cell([Failed("it broke", "Ask again")], status="failed")
    assert found.problem == "it broke. Ask again." and attack_texts.state(found) == "failed"


def test_not_converged_is_never_called_protected() -> None:
    for state, said in attack_texts.STATES.items():
        assert attack_texts.state(ended(14.0, state=state)) == said
        assert "protect" not in said


def test_a_number_that_is_none_is_not_shown() -> None:
    assert attack_summary.finite(math.inf) is None and attack_summary.finite(None) is None
    found = cell([seen(), guess(5, [math.nan])], status="running")
    assert found.psnr(0) is None and attack_summary.best([found], 0) is None


# --- the whole grid ----------------------------------------------------------------------------------------


def test_the_envelope_goes_by_the_truth() -> None:
    cells = [ended(20.0), ended(25.0, attack="other", state="not converged")]
    found = attack_summary.best(cells, 0)
    assert found is not None and found.attack == "other"


def test_only_attacks_that_work_undefended_say_anything() -> None:
    cells = [ended(31.0), ended(15.0, attack="weak"), ended(30.0, attack="lost", state="not converged")]
    assert attack_summary.working(cells, "none") == ("map",)


@pytest.mark.parametrize(
    ("control", "state", "first", "second", "said"),
    [
        (31.0, "converged", 14.5, 14.0, ["the picture comes back: 31.0 dB", "14.0 dB", "noise 0.1 and 1, the attack"]),
        (31.0, "converged", 30.0, 14.0, ["With UDP-FedAvg at noise 0.1 it comes back", "at noise 1, the attack that"]),
        (31.0, "converged", 18.0, 14.0, ["With UDP-FedAvg at noise 0.1 something of it does"]),
        (31.0, "converged", 30.0, 29.0, ["noise 0.1 and 1 it comes back, too"]),
        (19.0, "converged", 14.0, 14.0, ["something of the picture comes back: 19.0 dB"]),
        (31.0, "not converged", 14.0, 14.0, ["says nothing about protection"]),
        (15.0, "converged", 14.0, 14.0, ["says nothing about protection"]),
    ],
)
def test_the_sentence(control: float, state: str, first: float, second: float, said: Sequence[str]) -> None:
    cells = [ended(control, state=state), ended(first, "a"), ended(second, "b")]
    found = attacks.verdict_of_cells(cells, TITLES, "none")
    for part in said:
        assert part in found
    assert ("did not beat" in found) == (control > GREY + 3 and state == "converged" and min(first, second) < GREY + 3)


def test_a_leak_counts_whoever_found_it() -> None:
    """An attack that does not converge undefended proves nothing when it fails, but a picture is a picture."""
    cells = [ended(31.0), ended(14.0, attack="weak"), ended(14.0, "a"), ended(26.0, "a", "weak", "not converged")]
    assert "With UDP-FedAvg at noise 0.1 it comes back, too." in attacks.verdict_of_cells(cells, TITLES, "none")


def test_the_sentence_is_about_the_picture_that_came_out_best() -> None:
    end = replace(judged([15.0, 30.0]), trivial={"psnr": (14.0, 12.0)})
    found = cell([seen(2), guess(20, [15.0, 30.0]), end])
    assert "comes back: 30.0 dB, where a grey square reaches 12.0 dB" in attacks.verdict_of_cells(
        [found], TITLES, "none"
    )


def test_nothing_is_said_before_everything_is_known() -> None:
    forming = cell([seen(), guess(5, [30.0])], status="running")
    assert attacks.verdict_of_cells([forming], TITLES, "none") == ""
    half = [ended(31.0), ended(14.0, "a"), cell([seen(), guess(5, [30.0])], "a", "other", "running")]
    assert "UDP-FedAvg" not in attacks.verdict_of_cells(half, TITLES, "none")
    assert attack_summary.fractions([ended(31.0), cell([], status="queued")]) == 0.5


# --- what the browser is told ------------------------------------------------------------------------------


def sheet(frames: bool = True, picture: int = 0) -> GridSheet:
    cells = [
        ended(31.0), ended(14.0, "a"), ended(19.0, attack="other", state="not converged"),
        cell([seen(), guess(5, [20.0])], "a", "other", "running"),
    ]  # fmt: skip
    heads = [ColumnHead("none", "no protection"), ColumnHead("a", "noise 0.1")]
    return GridSheet(heads, {"map": "Most probable", "other": "Other"}, cells, picture, frames)


def test_rows_are_attacks_and_the_envelope() -> None:
    found = told(sheet())
    assert [row["title"] for row in found["rows"]] == ["Most probable", "Other", attack_texts.BEST]
    assert [[one["value"] for one in row["cells"]] for row in found["rows"]] == [
        ["31.0 dB", "14.0 dB"],
        ["19.0 dB", "20.0 dB"],
        ["31.0 dB", "20.0 dB"],
    ]
    assert found["rows"][2]["cells"][1]["state"] == "by Other"
    assert attack_texts.decibel(GREY) in found["original"]["caption"]


def test_what_leaks_is_said_in_words_too() -> None:
    (first, second), (third, fourth), _ = (row["cells"] for row in told(sheet())["rows"])
    assert first["tone"] == "leaking" and first["state"] == "converged · leaks"
    assert second["tone"] == "" and second["state"] == "converged"
    assert third["state"] == "did not converge · leaks"
    assert fourth["tone"] == "" and fourth["state"].startswith("forming")  # it may still turn out otherwise


def test_one_scrubber_goes_through_all_moments() -> None:
    found = told(sheet())
    assert found["moments"] == 3 and len(found["labels"]) == 3
    assert found["rows"][0]["cells"][0]["psnr"] == [GREY, GREY + 1, 31.0]
    assert found["labels"] == ["iteration 0 of 20", "iteration 10 of 20", "iteration 20 of 20"]
    assert told(sheet(frames=False))["moments"] == 0 and told(sheet(frames=False))["labels"] == []


def test_attacks_of_different_length_share_the_scrubber() -> None:
    long = [seen(), *(Pictured("map", at, 90, 0, 1.0, ("x",), (0,), (20.0,)) for at in (0, 30, 60, 90)), judged([20.0])]
    cells = [ended(31.0), cell(long, attack="other")]
    found = told(GridSheet([ColumnHead("none", "no protection")], {"map": "A", "other": "B"}, cells, frames=True))
    assert found["labels"] == [
        "0 % of each attack",
        "33 % of each attack",
        "67 % of each attack",
        "100 % of each attack",
    ]


def test_a_picture_that_is_not_in_the_upload_is_not_there() -> None:
    found = told(sheet(picture=5))
    assert found["original"]["src"] == "" and all(one["src"] == "" for row in found["rows"] for one in row["cells"])
