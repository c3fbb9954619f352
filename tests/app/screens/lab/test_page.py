"""The Lab shows the runs of the store, requests the run of the form, and explains every refusal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app.session import limits as class_limits
from app.session import run_settings, services
from app.texts import numbers, privacy, product, states
from engine.errors import HomeFull
from engine.events import Cancelled, Event, Failed, Finished, Measured, Round, Warned
from engine.examples.files import RunExample, example, examples
from engine.jobs.process_id import ProcessId
from engine.jobs.supervisor import Supervisor
from engine.results.report import report
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from tests.app.conftest import MAIN, Screen
from tests.app.reading import open_screen, text

pytestmark = pytest.mark.usefixtures("resting")


@pytest.fixture
def first() -> RunExample:
    return examples()[0]


@pytest.fixture
def lab(screen: Screen) -> AppTest:
    """The Lab at a first visit, with loaded shelves."""
    assert services.shared().ready(60)
    return screen("lab")


def clicked(page: AppTest, key: str) -> AppTest:
    page.button(key=key).click().run()
    assert not page.exception
    return page


def record(run: str, events: Sequence[Event]) -> None:
    """Stores the events of a waiting run, as a worker does."""
    lease = services.store().take(ProcessId.me(), 9, only={run})
    assert lease and lease.run == run
    services.store().append(lease, events)


def spec_in(page: AppTest) -> RunSpec:
    return run_settings.spec_of(page.session_state["settings"])


# --- a first visit -----------------------------------------------------------------------------------------


def test_a_first_visit_shows_a_finished_example(lab: AppTest, first: RunExample) -> None:
    shown = text(lab)
    body = report(first.events)
    assert first.title in shown and f"run on {first.made}" in shown
    assert numbers.percent(body["accuracy"]) in shown
    assert f"ε {numbers.epsilon(body['epsilon']['outsider'])}" in shown
    baseline = example(first.baseline)
    assert baseline and privacy.cost(body["accuracy"], report(baseline.events)["accuracy"]) in shown
    assert len(lab.get("plotly_chart")) == 3
    assert spec_in(lab).id == first.id
    assert services.store().runs() == []


def test_the_example_is_shown_before_the_shelves_are_loaded(
    screen: Screen, first: RunExample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services.Services, "ready", lambda shared, wait=0.0: wait > 0)
    page = screen("lab")
    assert product.GETTING_READY in text(page) and first.title in text(page)
    assert len(page.get("plotly_chart")) == 3
    assert page.button(key="live").disabled


def test_every_example_opens_with_its_own_settings(lab: AppTest) -> None:
    for shown in examples():
        clicked(lab, f"example-{shown.name}")
        assert shown.title in text(lab)
        assert numbers.percent(report(shown.events)["accuracy"]) in text(lab)
        assert spec_in(lab).id == shown.id


def test_a13_a_result_names_who_adds_the_noise(lab: AppTest) -> None:
    clicked(lab, "example-noise-1")
    assert "noise 1: the clients share the noise" in text(lab)
    clicked(lab, "example-no-protection")
    assert "share the noise</p>" not in text(lab)


# --- running and watching ----------------------------------------------------------------------------------


def test_run_requests_the_run_and_its_baseline(lab: AppTest, first: RunExample) -> None:
    clicked(lab, "run")
    assert [(row.id, row.status) for row in reversed(services.store().runs())] == [
        (first.id, "queued"),
        (first.baseline, "queued"),
    ]
    assert "waiting: place 1 in the queue" in lab.get("progress")[0].text
    assert lab.button(key="cancel")


def test_the_page_shows_the_events_of_the_store(lab: AppTest, first: RunExample) -> None:
    clicked(lab, "run")
    half = [event for event in first.events if getattr(event, "round", 0) <= 15 and not event.ends]
    record(first.id, half)
    lab.run()
    body = report([event for _, event in services.store().events(first.id)])
    assert numbers.percent(body["accuracy"]) in text(lab)
    assert "round 15 of 30" in lab.get("progress")[0].text
    baseline = example(first.baseline)
    assert baseline
    record(first.baseline, baseline.events)
    lab.run()
    assert "So far, after round 15" in text(lab)


def test_a_finished_run_shows_its_result_and_the_next_steps(lab: AppTest, first: RunExample) -> None:
    clicked(lab, "run")
    record(first.id, first.events)
    baseline = example(first.baseline)
    assert baseline
    record(first.baseline, baseline.events)
    lab.run()
    shown = text(lab)
    body = report(first.events)
    assert numbers.percent(body["accuracy"]) in shown and "A stored example" not in shown
    for view, value in body["epsilon"].items():
        assert f"ε {numbers.epsilon(value)}</b> {privacy.AGAINST[view]}" in shown
    assert body["guarantee"]["reason"].split("'")[0][:40].lower() in shown.lower()
    for line in privacy.NOT_COVERED:
        assert any(line in block.value for block in lab.markdown)
    assert not lab.button(key="to-leak").disabled
    clicked(lab, "step:Half the noise")
    assert spec_in(lab).method.noise == first.spec["method"]["noise"] / 2  # type: ignore[attr-defined]
    assert lab.session_state["ids"]["pins"] == (first.id,)
    assert services.store().status(spec_in(lab).id) == "queued"


def test_cancel_stops_the_run_and_its_baseline(lab: AppTest, first: RunExample) -> None:
    clicked(lab, "run")
    clicked(lab, "cancel")
    assert {row.status for row in services.store().runs()} == {"cancelled"}
    assert "Cancelled after round 0" in text(lab)
    clicked(lab, "go-on")
    assert {row.status for row in services.store().runs()} == {"queued"}


def test_a_run_that_others_requested_is_not_cancelled(lab: AppTest, first: RunExample) -> None:
    clicked(lab, "run")
    services.store().submit(first.id, first.spec, visitor="another")
    clicked(lab, "cancel")
    assert services.store().status(first.id) == "queued"
    assert services.store().status(first.baseline) == "cancelled"
    assert states.shared(1, "runs") in text(lab)


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        ((Failed("it broke", "Fix it"),), "it broke. Fix it."),
        (
            (Warned("it is slow", "Wait"), Round(1, 30, 3), Measured(1, "accuracy", 0.5), Cancelled(1)),
            "it is slow. Wait.",
        ),
        ((Measured(1, "accuracy", 0.5), Cancelled(1)), "Cancelled after round 1"),
    ],
)
def test_every_ending_is_reported(lab: AppTest, first: RunExample, ending: Sequence[Event], words: str) -> None:
    clicked(lab, "run")
    record(first.id, ending)
    services.store().cancel(first.baseline)
    lab.run()
    assert words in text(lab) and not lab.exception
    assert lab.button(key="go-on")


def test_several_seeds_become_a_band(lab: AppTest, first: RunExample) -> None:
    lab.number_input(key="seeds").set_value(3).run()
    clicked(lab, "run")
    assert len(lab.session_state["ids"]["run"]) == 3
    assert len(services.store().runs()) == 4
    for run in lab.session_state["ids"]["run"]:
        record(run, (Round(1, 30, 3), Measured(1, "accuracy", 0.5), Finished(1, 0.1)))
    lab.run()
    figure = json.loads(lab.get("plotly_chart")[0].proto.spec)
    assert "3 seeds, worst to best" in [trace.get("name") for trace in figure["data"]]


def test_pinned_runs_are_compared_by_their_differences(lab: AppTest, first: RunExample) -> None:
    clicked(lab, "pin")
    clicked(lab, "example-half-noise")
    table = lab.dataframe[0].value
    assert list(table["method.noise"]) == ["0.5", "1.0"]
    accuracies = [report(run.events)["accuracy"] for run in (examples()[2], first)]
    assert list(table["accuracy"]) == [numbers.percent(accuracy) for accuracy in accuracies]
    assert "rounds" not in table
    clicked(lab, f"unpin:{first.id}")
    assert not lab.dataframe


# --- the form ----------------------------------------------------------------------------------------------


def test_every_change_of_the_form_updates_the_forecast(lab: AppTest) -> None:
    def shown() -> str:
        return text(lab)

    before = shown()
    lab.select_slider(key="w:method.noise:slider").set_value(0.1).run()
    assert shown() != before and "no meaningful promise" in shown()
    assert spec_in(lab).method.noise == 0.1  # type: ignore[attr-defined]
    lab.segmented_control(key="w:protect").set_value("by ε").run()
    assert spec_in(lab).target_epsilon == 8.0 and spec_in(lab).view == "outsider"
    lab.segmented_control(key="w:protect").set_value("not at all").run()
    assert spec_in(lab).target_epsilon is None and spec_in(lab).method.noise == 0  # type: ignore[attr-defined]
    lab.selectbox(key="w:method").set_value("fedavg").run()
    assert "Nothing is protected" in shown()
    assert services.store().runs() == []
    assert not lab.exception


def test_a_value_out_of_range_is_refused_under_its_field(lab: AppTest) -> None:
    lab.number_input(key="w:rounds").set_value(99_999_999).run()
    assert "run: rounds: must be a whole number between 0 and" in text(lab)
    assert not lab.exception
    assert all(button.disabled for button in lab.button if button.label == "Run")
    lab.number_input(key="w:rounds").set_value(3).run()
    assert "must be a whole number" not in text(lab)
    assert not lab.button(key="run").disabled


def test_settings_that_cannot_run_are_refused_before_the_click(lab: AppTest) -> None:
    lab.number_input(key="w:sampled").set_value(200).run()
    assert "must be at most the 100 clients there are" in text(lab)
    lab.number_input(key="w:clients").set_value(9_000).run()
    assert not lab.exception


def test_all_parameters_of_a_part_come_from_its_declaration(lab: AppTest) -> None:
    for name in run_settings.names("method"):
        lab.selectbox(key="w:method").set_value(name).run()
        assert not lab.exception
        for field in run_settings.own_fields("method", name):
            if field != "noise":
                assert lab.get_by_key(f"w:method.{field}")


# --- links -------------------------------------------------------------------------------------------------


def linked(params: dict[str, Any]) -> AppTest:
    assert services.shared().ready(60)
    page = AppTest.from_file(str(MAIN), default_timeout=60)
    for name, value in params.items():
        page.query_params[name] = value
    return page.run()


def test_a_link_opens_its_settings_and_its_runs(lab: AppTest, first: RunExample) -> None:
    clicked(lab, "example-half-noise")
    shown = examples()[2]
    params = {**run_settings.link(lab.session_state["settings"]), "run": shown.id, "pins": first.id}
    page = linked(params)
    assert not page.exception
    assert spec_in(page).id == shown.id
    assert numbers.percent(report(shown.events)["accuracy"]) in text(page)
    assert page.dataframe


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"rounds": "abc"}, "rounds = abc. It must be a whole number"),
        ({"method": "nonsense"}, "names the method nonsense"),
        ({"format": "99"}, "A newer LeakLens made this link"),
        ({"run": "deadbeef0000"}, "names a run that is not on this machine"),
        ({"run": "../../etc/passwd"}, "names a run that is not on this machine"),
        ({"rounds": "99999999"}, "must be a whole number between 0 and"),
        ({"seeds": "999999999999"}, "at most 5 seeds: this link wants 999999999999"),
        ({"target-epsilon": "3"}, "view: is missing"),
        ({"seed": "-1"}, "run: seed: must be a whole number between 0 and"),
        ({"method.noise": "<script>alert(1)</script>"}, "It must be a number"),
    ],
)
def test_an_error_in_a_link_is_one_sentence(params: dict[str, str], words: str) -> None:
    page = linked(params)
    assert not page.exception
    assert words in text(page) and "<script>alert" not in text(page)
    assert page.selectbox(key="w:method").value == "udp-fedavg"


def test_a_link_that_names_an_attack_says_where_attacks_are_shown(first: RunExample) -> None:
    attack = AttackSpec(run=first.spec, attack="map", pictures=("test-0",))
    services.store().submit(attack.id, attack.canonical())
    page = linked({"run": attack.id})
    assert not page.exception and "This link names an attack, not a run" in text(page)


def test_a_visit_to_another_screen_loses_nothing(lab: AppTest, first: RunExample) -> None:
    clicked(lab, "pin")
    lab.number_input(key="w:rounds").set_value(25).run()
    open_screen(lab, "machine").run()
    open_screen(lab, "lab").run()
    assert not lab.exception
    assert spec_in(lab).rounds == 25
    assert lab.session_state["ids"]["pins"] == (first.id,)
    assert "rounds=25" in shared_link(lab)


def shared_link(page: AppTest) -> str:
    """The address that the page offers to share."""
    return next(block.value for block in page.code if "rounds=" in block.value)


def test_an_unusable_home_is_one_sentence(screen: Screen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LEAKLENS_HOME", str(tmp_path / "file"))
    page = screen("lab")
    assert not page.exception
    assert "LEAKLENS_HOME" in text(page) and page.button(key="try-again")


def test_a_full_home_refuses_the_run_until_there_is_space(lab: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("LEAKLENS_QUOTA_GB", "1e-9")
        clicked(lab, "run")
        assert "Delete runs that are no longer needed" in text(lab)
        assert services.store().runs() == []
    clicked(lab, "run")
    assert len(services.store().runs()) == 2
    assert "Delete runs" not in text(lab)


def test_an_error_of_the_supervisor_is_shown_while_a_run_waits(lab: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Supervisor, "trouble", property(lambda supervisor: HomeFull("no space is left", "Delete runs")))
    clicked(lab, "run")
    assert "no space is left. Delete runs" in lab.get("progress")[0].text


def test_a_broken_installation_is_reported_and_the_example_stays(
    lab: AppTest, first: RunExample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services.shared(), "trouble", ImportError("no torch"))
    lab.run()
    assert not lab.exception
    accuracy = numbers.percent(report(first.events)["accuracy"])
    assert "could not be loaded (no torch)" in text(lab) and accuracy in text(lab)


def test_a_class_has_limits_and_reopens_earlier_runs(lab: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_limits, "caps", lambda: class_limits.VisitorLimits(runs=2, rounds=50))
    clicked(lab, "run")
    assert lab.number_input(key="w:rounds").max == 50
    lab.query_params["rounds"] = "51"  # a link brings what the form does not offer
    lab.run()
    assert "rounds must be at most 50" in text(lab) and lab.button(key="run").disabled
    lab.number_input(key="w:rounds").set_value(20).run()
    clicked(lab, "run")
    assert "a visitor may have at most 2 runs" in text(lab)
    lab.number_input(key="w:rounds").set_value(30).run()
    clicked(lab, "run")
    assert len(services.store().runs()) == 2 and "may have at most" not in text(lab)
