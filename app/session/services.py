"""What all visitors share: the store, the supervisor that serves it, forecasts, and runs as a page shows them."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.session import limits as class_limits
from app.session import owners, session
from engine.errors import Damaged, LeakLensError, UnknownName
from engine.events import Event, Failed
from engine.examples.files import RunExample, example, examples
from engine.jobs.status import ListedRun
from engine.jobs.store import Store
from engine.jobs.supervisor import Supervisor
from engine.results.report import report

if TYPE_CHECKING:
    from engine.specs.attack import AttackSpec
    from engine.training.forecast import Forecast

WATCHING_S = 5.0  # who looked at a run within it is watching it


REPORTS = 5000  # of finished runs, kept in memory


class Services:
    """The store, the supervisor that serves it, and the shelves once they are loaded."""

    def __init__(self) -> None:
        self.store = Store()
        workers = class_limits.caps().workers
        self.supervisor = Supervisor(self.store, workers, preload=("engine.jobs.preload",)).start()
        self.watchers: dict[str, dict[str, float]] = {}
        self.reports: dict[str, Mapping[str, Any]] = {}  # of finished runs, which say the same for ever
        self._feeds: dict[str, RunFeed] = {}
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self.trouble: Exception | None = None  # why the shelves could not be loaded
        threading.Thread(target=self._load, name="shelves", daemon=True).start()

    def _load(self) -> None:
        """Loading the shelves takes two seconds: pages show stored examples meanwhile."""
        try:
            import engine.training.forecast
            from engine.specs.run import RunSpec

            engine.training.forecast.forecast(RunSpec())
            gc.collect()
            gc.freeze()  # the collector would look through all the shelves every time
        except Exception as error:
            self.trouble = error
        self._ready.set()

    def ready(self, wait: float = 0.0) -> bool:
        return self._ready.wait(wait)

    def feed(self, run: str) -> RunFeed:
        with self._lock:
            if len(self._feeds) > 300:  # the store has them all
                self._feeds.clear()
            return self._feeds.setdefault(run, RunFeed(self.store, run))

    def close(self) -> None:
        self.supervisor.stop()
        self.store.close()


class RunFeed:
    """The events of one run, read once and then only what is new."""

    def __init__(self, store: Store, run: str) -> None:
        self._store, self._run = store, run
        self._lock = threading.Lock()
        self._edition, self._after = "", 0
        self._events: list[Event] = []

    def read(self) -> tuple[ListedRun, tuple[Event, ...]]:
        with self._lock:
            listed = self._store.run(self._run)
            if listed.edition != self._edition:  # some events were taken back
                self._edition, self._after, self._events = listed.edition, 0, []
            if listed.events > self._after or listed.status in ("queued", "running"):
                try:
                    told = self._store.events(self._run, self._after)
                except Damaged as error:  # what was read before stays; no traceback for the rest
                    return replace(listed, status="failed"), (*self._events, Failed(error.message, error.remedy))
                self._after = told[-1][0] if told else self._after
                self._events += [event for _, event in told]
            return listed, tuple(self._events)


@st.cache_resource(show_spinner=False, on_release=lambda kitchen: kitchen.close())
def shared() -> Services:
    return Services()


def store() -> Store:
    return shared().store


@st.cache_data(show_spinner=False, max_entries=1000)
def _forecast(body: str, threads: int) -> Forecast:
    import json

    from engine.specs.run import RunSpec
    from engine.training.forecast import forecast

    return forecast(RunSpec(**json.loads(body)), threads=threads)


def forecast_of(canonical: Mapping[str, Any], threads: int = 0) -> Forecast:
    """What is known before the click; the same question is answered from memory. A lone run has all cores."""
    import json

    from engine.jobs.process_id import cores

    return _forecast(json.dumps(canonical, sort_keys=True), threads or cores())


@st.cache_data(show_spinner=False, max_entries=3000)
def _misfit(body: str) -> str:
    import json

    from engine.leakage.compatibility import problem
    from engine.specs.attack import AttackSpec

    found = problem(AttackSpec(**json.loads(body)))
    return f"{found.reason}. {found.remedy}." if found else ""


def misfit_of(spec: AttackSpec) -> str:
    """Why an attack cannot work, before the click; empty if it can."""
    import json

    return _misfit(json.dumps(spec.canonical(), sort_keys=True))


def read(run: str) -> tuple[ListedRun, tuple[Event, ...]] | None:
    """A run of this store with its events; None where there is none of that name."""
    try:
        found = shared().feed(run).read()
    except UnknownName:
        return None
    if not may_see(found[0]):
        return None
    _watch(run)
    return found


def may_see(run: ListedRun) -> bool:
    """False in class mode for a run on a picture that another visitor brought."""
    return not class_limits.class_mode() or owners.may_see(
        run.spec, run.options, session.visitor(), session.recall("leak-own", [])
    )


def may_see_picture(name: str) -> bool:
    """The same for the uploaded picture itself: this session brought it, or this visitor requested an attack on it."""
    if not class_limits.class_mode() or name in session.recall("leak-own", []):
        return True
    runs = [run for run in store().runs() if name in owners.own_pictures(run.spec)]
    return any(owners.requested_by(run.options, session.visitor()) for run in runs)


def _watch(run: str) -> None:
    watching, now_ = shared().watchers.setdefault(run, {}), time.monotonic()
    watching[session.visitor()] = now_
    for gone in [who for who, seen in watching.items() if now_ - seen > WATCHING_S]:
        watching.pop(gone, None)


def standings(runs: Sequence[str]) -> dict[str, str]:
    """Where each of many runs stands, empty where nobody asked it; who asks is watching them."""
    known = store().statuses(runs)
    for run, status in known.items():
        if status in ("queued", "running"):
            _watch(run)
    return {run: known.get(run, "") for run in runs}


def reported(run: str) -> Mapping[str, Any]:
    """What a run that has ended came to; that of a finished one is read once."""
    reports = shared().reports
    if (known := reports.get(run)) is not None:
        return known
    told = report(event for _, event in store().events(run))
    if told["seconds"] is not None:  # else it did not finish, and may be asked again
        if len(reports) > REPORTS:  # the store has them all
            reports.clear()
        reports[run] = told
    return told


def others_watching(run: str) -> int:
    last = time.monotonic() - WATCHING_S
    return sum(seen > last for who, seen in list(shared().watchers.get(run, {}).items()) if who != session.visitor())


def gallery() -> tuple[RunExample, ...]:
    return examples()


def first_example() -> RunExample | None:
    """What a newcomer sees first, and the question that the form begins with."""
    return next(iter(examples()), None)


def stored(run: str) -> RunExample | None:
    return example(run)


def attempt(deed: Any) -> str:
    """Do it; what goes wrong comes back as the sentence to show."""
    try:
        deed()
    except LeakLensError as error:
        return str(error)
    return ""
