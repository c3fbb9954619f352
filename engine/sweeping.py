"""The command `sweep`: a frontier as one piece of work, a line for each point as it ends, a table at the end."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from engine.asking import literal, read_spec
from engine.billing import Bill, bill, reasons, terms
from engine.errors import BadInput, LeakLensError, RunFailed, refusal
from engine.following import at_work, say
from engine.part import hyphened
from engine.report import report

if TYPE_CHECKING:
    from engine.frontier import Grid, Point, Result, Spot
    from engine.runs.store import Store
    from engine.runs.supervisor import Supervisor
    from engine.spec import RunSpec

LOOK_S = 0.05
LOOK_SHARE = 20  # and so many times what a look takes
MOST_SEEDS = 100


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--methods", default="udp-fedavg", metavar="A,B", help="methods, with commas between")
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
    with at_work() as (store, supervisor, mine):
        supervisor.expect(supervisor.workers)
        from engine.frontier import points

        # the sampling of the question, where it is not said, is that of its method: the first one's
        asked.method = asked.method or asked.methods.split(",")[0].strip()
        base = read_spec(asked)
        todo = points(base, read_grid(asked, base))
        refuse(todo)
        mine.update(point.spec.id for point in todo)
        return sweep(asked, base, store, supervisor, todo)


def read_grid(asked: argparse.Namespace, base: RunSpec) -> Grid:
    from engine.frontier import Grid
    from engine.methods import METHODS

    names = [hyphened(word.strip()) for word in str(asked.methods).split(",") if word.strip()]
    own: dict[str, dict[str, Any]] = {name: {"name": METHODS[name].name} for name in names}
    for pair in asked.of:
        name, found, value = pair.partition("=")
        method, dot, field = hyphened(name).partition(".")
        if not (found and dot and field):
            raise refusal("sweep: --of", "must be METHOD.NAME=VALUE", pair)
        if method not in own:
            raise refusal("sweep: --of", f"must name one of {', '.join(own)}", method)
        own[method][field] = literal(value)
    refuse_seeds("sweep", asked.seeds)
    seeds = tuple(range(base.seed, base.seed + asked.seeds))
    return Grid(
        tuple(own.values()), numbers("noises", asked.noises), seeds, numbers("server-steps", asked.server_steps)
    )


def refuse_seeds(who: str, seeds: object) -> None:
    if not isinstance(seeds, int) or isinstance(seeds, bool) or not 1 <= seeds <= MOST_SEEDS:
        raise refusal(f"{who}: seeds", f"must be a whole number between 1 and {MOST_SEEDS}", seeds)


def numbers(name: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(word) for word in str(text).split(",") if word.strip())
    except ValueError:
        raise refusal(f"sweep: {name}", "must be numbers with commas between", text) from None


def followed(store: Store, supervisor: Supervisor, todo: Sequence[Point]) -> Iterator[tuple[Point, Result | None]]:
    """Ask for every point, and give each back as it ends; one that failed has no result."""
    from engine.frontier import result

    known = store.statuses(point.id for point in todo)
    _ask(store, supervisor, [one for one in todo if known.get(one.id) != "finished"])
    open_ = list(todo)
    while open_:
        began = time.monotonic()
        known = store.statuses(point.id for point in open_)
        _ask(store, supervisor, [one for one in open_ if known.get(one.id) == "interrupted"])  # its holder is gone
        left = []
        for point in open_:
            status = known.get(point.id, "cancelled")  # deleted by somebody else
            if status in ("finished", "failed", "cancelled"):
                told = [event for _, event in store.events(point.id)] if status == "finished" else []
                yield point, result(point, report(told)) if told else None
            else:
                left.append(point)
        stuck = left and not supervisor.working and supervisor.trouble
        if isinstance(stuck, LeakLensError):
            raise stuck
        if stuck:
            raise RunFailed(f"{type(stuck).__name__}: {stuck}", "Ask again: what is known is not run again")
        open_ = left
        time.sleep(max(LOOK_S, LOOK_SHARE * (time.monotonic() - began)) if open_ else 0)


def _ask(store: Store, supervisor: Supervisor, points: Sequence[Point]) -> None:
    if points:
        store.submit_all({point.id: point.spec.canonical() for point in points})
        supervisor.wake()


def cancel(store: Store, todo: Sequence[Point]) -> int:
    """Stop what has not ended; asked again, the sweep goes on from there."""
    standing = store.statuses(point.id for point in todo)
    stopped = [run for run, status in standing.items() if status in ("queued", "running", "interrupted")]
    for run in stopped:
        store.cancel(run)
    return len(stopped)


def line(point: Point, found: Result | None) -> str:
    noise = "no noise" if point.noise is None else f"noise {point.noise:g}"
    words = f"{point.method:<12} {noise:<11} step {point.step:<5g} seed {point.seed:<4}"
    if found is None:
        return f"{words} did not finish"
    own = "" if found.personal is None else f", personal {100 * found.personal:.1f} %"
    return f"{words} accuracy {100 * found.accuracy:.1f} %{own}"


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


def sweep(asked: argparse.Namespace, base: RunSpec, store: Store, supervisor: Supervisor, todo: Sequence[Point]) -> int:
    """Follow it to its end; Ctrl-C stops all that has not ended."""
    results: list[Result] = []
    failed = 0
    try:
        for point, found in followed(store, supervisor, todo):
            results += [] if found is None else [found]
            failed += found is None
            if not asked.json:
                print(line(point, found), flush=True)
    except KeyboardInterrupt:
        say(f"Cancelled {cancel(store, todo)} runs. Ask the same again and it goes on.")
        return 130
    order = {point.id: place for place, point in enumerate(todo)}
    results.sort(key=lambda one: order[one.point.id])  # they come as they end
    if asked.json:
        print(json.dumps(body_of(results, failed), ensure_ascii=False, allow_nan=False))
    else:
        print("\n".join(table(results, asked.view or "outsider")))
    return 1 if failed else 0


def refuse(todo: Sequence[Point]) -> None:
    """What would stop any of them is said before the first begins."""
    from engine.stage import plan

    for point in {(point.method, point.noise, point.step): point for point in todo}.values():
        fatal = next((one for one in point.spec.problems() if one.fatal), None)
        if fatal:
            raise BadInput(fatal.reason, fatal.remedy)
    for point in {point.method: point for point in todo}.values():
        plan(point.spec)
