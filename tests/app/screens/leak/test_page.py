"""The Leak screen shows stored results, runs what its controls describe, and explains what cannot run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app.screens.leak import settings as leak_settings
from app.screens.leak.settings import LeakSettings
from app.screens.leak.uploads import requests
from app.session import links, services, session
from app.texts import attack_form as form_texts
from app.texts import attacks as attack_texts
from app.texts import product, states
from engine.events import Event, Failed, Finished, Started
from engine.examples import attacks
from engine.examples.attacks import AttackExample
from engine.jobs.home import Home
from engine.jobs.process_id import ProcessId
from engine.jobs.store import Store
from engine.jobs.uploads import UploadedPictures
from engine.leakage.pictures import attack as leak_events
from engine.specs import attack_grid, attack_series
from engine.specs.attack import AttackSpec
from engine.specs.attack_grid import NONE, RequestedAttack
from tests.app.conftest import MAIN, PATIENCE_S, Screen
from tests.app.reading import lines, open_screen, press, text
from tests.app.screens.leak.makers import default_cells, finished_attack, judged, seen
from tests.engine.jobs.makers import photo, saved

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]


def visit(leak: LeakSettings | None = None, **params: str) -> AppTest:
    assert services.shared().ready(PATIENCE_S)
    page = AppTest.from_file(str(MAIN), default_timeout=PATIENCE_S)
    for name, value in {**(leak.link() if leak else {}), **params}.items():
        page.query_params[name] = value
    open_screen(page, "leak")
    page.run()
    assert not page.exception
    return page


def requests_of(leak: LeakSettings) -> list[RequestedAttack]:
    return attack_grid.in_order(leak.grid.requests())


def grid(page: AppTest) -> dict[str, Any]:
    """Return the data that the browser draws."""
    component = page.get("bidi_component")[-1]  # the first one saves the grid as a PNG
    data: dict[str, Any] = json.loads(component.proto.mixed.json or component.proto.json)
    return data


BEST = attack_texts.BEST.format(count=len(leak_settings.ATTACKS))


def psnrs(page: AppTest) -> dict[str, list[str]]:
    """Return the PSNR of each picture by its row; empty before the end of its attack."""
    rows = {}
    for row in grid(page)["rows"]:
        scores = [cell["scores"][0]["text"] if cell["scores"] else "" for cell in row["cells"]]
        rows[row["title"]] = scores
    return rows


def words(page: AppTest) -> list[list[str]]:
    return [[cell["word"] for cell in row["cells"]] for row in grid(page)["rows"]]


def link(page: AppTest) -> dict[str, str]:
    return {name: str(value) for name, value in page.query_params.items()}


def tell(run: str, events: Sequence[Event]) -> None:
    lease = services.store().take(ProcessId.me(), 99, only={run})
    assert lease and lease.run == run
    services.store().append(lease, events)


def clicked(page: AppTest, key: str) -> AppTest:
    press(page, key)
    assert not page.exception
    return page


# --- a first visit -----------------------------------------------------------------------------------------


def test_the_first_page_shows_a_picture() -> None:
    page = visit()
    assert attack_texts.PROMISE in text(page)
    assert grid(page)["columns"][0]["title"] == attack_texts.NONE
    assert grid(page)["original"]["src"] and services.store().runs() == []
    assert {f"whose-test-{place}" for place in range(attack_series.SHOWN)} <= {
        str(button.key) for button in page.button
    }


def test_the_stored_examples_are_the_grid_of_a_first_visit_and_leak() -> None:
    stored = {example.id for example in attacks.attack_examples()}
    assert {spec.id for spec in default_cells()} < stored
    page = visit()
    assert "Without protection the picture comes back" in text(page)
    best = [float(value.split()[0]) for value in psnrs(page)[BEST]]
    assert best[0] > 60 and best == sorted(best, reverse=True) and best[-1] < 18


def final_psnr(spec: AttackSpec) -> float:
    return 30.0 if spec.run.method.unit() is None else 14.0


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> dict[str, AttackSpec]:
    """A stored grid: the baseline leaks the picture, and every noise hides it."""
    specs = {spec.id: spec for spec in default_cells()}
    examples = []
    for run, spec in specs.items():
        events = tuple(finished_attack(run, [final_psnr(spec)]))
        examples.append(AttackExample(run, "2026-01-02", spec.canonical(), 1.5, events))
    monkeypatch.setattr(attacks, "attack_examples", lambda: examples)
    return specs


def test_a_stored_grid_is_shown_at_once(stored: Mapping[str, AttackSpec]) -> None:
    page = visit()
    assert "Without protection the picture comes back." in text(page)
    assert "none of the 3 attacks that otherwise succeed brings anything back" in text(page)
    assert psnrs(page)[BEST] == ["30.0 dB", *["14.0 dB"] * (len(links.AGAINST) - 1)]
    assert grid(page)["moments"] == 3 and grid(page)["autoplay"]
    assert any(states.STORED.format(made="2026-01-02") in caption.value for caption in page.caption)
    assert not [button for button in page.button if button.key == "leak-attack"] and services.store().runs() == []
    clicked(page, "leak-live")
    assert {row.id for row in services.store().runs()} == set(stored)


def test_the_stored_grid_is_shown_before_the_shelves_are_loaded(
    stored: Mapping[str, AttackSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    services.shared().ready(PATIENCE_S)
    monkeypatch.setattr(services.Services, "ready", lambda shared, wait=0.0: wait > 0)
    page = visit()
    assert product.GETTING_READY in text(page) and "Without protection the picture comes back" in text(page)
    assert psnrs(page)[BEST] == ["30.0 dB", *["14.0 dB"] * (len(links.AGAINST) - 1)]


# --- running and following ---------------------------------------------------------------------------------


def test_attack_submits_every_cell_once_the_baseline_first(small: LeakSettings) -> None:
    page = clicked(visit(small), "leak-attack")
    order = [row.id for row in reversed(services.store().runs())]
    assert order == [request.id for request in requests_of(small)]
    assert {state for row in words(page)[:-1] for state in row} == {attack_texts.WAITING}
    assert "0 of 4 attacks done" in page.get("progress")[0].text
    clicked(page, "leak-cancel")
    assert [row.status for row in services.store().runs()] == ["cancelled"] * 4
    assert {state for row in words(page)[:-1] for state in row} == {attack_texts.STOPPED}


def test_a_wider_grid_submits_only_what_is_missing(small: LeakSettings) -> None:
    for request in requests_of(small)[:3]:
        assert request.spec
        services.store().submit(request.id, request.spec.canonical(), {})
        tell(request.id, finished_attack(request.id, [20.0]))
    page = visit(small)
    assert page.button(key="leak-attack").label == "Attack: 1 more"
    clicked(page, "leak-attack")
    assert [row.id for row in services.store().runs() if row.status == "queued"] == [requests_of(small)[3].id]


def test_guesses_are_shown_while_an_attack_runs(small: LeakSettings) -> None:
    page = clicked(visit(small), "leak-attack")
    first = requests_of(small)[0]
    first_half = finished_attack(first.id, [29.0])[:4]
    tell(first.id, first_half)
    page.run()
    assert grid(page)["rows"][0]["cells"][0]["src"] and grid(page)["moments"] == 0
    assert words(page)[0][0] == "forming, 50 %"
    assert "Without protection the" not in text(page)


def test_a_finished_grid_has_a_verdict(small: LeakSettings) -> None:
    page = clicked(visit(small), "leak-attack")
    for request in requests_of(small):
        outcome = ([30.0], "converged") if request.column == NONE else ([14.5], "not converged")
        tell(request.id, finished_attack(request.id, *outcome))
    page.run()
    assert "none of the 2 attacks that otherwise succeed brings anything back" in text(page)
    assert "With UDP-FedAvg at noise 0.1," in text(page)
    assert any(attack_texts.EASIEST in caption.value for caption in page.caption)
    assert words(page)[0] == ["comes back", "not recognised"]
    assert not page.get("plotly_chart") and "30.0 / 0.90 / 0.05" not in text(page)  # the list is closed
    page.pills(key="leak-closer").set_value("scores").run()
    assert "30.0 / 0.90 / 0.05" in text(page) and link(page)["closer"] == "scores"
    page.pills(key="leak-closer").set_value("curves").run()
    assert page.get("plotly_chart") and "30.0 / 0.90 / 0.05" not in text(page)  # one entry at a time
    assert grid(page)["moments"] == 3
    assert not [button for button in page.button if button.key in ("leak-attack", "leak-cancel")]


def test_events_of_a_real_attack_are_shown(small: LeakSettings) -> None:
    """The events come from the engine, not from a maker."""
    page = clicked(visit(small), "leak-attack")
    first = requests_of(small)[0]
    assert first.spec
    events = list(leak_events(first.spec, threads=1))
    tell(first.id, [event for event in events if not isinstance(event, Started)])
    page.run()
    end = next(event for event in events if hasattr(event, "numbers"))
    assert psnrs(page)["Most probable picture"][0] == attack_texts.decibel(end.numbers["psnr"][0])
    assert grid(page)["rows"][0]["cells"][0]["src"]


def test_a_failed_attack_has_its_reason_and_can_run_again(small: LeakSettings) -> None:
    page = clicked(visit(small), "leak-attack")
    tell(requests_of(small)[0].id, [Failed("the worker <b>stopped</b>", "Ask again")])
    for request in requests_of(small)[1:]:
        tell(request.id, finished_attack(request.id, [14.0]))
    page.run()
    assert "the worker &lt;b&gt;stopped&lt;/b&gt;. Ask again." in text(page)
    assert words(page)[0][0] == "failed"
    clicked(page, "leak-attack")
    assert services.store().status(requests_of(small)[0].id) == "queued"


def test_attacks_that_others_requested_continue(small: LeakSettings) -> None:
    page = clicked(visit(small), "leak-attack")
    for row in services.store().runs():
        services.store().submit(row.id, row.spec, visitor="another")
    clicked(page, "leak-cancel")
    assert {row.status for row in services.store().runs()} == {"queued"}
    assert "Someone else requested 4 of these attacks" in text(page)


def test_each_of_several_pictures_can_be_shown(small: LeakSettings) -> None:
    two = small.with_(many=2, attacks=("map",))
    page = clicked(visit(two), "leak-attack")
    for request in requests_of(two):
        tell(request.id, finished_attack(request.id, [20.0, 25.0]))
    page.run()
    assert psnrs(page)["Most probable picture"] == ["20.0 dB", "20.0 dB"]
    page.segmented_control(key="leak-show").set_value(2).run()
    assert psnrs(page)["Most probable picture"] == ["25.0 dB", "25.0 dB"]


# --- refusals ----------------------------------------------------------------------------------------------


def test_an_attack_that_does_not_fit_is_reported_before_the_click() -> None:
    assert "Read off the first layer" in psnrs(visit(each="true"))
    other = LeakSettings.default().with_(each=True, run={**LeakSettings.default().run, "model": "lenet-sigmoid"})
    page = visit(other.settled())
    assert "Read off the first layer is left out: it needs a model whose first layer is linear" in text(page)
    assert "Read off the first layer" not in psnrs(page)


def test_a_link_with_invalid_values_gets_the_defaults() -> None:
    page = visit(whose="own-0123456789abcdef-1", eyes="god")
    assert form_texts.GONE_PICTURE in text(page) and "eyes = god. It must be one of" in text(page)
    assert link(page)["whose"] == "test-0" and link(page)["eyes"] == "server"


def test_without_an_attack_the_page_has_a_message(small: LeakSettings) -> None:
    run = {**small.run, "model": "lenet-sigmoid"}
    page = visit(small.changed(run=run, attacks=("analytic",)))
    assert attack_texts.NOTHING in text(page) and not page.get("bidi_component")


def test_in_class_mode_a_visitor_has_one_grid_at_a_time(small: LeakSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKLENS_CLASS", "1")
    monkeypatch.setattr(session, "visitor", lambda: "me")
    clicked(visit(small), "leak-attack")
    page = clicked(visit(small.with_(whose="test-1")), "leak-attack")
    assert "another grid of yours is still under way" in text(page) and len(services.store().runs()) == 4


# --- uploaded pictures -------------------------------------------------------------------------------------


def test_an_uploaded_picture_is_attacked_and_deleted(small: LeakSettings) -> None:
    uploads = UploadedPictures(Home.find())
    name = uploads.add(saved(photo(40, 40), "PNG"))
    own_picture = small.with_(whose=f"own-{name}-0", attacks=("map",))
    page = clicked(visit(own_picture), "leak-attack")
    assert len(services.store().runs()) == 2
    page.selectbox(key="leak-label").select_index(4).run()
    assert link(page)["whose"] == f"own-{name}-4"
    clicked(page, "leak-delete")
    assert uploads.names() == () and services.store().runs() == []
    assert "The picture and 2 attacks on it are deleted." in text(page) and link(page)["whose"] == "test-0"


def test_a_file_that_is_no_picture_is_refused_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    state: dict[str, Any] = {}
    monkeypatch.setattr(session, "remember", state.__setitem__)
    monkeypatch.setattr(session, "recall", lambda name, usual=None: state.get(name, usual))
    services.shared()
    requests.add_picture(SimpleNamespace(getvalue=lambda: b"MZ this is a program"))
    assert "got a program" in state["leak-trouble"] and UploadedPictures(Home.find()).names() == ()
    requests.add_picture(SimpleNamespace(getvalue=lambda: saved(photo(40, 40), "JPEG")))
    (name,) = UploadedPictures(Home.find()).names()
    assert state["leak"].whose == f"own-{name}-0" and state["leak-trouble"] == ""


# --- links from and to other screens -----------------------------------------------------------------------


def test_attacks_are_listed_among_the_runs_and_open_on_this_screen(
    screen: Screen, small: LeakSettings, home: Path
) -> None:
    del home
    store, spec = Store(), requests_of(small)[2].spec
    assert spec
    store.submit(spec.id, spec.canonical(), {"device": "cpu"})
    lease = store.take(ProcessId.me(), 9, only={spec.id})
    assert lease
    store.append(lease, [seen(), judged([14.25]), Finished(0, 1.0)])
    store.close()
    page = screen("runs")
    line = lines(page)[spec.id]
    assert "Most probable picture on test picture 0, UDP-FedAvg noise 0.1, first round" in line
    assert "not recognised, 14.2 dB" in line and "MLP on CIFAR-10, seen by the server" in line
    assert f"pin:{spec.id}" not in {str(button.key) for button in page.button}
    clicked(page, f"open:{spec.id}")
    assert spec.id in {cell.id for cell in page.session_state["leak"].grid.requests()}
    assert "14.2 dB" in psnrs(page)["Most probable picture"]
