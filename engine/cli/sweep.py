"""The command `sweep`: accuracy over noise for several methods and seeds. Each point is a run in the store."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from engine.cli.arguments import literal, read_values, refuse_machine
from engine.cli.dry_run import ForecastLine, forecast_sweep
from engine.cli.progress import leave, say, supervised
from engine.epsilon import NO_EPSILON
from engine.errors import BadInput, LeakLensError, UnknownName, refusal
from engine.events import Event
from engine.part import hyphened
from engine.results.report import report
from engine.results.summary import reasons, shared_terms

if TYPE_CHECKING:
    from engine.jobs.batches import Batch, BatchKind
    from engine.jobs.store import Store
    from engine.jobs.supervisor import Supervisor
    from engine.results.summary import PointResult, PointSummary
    from engine.specs.run import RunSpec
    from engine.specs.sweep import SweepGrid, SweepPoint

MOST_SEEDS = 100
DEFAULT_METHOD = "udp-fedavg"  # if neither the command line nor its file or preset names a method
VARIED = {"name": "--methods", "noise": "--noises", "server-step": "--server-steps"}  # each has its own option
BY_VIEW = ("epsilon", "adjacency", "delta", "accountant", "sampling", "bound")


def options(parser: argparse.ArgumentParser) -> None:
    methods_help = f"methods, with commas between; the default is the method of the spec, or {DEFAULT_METHOD}"
    parser.add_argument("--methods", metavar="A,B", help=methods_help)
    parser.add_argument("--noises", default="0.5,1,2", metavar="X,Y", help="noise multipliers, with commas between")
    seeds_help = "the number of seeds, counted up from --seed"
    parser.add_argument("--seeds", type=literal, default=3, metavar="N", help=seeds_help)
    steps_help = "server steps to try for every method; each method keeps its best one at each noise"
    parser.add_argument("--server-steps", default="", metavar="X,Y", help=steps_help)
    of_help = "a parameter of one of the methods"
    parser.add_argument("--of", action="append", default=[], metavar="METHOD.NAME=VALUE", help=of_help)


def run(args: argparse.Namespace) -> int:
    refuse_machine(args)
    if args.dry_run:
        lines = {point: _forecast_line(point) for point in read_points(args)}
        return dry_run(args, lines, args.view or "outsider")
    with supervised() as (store, supervisor, run_ids):
        supervisor.expect(supervisor.workers)
        points = read_points(args)
        batch = batch_of("sweep", sweep_title(points), points, problems(points))
        run_ids.update(batch.runs)
        return follow_sweep(args, store, supervisor, points, batch)


def _forecast_line(point: SweepPoint) -> ForecastLine:
    text = f"{point.method:<16} {_noise_text(point.noise):<11}"
    return ForecastLine(text, point.method, {"method": point.method, "noise": point.noise})


def _noise_text(noise: float | None) -> str:
    return "no noise" if noise is None else f"noise {noise:g}"


# --- the points --------------------------------------------------------------------------------------------


def read_points(args: argparse.Namespace) -> tuple[SweepPoint, ...]:
    """Every point of the sweep that the options describe."""
    from engine.specs.sweep import points

    base = read_base(args)
    return points(base, read_grid(args, base))


def read_base(args: argparse.Namespace) -> RunSpec:
    """The settings that all points share. They do not depend on the order of the methods."""
    from engine.methods import METHODS
    from engine.specs.run import RunSpec

    methods = _method_names(args)
    values = read_values(args, methods[0] if methods else DEFAULT_METHOD)
    base = RunSpec(**values)
    given = {hyphened(name): value for name, value in values.items()}
    settled = {}
    if given.get("sampling", "auto") == "auto":
        # One sampling for all points: Poisson if any method protects. A method without protection takes any.
        protects = any(METHODS[name]().unit() for name in methods or [base.method.name])
        settled["sampling"] = "poisson" if protects else "fixed"
    if given.get("delta") is not None:
        # RunSpec leaves out a δ that is this method's default. It may not be the default of another method.
        settled["delta"] = given["delta"]
    return base.model_copy(update=settled)


def _method_names(args: argparse.Namespace) -> list[str]:
    words = (args.methods or "").split(",")
    return [hyphened(word.strip()) for word in words if word.strip()]


def read_grid(args: argparse.Namespace, base: RunSpec) -> SweepGrid:
    """The methods with their own parameters, the noises, the seeds and the server steps."""
    from engine.methods import METHODS
    from engine.specs.sweep import SweepGrid

    names = _method_names(args) if args.methods is not None else [base.method.name]
    methods: dict[str, dict[str, Any]] = {name: {"name": METHODS[name].name} for name in names}
    steps = numbers("server-steps", args.server_steps)
    for pair in args.of:
        _set_of(methods, pair, bool(steps))
    refuse_seeds("sweep", args.seeds)
    seeds = tuple(range(base.seed, base.seed + args.seeds))
    return SweepGrid(tuple(methods.values()), numbers("noises", args.noises), seeds, steps)


def _set_of(methods: Mapping[str, dict[str, Any]], pair: str, steps_vary: bool) -> None:
    """Apply one `--of METHOD.NAME=VALUE`. A field that the sweep varies is refused."""
    name, equals, value = pair.partition("=")
    method, dot, field = hyphened(name).partition(".")
    if not (equals and dot and field):
        raise refusal("sweep: --of", "must be METHOD.NAME=VALUE", pair)
    if method not in methods:
        raise refusal("sweep: --of", f"must name one of {', '.join(methods)}", method)
    if field in VARIED and (field != "server-step" or steps_vary):
        rule = f"must not set {field}, which {VARIED[field]} varies"
        raise refusal("sweep: --of", rule, pair, f"Use {VARIED[field]} for it")
    methods[method][field] = literal(value)


def refuse_seeds(command: str, seeds: object) -> None:
    if not isinstance(seeds, int) or isinstance(seeds, bool) or not 1 <= seeds <= MOST_SEEDS:
        raise refusal(f"{command}: seeds", f"must be a whole number between 1 and {MOST_SEEDS}", seeds)


def numbers(name: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(word) for word in str(text).split(",") if word.strip())
    except ValueError:
        raise refusal(f"sweep: {name}", "must be numbers with commas between", text) from None


def problems(points: Sequence[SweepPoint]) -> dict[str, str]:
    """Why runs of the sweep cannot be run, by their ids. Refuses a sweep in which no run can."""
    from engine.training.plan import make_plan

    of_setting: dict[Any, BadInput] = {}
    for point in {(point.method, point.noise, point.step): point for point in points}.values():
        fatal = next((problem for problem in point.spec.problems() if problem.fatal), None)
        if fatal:
            of_setting[point.method, point.noise, point.step] = BadInput(fatal.reason, fatal.remedy)
    for point in {point.method: point for point in points}.values():
        try:
            make_plan(point.spec)
        except BadInput as error:
            for other in points:
                if other.method == point.method:
                    of_setting.setdefault((other.method, other.noise, other.step), error)
    errors = {point.id: of_setting.get((point.method, point.noise, point.step)) for point in points}
    refused = {run: error for run, error in errors.items() if error}
    if len(refused) == len(errors):
        raise next(iter(refused.values()))
    return {run: str(error) for run, error in refused.items()}


def batch_of(kind: BatchKind, title: str, points: Sequence[SweepPoint], problems: Mapping[str, str]) -> Batch:
    """The batch of these points, as this command requests it."""
    from engine.jobs.batches import Batch, BatchMember

    members = [BatchMember(point.id, point.spec.canonical(), problems.get(point.id, "")) for point in points]
    return Batch(kind, title, tuple(members))


def sweep_title(points: Sequence[SweepPoint]) -> str:
    """What a sweep varies, in a few words."""
    methods = dict.fromkeys(point.method for point in points if point.noise is not None)
    noises = dict.fromkeys(f"{point.noise:g}" for point in points if point.noise is not None)
    seeds = {point.seed for point in points}
    of_seeds = f", {len(seeds)} seeds" if len(seeds) > 1 else ""
    return f"{', '.join(methods) or points[0].method}: noise {', '.join(noises) or 'none'}{of_seeds}"


# --- the runs ----------------------------------------------------------------------------------------------


def follow_sweep(
    args: argparse.Namespace, store: Store, supervisor: Supervisor, points: Sequence[SweepPoint], batch: Batch
) -> int:
    """Follow all points to their end and print the table. Ctrl-C cancels what no one else wants."""
    results: list[PointResult] = []
    failed = 0
    refused = refusals(points, batch)
    visitor = store.visits.command()
    if not args.json:
        for point, problem in refused.items():
            print(point_line(point, None, f"cannot be run: {problem}"), flush=True)
    try:
        for point, result in follow_points(store, supervisor, points, batch, run_options(args), visitor):
            if result is None:
                failed += 1
            else:
                results.append(result)
            if not args.json:
                print(point_line(point, result, "" if result else ending(store, point.id)), flush=True)
    except KeyboardInterrupt:
        return stop(store, supervisor, batch, visitor)
    order = {point.id: place for place, point in enumerate(points)}
    results.sort(key=lambda result: order[result.point.id])  # runs end in any order
    if args.json:
        print(json.dumps(sweep_body(results, failed, refused), ensure_ascii=False, allow_nan=False))
    else:
        print("\n".join(table_lines(results, args.view or "outsider")))
    return exit_code(failed, refused)


def refusals(points: Sequence[SweepPoint], batch: Batch) -> dict[SweepPoint, str]:
    """The points that cannot be run, each with the reason."""
    reasons = {member.run: member.problem for member in batch.members if member.problem}
    return {point: reasons[point.id] for point in points if point.id in reasons}


def exit_code(failed: int, refused: Mapping[SweepPoint, str]) -> int:
    """1 if a run failed, 2 if a run could not be run; the others ended."""
    if failed:
        return 1
    return BadInput.exit_code if refused else 0


def run_options(args: argparse.Namespace) -> dict[str, object]:
    """The device and the threads that the store keeps with a run."""
    return {"device": args.device, "threads": args.threads}


def follow_points(
    store: Store,
    supervisor: Supervisor,
    points: Sequence[SweepPoint],
    batch: Batch,
    options: Mapping[str, object] | None = None,
    visitor: str = "machine",
) -> Iterator[tuple[SweepPoint, PointResult | None]]:
    """Request the batch, and yield each point when it ends. A point that did not finish has no result."""
    from engine.jobs.batch import follow
    from engine.results.summary import point_result

    points_by_id = {point.id: point for point in points}
    for run, status in follow(store, supervisor, batch, options, visitor):
        point = points_by_id[run]
        events = events_of(store, run) if status == "finished" else []
        yield point, point_result(point, report(events)) if events else None


def events_of(store: Store, run: str) -> list[Event]:
    """The events of a run; empty if the run was deleted."""
    with suppress(UnknownName):
        return [event for _, event in store.events(run)]
    return []


def stop(store: Store, supervisor: Supervisor, batch: Batch, visitor: str) -> int:
    """On Ctrl-C: cancel the runs of the batch that no one else wants. The same command resumes them."""
    withdrawal = store.batches.withdraw(batch.id, visitor, owns_machine=True)
    continuing = leave(store, supervisor, withdrawal)
    cancelled = len(withdrawal.cancelled)
    exception = "; runs that others requested continue" if continuing else ""
    say(f"Cancelled {cancelled} run{'s' * (cancelled != 1)}{exception}. Run the same command again to resume.")
    return 130


def ending(store: Store, run: str) -> str:
    """Why a run that has ended has no result."""
    status = store.statuses([run]).get(run)
    if status == "failed":
        body = report(events_of(store, run))
        return f"failed: {LeakLensError(body.get('error') or 'no reason is recorded', body.get('remedy') or '')}"
    return {None: "was deleted", "finished": "measured no accuracy"}.get(status, "was cancelled")


# --- output ------------------------------------------------------------------------------------------------


def point_line(point: SweepPoint, result: PointResult | None, why: str = "") -> str:
    """The line of one point when it ends."""
    start = f"{point.method:<12} {_noise_text(point.noise):<11} step {point.step:<5g} seed {point.seed:<4}"
    if result is None:
        return f"{start} did not finish: run {point.id} {why}"
    personal = "" if result.personal is None else f", personal {100 * result.personal:.1f} %"
    return f"{start} accuracy {100 * result.accuracy:.1f} %{personal}"


def sweep_body(
    results: Sequence[PointResult], failed: int, refused: Mapping[SweepPoint, str] | None = None
) -> dict[str, Any]:
    """The results as JSON: one row for each point over all seeds, and one for each run.

    `refused` is there only if runs could not be run: each with the reason.
    """
    from engine.results.summary import summaries

    runs = []
    for result in results:
        point = result.point
        run = {"id": point.id, "method": point.method, "noise": point.noise, "seed": point.seed}
        runs.append({**run, "server-step": point.step, "accuracy": result.accuracy})
    body = {"spots": [_summary_row(summary) for summary in summaries(results)], "runs": runs, "failed": failed}
    if refused:
        rows = []
        for point, problem in refused.items():
            rows.append({"id": point.id, "method": point.method, "noise": point.noise, "problem": problem})
        body["refused"] = rows
    return body


def _summary_row(summary: PointSummary) -> dict[str, Any]:
    row: dict[str, Any] = {
        "method": summary.method,
        "noise": summary.noise,
        "server-step": summary.step,
        "accuracy": summary.mean,
        "spread": summary.spread,
        "seeds": summary.seeds,
        "accuracy-personal": sum(summary.personals) / len(summary.personals) if summary.personals else None,
        "unit": summary.unit,
    }
    for name in (*BY_VIEW, "reason"):
        row[name] = {}
    for view in summary.views:
        epsilon = summary.epsilon(view)
        terms = epsilon.json() if epsilon else NO_EPSILON
        for name in BY_VIEW:
            row[name][view] = terms[name]
        if terms["reason"]:
            row["reason"][view] = terms["reason"]
    return row


def table_lines(results: Sequence[PointResult], view: str) -> list[str]:
    """The results as text, with ε of one view. Each unit, user or record, has its own table."""
    from engine.results.summary import summaries

    known = summaries(results)
    first_unit = next((summary.unit for summary in known if summary.unit), None)
    tables: dict[str | None, list[PointSummary]] = {}
    for summary in known:  # a method without a guarantee has no unit and joins the first table
        tables.setdefault(summary.unit or first_unit, []).append(summary)
    lines: list[str] = []
    for table in tables.values():
        epsilons = [summary.epsilon(view) for summary in table]
        most_seeds = max(summary.seeds for summary in table)
        lines += ["", f"ε in the {view} view: {shared_terms(epsilons, most_seeds)}."]
        lines.append(f"{'method':<16} {'noise':>6} {'step':>5}  {'accuracy':<23} ε")
        lines += [_summary_line(summary, view) for summary in table]
        methods = [summary.method for summary in table]
        lines += [f"  {reason}" for reason in reasons(list(zip(methods, epsilons, strict=True)), view)]
    return lines


def _summary_line(summary: PointSummary, view: str) -> str:
    finite = summary.finite_epsilon(view)
    epsilon = f"{finite.value:.3g}" if finite else "none"
    noise = "–" if summary.noise is None else f"{summary.noise:g}"
    spread = f" ± {100 * summary.spread:.1f} % ({summary.seeds} seeds)" if summary.seeds > 1 else " % (1 seed)"
    personal = ""
    if summary.personals:
        personal = f"  personal {100 * sum(summary.personals) / len(summary.personals):.1f} %"
    accuracy = f"{100 * summary.mean:.1f}{spread}"
    return f"{summary.method:<16} {noise:>6} {summary.step:>5g}  {accuracy:<23} {epsilon:<6}{personal}".rstrip()


# --- before the first run ----------------------------------------------------------------------------------


def dry_run(args: argparse.Namespace, lines: Mapping[SweepPoint, ForecastLine], view: str) -> int:
    """Print the forecast of every point. Nothing runs."""
    forecast = forecast_sweep(lines, view, args.threads)
    if args.json:
        print(json.dumps(forecast.body, ensure_ascii=False, allow_nan=False))
    else:
        print("\n".join(forecast.lines))
    if forecast.fatal:
        error = BadInput(forecast.fatal.reason, forecast.fatal.remedy)
        say(str(error))
        return error.exit_code
    return 0
