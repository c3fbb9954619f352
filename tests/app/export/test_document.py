"""The exported page says what the store says, asks for nothing outside, and lets nothing run that is not its own."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
import tomllib
from argparse import Namespace
from datetime import date
from itertools import pairwise
from pathlib import Path

import pytest

from app.export import chart, document, gather, page
from app.export import texts as said
from app.export.attack_section import FEWEST, FRAMES
from app.export.markup import tag
from app.session import run_settings
from app.texts import attacks as attack_texts
from app.texts import privacy
from engine.cli.arguments import read_spec
from engine.cli.attack import read_attack
from engine.cli.main import parser
from engine.environment import ROOT
from engine.errors import BadInput, UnknownName
from engine.jobs.store import Store
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from tests.app.export.makers import RUN, Node, asked_attack, asked_run, attack_on, parsed
from tests.app.makers import Asker
from tests.app.screens.leak.makers import GREY

DAY = date(2026, 3, 1)
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)> & 'Erlkönig'"


@pytest.fixture
def run() -> RunSpec:
    return RunSpec(**RUN)


@pytest.fixture
def twin(run: RunSpec) -> RunSpec:
    made = run_settings.baseline_of(run)
    assert made is not None
    return made


@pytest.fixture
def attack(run: RunSpec) -> AttackSpec:
    return attack_on(run)


def shown(store: Store, run: str) -> Node:
    return parsed(page(store, run, DAY))


def film(node: Node) -> dict:
    (data,) = [one for one in node.all("script") if one.attributes.get("type") == "application/json"]
    return dict(json.loads(data.raw()))


# --- what it holds -----------------------------------------------------------------------------------------


def test_a_run_with_its_attack_and_both_controls(store: Store, run: RunSpec, twin: RunSpec, attack: AttackSpec) -> None:
    asked_run(store, run)
    asked_run(store, twin)
    asked_attack(store, attack, [15.0])
    asked_attack(store, attack.with_(run=twin), [31.4])
    node = shown(store, run.id)
    text = node.text
    assert [one.text for one in node.all("h1")] == [
        "UDP-FedAvg, noise 0.5 on Fashion-MNIST: what it learnt, and what leaked"
    ]
    for one in ("With no protection the picture comes back: 31.4 dB", "15.0 dB", "31.4 dB", "SSIM 0.50, LPIPS 0.25",
                "40.0 %", privacy.STATUSES["formal-other-view"][0], "The noise is shared", *privacy.NOT_COVERED,
                said.HAS_CONTROL, attack_texts.NO_PROOF, "shirt", "1 March 2026"):  # fmt: skip
        assert one in text, one
    assert said.NO_CONTROL not in text
    assert [cell["psnr"] for cell in film(node)["cells"]] == [[GREY, GREY + 1, 31.4], [GREY, GREY + 1, 15.0]]


def test_every_view_stands_with_its_words(store: Store, run: RunSpec) -> None:
    asked_run(store, run)
    text = shown(store, run.id).text
    for view, epsilon in (("outsider", 2.0), ("server", 154.0)):
        assert privacy.odds(view, "user", epsilon) in text
        assert privacy.terms("user", view, "zero-out", 1e-5, "rdp", "", "poisson") in text
    assert "nobody else is there" in text


def test_the_lines_in_the_terminal_ask_the_same(store: Store, run: RunSpec) -> None:
    attack = attack_on(
        run, pictures=["test-0", "train-3"], restarts=3, round=2, seed=5, attack={"name": "map", "lr": 0.25}
    )
    asked_run(store, run)
    asked_attack(store, attack, [15.0, 14.0])
    lines = [shlex.split(one.text) for one in shown(store, run.id).all("pre")]
    asked = [parser().parse_args(line[3:]) for line in lines]
    assert [line[:3] for line in lines] == [["python3", "-m", "engine"]] * 2
    assert read_spec(asked[0]).id == run.id
    assert read_attack(Namespace(**vars(asked[1])), store).id == attack.id


def test_a_run_nobody_attacked_says_how(store: Store, run: RunSpec) -> None:
    asked_run(store, run)
    node = shown(store, run.id)
    assert f"engine attack {run.id}" in node.text and said.PLAIN.partition("on")[2][-20:] in node.text
    assert not node.all("script") and not node.all("input")


def test_an_attack_alone_shows_no_other(store: Store, run: RunSpec, attack: AttackSpec) -> None:
    asked_run(store, run)
    asked_attack(store, attack, [15.0])
    other = asked_attack(store, attack.with_(seed=9), [29.0])
    text = shown(store, other).text
    assert "29.0 dB" in text and "15.0 dB" not in text and "40.0 %" in text


def test_an_attack_on_a_run_that_was_never_asked_for_has_its_forecast(store: Store, attack: AttackSpec) -> None:
    asked_attack(store, attack, [15.0])
    text = shown(store, attack.id).text
    assert said.NOT_RUN in text and "odds" in text
    assert "Accuracy by round" not in text


@pytest.mark.parametrize("state", ["not converged", "diverged"])
def test_what_did_not_converge_is_never_called_protected(
    store: Store, run: RunSpec, attack: AttackSpec, state: str
) -> None:
    asked_run(store, run, {"status": "none", "reason": "nothing", "absent": {}})
    asked_attack(store, attack, [12.0], state)
    text = shown(store, run.id).text
    assert attack_texts.STATES[state] in text and said.NO_CONTROL in text
    assert "Protected" not in text and privacy.STATUSES["none"][0] in text
    assert "it leaves 60% of the upload unexplained" in text


def test_several_pictures_several_attacks(store: Store, run: RunSpec, attack: AttackSpec) -> None:
    asked_run(store, run)
    two = attack.with_(pictures=("test-0", "test-1"))
    asked_attack(store, attack, [15.0])
    asked_attack(store, attack.with_(attack={"name": "inverting-gradients"}), [22.5])
    asked_attack(store, two, [19.0, 20.0], restarts=({}, {}))
    node = shown(store, run.id)
    assert [one.text.partition(",")[0] for one in node.all("h3")][:2] == ["Test picture 0"] * 2
    assert said.ENVELOPE.partition(":")[0] in node.text and "22.5 dB (worst case" in node.text
    assert node.text.count(said.RESTARTS.format(many=2)) == 1
    assert len(node.all("img")) == 2 * (1 + 1 + 2)
    assert len(film(node)["cells"]) == 4


def test_own_pictures_are_told(store: Store, run: RunSpec, attack: AttackSpec) -> None:
    asked_run(store, run)
    own = attack.with_(pictures=(f"own-{'a' * 16}-3",))
    asked_attack(store, own, [15.0])
    assert said.OWN in shown(store, run.id).text


def test_what_has_nothing_to_show_is_refused(store: Store, run: RunSpec, attack: AttackSpec) -> None:
    ask = Asker(store)
    for spec in (run, attack):
        store.submit(spec.id, spec.canonical(), {})
        with pytest.raises(BadInput, match="is queued"):
            page(store, spec.id)
    with pytest.raises(BadInput, match="is running"):
        page(store, ask("running", seed=4))
    with pytest.raises(UnknownName):
        page(store, "nobody")


def test_only_so_many_attacks(store: Store, run: RunSpec, attack: AttackSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "MOST", 2)
    asked_run(store, run)
    for seed in range(3):
        asked_attack(store, attack.with_(seed=seed), [15.0 + seed])
    text = shown(store, run.id).text
    assert said.LEFT_OUT.format(many=1) in text
    assert "15.0 dB" not in text and "17.0 dB" in text


def test_it_names_its_version_where_that_is_known(
    store: Store, run: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_run(store, run)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for root, told in ((ROOT, f"LeakLens {project['version']}. Run"), (tmp_path, "LeakLens. Run")):
        monkeypatch.setattr(document, "ROOT", root)
        document.version.cache_clear()
        assert told in shown(store, run.id).text
    document.version.cache_clear()


# --- a file that needs nothing else ------------------------------------------------------------------------


def test_it_is_whole_and_sound(store: Store, run: RunSpec, attack: AttackSpec) -> None:
    asked_run(store, run)
    asked_attack(store, attack, [15.0])
    text = page(store, run.id, DAY)
    node = parsed(text)
    assert text.startswith("<!doctype html>\n") and node.all("html")[0].attributes["lang"] == "en"
    assert not re.search(r"https?:|url\(|@import|\bsrc=\"(?!data:)|\bhref=|\bon\w+=|\bstyle=", text)
    levels = [int(one.name[1]) for one in _headings(node)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(later <= before + 1 for before, later in pairwise(levels))
    assert all(one.attributes.get("alt") for one in node.all("img"))
    assert all(one.attributes.get("scope") for one in node.all("th"))
    named = [one.attributes["id"] for one in _every(node) if "id" in one.attributes]
    assert len(named) == len(set(named))
    for one in node.all("svg"):
        told = [one.attributes.get("aria-labelledby"), one.attributes.get("aria-describedby")]
        assert one.attributes.get("aria-hidden") == "true" or set(told) <= set(named)


def test_nothing_runs_that_is_not_its_own(store: Store, run: RunSpec, attack: AttackSpec) -> None:
    asked_run(store, run)
    asked_attack(store, attack, [15.0])
    node = shown(store, run.id)
    (law,) = [
        str(one.attributes["content"])
        for one in node.all("meta")
        if one.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert law.startswith("default-src 'none';") and "unsafe" not in law
    for kind in ("script", "style"):
        own = next(one for one in node.all(kind) if one.attributes.get("type") != "application/json")
        digest = base64.b64encode(hashlib.sha256(own.raw().encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in law


def test_hostile_words_stay_words(store: Store, run: RunSpec, attack: AttackSpec) -> None:
    asked_run(store, run, {"status": "empirical", "reason": EVIL, "absent": {"client": EVIL}})
    asked_attack(store, attack, [15.0], "not converged", reason=EVIL)
    text = page(store, run.id, DAY)
    node = parsed(text)
    assert EVIL in node.text
    assert "<script>alert" not in text and "<img src=x" not in text
    assert len(node.all("script")) == 2 and all(one.attributes["src"] for one in node.all("img"))


def test_two_pages_of_one_run_differ_in_their_date_alone(store: Store, run: RunSpec, attack: AttackSpec) -> None:
    asked_run(store, run)
    asked_attack(store, attack, [15.0])
    first, second = page(store, run.id, DAY), page(store, run.id, date(2027, 12, 31))
    assert first != second and first == page(store, run.id, DAY)
    assert first.replace("1 March 2026", "31 December 2027") == second


def test_a_long_film_is_thinned(store: Store, run: RunSpec, attack: AttackSpec) -> None:
    asked_run(store, run)
    many = 8
    for seed in range(10):
        asked_attack(store, attack.with_(pictures=tuple(f"test-{at}" for at in range(many)), seed=seed), [15.0] * many)
    cells = film(shown(store, run.id))["cells"]
    assert len(cells) == 10 * many
    assert all(len(cell["frames"]) <= max(FEWEST, FRAMES // len(cells)) for cell in cells)


# --- its pieces --------------------------------------------------------------------------------------------


def test_markup_escapes_all_but_itself() -> None:
    assert tag("p", "<b>", tag("b", '"'), class_='"x"') == '<p class="&quot;x&quot;">&lt;b&gt;<b>&quot;</b></p>'
    assert tag("input", hidden=True, min=0, value=None) == '<input hidden min="0">'


@pytest.mark.parametrize(
    ("low", "high", "ends"), [(0, 100, (0, 100)), (10.2, 31.0, (10, 35)), (-3.0, 160.0, (-50, 200))]
)
def test_an_axis_ends_at_round_numbers(low: float, high: float, ends: tuple[float, float]) -> None:
    axis = chart.even("x", low, high)
    assert (axis.low, axis.high) == ends and len(axis.ticks) in range(2, 9)
    assert axis.place(axis.low) == 0 and axis.place(axis.high) == 1


def test_decades_hold_every_value() -> None:
    axis = chart.decades("ε", [0.3, 250_000.0])
    assert (axis.low, axis.high) == (0.1, 1e6)
    assert axis.place(0.1) == 0 and axis.place(1e6) == 1
    assert axis.ticks[-1][1] in ("10⁵", "10⁶")


def test_a_curve_runs_inside_its_frame() -> None:
    line = chart.SvgLine("a", ((1, 0.0), (2, 50.0), (3, 100.0)), "run")
    drawn = parsed(chart.svg(chart.SvgChart("k", "t", "d", [line], chart.even("x", 1, 3), chart.even("y", 0, 100))))
    (way,) = [one.attributes["points"] for one in drawn.all("polyline")]
    at = [tuple(map(float, pair.split(","))) for pair in str(way).split()]
    assert [x for x, _ in at] == sorted(x for x, _ in at)
    assert [y for _, y in at] == sorted((y for _, y in at), reverse=True)
    assert all(0 <= x <= 640 and 0 <= y <= 270 for x, y in at)


def _every(node: Node) -> list[Node]:
    return [node, *(gather for one in node.inside if isinstance(one, Node) for gather in _every(one))]


def _headings(node: Node) -> list[Node]:
    return [one for one in _every(node) if re.fullmatch(r"h\d", one.name)]
