"""The three panels of Try: accuracy, what comes back, and its scores, for one side or two."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import streamlit as st

from app.batch.view import ShownRun
from app.charts import accuracy
from app.charts.base import Track
from app.screens.try_it import requests as try_requests
from app.screens.try_it import sides as try_sides
from app.screens.try_it import texts as try_texts
from app.screens.try_it.change import suggestions
from app.screens.try_it.change.difference import SideResult
from app.screens.try_it.settings import TrySettings
from app.screens.try_it.sides import TrySide
from app.session import run_settings, services
from app.texts import attacks as attack_texts
from app.texts import budget as budget_texts
from app.texts import numbers, product, verdicts
from app.widgets import chart as chart_widget
from app.widgets import score_bars, side_pictures
from app.widgets.score_bars import ScoreBar
from app.widgets.side_pictures import SidePicture
from engine.epsilon import Epsilon
from engine.errors import LeakLensError
from engine.jobs.status import MOVING
from engine.jobs.thumbnails import thumbnails
from engine.results.attack_summary import AttackCell
from engine.results.report import last_epsilons
from engine.results.verdict import LEAKS, Verdict

CHART_PX = 270
FINISHED = ("finished", "stored")
CSS = """
<style>
.ll-numbers-of { margin: 0 0 .2rem; font-variant-numeric: tabular-nums; }
.ll-numbers-of b { font-size: 1.9rem; font-weight: 600; line-height: 1.15; }
.ll-numbers-of i { font-style: normal; font-weight: 700; margin-right: .4rem; }
.st-key-try-panels [data-testid="stColumn"] { min-width: 0; }
.st-key-try-earlier { opacity: .55; }
.st-key-try-steps button[kind="tertiary"] p, .st-key-try-upload button p { text-decoration: underline; }
@media (max-width: 900px) {
  .st-key-try-panels > [data-testid="stLayoutWrapper"] > [data-testid="stHorizontalBlock"] { flex-wrap: wrap; }
  .st-key-try-panels [data-testid="stColumn"] { flex: 1 1 100% !important; width: 100% !important; }
  .st-key-try-panels [data-testid="stColumn"]:nth-child(2) { order: -1; }
}
</style>
"""


def draw(sides: Sequence[TrySide], settings: TrySettings) -> None:
    """Draw the panels of these sides."""
    st.html(CSS)
    with st.container(key="try-panels"):
        left, middle, right = st.columns([5, 4.4, 3.6] if len(sides) == 1 else [4.4, 5.2, 3.4], gap="large")
        with left:
            _accuracy(sides)
        with middle:
            _pictures(sides, settings)
        with right:
            _scores(sides)


def _title(text: str) -> None:
    st.html(f'<h2 class="ll-title">{html.escape(text)}</h2>')


# --- accuracy --------------------------------------------------------------------------------------------------


def _accuracy(sides: Sequence[TrySide]) -> None:
    _title(try_texts.ACCURACY)
    several = len(sides) > 1
    lines = [_accuracy_line(side, several) for side in sides]
    st.html("".join(lines))
    infos = accuracy.PANEL.collected(tracks(sides))
    if infos:
        chart_widget.draw(accuracy.PANEL, infos, CHART_PX)


def _accuracy_line(side: TrySide, several: bool) -> str:
    """The last accuracy of a side, and that of its baseline after as many rounds."""
    name = f"<i>{side.name}</i>" if several else ""
    value = accuracy_of(side.main)
    if value is None:
        moving = side.main is not None and side.main.status in MOVING
        guess = None if moving else try_sides.estimated(side)
        word = try_texts.WAITING if moving else try_texts.NOT_RUN
        word = budget_texts.accuracy(guess) if guess else word
        return f'<p class="ll-numbers-of">{name}{html.escape(word)}</p>'
    without = ""
    baseline = baseline_accuracy(side)
    if baseline is not None:
        without = f" ({try_texts.WITHOUT.format(percent=numbers.percent(baseline))})"
    return f'<p class="ll-numbers-of">{name}<b>{numbers.percent(value)}</b>{html.escape(without)}</p>'


def accuracy_of(run: ShownRun | None) -> float | None:
    """The accuracy after the last finished round; None before the first."""
    curve = accuracy.collect(run.events) if run else None
    return curve.values[-1] if curve else None


def baseline_accuracy(side: TrySide) -> float | None:
    """The accuracy of the baseline after as many rounds as the side has; None before it has as many.

    Without a run of the side it is the last one of a baseline that has ended: that of an estimate has all rounds.
    """
    run = side.baselines[0] if side.baselines else None
    baseline = accuracy.collect(run.events) if run else None
    if run is None or baseline is None:
        return None
    own = accuracy.collect(side.main.events) if side.main else None
    if own is None:
        return baseline.values[-1] if run.status in FINISHED else None
    return dict(zip(baseline.rounds, baseline.values, strict=True)).get(own.rounds[-1])


def tracks(sides: Sequence[TrySide]) -> list[Track]:
    """The runs of all sides as tracks of a chart. A baseline that both sides share is drawn once."""
    drawn = []
    for side in sides:
        first = side.name == "A"
        for run in side.runs:
            if run.id == side.spec.id:
                label = side.name if len(sides) > 1 else try_sides.protection_title(side.run)
                drawn.append(Track(label, "main" if first else "other", run.method, run.events, run.id))
            else:
                seed = f"{side.name}, seed {run.spec.get('seed', 0)}"
                drawn.append(Track(seed, "seed" if first else "other seed", run.method, run.events, run.id))
    shared = len({run.id for side in sides for run in side.baselines}) == 1
    for side in sides:
        for run in side.baselines:
            label = product.NO_PROTECTION if shared else f"{product.NO_PROTECTION}, {side.name}"
            drawn.append(Track(label, "baseline", run.method, run.events, run.id))
    unique = {track.run: track for track in reversed(drawn)}
    return list(reversed(unique.values()))


# --- pictures --------------------------------------------------------------------------------------------------


def _pictures(sides: Sequence[TrySide], settings: TrySettings) -> None:
    _title(try_texts.PICTURES)
    if not run_settings.is_about_pictures("dataset", settings.run["dataset"]):
        st.html(f'<p class="ll-why">{html.escape(try_texts.TEXT)}</p>')
        return
    pictures = [_original(sides, settings)]
    pictures += [_picture(side, len(sides) > 1) for side in sides]
    side_pictures.show(pictures)
    for sentence in _about_attacks(sides):
        st.html(f'<p class="ll-why">{html.escape(sentence)}</p>')
    with st.container(horizontal=True, vertical_alignment="center", key="try-case"):
        st.caption(_case(sides, settings), width="content")
        ordinary = settings.content == "1"
        st.button(
            try_texts.ORDINARY if ordinary else try_texts.ONE_PICTURE, key="try-upload", type="tertiary",
            on_click=try_requests.choose_content, args=("ordinary" if ordinary else "1",),
        )  # fmt: skip


def _original(sides: Sequence[TrySide], settings: TrySettings) -> SidePicture:
    for side in sides:
        for cell in (*side.cells, *side.baseline_cells):
            if cell.seen:
                return SidePicture(try_texts.ORIGINAL, cell.seen.originals[0], "", try_texts.ORIGINAL_ALT)
    try:
        png = thumbnails(settings.run["dataset"], [settings.whose], services.store().home)[0].png
    except LeakLensError as error:
        return SidePicture(try_texts.ORIGINAL, "", str(error), str(error))
    return SidePicture(try_texts.ORIGINAL, png, "", try_texts.ORIGINAL_ALT)


def _picture(side: TrySide, several: bool) -> SidePicture:
    """The best guess of a side with the verdict on it."""
    title = side.name if several else try_sides.protection_title(side.run)
    cell = try_sides.best(side.cells)
    if cell is None:
        able = next((each for each in side.cells if not each.problem), None)
        word = attack_texts.state(able) if able else try_texts.NO_ATTACKER
        return SidePicture(title, "", word, f"{title}: {word}")
    word = verdicts.caption(cell, 0)
    guess = try_sides.last_guess(cell)
    alt = attack_texts.alt(run_settings.attack_title(cell.attack), title, word)
    return SidePicture(title, guess, word, alt, cell.leaks(0))


def _about_attacks(sides: Sequence[TrySide]) -> list[str]:
    """What the picture without protection says about the others, and that a failed attack is no promise."""
    sentences = []
    hidden = [side for side in sides if _failed(side)]
    if hidden:
        name = "" if len(hidden) == len(sides) else f"{hidden[0].name}: "
        count = _attackers(len([cell for cell in hidden[0].cells if not cell.problem]))
        sentences.append(name + try_texts.NONE_SUCCEEDED.format(count=count))
    baseline = sides[0].baseline_cells
    if baseline and all(cell.done or cell.problem for cell in baseline):
        best = try_sides.best(baseline)
        word = best.verdict(0) if best else None
        if word is not None:
            what = verdicts.ALONE[word].format(it="the picture")
            sentences.append(try_texts.BASELINE.format(what=what) if word in LEAKS else verdicts.SAYS_NOTHING)
    return sentences


def _failed(side: TrySide) -> bool:
    """Whether all attackers of a side have ended, and none brought the picture back."""
    able = [cell for cell in side.cells if not cell.problem]
    return bool(able) and all(cell.done and not cell.leaks(0) for cell in able)


def _attackers(count: int) -> str:
    return "1 attacker" if count == 1 else f"{count} attackers"


def _case(sides: Sequence[TrySide], settings: TrySettings) -> str:
    able = [cell for cell in sides[0].cells if not cell.problem]
    return try_texts.ATTACKERS.format(count=_attackers(len(able)), case=try_texts.CASES[settings.content])


# --- scores ----------------------------------------------------------------------------------------------------


def _scores(sides: Sequence[TrySide]) -> None:
    _title(try_texts.SCORES)
    scores: dict[str, list[ScoreBar]] = {}
    for side in sides:
        cell = try_sides.best(side.cells)
        bars = score_bars.bars(cell, 0) if cell else []
        if bars:
            scores[side.name] = bars
    if not scores:
        st.html(f'<p class="ll-why ll-faint">{html.escape(try_texts.NO_SCORES)}</p>')
        return
    score_bars.show(scores)
    st.caption(attack_texts.KEYS["scores"])


# --- how B differs ---------------------------------------------------------------------------------------------


def result_of(side: TrySide, forecast: Mapping[str, Epsilon | None], view: str) -> SideResult:
    """What is known of one side. Before the run has ended, its ε is that of the forecast."""
    main = side.main
    ended = main is not None and main.status in FINISHED
    epsilon = last_epsilons(main.events).get(view) if main is not None and ended else forecast.get(side.name)
    guess = None if ended else try_sides.estimated(side)
    return SideResult(
        protection=try_sides.protection_title(side.run),
        epsilon=epsilon if epsilon is not None and epsilon.value is not None else None,
        accuracy=accuracy_of(main) if ended else (guess.value if guess else None),
        estimated=not ended and guess is not None and not guess.exact,
        verdict=_verdict(side.cells),
        noise=suggestions.noise_of(side.run),
        step=side.run.get("method.server-step"),
    )


def _verdict(cells: Sequence[AttackCell]) -> Verdict | None:
    """The verdict on the best guess, once all attackers have ended."""
    able = [cell for cell in cells if not cell.problem or cell.done]
    if not able or not all(cell.done for cell in able):
        return None
    best = try_sides.best(able)
    return best.verdict(0) if best else None
