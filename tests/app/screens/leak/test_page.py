"""The Leak screen shows what the store holds, asks what its controls say, and explains what cannot be asked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app.screens.leak import requests as leak_requests
from app.screens.leak import settings as leak_settings
from app.screens.leak.settings import LeakSettings
from app.session import links, services, session
from app.texts import attacks as attack_texts
from app.texts import privacy, product, states
from engine.events import Event, Failed, Finished, Started
from engine.examples import attacks, files
from engine.examples.attacks import AttackExample
from engine.jobs.home import Home
from engine.jobs.process_id import ProcessId
from engine.jobs.store import Store
from engine.jobs.uploads import UploadedPictures
from engine.leakage.pictures import attack as leak_events
from engine.specs.attack import AttackSpec
from engine.specs.attack_grid import NONE, RequestedAttack
from engine.specs.run import RunSpec
from tests.app.conftest import MAIN, PATIENCE_S, Screen
from tests.app.reading import lines, press, text
from tests.app.screens.leak.makers import judged, seen, whole
from tests.engine.jobs.makers import photo, saved

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]


@pytest.fixture
def small() -> LeakSettings:
    """Two attacks against two protections, each over after a moment."""
    usual = leak_settings.usual()
    return replace(usual, against=(NONE, "udp-fedavg:0.1"), attacks=("map", "inverting-gradients"), iterations=3)


def visit(leak: LeakSettings | None = None, **params: str) -> AppTest:
    assert services.shared().ready(PATIENCE_S)
    page = AppTest.from_file(str(MAIN), default_timeout=PATIENCE_S)
    for name, value in {**(leak_settings.link(leak) if leak else {}), **params}.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def asked(leak: LeakSettings) -> list[RequestedAttack]:
    return leak_settings.in_order(leak_settings.cells(leak))


def grid(page: AppTest) -> dict[str, Any]:
    """What the browser is told to draw."""
    (found,) = page.get("bidi_component")
    body: dict[str, Any] = json.loads(found.proto.mixed.json or found.proto.json)
    return body


def values(page: AppTest) -> dict[str, list[str]]:
    return {row["title"]: [cell["value"] for cell in row["cells"]] for row in grid(page)["rows"]}


def cell_states(page: AppTest) -> list[list[str]]:
    return [[cell["state"] for cell in row["cells"]] for row in grid(page)["rows"]]


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


def test_the_first_page_is_about_a_picture() -> None:
    page = visit()
    assert attack_texts.PROMISE in text(page)
    assert grid(page)["columns"][0]["title"] == attack_texts.NONE
    assert grid(page)["original"]["src"] and services.store().runs() == []
    assert {f"whose-test-{place}" for place in range(leak_settings.FEW)} <= {str(one.key) for one in page.button}


def test_what_ships_is_the_grid_of_a_first_visit_and_leaks() -> None:
    ship = {one.id: one for one in attacks.leaks()}
    assert set(ship) == {spec.id for spec in leak_settings.default_cells()}
    page = visit()
    assert "With no protection the picture comes back" in text(page)
    best = [float(value.split()[0]) for value in values(page)[attack_texts.BEST]]
    assert best[0] > 60 and best == sorted(best, reverse=True) and best[-1] < 18


def reached(spec: AttackSpec) -> float:
    return 30.0 if spec.run.method.unit() is None else 14.0


@pytest.fixture
def ships(monkeypatch: pytest.MonkeyPatch) -> dict[str, AttackSpec]:
    """A grid that ships as an example: it comes back undefended, and does not under noise."""
    specs = {spec.id: spec for spec in leak_settings.default_cells()}
    told = [
        AttackExample(spec.id, "2026-01-02", spec.canonical(), 1.5, tuple(whole(spec.id, [reached(spec)])))
        for spec in specs.values()
    ]
    monkeypatch.setattr(attacks, "leaks", lambda: told)
    return specs


def test_a_stored_grid_is_there_at_once(ships: Mapping[str, AttackSpec]) -> None:
    page = visit()
    assert "With no protection the picture comes back: 30.0 dB, where a grey square reaches 14.0 dB" in text(page)
    assert "With every protection here, none of the 3 attacks that worked beat a grey square" in text(page)
    found = values(page)
    assert found[attack_texts.BEST] == ["30.0 dB", *["14.0 dB"] * (len(links.AGAINST) - 1)]
    assert grid(page)["moments"] == 3 and grid(page)["autoplay"]
    assert any(states.STORED.format(made="2026-01-02") in one.value for one in page.caption)
    assert not [one for one in page.button if one.key == "leak-attack"] and services.store().runs() == []
    clicked(page, "leak-live")
    assert {row.id for row in services.store().runs()} == set(ships)


def test_before_the_shelves_are_loaded_the_stored_grid_is_there(
    ships: Mapping[str, AttackSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    services.shared().ready(PATIENCE_S)
    monkeypatch.setattr(services.Services, "ready", lambda kitchen, wait=0.0: wait > 0)
    page = visit()
    assert product.GETTING_READY in text(page) and "With no protection the picture comes back" in text(page)
    assert values(page)[attack_texts.BEST] == ["30.0 dB", *["14.0 dB"] * (len(links.AGAINST) - 1)]


# --- asking and watching -----------------------------------------------------------------------------------


def test_attack_asks_every_cell_once_the_control_first(small: LeakSettings) -> None:
    page = clicked(visit(small), "leak-attack")
    order = [row.id for row in reversed(services.store().runs())]
    assert order == [one.id for one in asked(small)]
    assert {state for row in cell_states(page)[:-1] for state in row} == {attack_texts.WAITING}
    assert "0 of 4 attacks done" in page.get("progress")[0].text
    clicked(page, "leak-cancel")
    assert [row.status for row in services.store().runs()] == ["cancelled"] * 4
    assert {state for row in cell_states(page)[:-1] for state in row} == {attack_texts.STOPPED}


def test_a_wider_grid_asks_only_what_is_missing(small: LeakSettings) -> None:
    for one in asked(small)[:3]:
        assert one.spec
        services.store().submit(one.id, one.spec.canonical(), {})
        tell(one.id, whole(one.id, [20.0]))
    page = visit(small)
    assert page.button(key="leak-attack").label == "Attack: 1 more"
    clicked(page, "leak-attack")
    assert [row.id for row in services.store().runs() if row.status == "queued"] == [asked(small)[3].id]


def test_pictures_are_shown_while_they_form(small: LeakSettings) -> None:
    page = clicked(visit(small), "leak-attack")
    first = asked(small)[0]
    half = whole(first.id, [29.0])[:4]
    tell(first.id, half)
    page.run()
    assert values(page)["Most probable picture"][0] == "15.0 dB" and grid(page)["moments"] == 0
    assert cell_states(page)[0][0] == "forming, 50 %"
    assert grid(page)["columns"][0]["lines"][-1]["text"] == "noise / signal 0.25"
    assert "With no protection" not in text(page)


def test_a_finished_grid_says_what_happened(small: LeakSettings) -> None:
    page = clicked(visit(small), "leak-attack")
    for one in asked(small):
        good = one.column == NONE
        tell(one.id, whole(one.id, [30.0 if good else 14.5], "converged" if good else "not converged"))
    page.run()
    assert "none of the 2 attacks that worked beat a grey square by more than 3 dB" in text(page)
    assert "With UDP-FedAvg at noise 0.1," in text(page)
    assert "What would have been seen: one picture alone in an upload" in text(page)
    assert "30.0 / 0.50 / 0.25" in text(page) and "14.0 / 0.10 / 0.80" in text(page)
    assert cell_states(page)[0] == ["converged · leaks", "did not converge"]
    assert (
        len(page.get("plotly_chart")) == 2 and grid(page)["moments"] == 3
    )  # the curves, and the cliff before it is measured
    assert not [one for one in page.button if one.key in ("leak-attack", "leak-cancel")]


def test_real_events_fit(small: LeakSettings) -> None:
    """What the engine really tells of one attack, shown as it is."""
    page = clicked(visit(small), "leak-attack")
    first = asked(small)[0]
    assert first.spec
    events = list(leak_events(first.spec, threads=1))
    tell(first.id, [event for event in events if not isinstance(event, Started)])
    page.run()
    end = next(event for event in events if hasattr(event, "numbers"))
    assert values(page)["Most probable picture"][0] == attack_texts.decibel(end.numbers["psnr"][0])
    assert grid(page)["rows"][0]["cells"][0]["src"]


def test_a_failed_attack_says_why_and_may_be_asked_again(small: LeakSettings) -> None:
    page = clicked(visit(small), "leak-attack")
    tell(asked(small)[0].id, [Failed("the worker <b>stopped</b>", "Ask again")])
    for one in asked(small)[1:]:
        tell(one.id, [*whole(one.id, [14.0])])
    page.run()
    assert "the worker &lt;b&gt;stopped&lt;/b&gt;. Ask again." in text(page)
    assert cell_states(page)[0][0] == "failed"
    clicked(page, "leak-attack")
    assert services.store().status(asked(small)[0].id) == "queued"


def test_what_others_watch_goes_on(small: LeakSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    page = clicked(visit(small), "leak-attack")
    monkeypatch.setattr(services, "others_watching", lambda run: 1)
    clicked(page, "leak-cancel")
    assert {row.status for row in services.store().runs()} == {
        "queued"
    } and "Somebody else asked for 4 of these attacks" in text(page)


def test_several_pictures_are_chosen_from(small: LeakSettings) -> None:
    two = replace(small, many=2, attacks=("map",))
    page = clicked(visit(two), "leak-attack")
    for one in asked(two):
        tell(one.id, whole(one.id, [20.0, 25.0]))
    page.run()
    assert values(page)["Most probable picture"] == ["20.0 dB", "20.0 dB"]
    page.segmented_control(key="leak-show").set_value(2).run()
    assert values(page)["Most probable picture"] == ["25.0 dB", "25.0 dB"]


# --- what cannot be asked ----------------------------------------------------------------------------------


def test_an_attack_that_does_not_fit_says_so_before_the_click() -> None:
    assert "Read off the first layer" in values(visit())
    other = replace(leak_settings.usual(), run={**leak_settings.usual().run, "model": "lenet-sigmoid"})
    page = visit(leak_settings.settled(other))
    assert "Read off the first layer is left out: it needs a model whose first layer is linear" in text(page)
    assert "Read off the first layer" not in values(page)


def test_a_link_with_nonsense_shows_the_nearest_question() -> None:
    page = visit(whose="own-0123456789abcdef-1", eyes="god")
    assert attack_texts.GONE_PICTURE in text(page) and "eyes = god cannot be meant" in text(page)
    assert link(page)["whose"] == "test-0" and link(page)["eyes"] == "server"


def test_no_attack_is_a_sentence(small: LeakSettings) -> None:
    run = {**small.run, "model": "lenet-sigmoid"}
    page = visit(leak_settings.settled(replace(small, run=run, attacks=("analytic",))))
    assert attack_texts.NOTHING in text(page) and not page.get("bidi_component")


def test_a_visitor_of_a_class_has_one_grid_at_a_time(small: LeakSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKLENS_CLASS", "1")
    monkeypatch.setattr(session, "visitor", lambda: "me")
    clicked(visit(small), "leak-attack")
    page = clicked(visit(replace(small, whose="test-1")), "leak-attack")
    assert "another grid of yours is still under way" in text(page) and len(services.store().runs()) == 4


# --- the controls ------------------------------------------------------------------------------------------


def test_every_control_is_in_the_link(small: LeakSettings) -> None:
    page = visit(small)
    clicked(page, "whose-test-3")
    page.selectbox(key="leak-eyes").select("aggregate").run()
    page.selectbox(key="leak-model").select("lenet5").run()
    page.number_input(key="leak-many").set_value(2).run()
    page.multiselect(key="leak-attacks").set_value(["map"]).run()
    page.multiselect(key="leak-against").set_value(["udp-fedavg:1"]).run()
    told, said = leak_settings.read_link(link(page))
    assert not said and (told.whose, told.eyes, told.many) == ("test-3", "aggregate", 2)
    assert (told.attacks, told.against, told.run["model"]) == (("map",), (NONE, "udp-fedavg:1"), "lenet5")
    assert told == page.session_state["leak"]


def test_each_protection_says_what_it_promises(small: LeakSettings) -> None:
    page = visit(small)
    spec = leak_settings.columns(small)[1].spec
    answer = next(one for one in services.forecast_of(spec.canonical()).answers if one.view == "server")
    assert grid(page)["columns"][1]["lines"][1]["text"] == attack_texts.epsilon(answer.epsilon, True)
    assert privacy.odds("server", "user", answer.epsilon).replace("'", "&#x27;") in text(page)


# --- pictures of one's own ---------------------------------------------------------------------------------


def test_a_picture_of_ones_own_is_attacked_and_deleted(small: LeakSettings) -> None:
    album = UploadedPictures(Home.find())
    name = album.add(saved(photo(40, 40), "PNG"))
    mine = replace(small, whose=f"own-{name}-0", attacks=("map",))
    page = clicked(visit(mine), "leak-attack")
    assert len(services.store().runs()) == 2
    page.selectbox(key="leak-label").select_index(4).run()
    assert link(page)["whose"] == f"own-{name}-4"
    clicked(page, "leak-delete")
    assert album.names() == () and services.store().runs() == []
    assert "The picture and 2 attacks on it are gone." in text(page) and link(page)["whose"] == "test-0"


def test_what_is_no_picture_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    said: dict[str, Any] = {}
    monkeypatch.setattr(session, "remember", said.__setitem__)
    monkeypatch.setattr(session, "recall", lambda name, usual=None: said.get(name, usual))
    services.shared()
    leak_requests.bring(SimpleNamespace(getvalue=lambda: b"MZ this is a program"))
    assert "got a program" in said["leak-trouble"] and UploadedPictures(Home.find()).names() == ()
    leak_requests.bring(SimpleNamespace(getvalue=lambda: saved(photo(40, 40), "JPEG")))
    (name,) = UploadedPictures(Home.find()).names()
    assert said["leak"].whose == f"own-{name}-0" and said["leak-trouble"] == ""


# --- ways here and away ------------------------------------------------------------------------------------


def test_old_links_reach_the_lab() -> None:
    page = visit(method="udp-fedavg", rounds="7")
    assert product.PROMISE in text(page) and page.session_state["settings"]["rounds"] == 7


def test_the_lab_leads_to_what_the_server_sees(screen: Screen) -> None:
    page = screen("lab")
    spec = RunSpec(**page.session_state["ids"] and files.examples()[0].spec)
    clicked(page, "to-leak")
    assert attack_texts.PROMISE in text(page)
    assert spec.id in {one.spec.id for one in leak_settings.columns(page.session_state["leak"])}


def test_attacks_stand_among_the_runs_and_open_here(screen: Screen, small: LeakSettings, home: Path) -> None:
    del home
    store, spec = Store(), asked(small)[2].spec
    assert spec
    store.submit(spec.id, spec.canonical(), {"device": "cpu"})
    lease = store.take(ProcessId.me(), 9, only={spec.id})
    assert lease
    store.append(lease, [seen(), judged([14.25]), Finished(0, 1.0)])
    store.close()
    page = screen("runs")
    said = lines(page)[spec.id]
    assert "Most probable picture on test picture 0, UDP-FedAvg noise 0.1, first round" in said
    assert "came to 14.2 dB, converged" in said and "MLP on CIFAR-10, seen by the server" in said
    assert f"pin:{spec.id}" not in {str(one.key) for one in page.button}
    clicked(page, f"open:{spec.id}")
    assert spec.id in {one.id for one in leak_settings.cells(page.session_state["leak"])}
    assert "14.2 dB" in values(page)["Most probable picture"]
