"""An exported page shows the content of the store, loads nothing, and runs no script but its own."""

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

from app.export import chart, document, gather, page, run_section
from app.export import texts as export_texts
from app.export.frames import FEWEST, FRAMES
from app.export.markup import tag
from app.texts import attacks as attack_texts
from app.texts import privacy, verdicts
from engine.cli.arguments import read_spec
from engine.cli.attack import read_attack
from engine.cli.main import parser
from engine.environment import ROOT
from engine.epsilon import Epsilon
from engine.errors import BadInput, UnknownName
from engine.jobs.store import Store
from engine.specs import attack_grid
from engine.specs.attack import AttackSpec
from engine.specs.run import RunSpec
from tests.app.export.makers import RUN, Node, attack_on, parsed, stored_attack, stored_run
from tests.app.makers import RunMaker
from tests.app.screens.leak.makers import GREY

DAY = date(2026, 3, 1)
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)> & 'Erlkönig'"


@pytest.fixture
def run() -> RunSpec:
    return RunSpec(**RUN)


@pytest.fixture
def baseline(run: RunSpec) -> RunSpec:
    spec = attack_grid.baseline_of(run)
    assert spec is not None
    return spec


@pytest.fixture
def attack(run: RunSpec) -> AttackSpec:
    return attack_on(run)


def shown(store: Store, run: str) -> Node:
    return parsed(page(store, run, DAY))


def frames(node: Node) -> dict:
    (data,) = [script for script in node.all("script") if script.attributes.get("id") == "frames"]
    return dict(json.loads(data.raw()))


# --- the content -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_with_its_attack_and_both_baselines(
    store: Store, run: RunSpec, baseline: RunSpec, attack: AttackSpec
) -> None:
    stored_run(store, run)
    stored_run(store, baseline)
    stored_attack(store, attack, [15.0])
    stored_attack(store, attack.with_(run=baseline), [31.4])
    node = shown(store, run.id)
    text = node.text
    (heading,) = node.all("h1")
    assert heading.text == "UDP-FedAvg, noise 0.5 on Fashion-MNIST: accuracy, privacy and attacks"
    for words in ("Without protection the picture comes back.", "15.0 dB", "31.4 dB", "SSIM 0.90, LPIPS 0.05",
                "40.0 %", privacy.STATUSES["formal-other-view"][0], "The noise is shared", *privacy.NOT_COVERED,
                export_texts.HAS_BASELINE, attack_texts.NO_PROOF, "shirt", "1 March 2026"):  # fmt: skip
        assert words in text, words
    assert export_texts.NO_BASELINE not in text
    assert [cell["psnr"] for cell in frames(node)["cells"]] == [[GREY, GREY + 1, 31.4], [GREY, GREY + 1, 15.0]]


@pytest.mark.slow
def test_a13_the_page_names_who_adds_the_noise(store: Store, run: RunSpec, baseline: RunSpec) -> None:
    stored_run(store, run)
    stored_run(store, baseline)
    assert "UDP-FedAvg, noise 0.5: the clients share the noise" in shown(store, run.id).text
    assert "the noise" not in shown(store, baseline.id).all("header")[0].text


@pytest.mark.slow
def test_a_run_with_a_target_epsilon_is_named_by_it(store: Store) -> None:
    run = RunSpec(**{**RUN, "target-epsilon": 8, "view": "outsider"})
    stored_run(store, run)
    stored_attack(store, attack_on(run), [15.0])
    text = shown(store, run.id).text
    assert "UDP-FedAvg at ε 8 on Fashion-MNIST" in text and export_texts.SOLVED in text
    assert "noise 1" not in text and "noise 0.5" not in text


def test_every_view_has_its_odds_and_terms(store: Store, run: RunSpec) -> None:
    stored_run(store, run)
    text = shown(store, run.id).text
    for view, epsilon in (("outsider", 2.0), ("server", 154.0)):
        record = Epsilon(epsilon, view, "user", "zero-out", 1e-5, "rdp", "poisson")
        assert privacy.odds(record) in text
        assert privacy.terms(record) in text
    assert "no one else takes part" in text


@pytest.mark.parametrize(
    ("value", "tag", "words"),
    [(6.0724, "b", "ε 6.08"), (1.0001, "b", "ε 1.01"), (10.0001, "span", "ε 10.1"), (None, "span", "ε ∞")],
)
def test_an_epsilon_is_rounded_up_and_bold_only_where_it_means_something(
    value: float | None, tag: str, words: str
) -> None:
    record = Epsilon(value, "server", "user", "zero-out", 1e-5, "exact", "all")
    cell = str(run_section.term_cells(record)[0])
    assert cell.startswith(f"<{tag} ") and f">{words}</{tag}>" in cell


def test_an_approximation_has_no_size_on_the_page() -> None:
    record = Epsilon(0.5, "server", "user", "zero-out", 1e-5, "exact", "all", "approximation")
    assert "strong promise" not in str(run_section.term_cells(record)[0])


def test_the_commands_request_the_same_run_and_attack(store: Store, run: RunSpec) -> None:
    attack = attack_on(
        run, pictures=["test-0", "train-3"], restarts=3, round=2, seed=5, attack={"name": "map", "lr": 0.25}
    )
    stored_run(store, run)
    stored_attack(store, attack, [15.0, 14.0])
    commands = [shlex.split(block.text) for block in shown(store, run.id).all("pre")]
    assert [command[:3] for command in commands] == [["python3", "-m", "engine"]] * 2
    run_arguments, attack_arguments = [parser().parse_args(command[3:]) for command in commands]
    assert read_spec(run_arguments).id == run.id
    assert read_attack(Namespace(**vars(attack_arguments)), store).id == attack.id


def test_a_run_without_attacks_shows_the_command_for_one(store: Store, run: RunSpec) -> None:
    stored_run(store, run)
    node = shown(store, run.id)
    assert f"engine attack {run.id}" in node.text and export_texts.PLAIN.rpartition("}")[2] in node.text
    assert "frames" not in [script.attributes.get("id") for script in node.all("script")]
    assert not node.all("input")


def test_the_page_of_an_attack_shows_no_other_attack(store: Store, run: RunSpec, attack: AttackSpec) -> None:
    stored_run(store, run)
    stored_attack(store, attack, [15.0])
    other = stored_attack(store, attack.with_(seed=9), [29.0])
    text = shown(store, other).text
    assert "29.0 dB" in text and "15.0 dB" not in text and "40.0 %" in text


def test_an_attack_on_a_run_that_was_never_requested_has_its_forecast(store: Store, attack: AttackSpec) -> None:
    stored_attack(store, attack, [15.0])
    text = shown(store, attack.id).text
    assert export_texts.NOT_RUN in text and "An observer who" in text
    assert "Accuracy by round" not in text


@pytest.mark.parametrize("state", ["not converged", "diverged"])
def test_an_attack_that_did_not_converge_is_never_called_protection(
    store: Store, run: RunSpec, attack: AttackSpec, state: str
) -> None:
    stored_run(store, run, {"status": "none", "reason": "nothing", "absent": {}})
    stored_attack(store, attack, [12.0], state)
    text = shown(store, run.id).text
    assert verdicts.REMARKS[state] in text and "is not recognised" in text and export_texts.NO_BASELINE in text
    assert "Proven" not in text and privacy.STATUSES["none"][0] in text
    assert "it leaves 60% of the upload unexplained" in text


def test_several_pictures_several_attacks(store: Store, run: RunSpec, attack: AttackSpec) -> None:
    stored_run(store, run)
    two = attack.with_(pictures=("test-0", "test-1"))
    stored_attack(store, attack, [15.0])
    stored_attack(store, attack.with_(attack={"name": "inverting-gradients"}), [22.5])
    stored_attack(store, two, [19.0, 20.0], restarts=({}, {}))
    node = shown(store, run.id)
    assert [heading.text.partition(",")[0] for heading in node.all("h3")][:2] == ["Test picture 0"] * 2
    assert export_texts.BEST.partition(":")[0] in node.text and "22.5 dB (worst case" in node.text
    assert node.text.count(export_texts.RESTARTS.format(count=2)) == 1
    assert len(node.all("img")) == 2 * (1 + 1 + 2)
    assert len(frames(node)["cells"]) == 4


def test_a_page_with_own_pictures_warns_of_them(store: Store, run: RunSpec, attack: AttackSpec) -> None:
    stored_run(store, run)
    own = attack.with_(pictures=(f"own-{'a' * 16}-3",))
    stored_attack(store, own, [15.0])
    assert export_texts.OWN in shown(store, run.id).text


def test_a_run_without_results_is_refused(store: Store, run: RunSpec, attack: AttackSpec) -> None:
    request = RunMaker(store)
    for spec in (run, attack):
        store.submit(spec.id, spec.canonical(), {})
        with pytest.raises(BadInput, match="is queued"):
            page(store, spec.id)
    with pytest.raises(BadInput, match="is running"):
        page(store, request("running", seed=4))
    with pytest.raises(UnknownName):
        page(store, "unknown")


def test_only_the_latest_attacks_are_shown(
    store: Store, run: RunSpec, attack: AttackSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "MOST", 2)
    stored_run(store, run)
    for seed in range(3):
        stored_attack(store, attack.with_(seed=seed), [15.0 + seed])
    text = shown(store, run.id).text
    assert export_texts.LEFT_OUT.format(count=1) in text
    assert "15.0 dB" not in text and "17.0 dB" in text


def test_the_page_names_the_version_if_it_is_known(
    store: Store, run: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_run(store, run)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for root, words in ((ROOT, f"LeakLens {project['version']}. Run"), (tmp_path, "LeakLens. Run")):
        monkeypatch.setattr(document, "ROOT", root)
        document.version.cache_clear()
        assert words in shown(store, run.id).text
    document.version.cache_clear()


# --- a file without links to others ------------------------------------------------------------------------


def test_the_page_is_valid_and_complete(store: Store, run: RunSpec, attack: AttackSpec) -> None:
    stored_run(store, run)
    stored_attack(store, attack, [15.0])
    text = page(store, run.id, DAY)
    node = parsed(text)
    assert text.startswith("<!doctype html>\n") and node.all("html")[0].attributes["lang"] == "en"
    assert not re.search(r"https?:|url\(|@import|\bsrc=\"(?!data:)|\bhref=|\bon\w+=|\bstyle=", text)
    levels = [int(heading.name[1]) for heading in _headings(node)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(later <= before + 1 for before, later in pairwise(levels))
    assert all(image.attributes.get("alt") for image in node.all("img"))
    assert all(head.attributes.get("scope") for head in node.all("th"))
    ids = [element.attributes["id"] for element in _every(node) if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for svg in node.all("svg"):
        labels = {svg.attributes.get("aria-labelledby"), svg.attributes.get("aria-describedby")}
        assert svg.attributes.get("aria-hidden") == "true" or labels <= set(ids)


def test_the_policy_allows_only_its_own_script_and_style(store: Store, run: RunSpec, attack: AttackSpec) -> None:
    stored_run(store, run)
    stored_attack(store, attack, [15.0])
    node = shown(store, run.id)
    metas = [meta.attributes for meta in node.all("meta")]
    (policy,) = [str(meta["content"]) for meta in metas if meta.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy
    for kind in ("script", "style"):
        own = next(element for element in node.all(kind) if element.attributes.get("type") != "application/json")
        digest = base64.b64encode(hashlib.sha256(own.raw().encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_markup_in_a_text_is_shown_as_text(store: Store, run: RunSpec, attack: AttackSpec) -> None:
    stored_run(store, run, {"status": "empirical", "reason": EVIL, "absent": {"client": EVIL}})
    stored_attack(store, attack, [15.0], "not converged", reason=EVIL)
    text = page(store, run.id, DAY)
    node = parsed(text)
    assert EVIL in node.text
    assert "<script>alert" not in text and "<img src=x" not in text
    data = [script for script in node.all("script") if script.attributes.get("type") == "application/json"]
    assert len(data) == 2 and len(node.all("script")) == 3 and all(image.attributes["src"] for image in node.all("img"))


def test_two_pages_of_one_run_differ_only_in_their_date(store: Store, run: RunSpec, attack: AttackSpec) -> None:
    stored_run(store, run)
    stored_attack(store, attack, [15.0])
    first = page(store, run.id, DAY)
    second = page(store, run.id, date(2027, 12, 31))
    assert first != second and first == page(store, run.id, DAY)
    assert first.replace("1 March 2026", "31 December 2027") == second


@pytest.mark.slow
def test_many_frames_are_thinned(store: Store, run: RunSpec, attack: AttackSpec) -> None:
    stored_run(store, run)
    count = 8
    pictures = tuple(f"test-{place}" for place in range(count))
    for seed in range(10):
        stored_attack(store, attack.with_(pictures=pictures, seed=seed), [15.0] * count)
    cells = frames(shown(store, run.id))["cells"]
    assert len(cells) == 10 * count
    assert all(len(cell["frames"]) <= max(FEWEST, FRAMES // len(cells)) for cell in cells)


# --- markup and charts -------------------------------------------------------------------------------------


def test_text_is_escaped_and_markup_is_not() -> None:
    assert tag("p", "<b>", tag("b", '"'), class_='"x"') == '<p class="&quot;x&quot;">&lt;b&gt;<b>&quot;</b></p>'
    assert tag("input", hidden=True, min=0, value=None) == '<input hidden min="0">'


@pytest.mark.parametrize(
    ("low", "high", "ends"), [(0, 100, (0, 100)), (10.2, 31.0, (10, 35)), (-3.0, 160.0, (-50, 200))]
)
def test_an_axis_ends_at_round_numbers(low: float, high: float, ends: tuple[float, float]) -> None:
    axis = chart.even("x", low, high)
    assert (axis.low, axis.high) == ends and len(axis.ticks) in range(2, 9)
    assert axis.place(axis.low) == 0 and axis.place(axis.high) == 1


def test_a_logarithmic_axis_reaches_around_every_value() -> None:
    axis = chart.decades("ε", [0.3, 250_000.0])
    assert (axis.low, axis.high) == (0.1, 1e6)
    assert axis.place(0.1) == 0 and axis.place(1e6) == 1
    assert axis.ticks[-1][1] in ("10⁵", "10⁶")


def test_a_curve_stays_inside_its_chart() -> None:
    line = chart.SvgLine("a", ((1, 0.0), (2, 50.0), (3, 100.0)), "run")
    svg = chart.svg(chart.SvgChart("k", "t", "d", [line], chart.even("x", 1, 3), chart.even("y", 0, 100)))
    drawn = parsed(svg)
    (polyline,) = drawn.all("polyline")
    pairs = [pair.split(",") for pair in str(polyline.attributes["points"]).split()]
    across = [float(x) for x, _ in pairs]
    up = [float(y) for _, y in pairs]
    assert across == sorted(across) and up == sorted(up, reverse=True)
    assert all(0 <= x <= 640 for x in across) and all(0 <= y <= 270 for y in up)


def _every(node: Node) -> list[Node]:
    """The node and all nodes in it."""
    nodes = [node]
    for child in node.inside:
        if isinstance(child, Node):
            nodes += _every(child)
    return nodes


def _headings(node: Node) -> list[Node]:
    return [element for element in _every(node) if re.fullmatch(r"h\d", element.name)]
