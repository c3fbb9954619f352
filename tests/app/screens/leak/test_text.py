"""Runs on text: the Leak screen attacks pictures only and does not offer them."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app.screens.leak.settings import LeakSettings
from app.session import services
from app.texts import attacks as attack_texts
from tests.app.conftest import MAIN, PATIENCE_S
from tests.app.reading import open_screen, text

pytestmark = pytest.mark.usefixtures("resting")

SMALL = {
    "dataset": {"name": "movie-reviews", "length": 12}, "model": {"name": "lstm", "words": 60, "width": 4, "hidden": 4},
    "clients": 20, "sampled": 4, "rounds": 2, "epochs": 1, "batch": 100,
}  # fmt: skip


def visit(link: dict[str, str], page: str = "leak") -> AppTest:
    assert services.shared().ready(PATIENCE_S)
    opened = AppTest.from_file(str(MAIN), default_timeout=PATIENCE_S)
    for name, value in link.items():
        opened.query_params[name] = value
    open_screen(opened, page)
    opened.run()
    assert not opened.exception
    return opened


@pytest.mark.slow
@pytest.mark.parametrize(
    ("link", "titles"),
    [
        ({"dataset": "movie-reviews", "model": "lstm"}, ["Movie reviews", "LSTM"]),
        ({"dataset": "sentiment140", "model": "mlp"}, ["Sentiment140"]),
        ({"dataset": "cifar10", "model": "lstm", "model.words": "50"}, ["LSTM"]),
    ],
)
def test_a_link_about_text_opens_with_the_default_pictures(link: dict[str, str], titles: list[str]) -> None:
    page = visit({"whose": "test-0", **link})
    for title in titles:
        assert f"Only pictures are attacked here, and {title} is about text" in text(page)
    settings: dict[str, Any] = dict(page.session_state["leak"].run)
    assert (settings["dataset"], settings["model"]) == ("cifar10", "mlp")
    assert settings == LeakSettings.default().run
    assert attack_texts.PROMISE in text(page) and page.get("bidi_component")


@pytest.mark.slow
def test_the_leak_screen_offers_only_pictures_and_their_models(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEAKLENS_DATA", "LEAKLENS_DOWNLOAD"):
        monkeypatch.delenv(name, raising=False)
    page = visit({})
    titles = {part: page.selectbox(key=f"leak-{part}").options for part in ("dataset", "model")}
    assert titles["dataset"] == ["CIFAR-10", "EMNIST", "Fashion-MNIST", "MNIST"]
    assert "LSTM" not in titles["model"] and {"MLP", "AlexNet"} <= set(titles["model"])
    page.selectbox(key="leak-dataset").select("emnist").run()  # a data set that is not on this machine
    assert not page.exception
    assert "emnist: the full set is not on this machine" in text(page) and "LEAKLENS_DATA" in text(page)
