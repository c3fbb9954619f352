"""The command `sweep`: a frontier as one piece of work, a line for each point as it ends, a table at the end."""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from engine.asking import literal, read_values
from engine.billing import Bill, bill, reasons, terms
from engine.errors import BadInput, LeakLensError, RunFailed, UnknownName, refusal
from engine.events import Event
from engine.following import at_work, say, until_left
from engine.part import hyphened
from engine.report import epsilon_words, report

if TYPE_CHECKING:
    from engine.frontier import Grid, Point, Result, Spot
    from engine.runs.store import Store
    from engine.runs.supervisor import Supervisor
    from engine.spec import RunSpec

LOOK_S = 0.05
LOOK_SHARE = 20  # and so many times what a look takes
MOST_SEEDS = 100
USUAL = "udp-fedavg"  # where neither the command nor what it begins from names a method
VARIED = {"name": "--methods", "noise": "--noises", "server-step": "--server-steps"}  # each by an option of its own

Look = Callable[["RunSpec", int], Any]  # the forecast of a run on so many threads
Where = tuple[str, str, Mapping[str, Any]]  # of a line: what it begins with, whose it is, and the same for scripts


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--methods", metavar="A,B", help=f"methods, with commas between; by default that of the question, or {USUAL}"
    )
    parser.add_argument("--noises", default="0.5,1,2", metavar="X,Y", help="noise multipliers, with commas between")
    parser.add_argument("--seeds", type=literal, default=3, metavar="N", help="so many, counted up from --seed")
    parser.add_argument(
        "--server-steps",
        default="",
        metavar="X,Y",
        help="tried for every method; each keeps its best one at each noise",
    )
    parser.add_argument(
        "--of", action="append", default=[], metavar="METHOD.NAME=VALUE", help="a parameter of one of the methods"
    )


def run(asked: argparse.Namespace, look: Look) -> int:
    if asked.dry_run:
        _, todo = read(asked)
        return dry_run(asked, {point: _where(point) for point in todo}, look, asked.view or "outsider")
    with at_work() as (store, supervisor, mine):
        supervisor.expect(supervisor.workers)
        _, todo = read(asked)
        refuse(todo)
        mine.update(point.spec.id for point in todo)
        return sweep(asked, store, supervisor, todo)


def read(asked: argparse.Namespace) -> tuple[RunSpec, tuple[Point, ...]]:
    """The question, and every point of it."""
    from engine.frontier import points

    base = read_base(asked)
    return base, points(base, read_grid(asked, base))


def read_base(asked: argparse.Namespace) -> RunSpec:
    """What all points have in common, in whichever order the methods are named."""
    from engine.methods import METHODS
    from engine.spec import RunSpec

    named = _names(asked)
    values = read_values(asked, next(iter(named), USUAL))
    base, said = RunSpec(**values), {hyphened(name): value for name, value in values.items()}
    settled = {}
    if said.get("sampling", "auto") == "auto":  # as suits whoever protects anybody: others go along with any
        protects = any(METHODS[name]().unit() for name in named or [base.method.name])
        settled["sampling"] = "poisson" if protects else "fixed"
    if said.get("delta") is not None:  # it may be what this method takes anyway, and not what another one does
        settled["delta"] = said["delta"]
    return base.model_copy(update=settled)


def _names(asked: argparse.Namespace) -> list[str]:
    return [hyphened(word.strip()) for word in (asked.methods or "").split(",") if word.strip()]


def read_grid(asked: argparse.Namespace, base: RunSpec) -> Grid:
    from engine.frontier import Grid
    from engine.methods import METHODS

    names = _names(asked) if asked.methods is not None else [base.method.name]
    own: dict[str, dict[str, Any]] = {name: {"name": METHODS[name].name} for name in names}
    steps = numbers("server-steps", asked.server_steps)
    for pair in asked.of:
        name, found, value = pair.partition("=")
        method, dot, field = hyphened(name).partition(".")
        if not (found and dot and field):
            raise refusal("sweep: --of", "must be METHOD.NAME=VALUE", pair)
        if method not in own:
            raise refusal("sweep: --of", f"must name one of {', '.join(own)}", method)
        if field in VARIED and (field != "server-step" or steps):
            raise refusal(
                "sweep: --of", f"must leave {field} to {VARIED[field]}", pair, "Leave it out, or name it there"
            )
        own[method][field] = literal(value)
    refuse_seeds("sweep", asked.seeds)
    seeds = tuple(range(base.seed, base.seed + asked.seeds))
    return Grid(tuple(own.values()), numbers("noises", asked.noises), seeds, steps)


def refuse_seeds(who: str, seeds: object) -> None:
    if not isinstance(seeds, int) or isinstance(seeds, bool) or not 1 <= seeds <= MOST_SEEDS:
        raise refusal(f"{who}: seeds", f"must be a whole number between 1 and {MOST_SEEDS}", seeds)


def numbers(name: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(word) for word in str(text).split(",") if word.strip())
    except ValueError:
        raise refusal(f"sweep: {name}", "must be numbers with commas between", text) from None


def followed(
    store: Store, supervisor: Supervisor, todo: Sequence[Point], options: Mapping[str, object] | None = None
) -> Iterator[tuple[Point, Result | None]]:
    """Ask for every point, and give each back as it ends; one that failed has no result."""
    from engine.frontier import result

    def ask(some: Sequence[Point]) -> None:
        if some:
            store.submit_all({point.id: point.spec.canonical() for point in some}, options)
            supervisor.wake()

    known = store.statuses(point.id for point in todo)
    ask([one for one in todo if known.get(one.id) != "finished"])
    open_ = list(todo)
    while open_:
        began = time.monotonic()
        known = store.statuses(point.id for point in open_)
        ask([one for one in open_ if known.get(one.id) == "interrupted"])  # its holder is gone
        left = []
        for point in open_:
            status = known.get(point.id, "cancelled")  # deleted by somebody else
            if status in ("finished", "failed", "cancelled"):
                said = told(store, point.id) if status == "finished" else []
                yield point, result(point, report(said)) if said else None
            else:
                left.append(point)
        stuck = left and not supervisor.working and supervisor.trouble
        if isinstance(stuck, LeakLensError):
            raise stuck
        if stuck:
            raise RunFailed(f"{type(stuck).__name__}: {stuck}", "Ask again: what is known is not run again")
        open_ = left
        time.sleep(max(LOOK_S, LOOK_SHARE * (time.monotonic() - began)) if open_ else 0)


def told(store: Store, run: str) -> list[Event]:
    """Nothing where it was deleted meanwhile."""
    with suppress(UnknownName):
        return [event for _, event in store.events(run)]
    return []


def under_way(store: Store, todo: Sequence[Point]) -> set[str]:
    """The runs that others have asked for."""
    known = store.statuses(point.id for point in todo)
    return {run for run, status in known.items() if status in ("queued", "running")}


def stop(store: Store, supervisor: Supervisor, todo: Sequence[Point], theirs: set[str]) -> int:
    """Ctrl-C stops what was asked for here; asked again, it goes on from there. What others asked for stays asked."""
    standing = store.statuses(point.id for point in todo)
    stopped = 0
    for run, status in standing.items():
        if run not in theirs and status in ("queued", "running", "interrupted"):
            with suppress(UnknownName):  # deleted meanwhile
                store.cancel(run)
                stopped += 1
    until_left(supervisor)
    supervisor.stop()
    still = store.statuses(theirs)
    for run in [run for run, status in still.items() if status == "interrupted"]:  # we had it in our hands
        with suppress(UnknownName):
            row = store.run(run)
            store.submit(run, row.spec, row.options)
    stays = "; what others asked for stays" if {"queued", "running", "interrupted"} & set(still.values()) else ""
    say(f"Cancelled {stopped} run{'s' * (stopped != 1)}{stays}. Ask the same again and it goes on.")
    return 130


def line(point: Point, found: Result | None, why: str = "") -> str:
    noise = "no noise" if point.noise is None else f"noise {point.noise:g}"
    words = f"{point.method:<12} {noise:<11} step {point.step:<5g} seed {point.seed:<4}"
    if found is None:
        return f"{words} did not finish: run {point.id} {why}"
    own = "" if found.personal is None else f", personal {100 * found.personal:.1f} %"
    return f"{words} accuracy {100 * found.accuracy:.1f} %{own}"


def ending(store: Store, run: str) -> str:
    """How a run ended that came to nothing."""
    status = store.statuses([run]).get(run)
    if status == "failed":
        body = report(told(store, run))
        return f"failed: {LeakLensError(body.get('error') or 'it does not say why', body.get('remedy') or '')}"
    return {None: "was deleted", "finished": "measured no accuracy"}.get(status, "was cancelled")


def body_of(results: Sequence[Result], failed: int) -> dict[str, Any]:
    from engine.frontier import spots

    runs = [{"id": one.point.id, "method": one.point.method, "noise": one.point.noise, "seed": one.point.seed,
             "server-step": one.point.step, "accuracy": one.accuracy} for one in results]  # fmt: skip
    return {"spots": [_row(spot) for spot in spots(results)], "runs": runs, "failed": failed}


def _row(spot: Spot) -> dict[str, Any]:
    bills = {view: bill(spot, view) for view in spot.views}
    by_view = ("epsilon", "adjacency", "delta", "accountant", "sampling", "bound")
    return {
        "method": spot.method,
        "noise": spot.noise,
        "server-step": spot.step,
        "accuracy": spot.mean,
        "spread": spot.spread,
        "seeds": spot.seeds,
        "accuracy-personal": sum(spot.personals) / len(spot.personals) if spot.personals else None,
        "unit": spot.unit,
        **{name: {view: one[name] for view, one in bills.items()} for name in by_view},
        "reason": dict(spot.why),
    }


def table(results: Sequence[Result], view: str) -> list[str]:
    """The frontier as a person reads it, with ε of one view; what is counted per client and what per record apart."""
    from engine.frontier import spots

    said: list[str] = []
    units: dict[str | None, list[Spot]] = {}
    known = spots(results)
    first = next((spot.unit for spot in known if spot.unit), None)  # what promises nothing stands with the rest
    for spot in known:
        units.setdefault(spot.unit or first, []).append(spot)
    for found in units.values():
        bills = [bill(spot, view) for spot in found]
        stands = terms(bills, max(spot.seeds for spot in found))
        said += ["", f"ε in the {view} view: {stands}."]
        said += [f"{'method':<16} {'noise':>6} {'step':>5}  {'accuracy':<23} ε"]
        said += [_in_words(spot, one) for spot, one in zip(found, bills, strict=True)]
        said += [
            f"  {why}" for why in reasons([(spot.method, one) for spot, one in zip(found, bills, strict=True)], view)
        ]
    return said


def _in_words(spot: Spot, of: Bill) -> str:
    epsilon = "none" if of["epsilon"] is None else f"{of['epsilon']:.3g}"
    noise = "–" if spot.noise is None else f"{spot.noise:g}"
    spread = f" ± {100 * spot.spread:.1f} % ({spot.seeds} seeds)" if spot.seeds > 1 else " % (1 seed)"
    own = f"  personal {100 * sum(spot.personals) / len(spot.personals):.1f} %" if spot.personals else ""
    accuracy = f"{100 * spot.mean:.1f}{spread}"
    return f"{spot.method:<16} {noise:>6} {spot.step:>5g}  {accuracy:<23} {epsilon:<6}{own}".rstrip()


def sweep(asked: argparse.Namespace, store: Store, supervisor: Supervisor, todo: Sequence[Point]) -> int:
    """Follow it to its end; Ctrl-C stops all that has not ended."""
    results: list[Result] = []
    failed, theirs = 0, under_way(store, todo)
    try:
        for point, found in followed(store, supervisor, todo, machine(asked)):
            results += [] if found is None else [found]
            failed += found is None
            if not asked.json:
                print(line(point, found, "" if found else ending(store, point.id)), flush=True)
    except KeyboardInterrupt:
        return stop(store, supervisor, todo, theirs)
    order = {point.id: place for place, point in enumerate(todo)}
    results.sort(key=lambda one: order[one.point.id])  # they come as they end
    if asked.json:
        print(json.dumps(body_of(results, failed), ensure_ascii=False, allow_nan=False))
    else:
        print("\n".join(table(results, asked.view or "outsider")))
    return 1 if failed else 0


def machine(asked: argparse.Namespace) -> dict[str, object]:
    """What a run is told of where it runs."""
    return {"device": asked.device, "threads": asked.threads}


def refuse(todo: Sequence[Point]) -> None:
    """What would stop any of them is said before the first begins."""
    from engine.stage import plan

    for point in {(point.method, point.noise, point.step): point for point in todo}.values():
        fatal = next((one for one in point.spec.problems() if one.fatal), None)
        if fatal:
            raise BadInput(fatal.reason, fatal.remedy)
    for point in {point.method: point for point in todo}.values():
        plan(point.spec)


# --- before the first run ----------------------------------------------------------------------------------


def dry_run(asked: argparse.Namespace, places: Mapping[Point, Where], look: Look, view: str) -> int:
    """A line for each place: its ε, over several seeds the largest, and what stands in the way; nothing is run."""
    from engine.runs.holder import cores

    threads = min(cores(), asked.threads or (cores() if len(places) == 1 else 1))
    lines: dict[str, list[tuple[Point, Any]]] = {}
    for point, (words, _, _) in places.items():
        lines.setdefault(words, []).append((point, look(point.spec, threads)))
    rows = [{**places[some[0][0]][2], **_foretold(some, view)} for some in lines.values()]
    found = [one for some in lines.values() for _, one in some]
    times = [one.seconds for one in found if one.seconds is not None]
    at_once = min(len(places), max(1, cores() // threads))
    seconds = max(max(times), sum(times) / at_once) if len(times) == len(found) else None
    if asked.json:
        body = {"view": view, "runs": len(places), "seconds": seconds, "rows": rows}
        print(json.dumps(body, ensure_ascii=False, allow_nan=False))
    else:
        print("\n".join(f"{words} {_forecast_words(row)}" for words, row in zip(lines, rows, strict=True)))
        print("\n".join(_notes((places[some[0][0]][1], row) for some, row in zip(lines.values(), rows, strict=True))))
        lasts = "" if seconds is None else f", about {seconds:.1f} s in all"
        print(f"{len(places)} runs{lasts}; what is known already is not run again.")
    if fatal := next((problem for one in found for problem in one.problems if problem.fatal), None):
        error = BadInput(fatal.reason, fatal.remedy)
        say(str(error))
        return error.exit_code
    return 0


def _where(point: Point) -> Where:
    noise = "no noise" if point.noise is None else f"noise {point.noise:g}"
    return f"{point.method:<16} {noise:<11}", point.method, {"method": point.method, "noise": point.noise}


def _foretold(some: Sequence[tuple[Point, Any]], view: str) -> dict[str, Any]:
    """What the runs of one line will say of one view; the seed counts that has no finite ε, else the largest."""
    found = [one for _, one in some]
    bills = [answer for one in found for answer in one.answers if answer.view == view]
    dearest = max(bills, key=lambda one: math.inf if one.epsilon is None else one.epsilon, default=None)
    promise = next((one.guarantee for one in found if one.guarantee), None)
    reason = dearest.reason if dearest else promise.absent.get(view, "") if promise else ""
    fields = ("epsilon", "unit", "adjacency", "delta", "accountant", "sampling", "bound")
    problems = {problem: None for one in found for problem in one.problems}
    return {
        "view": view,
        **{name: getattr(dearest, name, None) for name in fields},
        "reason": reason,
        "guarantee": {"status": promise.status, "reason": promise.reason} if promise else None,
        "problems": [{"reason": one.reason, "remedy": one.remedy, "fatal": one.fatal} for one in problems],
        "runs": [point.id for point, _ in some],
    }


def _forecast_words(row: Mapping[str, Any]) -> str:
    if any(one["fatal"] for one in row["problems"]):
        return "cannot be run"
    terms = ("unit", "adjacency", "delta", "accountant", "reason", "bound")
    return epsilon_words(row["view"], row["epsilon"], *(row[name] for name in terms))


def _notes(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """What is promised, and what stands in the way: each sentence once, with everybody whom it is about."""
    said: dict[str, dict[str, None]] = {}
    for who, row in rows:
        promise = row["guarantee"]
        sentences = [f"guarantee: {promise['status']}: {promise['reason']}."] if promise else []
        for sentence in (*sentences, *(str(LeakLensError(one["reason"], one["remedy"])) for one in row["problems"])):
            said.setdefault(sentence, {})[who] = None
    return [f"  {', '.join(names)}: {sentence}" for sentence, names in said.items()]
