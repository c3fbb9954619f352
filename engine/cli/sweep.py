"""The command `sweep`: a frontier as one piece of work, a line for each point as it ends, a table at the end."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from engine.cli.arguments import literal, read_values, refuse_machine
from engine.cli.dry_run import Where, forecast_sweep
from engine.cli.progress import at_work, say, until_left
from engine.errors import BadInput, LeakLensError, UnknownName, refusal
from engine.events import Event
from engine.part import hyphened
from engine.results.report import report
from engine.results.summary import EpsilonTerms, epsilon_terms, reasons, shared_terms

if TYPE_CHECKING:
    from engine.jobs.store import Store
    from engine.jobs.supervisor import Supervisor
    from engine.results.summary import PointResult, PointSummary
    from engine.specs.run import RunSpec
    from engine.specs.sweep import SweepGrid, SweepPoint

MOST_SEEDS = 100
USUAL = "udp-fedavg"  # where neither the command nor what it begins from names a method
VARIED = {"name": "--methods", "noise": "--noises", "server-step": "--server-steps"}  # each by an option of its own


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


def run(asked: argparse.Namespace) -> int:
    refuse_machine(asked)
    if asked.dry_run:
        return dry_run(asked, {point: _where(point) for point in read(asked)}, asked.view or "outsider")
    with at_work() as (store, supervisor, mine):
        supervisor.expect(supervisor.workers)
        todo = read(asked)
        refuse(todo)
        mine.update(point.spec.id for point in todo)
        return sweep(asked, store, supervisor, todo)


def _where(point: SweepPoint) -> Where:
    noise = "no noise" if point.noise is None else f"noise {point.noise:g}"
    return f"{point.method:<16} {noise:<11}", point.method, {"method": point.method, "noise": point.noise}


def read(asked: argparse.Namespace) -> tuple[SweepPoint, ...]:
    """Every point of the question."""
    from engine.specs.sweep import points

    base = read_base(asked)
    return points(base, read_grid(asked, base))


def read_base(asked: argparse.Namespace) -> RunSpec:
    """What all points have in common, in whichever order the methods are named."""
    from engine.methods import METHODS
    from engine.specs.run import RunSpec

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


def read_grid(asked: argparse.Namespace, base: RunSpec) -> SweepGrid:
    from engine.methods import METHODS
    from engine.specs.sweep import SweepGrid

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
    return SweepGrid(tuple(own.values()), numbers("noises", asked.noises), seeds, steps)


def refuse_seeds(who: str, seeds: object) -> None:
    if not isinstance(seeds, int) or isinstance(seeds, bool) or not 1 <= seeds <= MOST_SEEDS:
        raise refusal(f"{who}: seeds", f"must be a whole number between 1 and {MOST_SEEDS}", seeds)


def numbers(name: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(word) for word in str(text).split(",") if word.strip())
    except ValueError:
        raise refusal(f"sweep: {name}", "must be numbers with commas between", text) from None


def followed(
    store: Store, supervisor: Supervisor, todo: Sequence[SweepPoint], options: Mapping[str, object] | None = None
) -> Iterator[tuple[SweepPoint, PointResult | None]]:
    """Request every point, and give each back as it ends; one that failed has no result."""
    from engine.jobs.batch import follow
    from engine.results.summary import point_result

    points = {point.id: point for point in todo}
    specs = {point.id: point.spec.canonical() for point in todo}
    for run, status in follow(store, supervisor, specs, options):
        events = told(store, run) if status == "finished" else []
        yield points[run], point_result(points[run], report(events)) if events else None


def told(store: Store, run: str) -> list[Event]:
    """Nothing where it was deleted meanwhile."""
    with suppress(UnknownName):
        return [event for _, event in store.events(run)]
    return []


def under_way(store: Store, todo: Sequence[SweepPoint]) -> set[str]:
    """The runs that others have asked for."""
    known = store.statuses(point.id for point in todo)
    return {run for run, status in known.items() if status in ("queued", "running")}


def stop(store: Store, supervisor: Supervisor, todo: Sequence[SweepPoint], theirs: set[str]) -> int:
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


def line(point: SweepPoint, found: PointResult | None, why: str = "") -> str:
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


def body_of(results: Sequence[PointResult], failed: int) -> dict[str, Any]:
    from engine.results.summary import summaries

    runs = [{"id": one.point.id, "method": one.point.method, "noise": one.point.noise, "seed": one.point.seed,
             "server-step": one.point.step, "accuracy": one.accuracy} for one in results]  # fmt: skip
    return {"spots": [_row(spot) for spot in summaries(results)], "runs": runs, "failed": failed}


def _row(spot: PointSummary) -> dict[str, Any]:
    bills = {view: epsilon_terms(spot, view) for view in spot.views}
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


def table(results: Sequence[PointResult], view: str) -> list[str]:
    """The frontier as a person reads it, with ε of one view; what is counted per client and what per record apart."""
    from engine.results.summary import summaries

    said: list[str] = []
    units: dict[str | None, list[PointSummary]] = {}
    known = summaries(results)
    first = next((spot.unit for spot in known if spot.unit), None)  # what promises nothing stands with the rest
    for spot in known:
        units.setdefault(spot.unit or first, []).append(spot)
    for found in units.values():
        bills = [epsilon_terms(spot, view) for spot in found]
        stands = shared_terms(bills, max(spot.seeds for spot in found))
        said += ["", f"ε in the {view} view: {stands}."]
        said += [f"{'method':<16} {'noise':>6} {'step':>5}  {'accuracy':<23} ε"]
        said += [_in_words(spot, one) for spot, one in zip(found, bills, strict=True)]
        said += [
            f"  {why}" for why in reasons([(spot.method, one) for spot, one in zip(found, bills, strict=True)], view)
        ]
    return said


def _in_words(spot: PointSummary, of: EpsilonTerms) -> str:
    epsilon = "none" if of["epsilon"] is None else f"{of['epsilon']:.3g}"
    noise = "–" if spot.noise is None else f"{spot.noise:g}"
    spread = f" ± {100 * spot.spread:.1f} % ({spot.seeds} seeds)" if spot.seeds > 1 else " % (1 seed)"
    own = f"  personal {100 * sum(spot.personals) / len(spot.personals):.1f} %" if spot.personals else ""
    accuracy = f"{100 * spot.mean:.1f}{spread}"
    return f"{spot.method:<16} {noise:>6} {spot.step:>5g}  {accuracy:<23} {epsilon:<6}{own}".rstrip()


def sweep(asked: argparse.Namespace, store: Store, supervisor: Supervisor, todo: Sequence[SweepPoint]) -> int:
    """Follow it to its end; Ctrl-C stops all that has not ended."""
    results: list[PointResult] = []
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


def refuse(todo: Sequence[SweepPoint]) -> None:
    """What would stop any of them is said before the first begins."""
    from engine.training.plan import make_plan

    for point in {(point.method, point.noise, point.step): point for point in todo}.values():
        fatal = next((one for one in point.spec.problems() if one.fatal), None)
        if fatal:
            raise BadInput(fatal.reason, fatal.remedy)
    for point in {point.method: point for point in todo}.values():
        make_plan(point.spec)


# --- before the first run ----------------------------------------------------------------------------------


def dry_run(asked: argparse.Namespace, places: Mapping[SweepPoint, Where], view: str) -> int:
    seen = forecast_sweep(places, view, asked.threads)
    print(json.dumps(seen.body, ensure_ascii=False, allow_nan=False) if asked.json else "\n".join(seen.lines))
    if seen.fatal:
        error = BadInput(seen.fatal.reason, seen.fatal.remedy)
        say(str(error))
        return error.exit_code
    return 0
