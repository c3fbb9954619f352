"""The command `run`: trains, follows the run in the terminal, and prints its report."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from engine.cli.arguments import emit, read_spec, read_threads, refuse_device
from engine.cli.progress import at_work, say, watched
from engine.errors import BadInput, RunFailed
from engine.results.report import epsilon_words, lines, report

if TYPE_CHECKING:
    from engine.jobs.store import Store


def run(asked: argparse.Namespace) -> int:
    threads = read_threads(asked.threads)
    refuse_device(asked.device)
    if asked.dry_run:
        return dry_run(asked, threads)
    with at_work() as (store, supervisor, mine):  # it warms up while we read the question
        spec = read_spec(asked)
        if not is_finished(store, spec.id):
            _refuse(spec)
            mine.add(spec.id)
            options = {"device": asked.device, "threads": asked.threads}
            if not watched(store, supervisor, spec, options, asked.json):
                return 130
    return answer(store, spec.id, asked.json, asked.debug)


def is_finished(store: Store, run_id: str) -> bool:
    return store.statuses([run_id]).get(run_id) == "finished"


def _refuse(spec: Any) -> None:
    """Everything that would stop the run is said before it is queued."""
    from engine.training.plan import make_plan

    make_plan(spec)


def dry_run(asked: argparse.Namespace, threads: int) -> int:
    from engine.training.forecast import forecast

    told = forecast(read_spec(asked), precise=True, threads=threads)
    body = {
        "id": told.id,
        "epsilon": {one.view: one.epsilon for one in told.answers},
        "accountant": {one.view: one.accountant for one in told.answers},
        "unit": told.answers[0].unit if told.answers else None,
        "adjacency": told.answers[0].adjacency if told.answers else None,
        "delta": told.delta,
        "noise": told.noise,
        "guarantee": {"status": told.guarantee.status, "reason": told.guarantee.reason} if told.guarantee else None,
        "problems": [{"reason": one.reason, "remedy": one.remedy, "fatal": one.fatal} for one in told.problems],
        "seconds": told.seconds,
    }
    if asked.json:
        emit(body)
    else:
        print(f"run {told.id}")
        for one in told.answers:
            words = (one.unit, one.adjacency, one.delta, one.accountant, one.reason, one.bound)
            print(f"  {epsilon_words(one.view, one.epsilon, *words)}")
        if told.guarantee:
            print(f"  guarantee: {told.guarantee.status}: {told.guarantee.reason}")
        if told.seconds is not None:
            print(f"  about {told.seconds:.1f} s")
        for problem in told.problems:
            if not problem.fatal:
                print(f"  {problem.reason}. {problem.remedy}.")
    if fatal := next((problem for problem in told.problems if problem.fatal), None):
        error = BadInput(fatal.reason, fatal.remedy)
        say(str(error))
        return error.exit_code
    return 0


def answer(store: Any, run_id: str, as_json: bool, debug: bool = False) -> int:
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
