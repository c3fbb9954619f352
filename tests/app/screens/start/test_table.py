"""What the slider of Start shows: picture, accuracy and ε of a stop belong to one run, and no sentence goes further."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import pytest

from app.screens.start import table, texts
from app.screens.start.settings import StartSettings
from app.texts import privacy
from app.widgets.stop_slider import StopView
from engine.attacks import ATTACKS
from engine.events import Started
from engine.examples.start import StartExample
from engine.examples.start import start_example as stored_example
from engine.results.attack_summary import AttackCell, AttackEvents, collect_cell
from engine.results.shown_cell import shown_cell
from engine.results.verdict import COMES_BACK
from engine.specs.attack import attack_spec
from engine.specs.attack_grid import RequestedAttack
from engine.specs.run import RunSpec
from tests.app.screens.leak.makers import GREY, finished_attack, guess, judged, seen
from tests.app.screens.start.makers import ATTACKS as NAMES
from tests.app.screens.start.makers import start_example


def real() -> StartExample:
    example = stored_example()
    assert example is not None
    return example


def stops(example: StartExample, eyes: Literal["server", "outsider"] = "server") -> tuple[StopView, ...]:
    return table.portrait_sheet(example, StartSettings(eyes=eyes)).shown.stops


@pytest.mark.parametrize("example_of", [real, start_example])
def test_picture_accuracy_and_epsilon_of_a_stop_are_of_one_spec(example_of: Callable[[], StartExample]) -> None:
    example = example_of()
    for stop in example.stops:
        attacks = [cell for key in texts.CONTENTS for cell in example.cells(stop, "server", key)]
        assert attacks
        for attack in attacks:
            assert attack.spec["run"] == stop.run.spec
        started = stop.run.events[0]
        assert isinstance(started, Started) and started.run == stop.run.id


def test_the_ids_of_the_stored_table_are_those_of_its_specs() -> None:
    example = real()
    for stop in example.stops:
        assert RunSpec(**stop.run.spec).id == stop.run.id
        for attack in example.cells(stop, "server", "1"):
            spec = attack_spec(attack.spec)
            assert (spec.id, spec.run.id) == (attack.id, stop.run.id)


def test_the_stops_differ_in_noise_and_server_step_only() -> None:
    specs = []
    for stop in real().stops:
        body = RunSpec(**stop.run.spec).canonical()
        method = {name: value for name, value in body["method"].items() if name not in ("noise", "server-step")}
        specs.append({**body, "method": method, "format": 0})  # the format follows from the noise
    assert all(spec == specs[0] for spec in specs)


def test_the_stored_table_shows_what_the_page_says() -> None:
    shown = stops(real())
    assert (shown[0].tick, shown[0].tone, shown[0].promise) == ("none", "leaking", "no promise")
    assert all(stop.src and stop.accuracy.endswith("%") for stop in shown)
    assert shown[-1].tone == "" and shown[-1].lesson == texts.LESSON
    assert [stop.lesson for stop in shown[:-1]] == [""] * (len(shown) - 1)


def test_a_number_above_ten_is_in_small_print_only() -> None:
    for stop in stops(start_example()):
        headline = f"{stop.promise} {stop.sentence} {stop.note} {stop.place}"
        assert ("ε 6.63" in headline) == (stop.tick == "2")
        assert "ε 15.5" not in headline and "ε 448" not in headline
    assert "ε 15.5 per client, seen by the server" in stops(start_example())[6].terms
    promised = stops(start_example())[7]
    assert (promised.promise_observer, promised.promise_terms) == ("against the server", "δ\u00a0=\u00a01e-5")


def test_eight_pictures_and_the_cheating_server_are_for_the_server_only() -> None:
    sheet = table.portrait_sheet(start_example(), StartSettings(eyes="client", content="cheat"))
    assert [upload.key for upload in sheet.uploads if upload.stops] == ["1", "ordinary"]
    assert (sheet.upload, sheet.reason) == ("1", texts.SERVER_ONLY)
    assert sheet.words["rebuilt"] == "what another participant could rebuild"
    server = table.portrait_sheet(start_example(), StartSettings())
    assert all(upload.stops for upload in server.uploads) and not server.reason


def test_an_upload_that_was_not_attacked_is_left_out() -> None:
    example = start_example()
    without = replace(example, attacks=tuple(each for each in example.attacks if each.spec["upload"] != "cheat"))
    sheet = table.portrait_sheet(without, StartSettings(content="cheat"))
    assert [upload.key for upload in sheet.uploads] == ["1", "8", "ordinary"] and sheet.upload == "1"


def test_the_promise_is_that_of_the_observer() -> None:
    promises = [stop.promise for stop in stops(start_example(), eyes="outsider")]
    assert promises[6:] == ["· ε 1.55 per client: limited promise", "✓ ε 0.663 per client: strong promise"]


def test_a_faint_picture_is_shown_in_place_of_a_grey_square() -> None:
    def cell(attack: str, psnr: float, lpips: float) -> AttackCell:
        ended = collect_cell(
            RequestedAttack("", attack, None), AttackEvents("stored", tuple(finished_attack("x", [psnr])))
        )
        assert ended.judged
        return replace(ended, judged=replace(ended.judged, numbers={**ended.judged.numbers, "lpips": (lpips,)}))

    grey, faint, clear = cell("map", 11.6, 0.84), cell("inverting-gradients", 8.0, 0.6), cell("analytic", 30.0, 0.7)
    assert shown_cell([grey, faint], 0) == faint
    assert shown_cell([grey, faint, clear], 0) == clear


def ordinary(attack: str, others: int, by_chance: int, victim: float = GREY - 3, lpips: float = 0.8) -> AttackCell:
    """An attack on 120 pictures, with so many hits on the others and on pictures that were never sent."""
    numbers = [victim, *[30.0] * others, *[GREY] * (119 - others)]
    control = judged([*[30.0] * by_chance, *[GREY] * (120 - by_chance)])
    scores = dict(control.numbers)
    for name, values in control.trivial.items():
        scores |= {f"trivial-{name}": values, f"mean-{name}": values}
    end = judged(numbers)
    end = replace(end, control=scores, numbers={**end.numbers, "lpips": (lpips, *end.numbers["lpips"][1:])})
    sent = seen(120)
    events = (replace(sent, facts={**sent.facts, "steps": 8, "upload": "ordinary"}), guess(20, numbers), end)
    return collect_cell(RequestedAttack("", attack, None), AttackEvents("stored", events))


def stop_with(cells: list[AttackCell], key: str = "ordinary", place: int = 0) -> StopView:
    """A stop of the made-up table with these attacks in place of its own."""
    example = start_example()
    columns = [cells if each == place else [] for each in range(len(example.stops))]
    return table._upload_view(key, "", columns, example, "server", texts.PORTRAIT_WORDS).stops[place]


def test_hits_that_chance_explains_are_left_out() -> None:
    nearest = ordinary("map", 0, 0, lpips=0.7)
    lucky = ordinary("inverting-gradients", 2, 0)
    assert not lucky.works
    for cells in ([nearest, lucky], [replace(lucky, attack="analytic"), ordinary("map", 1, 0)]):
        stop = stop_with(cells)
        assert stop.sentence.startswith("None of our 2 attackers succeeded here.")
        assert stop.note == "The upload holds 120 pictures, used in 8 training steps."


def test_the_other_pictures_are_those_of_the_attack_whose_picture_is_shown() -> None:
    shown, wider = ordinary("map", 15, 2, victim=30.0), ordinary("imprint", 40, 20, victim=18.0)
    stop = stop_with([wider, shown])
    assert stop.by == "best of 2 attacks: Most probable picture"
    assert "15 of the other 119 come back, at least in outlines; of as many pictures" in stop.note
    assert "never sent, 2 would count as well" in stop.note


@pytest.mark.parametrize("eyes", ["server", "client", "outsider"])
def test_the_stored_table_never_says_that_none_succeeded_and_some_came_back(eyes: str) -> None:
    sheet = table.portrait_sheet(real(), StartSettings.default().with_(eyes=eyes))
    for stop in (stop for upload in sheet.uploads for stop in upload.stops):
        assert "attackers succeeded here" not in stop.sentence or "come back" not in stop.note


def test_an_accuracy_falls_from_that_of_the_first_stop_not_of_the_baseline() -> None:
    last = stops(start_example())[-1]
    assert last.sentence.endswith("Accuracy fell from 84 to 35 %.")
    assert (last.accuracy, last.spread) == ("35 %", "35 to 36 % in 3 runs")
    assert stops(start_example())[1].spread == "84 to 85 % in 3 runs"
    assert "server step 1, the best of the 3 tried." in last.terms


def test_the_promise_names_its_observer() -> None:
    observers = {eyes: stops(start_example(), eyes)[-1].promise_observer for eyes in ("server", "outsider")}
    assert observers == {"server": "against the server", "outsider": privacy.AGAINST["outsider"]}
    assert observers["server"] != observers["outsider"]


def test_the_lesson_is_that_of_the_shown_upload() -> None:
    for eyes, expected in (
        ("server", {"1": texts.LESSON, "8": "", "ordinary": "", "cheat": texts.LESSON}),
        ("outsider", {"1": "", "ordinary": ""}),
    ):
        uploads = table.portrait_sheet(start_example(), StartSettings.default().with_(eyes=eyes)).uploads
        assert {upload.key: upload.stops[-1].lesson for upload in uploads if upload.stops} == expected


def test_the_way_to_an_ordinary_upload_follows_only_what_comes_back() -> None:
    uploads = {each.key: each for each in table.portrait_sheet(start_example(), StartSettings()).uploads}
    assert [stop.easiest for stop in uploads["1"].stops] == [True] * 4 + [False] * 4
    assert not any(stop.easiest for stop in uploads["cheat"].stops)


def test_the_verdict_is_that_of_the_portrait_not_of_another_picture() -> None:
    numbers = [GREY - 3, *[30.0] * 7]
    events = (seen(8), guess(20, numbers), judged(numbers))
    cell = collect_cell(RequestedAttack("", "map", None), AttackEvents("stored", events))
    assert cell.best_verdict == COMES_BACK
    stop = stop_with([cell], "8")
    assert (stop.word, stop.tone) == ("Her face is not recognised", "")


def test_a_photo_has_the_accuracy_and_epsilon_of_the_table() -> None:
    example = start_example()
    events = tuple(finished_attack("x", [31.0]))
    cell = collect_cell(RequestedAttack("0", "analytic", None), AttackEvents("finished", events))
    sheet = table.own_sheet(example, StartSettings(picture=f"own-{'a' * 16}", content="8"), [cell, *[None] * 7], "png")
    assert sheet.upload == "1" and sheet.reason == texts.INSTANT_ONLY
    first, second = sheet.shown.stops[:2]
    assert (first.word, first.by) == ("Your picture comes back", "attack: Read off the first layer")
    assert (second.word, second.src, second.sentence) == ("Not attacked yet", "", "")
    assert [stop.accuracy for stop in sheet.shown.stops] == [stop.accuracy for stop in stops(example)]
    outside = table.own_sheet(example, StartSettings(eyes="outsider", picture=f"own-{'a' * 16}"), [cell] * 8, "png")
    assert outside.reason.startswith(texts.SERVER_READS)  # what is shown is still the server's
    assert outside.shown.stops[7].promise == sheet.shown.stops[7].promise


def test_each_attack_has_the_title_of_the_engine() -> None:
    for name in (*NAMES, "imprint"):
        assert texts.TITLES[name] == ATTACKS[name].title
