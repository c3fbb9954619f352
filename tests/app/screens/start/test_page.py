"""The page Start: the stored table before the engine is loaded, links, and a photo from upload to deletion."""

from __future__ import annotations

import json
from typing import Any

import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from app.screens.start import requests, texts, ways
from app.screens.start.settings import StartSettings
from app.session import limits, screens, services, session
from app.session.photos import upload_name
from app.texts import attack_form as form_texts
from engine.errors import Damaged
from engine.examples import start as start_files
from engine.jobs.process_id import ProcessId
from engine.jobs.store import Store
from tests.app.conftest import MAIN, PATIENCE_S
from tests.app.reading import press, text
from tests.app.screens.leak.makers import finished_attack
from tests.engine.jobs.makers import photo, saved

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("resting")]

OTHERS = f"own-{'a' * 16}"


def visit(**params: str) -> AppTest:
    page = AppTest.from_file(str(MAIN), default_timeout=PATIENCE_S)
    for name, value in params.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def slider(page: AppTest) -> dict[str, Any]:
    """What the browser gets of the slider."""
    proto = page.get("bidi_component")[0].proto
    data: dict[str, Any] = json.loads(proto.mixed.json or proto.json)
    return data


def shown(page: AppTest) -> dict[str, Any]:
    """The shown stop."""
    data = slider(page)
    upload = next(upload for upload in data["uploads"] if upload["key"] == data["upload"])
    stop: dict[str, Any] = upload["stops"][data["stop"]]
    return stop


def with_photo(file: bytes, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """A page whose visitor uploads a file."""
    assert services.shared().ready(PATIENCE_S)

    class UploadedFile:
        def getvalue(self) -> bytes:
            return file

    page = visit()
    original = requests.open_link

    def upload_once() -> None:
        original()
        monkeypatch.setattr(requests, "open_link", original)
        requests.add_photo(UploadedFile())

    monkeypatch.setattr(requests, "open_link", upload_once)
    page.run()
    assert not page.exception
    return page


# --- the stored table --------------------------------------------------------------------------------------


def test_the_first_page_shows_what_comes_back_and_runs_nothing() -> None:
    page = visit()
    assert "Her photo never left the phone." in text(page)
    assert shown(page)["word"] == "Her face comes back" and shown(page)["src"]
    assert f"data:image/png;base64,{shown(page)['src']}" in text(page)  # before the component is loaded
    assert services.store().runs() == []


def test_the_page_needs_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services.Services, "ready", lambda services, wait=0.0: False)
    assert shown(visit(stop="3", content="1"))["word"].startswith("Outlines")


def test_a_link_opens_its_stop_for_its_observer() -> None:
    page = visit(stop="7", content="1", eyes="server", picture="portrait")
    assert shown(page)["lesson"] == texts.LESSON
    assert page.query_params["stop"] == "7"


def test_a_wrong_link_is_a_sentence_and_shows_the_portrait() -> None:
    page = visit(stop="99", content="all", picture=OTHERS)
    assert shown(page)["word"] == "Her face comes back"
    for part in ("stop", "content", form_texts.GONE_PICTURE):
        assert part in text(page)


def test_an_observer_without_a_stored_attack_is_told_so() -> None:
    page = visit(stop="0", eyes="aggregate")
    assert "Start has no stored attack by a server that sees only sums" in text(page)


def test_a_damaged_table_leaves_the_ways_to_the_other_screens(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: object) -> None:
        raise Damaged("gallery: results.json.xz: cannot be read", "Make it again")

    monkeypatch.setattr(start_files, "read", broken)
    page = visit()
    assert "gallery: results.json.xz: cannot be read" in text(page) and texts.QUESTIONS in text(page)


def test_the_door_to_try_has_exactly_the_shown_stop() -> None:
    example = start_files.start_example()
    assert example
    link = ways.try_link(example, StartSettings(stop=5, eyes="client", content="ordinary"))
    stop = example.stops[5]
    assert (link["method"], float(link["method.noise"])) == ("udp-fedavg", stop.noise)
    assert float(link["method.server-step"]) == stop.step
    assert (link["whose"], link["content"], link["eyes"]) == ("portrait-0", "ordinary", "client")
    own = ways.try_link(example, StartSettings(stop=5, picture=OTHERS, content="8"))
    assert (own["whose"], own["content"]) == (f"{OTHERS}-0", "1")


# --- a photo of the visitor --------------------------------------------------------------------------------


def test_a_photo_is_attacked_at_every_stop_and_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    page = with_photo(saved(photo(), "PNG"), monkeypatch)
    example = start_files.start_example()
    assert example
    stored = services.store().runs()
    assert {run.spec["run"]["method"]["noise"] for run in stored} == {stop.noise for stop in example.stops}
    assert shown(page)["word"] == "Waiting" and "Instant attack only" in text(page)
    assert {run.spec["attack"]["name"] for run in stored} == {"analytic"}
    assert {run.spec["round"] for run in stored} == {"last"}  # of the trained model, as the portrait

    name = upload_name(page.query_params["picture"])
    first = requests.requests_of(name)[0].id
    lease = services.store().take(ProcessId.me(), 99, only={first})
    assert lease
    services.store().append(lease, finished_attack(first, [31.0]))
    page.run()
    assert shown(page)["word"] == "Your picture comes back" and shown(page)["accuracy"] == "84 %"

    press(page, "start-delete")
    assert not page.exception and page.query_params["picture"] == "portrait"
    assert services.store().runs() == [] and services.own_pictures_here() == ()
    assert "The picture and 8 attacks on it are deleted." in text(page)


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        (b"only text", "picture"),
        (b"", "the file is empty"),
        (b"\x89PNG\r\n\x1a\n" + b"0" * 11_000_000, "at most 10 MB"),
        (saved(photo(2, 2), "PNG"), "8"),
        (saved(photo(), "GIF"), "a GIF"),
    ],
)
def test_a_file_that_is_no_photo_is_one_sentence(file: bytes, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    page = with_photo(file, monkeypatch)
    assert shown(page)["word"] == "Her face comes back" and services.store().runs() == []
    assert sentence in text(page)


@pytest.mark.parametrize(
    "file",
    [
        saved(photo(300, 500).convert("CMYK"), "JPEG"),
        saved(photo().convert("I;16"), "PNG"),
        saved(photo().convert("L"), "PNG"),
        saved(photo().convert("RGBA"), "PNG"),
        saved(photo(9, 400), "PNG"),
    ],
)
def test_photos_of_odd_kinds_are_attacked(file: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    page = with_photo(file, monkeypatch)
    assert shown(page)["word"] == "Waiting" and len(services.store().runs()) == 8


@pytest.mark.parametrize(("picture", "plain"), [(Image.new("RGB", (60, 60), (120, 30, 200)), True), (photo(), False)])
def test_a_photo_of_one_colour_says_why_it_is_never_recognised(
    picture: Image.Image, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = with_photo(saved(picture, "PNG"), monkeypatch)
    assert (form_texts.PLAIN_PICTURE in text(page)) is plain and shown(page)["word"] == "Waiting"


def test_a_photo_of_another_visitor_is_never_shown(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    name = store.owners.add(saved(photo(), "PNG"), "someone else")
    monkeypatch.setattr(limits, "class_mode", lambda: True)
    monkeypatch.setattr(session, "class_mode", lambda: True)
    page = visit(picture=f"own-{name}", stop="0")
    assert shown(page)["word"] == "Her face comes back" and form_texts.GONE_PICTURE in text(page)
    assert page.query_params["picture"] == "portrait"


def test_the_questions_open_their_screens_without_a_note() -> None:
    assert services.shared().ready(PATIENCE_S)
    assert len(ways.answers()) == 6
    for screen, params in ways.answers().values():
        settings = screens.settings_class(screen)
        _, notes = settings.read_link(params, settings.default())
        assert notes == []
