"""The finished runs from which a page estimates others: those that ship with LeakLens, and those of the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import streamlit as st

from app.session import services, session
from engine.errors import LeakLensError
from engine.examples.start import start_example
from engine.examples.sweep import requested_points, sweep_example
from engine.jobs.status import ListedRun
from engine.results.estimates import NOISE, Outcome, place_of
from engine.results.report import report

TTL_S = 10.0  # how long a page may not know a run of the store that has just finished
MOST_RUNS = 40  # of the store; reading the events of one takes some milliseconds
MOST_SETTINGS = 10_000
_settings: dict[tuple[str, str], str] = {}  # by run and name of the noise


@cache
def shipped() -> tuple[Outcome, ...]:
    """The runs that ship. It reads their specs, so the shelves must be loaded."""
    outcomes = [*_sweep(), *_examples()]
    return tuple(outcome for outcome in outcomes if outcome.place is not None)


def _sweep() -> Iterator[Outcome]:
    """The points of the stored sweep, which has ids in place of specs."""
    example = sweep_example()
    if example is None:
        return
    accuracies = {result.point.id: result.accuracy for result in example.results}
    for point in requested_points():
        if point.id in accuracies:
            yield Outcome(point.spec.canonical(), accuracies[point.id])


def _examples() -> Iterator[Outcome]:
    start = start_example()
    stops = [run for stop in start.stops for run in stop.runs] if start else []
    for example in (*services.stored_examples(), *stops):
        accuracy = report(example.events)["accuracy"]
        if accuracy is not None:
            yield Outcome(example.spec, accuracy)


def near(target: Mapping[str, Any], noise: str = NOISE) -> list[Outcome]:
    """The neighbours of a run that ship, and those that this visitor may see in the store."""
    place = place_of(target, noise)
    if place is None:
        return []
    known = shipped() if noise == NOISE else ()
    outcomes = [outcome for outcome in known if outcome.place and outcome.place.setting == place.setting]
    return [*outcomes, *_of_store(place.setting, noise, session.visitor())]


@st.cache_data(show_spinner=False, ttl=TTL_S, max_entries=200)
def _of_store(setting: str, noise: str, visitor: str) -> list[Outcome]:
    """The newest finished neighbours in the store. Only their events are read, those of other runs are not."""
    del visitor  # part of the key: in a class, visitors may not all see the same runs
    runs = [run for run in services.store().runs() if run.status == "finished" and "attack" not in run.spec]
    neighbours = [run for run in runs if _setting(run.id, run.spec, noise) == setting][:MOST_RUNS]
    outcomes = []
    for run in services.may_see_all(neighbours):
        if not services.made_earlier(run.spec):
            outcomes += _outcome(run, noise)
    return outcomes


def _outcome(run: ListedRun, noise: str) -> list[Outcome]:
    """The outcome of a finished run, if its events can be read. The screen Runs shows what is damaged."""
    try:
        accuracy = services.report_of(run.id)["accuracy"]
    except LeakLensError:
        return []
    return [] if accuracy is None else [Outcome(run.spec, accuracy, noise)]


def _setting(run: str, spec: Mapping[str, Any], noise: str) -> str:
    """What a run shares with its neighbours; empty for one without noise. The spec of a run never changes."""
    key = (run, noise)
    if key not in _settings:
        if len(_settings) > MOST_SETTINGS:
            _settings.clear()
        place = place_of(spec, noise)
        _settings[key] = place.setting if place else ""
    return _settings[key]
