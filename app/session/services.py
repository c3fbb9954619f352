"""The services that all visitors share: the store, its supervisor, forecasts, and the events of runs."""

from __future__ import annotations

import gc
import importlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.session import limits as class_limits
from app.session import session
from engine.errors import Damaged, LeakLensError, UnknownName
from engine.events import Event, Failed
from engine.examples.attacks import attack_examples
from engine.examples.files import RunExample, example, examples, load_errors
from engine.jobs.owners import own_pictures
from engine.jobs.pace import work_key
from engine.jobs.process_id import cores
from engine.jobs.status import ListedRun
from engine.jobs.store import Store
from engine.jobs.supervisor import Supervisor
from engine.jobs.uploads import UploadedPictures
from engine.results.report import report

if TYPE_CHECKING:
    from engine.specs.attack import AttackSpec
    from engine.training.forecast import Forecast

PRELOAD = ("engine.jobs.backends.preload", "engine.jobs.backends.preload_attacks")
TOUCH_S = 60.0  # how often the visit of a browser without a cookie is recorded
FEEDS = 300  # kept in memory
REPORTS = 5000  # of finished runs, kept in memory


def _warm_workers(workers: int | None) -> int:
    """How many idle workers to keep: in a class, visitors come at once."""
    return (workers or cores()) if class_limits.class_mode() else 1


class Services:
    """The store, its supervisor, and a thread that loads the shelves."""

    def __init__(self) -> None:
        self.store = Store()
        workers = class_limits.caps().workers
        self.supervisor = Supervisor(self.store, workers, preload=PRELOAD, warm=_warm_workers(workers)).start()
        self.reports: dict[str, Mapping[str, Any]] = {}  # of finished runs, whose events never change
        self.pictures: dict[str, frozenset[str]] = {}  # uploaded ones, by the run whose spec names them
        self._feeds: dict[str, RunFeed] = {}
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self.trouble: Exception | None = None  # the reason why the shelves could not be loaded
        # Pages import plotly, and with it numpy, while the thread loads torch. Two threads that import numpy at once
        # can meet it half imported.
        importlib.import_module("numpy")
        threading.Thread(target=self._load, name="shelves", daemon=True).start()

    def _load(self) -> None:
        """Load the shelves. It takes two seconds; until then pages show stored examples."""
        try:
            import engine.training.forecast
            from engine.specs.run import RunSpec

            engine.training.forecast.forecast(RunSpec())
            if class_limits.class_mode():  # it imports Opacus, for which a whole class would wait a second
                engine.training.forecast.forecast(RunSpec(method="dp-fedavg"))
            gc.collect()
            gc.freeze()  # else every collection would scan all the shelves
        except Exception as error:
            self.trouble = error
        self._ready.set()

    def ready(self, wait: float = 0.0) -> bool:
        """Whether the shelves are loaded, or could not be loaded. Waits at most `wait` seconds."""
        return self._ready.wait(wait)

    def feed(self, run: str) -> RunFeed:
        """The events of a run, shared by all visitors."""
        with self._lock:
            if len(self._feeds) > FEEDS:  # they can be read again from the store
                self._feeds.clear()
            return self._feeds.setdefault(run, RunFeed(self.store, run))

    def close(self) -> None:
        self.supervisor.stop()
        self.store.close()


class RunFeed:
    """The events of one run. Each read asks the store for new events only."""

    def __init__(self, store: Store, run: str) -> None:
        self._store, self._run = store, run
        self._lock = threading.Lock()
        self._edition = ""
        self._after = 0  # the number of the last event that was read
        self._events: list[Event] = []

    def read(self) -> tuple[ListedRun, tuple[Event, ...]]:
        with self._lock:
            listed = self._store.run(self._run)
            if listed.edition != self._edition:  # the store deleted some events
                self._edition = listed.edition
                self._after = 0
                self._events = []
            if listed.events > self._after or listed.status in ("queued", "running"):
                try:
                    new = self._store.events(self._run, self._after)
                except Damaged as error:  # the page shows the earlier events, and the damage as the end of the run
                    return replace(listed, status="failed"), (*self._events, Failed(error.message, error.remedy))
                if new:
                    self._after = new[-1][0]
                self._events += [event for _, event in new]
            return listed, tuple(self._events)


@st.cache_resource(show_spinner=False, on_release=lambda services: services.close())
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
    """The forecast of a run, cached. The default for `threads` is all cores, which a single run gets."""
    import json

    return _forecast(json.dumps(canonical, sort_keys=True), threads or cores())


@st.cache_data(show_spinner=False, max_entries=1000)
def _promises(body: str) -> Forecast:
    import json

    from engine.specs.run import RunSpec
    from engine.training.forecast import forecast

    return forecast(RunSpec(**json.loads(body)), timed=False)


def promises_of(canonical: Mapping[str, Any]) -> Forecast:
    """The forecast of a run without its time, cached. A list of many runs can afford it."""
    import json

    return _promises(json.dumps(canonical, sort_keys=True))


@st.cache_data(show_spinner=False, max_entries=3000)
def _misfit(body: str) -> str:
    import json

    from engine.leakage.compatibility import problem
    from engine.specs.attack import AttackSpec

    obstacle = problem(AttackSpec(**json.loads(body)))
    return f"{obstacle.reason}. {obstacle.remedy}." if obstacle else ""


def attack_problem(spec: AttackSpec) -> str:
    """Why an attack is impossible, before it is requested; empty if it is possible."""
    import json

    return _misfit(json.dumps(spec.canonical(), sort_keys=True))


@cache
def _example_seconds() -> dict[str, float]:
    """The seconds that each kind of attack took where the examples were made."""
    return {work_key(example.spec): example.seconds for example in attack_examples()}


def attack_seconds(spec: AttackSpec) -> float | None:
    """The seconds that attacks like this one took here, else where the examples were made. None if unknown."""
    canonical = spec.canonical()
    return store().usual_seconds(canonical) or _example_seconds().get(work_key(canonical))


@cache
def _made_earlier(body: str) -> bool:
    import json

    from engine.specs.attack import attack_spec
    from engine.specs.run import RunSpec

    spec = json.loads(body)
    try:
        request = attack_spec(spec) if "attack" in spec else RunSpec(**spec)
    except LeakLensError:
        return False
    return request.replay_problem() is not None


def made_earlier(spec: Mapping[str, Any]) -> bool:
    """Whether an earlier version made this run or attack, and today's code would give other results."""
    import json

    return bool(spec) and shared().ready() and _made_earlier(json.dumps(spec, sort_keys=True))


def read(run: str) -> tuple[ListedRun, tuple[Event, ...]] | None:
    """A run of the store with its events; None if there is no such run, or this visitor may not see it."""
    try:
        listed, events = shared().feed(run).read()
    except UnknownName:
        return None
    if not may_see(listed):
        return None
    return listed, events


def may_see(run: ListedRun) -> bool:
    """Whether this visitor owns every uploaded picture that the run names. Most runs name none."""
    return may_see_all([run]) == [run]


def may_see_all(runs: Sequence[ListedRun]) -> list[ListedRun]:
    """Those of these runs that this visitor may see."""
    if not class_limits.class_mode():
        return list(runs)
    names = _pictures_of(runs)
    wanted = {name for of_run in names.values() for name in of_run}
    own = {name for name in wanted if may_see_picture(name)}
    return [run for run in runs if names[run.id] <= own]


def _pictures_of(runs: Sequence[ListedRun]) -> dict[str, frozenset[str]]:
    """The uploaded pictures that each run names. They are looked up once: a list of runs is read again and again."""
    known = shared().pictures
    if len(known) > REPORTS:
        known.clear()
    names = {}
    for run in runs:
        if run.status == "damaged":  # Privacy: it may be repaired, and then name a picture
            names[run.id] = own_pictures(run.spec)
            continue
        if run.id not in known:
            known[run.id] = own_pictures(run.spec)
        names[run.id] = known[run.id]
    return names


def may_see_picture(name: str) -> bool:
    """Whether this visitor owns an uploaded picture. At home everyone does."""
    _touch()
    return not class_limits.class_mode() or store().owners.owns([name], session.owner())


def own_pictures_here() -> tuple[str, ...]:
    """The uploaded pictures of this visitor, the newest first. At home, all of them."""
    if class_limits.class_mode():
        _touch()
        return store().owners.pictures(session.owner())
    return UploadedPictures(store().home).names()


def _touch() -> None:
    """Record the visit of a browser that keeps no cookie. The server records the others by their open tabs."""
    if session.visitor() == session.tab() and session.now() - session.recall("touched", -TOUCH_S) >= TOUCH_S:
        session.remember("touched", session.now())
        error_of(lambda: store().visits.see([session.visitor()]))


def at_home() -> bool:
    """Whether this visitor owns the machine."""
    return not class_limits.class_mode()


def requested(runs: Sequence[str]) -> set[str]:
    """Those of these runs that this visitor requested. At home all: every visitor owns the machine."""
    if not class_limits.class_mode():
        return set(runs)
    visitor = session.visitor()
    return {run for run, visitors in store().requesters(runs).items() if visitor in visitors}


def wanted(runs: Sequence[str]) -> set[str]:
    """Those of these runs that this visitor requested and did not cancel."""
    visitor = session.visitor()
    return {run for run, visitors in store().requesters(runs, wanting=True).items() if visitor in visitors}


def wanted_by_others(runs: Sequence[str]) -> set[str]:
    """Those of these runs that another visitor wants."""
    visitor = session.visitor()
    wanting = store().requesters(runs, wanting=True)
    return {run for run, visitors in wanting.items() if any(other != visitor for other in visitors)}


def slots() -> int:
    """The number of runs that run at once."""
    return shared().supervisor.workers


def statuses(runs: Sequence[str]) -> dict[str, str]:
    """The status of each run; empty for a run that is not in the store."""
    statuses = store().statuses(runs)
    return {run: statuses.get(run, "") for run in runs}


def report_of(run: str) -> Mapping[str, Any]:
    """The report of a run that has ended. The report of a finished run is cached."""
    reports = shared().reports
    cached = reports.get(run)
    if cached is not None:
        return cached
    body = report(event for _, event in store().events(run))
    if body["seconds"] is not None:  # only for a finished run: any other one can be resumed
        if len(reports) > REPORTS:  # they can be read again from the store
            reports.clear()
        reports[run] = body
    return body


def stored_examples() -> tuple[RunExample, ...]:
    return examples()


def example_errors() -> tuple[LeakLensError, ...]:
    """Why examples are missing."""
    return load_errors()


def first_example() -> RunExample | None:
    """The example that a first visit shows. Its settings are the defaults of the form."""
    return next(iter(examples()), None)


def stored_example(run: str) -> RunExample | None:
    return example(run)


def error_of(action: Any) -> str:
    """Call the function. Returns the message of a LeakLensError, or an empty text."""
    try:
        action()
    except LeakLensError as error:
        return str(error)
    return ""
