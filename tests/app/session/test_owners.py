"""In class mode only the visitors who uploaded a picture see it and the attacks on it."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app.screens.leak.settings import LeakSettings
from app.screens.leak.uploads import requests
from app.screens.runs import requests as run_requests
from app.session import cookie, services, session
from app.texts import attack_form as form_texts
from engine.jobs.batches import Batch, BatchMember
from engine.jobs.home import Home
from engine.jobs.store import Store
from engine.jobs.uploads import UploadedPictures
from engine.specs.attack_grid import NONE
from tests.app.conftest import MAIN, PATIENCE_S
from tests.app.makers import RunMaker
from tests.app.reading import actions_of, lines, open_screen, press, text
from tests.app.screens.leak.makers import append_events, finished_attack
from tests.engine.jobs.makers import photo, saved


class Classroom:
    """Ann and Bob uploaded the same photo, Eve did not. Ann requested an attack on it, and a run."""

    def __init__(self, store: Store, ask: RunMaker, patch: pytest.MonkeyPatch) -> None:
        self.store, self.patch = store, patch
        self.photo = store.owners.add(saved(photo(40, 40), "PNG"), "ann")
        assert store.owners.add(saved(photo(40, 40), "PNG"), "bob") == self.photo
        self.run = ask("finished", visitor="ann")
        whose = f"own-{self.photo}-3"
        self.leak = LeakSettings.default().with_(whose=whose, against=(NONE,), attacks=("map",), iterations=3)
        (cell,) = self.leak.grid.requests()
        assert cell.spec
        self.attack = cell.id
        store.submit(self.attack, cell.spec.canonical(), {"device": "cpu"}, "ann")
        append_events(self.attack, finished_attack(self.attack, [30.0]))

    def visit(self, visitor: str, screen: str, held: Any = None, **link: str) -> AppTest:
        """The screen that one visitor sees in a new session, whose settings may be there already."""
        self.patch.setattr(session, "visitor", lambda: visitor)
        assert services.shared().ready(PATIENCE_S)
        page = AppTest.from_file(str(MAIN), default_timeout=PATIENCE_S)
        if held is not None:
            page.session_state["leak"] = held
        if screen != "leak":
            open_screen(page, screen)
        for name, value in link.items():
            page.query_params[name] = value
        page.run()
        assert not page.exception
        return page


@pytest.fixture
def classroom(store: Store, ask: RunMaker, resting: None, monkeypatch: pytest.MonkeyPatch) -> Classroom:
    monkeypatch.setenv("LEAKLENS_CLASS", "1")
    return Classroom(store, ask, monkeypatch)


@pytest.mark.slow
def test_the_portrait_is_shown_to_every_visitor_and_no_one_can_delete_it(classroom: Classroom) -> None:
    page = classroom.visit("eve", "leak", whose="portrait-3")
    assert page.query_params["whose"] == "portrait-3"
    keys = [button.key for button in page.button]
    assert "whose-portrait-3" in keys and "leak-delete" not in keys


@pytest.mark.slow
@pytest.mark.parametrize(("visitor", "sees"), [("ann", True), ("bob", True), ("eve", False), ("machine", False)])
def test_an_attack_on_a_photo_is_shown_to_its_owners_only(classroom: Classroom, visitor: str, sees: bool) -> None:
    attack, run = classroom.attack, classroom.run
    page = classroom.visit(visitor, "runs")
    assert list(lines(page)) == ([attack, run] if sees else [run])  # a run without a photo is shared
    deletable = {"delete"} if visitor == "ann" else set()
    assert actions_of(page, attack) == ({"open", *deletable} if sees else set())

    page = classroom.visit(visitor, "leak", **classroom.leak.link())
    shown = page.session_state["leak"].whose
    assert shown == (classroom.leak.whose if sees else "test-0")
    assert (form_texts.GONE_PICTURE in text(page)) is not sees
    assert f"own-{classroom.photo}" in str(page.query_params) if sees else classroom.photo not in text(page)

    page = classroom.visit(visitor, "try", run=attack)
    assert attack not in text(page)  # Try opens runs only


@pytest.mark.slow
def test_another_visitor_neither_reads_nor_deletes_it(classroom: Classroom) -> None:
    classroom.visit("eve", "runs")
    assert services.read(classroom.attack) is None and services.read(classroom.run) is not None
    run_requests.delete([classroom.attack, classroom.run])
    assert {run.id for run in classroom.store.runs()} == {classroom.attack, classroom.run}
    assert classroom.photo not in requests.own()
    assert UploadedPictures(Home.find()).names() == (classroom.photo,)


@pytest.mark.slow
def test_at_home_everything_is_shown(classroom: Classroom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKLENS_CLASS", "0")
    assert list(lines(classroom.visit("eve", "runs"))) == [classroom.attack, classroom.run]
    page = classroom.visit("eve", "leak", **classroom.leak.link())
    assert page.session_state["leak"].whose == classroom.leak.whose


@pytest.mark.slow
def test_settings_that_hold_another_visitors_picture_show_the_default(classroom: Classroom) -> None:
    """A rerun may end a pass after the settings are stored: the owner is checked at each use, too."""
    page = classroom.visit("eve", "leak", held=classroom.leak)
    assert classroom.photo not in text(page) and classroom.photo not in str(page.query_params)
    assert "leak-delete" not in {str(button.key) for button in page.button}
    assert classroom.store.status(classroom.attack) == "finished"
    assert UploadedPictures(Home.find()).names() == (classroom.photo,)


@pytest.mark.slow
@pytest.mark.parametrize(("visitor", "sees"), [("ann", True), ("eve", False)])
def test_a_link_of_try_shows_a_photo_to_its_owners_only(classroom: Classroom, visitor: str, sees: bool) -> None:
    page = classroom.visit(visitor, "try", whose=classroom.leak.whose)
    assert (form_texts.GONE_PICTURE in text(page)) is not sees
    assert (classroom.photo in str(page.query_params)) is sees
    assert sees or page.session_state["try"].whose == "portrait-0"


@pytest.mark.slow
def test_deleting_a_shared_photo_leaves_it_to_the_other_visitor(classroom: Classroom) -> None:
    page = classroom.visit("bob", "leak", **classroom.leak.link())
    press(page, "leak-delete")
    assert form_texts.GIVEN_UP in text(page)
    assert page.session_state["leak"].whose == "test-0"
    assert classroom.photo not in text(classroom.visit("bob", "leak", **classroom.leak.link()))
    assert classroom.store.status(classroom.attack) == "finished"
    assert UploadedPictures(Home.find()).names() == (classroom.photo,)

    page = classroom.visit("ann", "leak", **classroom.leak.link())
    press(page, "leak-delete")
    assert classroom.attack not in {run.id for run in classroom.store.runs()}
    assert UploadedPictures(Home.find()).names() == ()


@pytest.mark.slow
def test_what_was_requested_together_is_shown_to_its_owners_only(classroom: Classroom) -> None:
    spec = classroom.store.run(classroom.attack).spec
    members = (BatchMember(classroom.attack, spec), BatchMember(classroom.run, classroom.store.run(classroom.run).spec))
    link = classroom.leak.link()
    classroom.store.batches.request(
        Batch("leak grid", "private title", members, {"screen": "leak", "link": link}), "ann"
    )
    assert "private title" in text(classroom.visit("ann", "runs"))
    assert "private title" not in text(classroom.visit("eve", "runs"))


@pytest.mark.slow
def test_two_tabs_without_a_cookie_are_two_visitors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cookie, "visitor_id", lambda token: "")
    code = "import streamlit as st\nfrom app.session import session\nst.text(session.visitor())"
    ids = [AppTest.from_string(code).run().text[0].value for _ in range(2)]
    assert ids[0] != ids[1] and all(ids)
