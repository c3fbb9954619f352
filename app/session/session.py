"""What lasts longer than one pass over a page: the visitor's settings, the link, and what all visitors share.

The only file that says session_state, query_params and cache. Everything shown is a function of the link and the store.
"""

from __future__ import annotations

import gc
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlencode

import streamlit as st

from app.session import limits as class_limits
from app.session import owners, run_settings, screens
from app.session.run_settings import Settings
from app.texts import words
from engine.errors import Damaged, LeakLensError, UnknownName, shown
from engine.events import Event, Failed
from engine.examples.files import Example, example, examples
from engine.jobs.status import Listed
from engine.jobs.store import Store
from engine.jobs.supervisor import Supervisor
from engine.results.report import report

if TYPE_CHECKING:
    from engine.specs.attack import AttackSpec
    from engine.training.forecast import Forecast

WATCHING_S = 5.0  # who looked at a run within it is watching it
PINS = 8  # at most
REPORTS = 5000  # of finished runs, kept in memory


# --- shared by all visitors ------------------------------------------------------------------------------


class Kitchen:
    """The store, the supervisor that serves it, and the shelves once they are loaded."""

    def __init__(self) -> None:
        self.store = Store()
        workers = class_limits.caps().workers
        self.supervisor = Supervisor(self.store, workers, preload=("engine.jobs.preload",)).start()
        self.watchers: dict[str, dict[str, float]] = {}
        self.reports: dict[str, Mapping[str, Any]] = {}  # of finished runs, which say the same for ever
        self._feeds: dict[str, Feed] = {}
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

    def feed(self, run: str) -> Feed:
        with self._lock:
            if len(self._feeds) > 300:  # the store has them all
                self._feeds.clear()
            return self._feeds.setdefault(run, Feed(self.store, run))

    def close(self) -> None:
        self.supervisor.stop()
        self.store.close()


class Feed:
    """The events of one run, read once and then only what is new."""

    def __init__(self, store: Store, run: str) -> None:
        self._store, self._run = store, run
        self._lock = threading.Lock()
        self._edition, self._after = "", 0
        self._events: list[Event] = []

    def read(self) -> tuple[Listed, tuple[Event, ...]]:
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
def kitchen() -> Kitchen:
    return Kitchen()


def store() -> Store:
    return kitchen().store


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


# --- one visitor -----------------------------------------------------------------------------------------


def visitor() -> str:
    """The id of this visitor: their browser at their address, or this tab where the browser keeps no cookie."""
    return owners.visitor_id(st.context.ip_address, st.context.cookies.get(owners.COOKIE)) or tab()


def tab() -> str:
    return str(st.session_state.setdefault("tab", secrets.token_hex(4)))


def dark() -> bool:
    return st.context.theme.type == "dark"


def settings() -> Settings:
    """The question in the form."""
    found: Settings = st.session_state.setdefault("settings", {})
    return found


def bound(path: str, name: str = "") -> dict[str, Any]:
    """What ties a widget to a setting: its key, and what happens when it is changed."""
    key = f"w:{name or path}"
    st.session_state[key] = settings().get(path)
    return {"key": key, "on_change": _changed, "args": (path, key)}


def _changed(path: str, key: str) -> None:
    choose({path: st.session_state[key]})


def choose(changes: Mapping[str, Any]) -> None:
    """Other settings; a part that changes brings its own fields, and keeps those that both have."""
    now = {**settings(), **changes}
    remember("acted", True)  # the next pass is ours: its link is still the old one
    st.session_state.update(settings=run_settings.settled(now), trouble="", told=[])


def tie(key: str, value: Any, deed: Callable[[Any], None]) -> dict[str, Any]:
    """What ties a widget to a value kept elsewhere: it shows it, and hands over what a visitor makes of it."""
    st.session_state[key] = value
    return {"key": key, "on_change": lambda: deed(st.session_state[key])}


def remember(name: str, value: Any) -> None:
    st.session_state[name] = value


def recall(name: str, usual: Any = None) -> Any:
    return st.session_state.get(name, usual)


# --- the link --------------------------------------------------------------------------------------------


def linked(name: str) -> tuple[str, ...]:
    """Runs that the page shows under this name: `run` (one for each seed), `twin`, `pins`."""
    return tuple(st.session_state.get("ids", {}).get(name, ()))


def show(**ids: Sequence[str]) -> None:
    """Name other runs in the link."""
    unique = {name: tuple(dict.fromkeys(values))[:PINS] for name, values in ids.items()}
    st.session_state["ids"] = {**st.session_state.get("ids", {}), **unique}


def arrive(usual: Settings) -> None:
    """Take everything from a link that we did not write: at a first visit, and after going back."""
    params = {name: str(value) for name, value in st.query_params.items()}
    if not params and "seen" in st.session_state:  # back from another screen, whose address holds nothing
        st.session_state.update(seen=params, written=None)
        return
    if "seen" in st.session_state and (recall("acted") or params == st.session_state["seen"]):
        return
    arrive_runs()
    found, told = run_settings.read_link(params, usual)
    st.session_state.update(seen=params, settings=found, told=told)
    _arrive_seeds(params.get("seeds", ""), told)


def _arrive_seeds(said: str, told: list[str]) -> None:
    many = int(said[:9]) if said.isdecimal() else 1
    if many > run_settings.SEEDS:
        told.append(words.FEWER_SEEDS.format(most=run_settings.SEEDS, asked=shown(said)))
    remember("seeds", max(1, min(run_settings.SEEDS, many)))


def arrive_runs() -> None:
    """The runs that the link names: they can be shown before any shelf is loaded."""
    said = {name: str(st.query_params.get(name, "")) for name in ("run", "twin", "pins")}
    show(**{name: [one for one in ids.split(",") if one] for name, ids in said.items()})


def write_link() -> None:
    """Everything that the page shows into its address; going back in the browser brings it back."""
    found = _link()
    if found != st.session_state.get("written"):
        st.session_state.update(written=found, seen=found)
        st.query_params.from_dict(found)
    remember("acted", False)


def address() -> str:
    """This page with everything it shows."""
    return f"{(st.context.url or '').partition('?')[0]}?{urlencode(_link())}"


def _link() -> dict[str, str]:
    ids = {name: ",".join(values) for name, values in st.session_state.get("ids", {}).items() if values}
    seeds = {"seeds": str(recall("seeds", 1))} if recall("seeds", 1) != 1 else {}
    return {**run_settings.link(settings()), **seeds, **ids}


def in_address() -> dict[str, str]:
    """What stands in the address, whoever wrote it."""
    return {name: str(value) for name, value in st.query_params.items()}


def news(screen: str) -> dict[str, str] | None:
    """The link of a screen, where it is not the one we wrote: at a first visit, and after going back."""
    params, seen = in_address(), recall(f"seen:{screen}")
    if seen is not None and (recall("acted") or not params or params == seen):
        return None
    remember(f"seen:{screen}", params)
    return params


def sign(screen: str, found: Mapping[str, str]) -> None:
    """Everything that a screen shows into its address."""
    if in_address() != found:
        st.query_params.from_dict(dict(found))
    remember(f"seen:{screen}", dict(found))
    remember("acted", False)


def leave(screen: str, link: Mapping[str, str]) -> NoReturn:
    """To another screen, which takes this link whatever was typed here in the same pass."""
    st.session_state.update({"acted": False, "seen" if screen == "lab" else f"seen:{screen}": None})
    screens.go_to(screen, dict(link))


def here() -> str:
    """The address of this page with everything that stands in it."""
    return f"{(st.context.url or '').partition('?')[0]}?{urlencode(st.query_params.to_dict())}"


# --- runs, as a page shows them --------------------------------------------------------------------------


def read(run: str) -> tuple[Listed, tuple[Event, ...]] | None:
    """A run of this store with its events; None where there is none of that name."""
    try:
        found = kitchen().feed(run).read()
    except UnknownName:
        return None
    if not may_see(found[0]):
        return None
    _watch(run)
    return found


def may_see(run: Listed) -> bool:
    """False in class mode for a run on a picture that another visitor brought."""
    return not class_limits.class_mode() or owners.may_see(run.spec, run.options, visitor(), recall("leak-own", []))


def may_see_picture(name: str) -> bool:
    """The same for the uploaded picture itself: this session brought it, or this visitor requested an attack on it."""
    if not class_limits.class_mode() or name in recall("leak-own", []):
        return True
    runs = [run for run in store().runs() if name in owners.own_pictures(run.spec)]
    return any(owners.requested_by(run.options, visitor()) for run in runs)


def _watch(run: str) -> None:
    watching, now_ = kitchen().watchers.setdefault(run, {}), time.monotonic()
    watching[visitor()] = now_
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
    reports = kitchen().reports
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
    return sum(seen > last for who, seen in list(kitchen().watchers.get(run, {}).items()) if who != visitor())


def gallery() -> tuple[Example, ...]:
    return examples()


def first_example() -> Example | None:
    """What a newcomer sees first, and the question that the form begins with."""
    return next(iter(examples()), None)


def again() -> None:
    """At the end of what a click does: the whole page once more, wherever the button stands."""
    remember("acted", True)
    st.rerun()


def now() -> float:
    return time.monotonic()


def stored(run: str) -> Example | None:
    return example(run)


def attempt(deed: Any) -> str:
    """Do it; what goes wrong comes back as the sentence to show."""
    try:
        deed()
    except LeakLensError as error:
        return str(error)
    return ""
