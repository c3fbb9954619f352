"""The commands of `python -m engine`. Scripts depend on their words, their JSON and their exit codes."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from engine import breaking, exporting, sweeping, tabling
from engine.asking import literal, machine_options, question_options, read_spec, read_threads
from engine.errors import BadInput, LeakLensError, RunFailed, UnknownName
from engine.following import at_work, say, watched
from engine.part import hyphened
from engine.results.report import epsilon_words, lines, report

if TYPE_CHECKING:
    from engine.jobs.store import Store

ACCOUNT = {
    "noise": "the noise multiplier z: its standard deviation over the clip",
    "rate": "the share that takes part in a step (Poisson sampling), above 0 and at most 1",
    "steps": "how often a step is taken",
    "delta": "the δ of (ε, δ), below one over the number of people",
    "target-epsilon": "instead of --noise: the ε that the noise must keep",
}
SHELVES = ("methods", "attacks", "metrics", "datasets", "models", "partitions")


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence."""

    def __init__(self, *words: Any, **more: Any) -> None:
        super().__init__(*words, **{"allow_abbrev": False, **more})
        # any negative number is a value, so that the part itself refuses it and says its law
        self._negative_number_matcher = re.compile(r"^-(\d|\.\d|[Ii]nf|[Nn]a[Nn])")

    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{self.prog}: {message}", f"Ask `{self.prog} --help`")


def parser(words: Sequence[str] = ()) -> Parser:
    """The grammar; the options of `run` are described at length only where `words` ask for help: that needs torch."""
    top = Parser(prog="python -m engine", description="What federated learning leaks, and what protection costs.")
    top.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    shared = Parser(add_help=False)
    shared.add_argument("--json", action="store_true", help="answer as JSON")
    shared.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)

    def command(name: str, does: Callable[[argparse.Namespace], int], words: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, parents=[shared], help=words, description=words)
        added.set_defaults(does=does)
        return added

    command("list", list_parts, "the parts of one shelf, or the tables that can be run again").add_argument(
        "shelf", choices=(*SHELVES, "tables")
    )
    helped = bool({"-h", "--help"} & set(words))
    run_parser = command("run", run, "train for real; asked again, the same question opens the same run")
    sweep_parser = command("sweep", sweep, "accuracy over noise for several methods and seeds, each point a run")
    sweeping.options(sweep_parser)
    table_parser = command("table", table, "a published table again, each cell beside the paper's number")
    tabling.options(table_parser)
    for asker in (run_parser, sweep_parser):
        question_options(asker, helped)
    for worker in (run_parser, sweep_parser, table_parser):
        machine_options(worker)
    breaking.options(command("attack", attack, "attack what a run sent: what comes back out of an upload"))
    epsilon = command("epsilon", tell_epsilon, "ε of Gaussian noise, or the noise for an ε")
    for name, words_of in ACCOUNT.items():
        epsilon.add_argument(f"--{name}", type=literal, metavar="X", help=words_of)
    command("runs", list_runs, "every run in the store")
    for name, does, words in (
        ("cancel", cancel, "stop a run; its checkpoint stays"),
        ("delete", delete, "remove a run and everything it kept"),
    ):
        command(name, does, words).add_argument("id")
    exporting.options(command("export", exporting.export, "one page that needs nothing else: pictures, curves, ε"))
    command("doctor", doctor, "what works on this machine")
    bench = command("bench", bench_all, "speed beside a peer, in the same run")
    bench.add_argument("names", nargs="*", metavar="NAME")
    gallery = command("gallery", make_gallery, "run the presets and store them as the examples that ship")
    gallery.add_argument("names", nargs="*", metavar="NAME")
    return top


# --- run ---------------------------------------------------------------------------------------------------


def run(asked: argparse.Namespace) -> int:
    threads = read_threads(asked.threads)
    _device(asked.device)
    if asked.dry_run:
        return dry_run(asked, threads)
    with at_work() as (store, supervisor, mine):  # it warms up while we read the question
        spec = read_spec(asked)
        if not _finished(store, spec.id):
            _refuse(spec)
            mine.add(spec.id)
            options = {"device": asked.device, "threads": asked.threads}
            if not watched(store, supervisor, spec, options, asked.json):
                return 130
    return answer(store, spec.id, asked.json, asked.debug)


def attack(asked: argparse.Namespace) -> int:
    options = {"threads": read_threads(asked.threads)}
    with at_work() as (store, supervisor, mine):
        spec = breaking.read_attack(asked, store)
        mine.add(spec.id)
        if not _finished(store, spec.id) and not watched(store, supervisor, spec, options, asked.json):
            return 130
    status, events = store.status(spec.id), [event for _, event in store.events(spec.id)]
    body = {**breaking.attack_report(spec.id, events), "status": status}
    if asked.out and status == "finished":
        body["files"] = breaking.write_pictures(events, Path(asked.out))
    if asked.json:
        emit(body)
    if status == "failed":
        error = breaking.failed(body)
        say(str(error))
        return error.exit_code
    if not asked.json:
        print("\n".join(breaking.attack_lines(body)))
    return 0 if status == "finished" else 1


def sweep(asked: argparse.Namespace) -> int:
    _refuse_machine(asked)
    return sweeping.run(asked)


def table(asked: argparse.Namespace) -> int:
    _refuse_machine(asked)
    return tabling.run(asked)


def _refuse_machine(asked: argparse.Namespace) -> None:
    """What this machine has not is refused at once."""
    read_threads(asked.threads)
    _device(asked.device)


def _finished(store: Store, run_id: str) -> bool:
    return store.statuses([run_id]).get(run_id) == "finished"


def _refuse(spec: Any) -> None:
    """Everything that would stop the run is said before it is queued."""
    from engine.training.plan import plan

    plan(spec)


def _device(name: str) -> None:
    if name != "cpu":
        from engine.training.loop import quiet_torch

        with quiet_torch(name):  # refuses what is not here
            pass


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


# --- the other commands ------------------------------------------------------------------------------------


def list_parts(asked: argparse.Namespace) -> int:
    import importlib

    if asked.shelf == "tables":
        return tabling.list_tables(asked)
    shelf = getattr(importlib.import_module(f"engine.{asked.shelf}"), asked.shelf.upper(), ())  # some are empty yet
    rows = [
        {
            "name": part.name,
            "title": part.title,
            "summary": part.summary(),
            "parameters": part.model_json_schema(by_alias=True),
            "guarantee": promise(part),
            "source": part.source,
        }
        for part in shelf
    ]
    if asked.json:
        emit(rows)
    else:
        for row in rows:
            print(f"{row['name']:<20} {row['summary']}")
        if not rows:
            say(f"No {asked.shelf} on the shelf yet.")
    return 0


def promise(part: Any) -> str | None:
    """The status of a method on the default question; None for other parts, or where that question is refused."""
    if not hasattr(part, "guarantee"):
        return None
    from engine.specs.run import RunSpec
    from engine.training.plan import plan

    with contextlib.suppress(LeakLensError):
        return str(plan(RunSpec(method=part.name)).guarantee.status)
    return None


def tell_epsilon(asked: argparse.Namespace) -> int:
    from engine.privacy.solver import answer_epsilon, answer_noise

    missing = [name for name in ("rate", "steps", "delta") if getattr(asked, name) is None]
    if missing:
        raise BadInput(
            f"epsilon: {missing[0]}: is missing", "Give --noise (or --target-epsilon), --rate, --steps and --delta"
        )
    if (asked.noise is None) == (asked.target_epsilon is None):
        law = "epsilon: noise and target-epsilon: exactly one of them must be given"
        raise BadInput(law, "Give --noise to learn its ε, or --target-epsilon to learn the noise")
    if asked.target_epsilon is not None:
        noise = answer_noise(asked.target_epsilon, asked.rate, asked.steps, asked.delta)
    else:
        noise = asked.noise
    body = answer_epsilon(noise, asked.rate, asked.steps, asked.delta)
    if asked.target_epsilon is not None:
        body = {"noise": noise, **body}
    if asked.json:
        emit(body)
    else:
        for name, value in body.items():
            print(f"{name:<6} {'none' if value is None else format(value, '.5g')}")
    return 0


def list_runs(asked: argparse.Namespace) -> int:
    from engine.jobs.store import Store

    rows = Store().runs()
    if asked.json:
        emit([row.json() for row in rows])
        return 0
    for row in rows:
        method = row.spec.get("method", {})
        name = method.get("name", "") if isinstance(method, Mapping) else method
        place = f" (place {row.place} in the queue)" if row.place else ""
        print(f"{row.id}  {row.status:<12} {name:<14} round {row.round}  {row.bytes / 1e6:.1f} MB{place}")
    if not rows:
        print("No runs yet. Begin with: python3 -m engine run --method udp-fedavg")
    return 0


def cancel(asked: argparse.Namespace) -> int:
    from engine.jobs.store import Store

    status = Store().cancel(asked.id)
    emit({"id": asked.id, "status": status}) if asked.json else print(f"{asked.id}: {status}")
    return 0


def delete(asked: argparse.Namespace) -> int:
    from engine.jobs.store import Store

    Store().delete(asked.id)
    emit({"id": asked.id, "status": "deleted"}) if asked.json else print(f"{asked.id}: deleted")
    return 0


def doctor(asked: argparse.Namespace) -> int:
    from engine.doctor import able, examine

    findings = examine()
    if asked.json:
        emit([finding.json() for finding in findings])
    else:
        for finding in findings:
            print(f"{'ok  ' if finding.ok else 'look'} {finding.name:<22} {finding.text}")
            if finding.remedy:
                print(f"     {'':<22} {finding.remedy}")
    return 0 if able(findings) else 1


def bench_all(asked: argparse.Namespace) -> int:
    from engine.bench import BENCHES, measure

    unknown = [name for name in asked.names if name not in BENCHES]
    if unknown:
        raise UnknownName(f"bench: no {unknown[0]}", f"Known here: {', '.join(BENCHES)}")
    rows = []
    for name in asked.names or BENCHES:
        row = measure(name)
        rows.append(row)
        if not asked.json:
            print(f"{name:<16} {row.words()}", flush=True)
    if asked.json:
        emit([row.json() for row in rows])
    return 0


def make_gallery(asked: argparse.Namespace) -> int:
    from engine.examples import attacks, sweep
    from engine.examples.runs import chosen, make, row

    whole = {attacks.NAME: attacks.make, sweep.NAME: sweep.make}
    rows, presets = [], [name for name in asked.names if name not in whole]
    for name in whole:
        if not asked.names or name in asked.names:
            rows += whole[name](read_threads(None))
    for name in chosen(presets) if presets or not asked.names else ():
        rows.append(row(make(name, read_threads(None))))
    if asked.json:
        emit(rows)
    for one in () if asked.json else rows:
        said = "accuracy {accuracy:.1%}" if "accuracy" in one else "{attack} against {method}: {psnr:.1f} dB, {state}"
        print(("{name:<20} {id}  " + said + "  {seconds:.1f} s").format_map(one))
    return 0


# --- words -------------------------------------------------------------------------------------------------


def emit(body: Any) -> None:
    print(json.dumps(body, ensure_ascii=False, allow_nan=False))


def option(word: str) -> str:
    """`--weight_decay` is `--weight-decay`; values stay as they are."""
    name, equals, value = word.partition("=")
    return f"{hyphened(name)}{equals}{value}" if word.startswith("--") else word
