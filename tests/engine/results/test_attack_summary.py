"""The results of an attack, and what the page shows of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from app.texts import attacks as attack_texts
from app.texts import verdicts
from engine.events import Event, Failed, Pictured, Step
from engine.results import attack_summary
from engine.results.attack_summary import AttackCell, AttackEvents, collect_cell
from engine.results.verdict import NOT_RECOGNISED
from engine.specs.attack_grid import RequestedAttack
from tests.app.screens.leak.makers import GREY, finished_attack, guess, judged, seen

TITLES = {"none": "no protection", "a": "UDP-FedAvg, noise 0.1", "b": "UDP-FedAvg, noise 1"}


def cell(events: Sequence[Event], column: str = "none", attack: str = "map", status: str = "finished") -> AttackCell:
    return collect_cell(RequestedAttack(column, attack, None), AttackEvents(status, tuple(events)))


def ended(psnr: float, column: str = "none", attack: str = "map", state: str = "converged") -> AttackCell:
    return cell(finished_attack("x", [psnr], state), column, attack)


# --- one attack --------------------------------------------------------------------------------------------


def test_an_attack_that_was_not_requested() -> None:
    empty = collect_cell(RequestedAttack("none", "map", None, "needs another model"), None)
    assert (empty.status, empty.problem, empty.path, empty.done) == ("", "needs another model", (), False)
    assert empty.psnr(0) is None and empty.best_picture is None and empty.share == 0


def test_a_running_attack_shows_the_restart_with_the_lowest_loss() -> None:
    events = [seen(), guess(5, [15.0], restart=0, loss=0.5), guess(5, [30.0], restart=1, loss=0.9)]
    running = cell(events, status="running")
    assert running.psnr(0) == 15.0  # by the loss of the attack, not by the truth
    assert running.share == 0.25 and attack_texts.state(running) == "forming, 25 %"


def test_a_finished_attack_shows_the_restart_it_chose() -> None:
    events = [seen(), guess(5, [15.0], restart=0, loss=0.1), guess(5, [30.0], restart=1, loss=0.9)]
    finished = cell([*events, judged([31.0], restart=1)])
    assert [event.restart for event in finished.path] == [1] and finished.psnr(0) == 31.0


def test_before_its_first_guess_an_attack_shows_its_step() -> None:
    running = cell([Step("learning from public pictures", 0.5)], status="running")
    assert attack_texts.state(running) == "learning from public pictures"


def test_guesses_are_in_the_order_of_the_originals() -> None:
    last_guess = Pictured("map", 20, 20, 0, 1.0, ("second", "first"), (1, 0), (20.0, 30.0))
    end = replace(judged([21.0, 31.0]), places=(1, 0), trivial={"psnr": (11.0, 12.0)})
    forming = cell([seen(2), last_guess], status="running")
    finished = cell([seen(2), last_guess, end])
    assert [attack_summary.guess_of(last_guess, at) for at in range(3)] == [("first", 30.0), ("second", 20.0), None]
    assert [forming.psnr(at) for at in range(3)] == [30.0, 20.0, None]
    assert [finished.psnr(at) for at in range(3)] == [31.0, 21.0, None]
    assert finished.trivial(0) == 12.0 and finished.best_picture == 0


def test_a_failed_attack_has_its_reason() -> None:
    failed = cell([Failed("it broke", "Run it again")], status="failed")
    assert failed.problem == "it broke. Run it again." and attack_texts.state(failed) == "failed"


def test_a_state_is_a_remark_and_never_called_protected() -> None:
    for state, words in verdicts.REMARKS.items():
        finished = ended(14.0, state=state)
        assert verdicts.caption(finished, 0) == NOT_RECOGNISED
        assert verdicts.remark(finished.judged).startswith(words)
        assert "protect" not in words


def test_a_number_that_is_not_finite_is_not_shown() -> None:
    assert attack_summary.finite(math.inf) is None and attack_summary.finite(None) is None
    running = cell([seen(), guess(5, [math.nan])], status="running")
    assert running.psnr(0) is None and attack_summary.best_cell([running], 0) is None


# --- the whole grid ----------------------------------------------------------------------------------------


def test_the_best_attack_is_chosen_by_the_truth() -> None:
    cells = [ended(20.0), ended(25.0, attack="other", state="not converged")]
    best = attack_summary.best_cell(cells, 0)
    assert best is not None and best.attack == "other"


def test_a01_an_attack_works_if_the_picture_comes_back_whatever_its_state() -> None:
    cells = [ended(31.0), ended(15.0, attack="weak"), ended(149.3, attack="exact", state="not converged")]
    assert attack_summary.working_attacks(cells, "none") == ("map", "exact")
    only = [ended(149.3, state="not converged"), ended(149.3, "a", state="not converged")]
    verdict = verdicts.of_cells(only, TITLES, "none")
    assert verdict.startswith("Without protection the picture comes back.")
    assert "With UDP-FedAvg at noise 0.1 it comes back, too." in verdict


@pytest.mark.parametrize(
    ("baseline", "first", "second", "parts"),
    [
        (31.0, 14.5, 14.0, ["the picture comes back.", "noise 0.1 and 1, the attack that otherwise succeeds"]),
        (31.0, 30.0, 14.0, ["With UDP-FedAvg at noise 0.1 it comes back", "at noise 1, the attack that"]),
        (31.0, 18.0, 14.0, ["With UDP-FedAvg at noise 0.1 outlines of it come back"]),
        (31.0, 30.0, 29.0, ["noise 0.1 and 1 it comes back, too"]),
        (19.0, 14.0, 14.0, ["outlines of the picture come back."]),
        (15.0, 14.0, 14.0, ["says nothing about protection"]),
        (15.0, 30.0, 14.0, ["the picture is not recognised", "at noise 0.1 it comes back", "1, no attack brings"]),
    ],
)
def test_the_verdict(baseline: float, first: float, second: float, parts: Sequence[str]) -> None:
    cells = [ended(baseline), ended(first, "a"), ended(second, "b")]
    verdict = verdicts.of_cells(cells, TITLES, "none")
    for part in parts:
        assert part in verdict
    hidden = "says nothing" not in verdict and min(first, second) < GREY + 3
    assert (verdicts.NOT_A_PROMISE in verdict) == hidden


def test_an_upload_with_no_recognisable_picture_may_tell_whose_pictures_were_in_it() -> None:
    end = replace(judged([14.0]), matching={"hits": 69, "guesses": 100, "p": 0.003})
    chance = replace(end, matching={"hits": 57, "guesses": 100, "p": 0.09})
    cells = [ended(31.0), cell([seen(), guess(20, [14.0]), end], "a"), cell([seen(), guess(20, [14.0]), chance], "b")]
    verdict = verdicts.of_cells(cells, TITLES, "none")
    assert "UDP-FedAvg, noise 0.1: no picture is recognisable, but the guesses resemble the pictures of the" in verdict
    assert "69 of 100 are nearest to one of them. Guessing gives 50." in verdict
    assert "57 of 100" not in verdict  # that may be chance: it is not in the main sentence
    tests = verdicts.matchings(cells, TITLES)
    assert "57 of 100 guesses are nearest to a picture of the upload, where guessing gives 50" in tests[1]
    assert "the upload gives away what it holds." in tests[0] and "only p below 0.01 counts" in tests[0]
    tries = [cell([seen(), guess(20, [14.0]), end], "a", attack) for attack in ("map", "b", "c", "d")]
    best = attack_summary.best_matching(tries)
    assert best is not None and best.p == pytest.approx(0.012)  # four attacks were four tries
    result = attack_summary.protection_result(tries, "a", "UDP-FedAvg")
    assert "(p = 0.012): that may be chance." in verdicts.matching(result)
    assert "(p = 0.09): no better than guessing." in tests[1]


def test_several_methods_at_one_budget_name_it_once() -> None:
    titles = {"none": "no protection", "a": "UDP-FedAvg at ε 10", "b": "FedCEO at ε 10"}
    cells = [ended(31.0), ended(14.0, "a"), ended(14.0, "b")]
    verdict = verdicts.of_cells(cells, titles, "none", promised=True)
    assert "With UDP-FedAvg and FedCEO at ε 10, the attack that otherwise succeeds brings nothing back." in verdict
    assert verdict.endswith(f"{verdicts.NOT_A_PROMISE} {verdicts.PROMISED}")
    assert verdicts.PROMISED not in verdicts.of_cells(cells, titles, "none")


def ordinary(psnr: Sequence[float], column: str = "none", attack: str = "imprint") -> AttackCell:
    """An attack on an ordinary upload; the first picture is the chosen one."""
    whole = replace(seen(len(psnr)), facts={**seen(len(psnr)).facts, "upload": "ordinary"})
    return cell([whole, guess(20, psnr), judged(psnr)], column, attack)


def with_control(robbed: AttackCell, psnr: Sequence[float]) -> AttackCell:
    """The same attack, whose guesses fit pictures that were never sent as well as these numbers say."""
    end = judged(psnr)
    control = dict(end.numbers)
    for name, values in end.trivial.items():
        control |= {f"trivial-{name}": values, f"mean-{name}": values}
    assert robbed.judged is not None
    return replace(robbed, judged=replace(robbed.judged, control=control))


def test_the_verdict_on_an_ordinary_upload_is_that_of_the_chosen_picture() -> None:
    mixed = ordinary([14.0, 30.0, *[14.0] * 28])
    assert mixed.best_picture == 0 and mixed.best_verdict == NOT_RECOGNISED and not mixed.works
    assert ordinary([30.0, *[14.0] * 29]).works
    verdict = verdicts.of_cells([mixed], {"none": "no protection"}, "none")
    assert verdict.startswith(verdicts.SAYS_NOTHING)


def test_an_attack_that_reads_many_other_pictures_works() -> None:
    robbed = ordinary([14.0, *[30.0] * 15, *[14.0] * 14])
    assert robbed.judged is not None
    robbed = replace(robbed, judged=replace(robbed.judged, matching={"hits": 20, "guesses": 30, "p": 0.04}))
    assert not robbed.works  # how many fit by chance was not measured
    robbed = with_control(robbed, [14.0] * 28 + [30.0] * 2)
    assert robbed.by_chance == 2 and robbed.works
    assert not with_control(robbed, [14.0] * 15 + [30.0] * 15).works
    noisy = ordinary([14.0] * 30, "a")
    verdict = verdicts.of_cells([robbed, noisy], TITLES, "none")
    assert "Without protection the chosen picture is not recognised." in verdict
    chance = verdicts.BY_CHANCE.format(count=2)
    assert f"No protection: of the other 29 pictures 15 come back, at least in outlines; {chance}." in verdict
    assert (
        "the attack that otherwise succeeds brings nothing back" in verdict
        and "no picture is recognisable" not in verdict
    )


def test_of_several_pictures_none_is_recognised() -> None:
    pair = cell([seen(2), guess(20, [14.0, 14.5]), judged([14.0, 14.5])], "a")
    result = attack_summary.protection_result([pair], "a", "UDP-FedAvg")
    assert verdicts.alone(result).startswith("From UDP-FedAvg none of 2 pictures is recognised: 14.5 dB")


def test_a_picture_that_comes_back_from_more_noise_than_signal_is_readable_though_noisy() -> None:
    loud = replace(seen(), facts={**seen().facts, "noise-to-signal": 3.7})
    readable = cell([loud, guess(20, [24.8]), judged([24.8])])
    assert verdicts.caption(readable, 0) == "comes back: readable though noisy"
    assert verdicts.caption(cell([loud, guess(20, [14.0]), judged([14.0])]), 0) == NOT_RECOGNISED
    assert verdicts.caption(ended(31.0), 0) == "comes back"


def test_a_leak_counts_even_if_the_attack_fails_on_the_baseline() -> None:
    """If such an attack fails, it proves nothing; if it recovers a picture, the picture leaks."""
    cells = [ended(31.0), ended(14.0, attack="weak"), ended(14.0, "a"), ended(26.0, "a", "weak", "not converged")]
    assert "With UDP-FedAvg at noise 0.1 it comes back, too." in verdicts.of_cells(cells, TITLES, "none")


def test_the_verdict_is_about_the_best_recovered_picture() -> None:
    end = replace(judged([15.0, 30.0]), trivial={"psnr": (14.0, 12.0), "ssim": (0.1, 0.1), "lpips": (0.8, 0.8)})
    finished = cell([seen(2), guess(20, [15.0, 30.0]), end])
    verdict = verdicts.of_cells([finished], TITLES, "none")
    assert "at least one of 2 pictures comes back." in verdict


def test_there_is_no_verdict_before_all_attacks_have_finished() -> None:
    forming = cell([seen(), guess(5, [30.0])], status="running")
    assert verdicts.of_cells([forming], TITLES, "none") == ""
    half = [ended(31.0), ended(14.0, "a"), cell([seen(), guess(5, [30.0])], "a", "other", "running")]
    assert "UDP-FedAvg" not in verdicts.of_cells(half, TITLES, "none")
    assert attack_summary.done_fraction([ended(31.0), cell([], status="queued")]) == 0.5
