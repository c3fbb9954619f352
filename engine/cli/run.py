"""The command `run`: trains, shows the progress in the terminal, and prints the report."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from engine.cli.arguments import emit, read_spec, read_threads, refuse_device
from engine.cli.progress import say, submit_and_follow, supervised
from engine.errors import BadInput, RunFailed
from engine.results.report import lines, report

if TYPE_CHECKING:
    from engine.jobs.store import Store
    from engine.training.forecast import Forecast


def run(args: argparse.Namespace) -> int:
    threads = read_threads(args.threads)
    refuse_device(args.device)
    if args.dry_run:
        return dry_run(args, threads)
    with supervised() as (store, supervisor, run_ids):  # the worker warms up while the spec is read
        spec = read_spec(args)
        if not is_finished(store, spec.id):
            _refuse(spec)
            run_ids.add(spec.id)
            options = {"device": args.device, "threads": args.threads}
            if not submit_and_follow(store, supervisor, spec, options, args.json):
                return 130
    return answer(store, spec.id, args.json, args.debug)


def is_finished(store: Store, run_id: str) -> bool:
    return store.statuses([run_id]).get(run_id) == "finished"


def _refuse(spec: Any) -> None:
    """Refuse before queueing what would stop the run later."""
    from engine.training.plan import make_plan

    make_plan(spec)


def dry_run(args: argparse.Namespace, threads: int) -> int:
    """Print the forecast: ε of every view, the guarantee, the time, and the problems. Nothing runs."""
    from engine.training.forecast import forecast

    forecasted = forecast(read_spec(args), precise=True, threads=threads)
    if args.json:
        emit(_forecast_body(forecasted))
    else:
        _print_forecast(forecasted)
    fatal = next((problem for problem in forecasted.problems if problem.fatal), None)
    if fatal:
        error = BadInput(fatal.reason, fatal.remedy)
        say(str(error))
        return error.exit_code
    return 0


def _forecast_body(forecast: Forecast) -> dict[str, Any]:
    guarantee = forecast.guarantee
    first = forecast.answers[0] if forecast.answers else None
    problems = []
    for problem in forecast.problems:
        problems.append({"reason": problem.reason, "remedy": problem.remedy, "fatal": problem.fatal})
    return {
        "id": forecast.id,
        "epsilon": {answer.view: answer.value for answer in forecast.answers},
        "accountant": {answer.view: answer.accountant for answer in forecast.answers},
        "unit": first.unit if first else None,
        "adjacency": first.adjacency if first else None,
        "delta": forecast.delta,
        "noise": forecast.noise,
        "guarantee": {"status": guarantee.status, "reason": guarantee.reason} if guarantee else None,
        "problems": problems,
        "seconds": forecast.seconds,
    }


def _print_forecast(forecast: Forecast) -> None:
    print(f"run {forecast.id}")
    for answer in forecast.answers:
        print(f"  {answer.sentence()}")
    if forecast.guarantee:
        print(f"  guarantee: {forecast.guarantee.status}: {forecast.guarantee.reason}")
    if forecast.seconds is not None:
        print(f"  about {forecast.seconds:.1f} s")
    for problem in forecast.problems:
        if not problem.fatal:
            print(f"  {problem.reason}. {problem.remedy}.")


def answer(store: Any, run_id: str, as_json: bool, debug: bool = False) -> int:
    """Print the report of a run that has ended. Returns the exit code."""
    status = store.status(run_id)
    events = [event for _, event in store.events(run_id)]
    body = {**report(events), "id": run_id, "status": status}
    if as_json:
        emit(body)
    if status == "failed":
        if debug:
            say(getattr(events[-1], "trace", ""))
        error = RunFailed(f"run {run_id}: {body.get('error') or 'failed'}", body.get("remedy") or "")
        say(str(error))
        return error.exit_code
    if not as_json:
        print("\n".join(lines(body)))
    return 0 if status == "finished" else 1
