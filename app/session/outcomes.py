"""The finished runs from which a page estimates others: those that ship with LeakLens, and those of the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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
MOST_REMEMBERED = 10_000


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
    return [*outcomes, *_of_store(place.setting, noise)]


def _of_store(setting: str, noise: str) -> list[Outcome]:
    """The newest finished neighbours in the store. Only their events are read, those of other runs are not."""
    memory = _memory(str(services.store().home))
    neighbours = services.may_see_all(memory.finished(noise).get(setting, [])[:MOST_RUNS])
    outcomes = [memory.outcome(run, noise) for run in neighbours]
    return [outcome for outcome in outcomes if outcome is not None]


@st.cache_resource(show_spinner=False)
def _memory(home: str) -> OutcomeMemory:
    del home
    return OutcomeMemory()


@dataclass
class OutcomeMemory:
    """What was read of the finished runs of one home, for all visitors. A spec and its results never change."""

    listed: dict[str, tuple[float, dict[str, list[ListedRun]]]] = field(default_factory=dict)  # by name of the noise
    settings: dict[tuple[str, str], str] = field(default_factory=dict)  # by run and name of the noise
    outcomes: dict[tuple[str, str], Outcome | None] = field(default_factory=dict)

    def finished(self, noise: str) -> dict[str, list[ListedRun]]:
        """The finished runs by what they share with their neighbours, the newest first."""
        read_at, known = self.listed.get(noise, (-TTL_S, {}))
        if session.now() - read_at < TTL_S:
            return known
        runs: dict[str, list[ListedRun]] = {}
        for run in services.store().runs():
            if run.status == "finished" and "attack" not in run.spec:
                runs.setdefault(self._setting(run, noise), []).append(run)
        self.listed[noise] = (session.now(), runs)
        return runs

    def _setting(self, run: ListedRun, noise: str) -> str:
        """What a run shares with its neighbours; empty for one without noise."""
        key = (run.id, noise)
        if key not in self.settings:
            if len(self.settings) > MOST_REMEMBERED:
                self.settings.clear()
            place = place_of(run.spec, noise)
            self.settings[key] = place.setting if place else ""
        return self.settings[key]

    def outcome(self, run: ListedRun, noise: str) -> Outcome | None:
        """The outcome of a finished run of this version, if its events can be read: Runs shows what is damaged."""
        key = (run.id, noise)
        if key not in self.outcomes:
            if len(self.outcomes) > MOST_REMEMBERED:
                self.outcomes.clear()
            try:
                accuracy = services.report_of(run.id)["accuracy"]
            except LeakLensError:
                return None
            unusable = accuracy is None or services.made_earlier(run.spec)
            self.outcomes[key] = None if unusable else Outcome(run.spec, accuracy, noise)
        return self.outcomes[key]
