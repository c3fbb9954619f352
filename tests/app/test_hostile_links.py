"""c11: links with any values, and uploads with any bytes: settings and notes, or a sentence, and never an error."""

from __future__ import annotations

import contextlib
import io
import json
import random

import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from app.screens.leak.settings import LeakSettings
from app.screens.start.settings import StartSettings
from app.screens.tradeoff.settings import TradeoffSettings
from app.screens.try_it import texts as try_texts
from app.screens.try_it.settings import TrySettings
from app.session import run_settings
from app.session.screen_settings import ScreenSettings
from engine.errors import LeakLensError
from engine.images import clean_upload
from engine.specs.run import RunSpec
from tests.app.conftest import MAIN, PATIENCE_S
from tests.app.reading import open_screen, text
from tests.damage import ODD_VALUES

TEXTS = (
    "", " ", "nan", "NaN", "-Infinity", "1e999", "9" * 5000, "[" * 3000, "[]", "{}", "null", "true", "0", "-1",
    "<script>alert(1)</script>", "../../etc/passwd", "\x00", "\ud800", "٣", "fedavg", "udp-fedavg", "server", "test-0",
    "test-99999999999", "none,none,none", "noisy:nan", "noisy:1e999", "0.5, 2, nan", "1e999, 2", ",,,", "map,dlg",
    "'; DROP TABLE runs; --", "%00", "a" * 100_000, "1e-320", "table-1",
    "method=fedceo;method.noise=nan", "method.noise=1e999;rounds=-1;=;==;zz=1", "method=nope;b=b", "0123456789ab,,zz",
)  # fmt: skip
RUN_FIELDS = tuple(run_settings.completed(run_settings.flat(RunSpec().canonical())))
SCREENS: tuple[type[ScreenSettings], ...] = (StartSettings, LeakSettings, TrySettings, TradeoffSettings)
OWN_FIELDS = tuple(name for screen in SCREENS for name in screen.own_fields())
NAMES = (*OWN_FIELDS, *run_settings.OTHER_PARAMS, *RUN_FIELDS, "zz", "")


def link(seed: int) -> dict[str, str]:
    rng = random.Random(seed)
    return {rng.choice(NAMES): _value(rng) for _ in range(rng.randint(1, 6))}


def _value(rng: random.Random) -> str:
    return rng.choice(TEXTS) if rng.random() < 0.7 else json.dumps(rng.choice(ODD_VALUES))


def read(seed: int) -> None:
    """Read one link as each screen does."""
    params = link(seed)
    default = run_settings.completed(run_settings.flat(RunSpec().canonical()))
    settings, notes = run_settings.read_link(params, default)
    assert all(isinstance(note, str) and len(note) < 500 for note in notes), (seed, notes)
    with contextlib.suppress(LeakLensError):
        run_settings.spec_of(settings)
    for screen in SCREENS:
        chosen, notes = screen.read_link(params, screen.default())
        assert isinstance(chosen, screen), (seed, screen)
        assert all(isinstance(note, str) and len(note) < 500 for note in notes), (seed, screen, notes)
        again, _ = screen.read_link(chosen.link(), screen.default())
        assert again.link() == chosen.link(), (seed, screen)


@pytest.mark.slow
@pytest.mark.usefixtures("home", "resting")
def test_c11_hostile_links_become_settings_and_notes() -> None:
    for seed in range(150):
        read(seed)


@pytest.mark.usefixtures("home", "resting")
@pytest.mark.parametrize("run", ["\ud800", "\x00", "a" * 100_000, "'; DROP TABLE runs; --", "0123456789ab"])
def test_c11_a_run_of_any_characters_is_a_note(run: str) -> None:
    settings, notes = TrySettings.read_link({"run": run}, TrySettings.default())
    assert notes == [try_texts.NO_RUN] and settings == TrySettings.default()


@pytest.mark.parametrize("written", ["9" * 5000, "²", "٣", "0" * 5000, "-1"])
def test_c11_a_format_of_any_digits_is_a_note(written: str) -> None:
    default = run_settings.completed(run_settings.flat(RunSpec().canonical()))
    settings, _ = run_settings.read_link({"format": written}, default)
    assert settings == default


@pytest.mark.long
@pytest.mark.usefixtures("home", "resting")
def test_c11_thousands_of_hostile_links() -> None:
    for seed in range(10_000, 16_000):
        read(seed)


@pytest.mark.slow
@pytest.mark.parametrize("screen", ["start", "leak", "try", "lab", "tradeoff", "runs", "machine"])
def test_c11_pages_open_with_hostile_links(screen: str, home: object, resting: None) -> None:
    for seed in range(3):
        page = open_screen(AppTest.from_file(str(MAIN), default_timeout=PATIENCE_S), screen)
        for name, value in link(seed).items():
            if name and "\ud800" not in value and len(value) < 10_000:  # an address holds no half characters
                page.query_params[name] = value
        page.run()
        assert not page.exception, (seed, page.exception)
        assert "<script>alert" not in text(page) and "should not happen" not in text(page)


def upload(rng: random.Random) -> bytes:
    """A picture with one part damaged, or no picture."""
    file = io.BytesIO()
    Image.new("RGB", (40, 30), (9, 99, 200)).save(file, rng.choice(["PNG", "JPEG", "GIF", "BMP"]))
    body = bytearray(file.getvalue())
    for _ in range(rng.randint(0, 4)):
        body[rng.randrange(len(body))] = rng.randrange(256)
    return rng.choice([bytes(body), bytes(body[: rng.randrange(len(body))]), rng.randbytes(50), b""])


@pytest.mark.parametrize("first", [0, pytest.param(10_000, marks=pytest.mark.long)])
def test_c11_damaged_uploads_are_pictures_or_refused(first: int) -> None:
    for seed in range(first, first + (300 if first == 0 else 20_000)):
        try:
            assert clean_upload(upload(random.Random(seed))).startswith(b"\x89PNG")
        except LeakLensError as error:
            assert error.remedy, seed
