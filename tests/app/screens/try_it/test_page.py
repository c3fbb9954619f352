"""The page Try: the stored example, runs of the store, refusals, links, and the result of an earlier question."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.screens.try_it import texts as try_texts
from app.screens.try_it.change import fields
from app.session import limits as class_limits
from app.session import run_settings, services, session
from app.texts import privacy, states
from engine.errors import HomeFull
from engine.events import Cancelled, Event, Failed, Finished, Measured, Round, Warned
from engine.examples.start import StartStop, start_example
from engine.jobs.supervisor import Supervisor
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from tests.app.conftest import Screen
from tests.app.reading import open_screen, text
from tests.app.screens.try_it.makers import clicked, link_of, record, settings_of, statuses, visit

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]
MEASURED = (Round(1, 30, 3), Measured(1, "accuracy", 0.5))


@pytest.fixture
def stop() -> StartStop:
    example = start_example()
    assert example
    return example.stops[-1]


def spec_of(page: AppTest) -> RunSpec:
    return run_settings.spec_of(settings_of(page).run)


# --- a first visit -----------------------------------------------------------------------------------------


def test_a_first_visit_shows_the_stored_example_in_three_panels(stop: StartStop) -> None:
    page = visit()
    shown = text(page)
    assert spec_of(page).id == stop.run.id
    assert f"{100 * stop.accuracy:.1f} %" in shown and states.STORED.format(made=stop.run.made) in _captions(page)
    assert shown.count('<img src="data:image/png') == 2 and "not recognised" in shown
    assert all(name in shown for name in ("PSNR", "SSIM", "LPIPS"))
    assert len(page.get("plotly_chart")) == 1
    assert page.button(key="try-run").label == try_texts.LIVE and statuses() == {}


def _captions(page: AppTest) -> str:
    return " ".join(caption.value for caption in page.caption)


def test_b44_no_result_is_shown_for_another_observer_but_its_own(stop: StartStop) -> None:
    page = visit()
    page.selectbox(key="observer-choice").set_value("outsider").run()
    assert link_of(page)["eyes"] == "outsider" and spec_of(page).id == stop.run.id
    assert statuses() == {}
    assert "sees only the published models" in text(page)


def test_the_observer_of_a_target_is_read_and_chosen_in_the_header_alone() -> None:
    page = visit({"target-epsilon": 4.0, "view": "outsider"})
    page.session_state[fields.OPEN] = True
    page.run()
    assert not page.exception
    assert try_texts.TARGET_OF.format(against=privacy.AGAINST["outsider"]) in _captions(page)
    observers = {*privacy.VIEWS, *privacy.SEEN_BY.values(), *privacy.AGAINST.values(), *privacy.WHO.values()}
    own = [box for box in page.selectbox if box.key != "observer-choice" and observers & set(box.options)]
    assert not own


# --- running -----------------------------------------------------------------------------------------------


def test_run_requests_training_and_attacks_as_one_batch() -> None:
    page = clicked(visit({"rounds": 7}), "try-run")
    (batch,) = services.store().batches.listed()
    assert batch.kind == "try" and set(batch.runs) == set(statuses())
    kinds = ["attack" if "attack" in services.store().run(run).spec else "train" for run in batch.runs]
    assert kinds == ["attack", "train", "attack", "attack", "train", "attack", "attack", "attack"]
    assert "0 of 8 runs and attacks done" in page.get("progress")[0].text
    assert batch.spec == {"screen": "try", "link": settings_of(page).link()}


def test_the_page_shows_a_run_as_it_grows() -> None:
    page = clicked(visit({"rounds": 7}), "try-run")
    record(spec_of(page).id, (Round(3, 7, 3), Measured(1, "accuracy", 0.4), Measured(2, "accuracy", 0.5)))
    page.run()
    assert "50.0 %" in text(page) and "round 3 of 7" in _captions(page)
    assert len(page.get("plotly_chart")) == 1


def test_cancel_and_go_on() -> None:
    page = clicked(visit({"rounds": 7}), "try-run")
    clicked(page, "try-cancel")
    assert set(statuses().values()) == {"cancelled"}
    assert "Cancelled after round 0" in text(page) and page.button(key="try-run").label == try_texts.RESUME
    clicked(page, "try-run")
    assert set(statuses().values()) == {"queued"}


def test_a_run_that_others_requested_is_not_cancelled() -> None:
    page = clicked(visit({"rounds": 7}), "try-run")
    spec = spec_of(page)
    services.store().submit(spec.id, spec.canonical(), visitor="another")
    clicked(page, "try-cancel")
    assert services.store().status(spec.id) == "queued"
    assert states.shared(1, try_texts.NOUN) in text(page)


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        ((Failed("it broke", "Fix it"),), "it broke. Fix it."),
        ((Warned("it is slow", "Wait"), *MEASURED, Cancelled(1)), "it is slow. Wait."),
        ((*MEASURED, Cancelled(1)), "Cancelled after round 1"),
    ],
)
def test_every_ending_is_reported(ending: Sequence[Event], words: str) -> None:
    page = clicked(visit({"rounds": 7}), "try-run")
    run = spec_of(page).id
    record(run, ending)
    for other in statuses():
        if other != run:
            services.store().cancel(other)
    page.run()
    assert words in text(page) and not page.exception
    assert page.button(key="try-run").label in (try_texts.RESUME, try_texts.RUN)


def test_several_seeds_become_a_band() -> None:
    page = clicked(visit({"rounds": 7, "seeds": 3}), "try-run")
    for spec in run_settings.with_seeds(spec_of(page), 3):
        record(spec.id, (*MEASURED, Finished(1, 0.1)))
    page.run()
    figure = json.loads(page.get("plotly_chart")[0].proto.spec)
    assert "3 seeds, worst to best" in [trace.get("name") for trace in figure["data"]]


# --- two sides ---------------------------------------------------------------------------------------------


def test_side_b_starts_with_an_estimate_and_a_sentence() -> None:
    page = clicked(visit(), "try-add")
    assert settings_of(page).other is not None and "method.noise" in link_of(page)["b"]
    assert "B has half the ε: about" in text(page) and "by estimate" in text(page)
    assert statuses() == {}
    clicked(page, "try-remove")
    assert settings_of(page).other is None and "B has" not in text(page)


def test_side_b_is_drawn_dashed_and_says_what_it_changed(stop: StartStop) -> None:
    page = visit({**run_settings.link(run_settings.flat(stop.run.spec)), "b": "rounds=7"})
    clicked(page, "try-run")
    other = settings_of(page).other
    assert other
    record(run_settings.spec_of(other).id, (*MEASURED, Finished(1, 0.1)))
    page.run()
    figure = json.loads(page.get("plotly_chart")[0].proto.spec)
    dashes = {trace["name"]: trace["line"]["dash"] for trace in figure["data"] if "dash" in trace.get("line", {})}
    assert (dashes["A"], dashes["B"]) == ("solid", "dash")
    assert "and 7 rounds: " in text(page)


def test_the_sides_of_a_shared_link_are_the_same() -> None:
    page = clicked(visit(), f"try-{try_texts.OTHER}")
    shared = next(block.value for block in page.code if "b=" in block.value)
    again = visit(link_of(page))
    assert settings_of(again).other == settings_of(page).other and "fedceo" in shared


# --- the result of an earlier question ---------------------------------------------------------------------


def test_b05_a_result_belongs_to_its_settings(stop: StartStop) -> None:
    page = visit()
    page.query_params["method"] = "ppsgd"
    page.run()
    shown = text(page)
    assert "Result of an earlier question: Noise by each phone, noise 2" in shown
    assert f"{100 * stop.accuracy:.1f} %" in shown
    clicked(page, "try-back")
    assert spec_of(page).id == stop.run.id and "earlier question" not in text(page)


def test_b05_without_an_earlier_result_nothing_is_shown_as_one() -> None:
    page = visit({"rounds": 7})
    assert try_texts.NOT_RUN in text(page) and "earlier question" not in text(page)


# --- settings that cannot run ------------------------------------------------------------------------------


def test_a_value_out_of_range_is_refused_at_its_field() -> None:
    page = clicked(visit(), "try-change")
    page.number_input(key="try-A-rounds").set_value(99_999_999).run()
    assert "run: rounds: must be a whole number between 0 and" in text(page)
    assert page.button(key="try-run").disabled
    run_this = [button for button in page.button if button.key == "try-run-this"]
    assert run_this and all(button.disabled for button in run_this)
    page.number_input(key="try-A-rounds").set_value(3).run()
    assert "must be a whole number" not in text(page) and not page.button(key="try-run").disabled


def test_settings_that_cannot_run_are_refused_before_the_click() -> None:
    page = visit({"sampled": 200})
    assert "must be at most the 100 clients there are" in text(page)


def test_all_parameters_of_a_part_come_from_its_declaration() -> None:
    page = clicked(visit(), "try-change")
    for name in run_settings.names("method"):
        page.query_params.clear()
        page.query_params["method"] = name
        page.run()
        assert not page.exception
        for field in run_settings.own_fields("method", name):
            assert page.get_by_key(f"try-A-method.{field}")


def test_a_class_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_limits, "caps", lambda: class_limits.VisitorLimits(runs=2, rounds=50))
    monkeypatch.setattr(session, "visitor", lambda: "me")
    page = visit({"rounds": 51})
    assert "rounds must be at most 50" in text(page) and page.button(key="try-run").disabled
    page = clicked(visit({"rounds": 7}), "try-run")  # attacks are not counted
    assert len(statuses()) == 8
    page = clicked(visit({"rounds": 8}), "try-run")
    assert "a visitor may have at most 2 runs" in text(page) and len(statuses()) == 8


def test_a_full_home_refuses_the_run_until_there_is_space(monkeypatch: pytest.MonkeyPatch) -> None:
    page = visit({"rounds": 7})
    with monkeypatch.context() as patch:
        patch.setenv("LEAKLENS_QUOTA_GB", "1e-9")
        clicked(page, "try-run")
        assert "Delete runs that are no longer needed" in text(page) and statuses() == {}
    clicked(page, "try-run")
    assert statuses() and "Delete runs" not in text(page)


def test_an_error_of_the_supervisor_is_shown_while_a_run_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Supervisor, "trouble", property(lambda supervisor: HomeFull("no space is left", "Delete runs")))
    page = clicked(visit({"rounds": 7}), "try-run")
    assert "no space is left. Delete runs" in page.get("progress")[0].text


def test_an_unusable_home_is_one_sentence(screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LEAKLENS_HOME", str(tmp_path / "file"))
    page = screen("try")
    assert not page.exception
    assert "LEAKLENS_HOME" in text(page) and page.button(key="try-again")


# --- links -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["try", "lab"])
@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"rounds": "abc"}, "rounds = abc. It must be a whole number"),
        ({"method": "nonsense"}, "names the method nonsense"),
        ({"run": "deadbeef0000"}, try_texts.NO_RUN),
        ({"run": "../../etc/passwd"}, try_texts.NO_RUN),
        ({"rounds": "99999999"}, "must be a whole number between 0 and"),
        ({"seeds": "999999999999"}, "seeds = 999999999999. It must be"),
        ({"method.noise": "<script>alert(1)</script>"}, "It must be a number"),
    ],
)
def test_an_error_in_a_link_is_one_sentence(params: dict[str, str], words: str, name: str) -> None:
    page = visit(params, name)
    assert words in text(page) and "<script>alert" not in text(page)


def test_a_run_opens_with_its_settings_and_its_result() -> None:
    spec = RunSpec(method="fedceo", rounds=3, seed=4)
    services.store().submit(spec.id, spec.canonical())
    record(spec.id, (*MEASURED, Finished(1, 0.1)))
    page = visit({"run": spec.id})
    assert spec_of(page).id == spec.id and "50.0 %" in text(page)
    assert "run" not in link_of(page) and link_of(page)["seed"] == "4"


def test_a_link_that_names_an_attack_says_where_attacks_are_shown(stop: StartStop) -> None:
    attack = AttackSpec(run=stop.run.spec, attack="map", pictures=("test-0",))
    services.store().submit(attack.id, attack.canonical())
    assert try_texts.IS_ATTACK in text(visit({"run": attack.id}))


def test_an_old_link_of_the_lab_opens_the_same_question() -> None:
    spec = RunSpec(method={"name": "udp-fedavg", "noise": 0.7}, rounds=5)
    params = {**run_settings.link(run_settings.flat(spec.canonical())), "run": "0123456789ab", "seeds": "2"}
    page = visit(params, "lab")
    assert spec_of(page).id == spec.id and settings_of(page).seeds == 2


def test_a_visit_to_another_screen_loses_nothing() -> None:
    page = clicked(clicked(visit(), "try-pin"), "try-change")
    page.number_input(key="try-A-rounds").set_value(25).run()
    open_screen(page, "machine").run()
    open_screen(page, "try").run()
    assert not page.exception
    assert spec_of(page).rounds == 25 and len(settings_of(page).pins) == 1
    assert link_of(page)["rounds"] == "25"
