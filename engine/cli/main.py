"""The commands of `python3 -m engine`. Scripts depend on their names, their JSON and their exit codes."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from engine.cli import attack, export, parts, run, schema, sweep, table
from engine.cli.arguments import emit, literal, machine_options, read_threads, spec_options
from engine.errors import BadInput, UnknownName, shown
from engine.part import hyphened

if TYPE_CHECKING:
    from engine.jobs.batches import ListedBatch
    from engine.jobs.store import Store

# What argparse says of a command or a shelf that does not exist.
UNKNOWN_COMMAND = re.compile(r"^argument [^-].*invalid choice: '(.*)' \(choose from (.*)\)")
ACCOUNT = {
    "noise": "the noise multiplier z: its standard deviation over the clip",
    "rate": "the share that takes part in a step (Poisson sampling), above 0 and at most 1",
    "steps": "the number of steps",
    "delta": "the δ of (ε, δ), below one over the number of people",
    "target-epsilon": "instead of --noise: the ε that the noise must not exceed",
}


class CommandParser(argparse.ArgumentParser):
    """A parser that raises BadInput with one sentence in place of a usage message."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **options})
        # Any negative number is a value: the part refuses it with its own rule.
        self._negative_number_matcher = re.compile(r"^-(\d|\.\d|[Ii]nf|[Nn]a[Nn])")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuse an unknown option here, where the command is known, and suggest the nearest option."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            kind = "option" if unknown[0].startswith("-") else "argument"
            name = unknown[0].partition("=")[0]
            nearest = difflib.get_close_matches(name, self._option_string_actions, n=1, cutoff=0.75)
            suggestion = f"Did you mean `{nearest[0]}`? " if nearest else ""
            raise BadInput(f"{self.prog}: there is no {kind} {shown(name)}", suggestion + self.help_hint)
        return parsed, unknown

    @property
    def help_hint(self) -> str:
        return f"Run `{self.prog} --help` to see the options"

    def error(self, message: str) -> NoReturn:
        unknown = UNKNOWN_COMMAND.search(message)
        if unknown:
            commands = re.findall(r"[\w-]+", unknown[2])
            nearest = difflib.get_close_matches(unknown[1], commands, n=1, cutoff=0.5)
            suggestion = f"Did you mean `{nearest[0]}`? " if nearest else ""
            raise BadInput(f"{self.prog}: there is no {shown(unknown[1])}", suggestion + self.help_hint)
        raise BadInput(f"{self.prog}: {message}", self.help_hint)


def parser(words: Sequence[str] = ()) -> CommandParser:
    """The parser of all commands. The options of `run` have full descriptions only for `--help`: they need torch."""
    top = CommandParser(prog=program(), description="What federated learning leaks, and what protection costs.")
    top.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    shared = CommandParser(add_help=False)
    shared.add_argument("--json", action="store_true", help="answer as JSON")
    shared.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)

    def command(name: str, does: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, parents=[shared], help=text, description=text)
        added.set_defaults(does=does)
        return added

    parts.options(command("list", parts.run, "the parts on one shelf, or the published tables"), words)
    describe = bool({"-h", "--help"} & set(words))
    run_parser = command(
        "run", run.run, "train; the same command opens the same run again, and resumes it if it did not finish"
    )
    sweep_parser = command("sweep", sweep.run, "accuracy over noise for several methods and seeds; each point is a run")
    sweep.options(sweep_parser)
    table_parser = command(
        "table", table.run, "run a published table again and compare each cell with the paper's number"
    )
    table.options(table_parser)
    for spec_parser in (run_parser, sweep_parser):
        spec_options(spec_parser, describe)
    for machine_parser in (run_parser, sweep_parser, table_parser):
        machine_options(machine_parser)
    attack.options(
        command("attack", attack.run, "attack a run: reconstruct pictures of an upload, or ask who was in the data")
    )
    epsilon = command("epsilon", tell_epsilon, "ε of Gaussian noise, or the noise for an ε")
    for name, help_text in ACCOUNT.items():
        epsilon.add_argument(f"--{name}", type=literal, metavar="X", help=help_text)
    command("runs", list_runs, "every run in the store")
    command("batches", list_batches, "what was requested as one: sweeps, tables, grids of attacks")
    command("cancel", cancel, "stop a run or a batch, and keep its checkpoints").add_argument("id")
    command("delete", delete, "delete a run and all its files, or a batch with all its runs").add_argument("id")
    export.options(command("export", export.run, "write one HTML page with the pictures, curves and ε of a run"))
    schema.options(command("schema", schema.run, "the JSON Schema of runs and attacks, for editors and scripts"))
    command("doctor", doctor, "check what works on this machine")
    bench = command("bench", bench_all, "measure the speed, next to another implementation on the same machine")
    bench.add_argument("names", nargs="*", metavar="NAME")
    bench.add_argument("--count", type=int, metavar="N", help="of fuzz: answers; of faults: kills")
    bench.add_argument("--seed", type=int, metavar="N", help="of fuzz and faults: the first seed")
    gallery = command("gallery", make_gallery, "run the presets and store them as the shipped examples")
    gallery.add_argument("names", nargs="*", metavar="NAME")
    return top


def program() -> str:
    """The name that started this process: the installed command, or the module."""
    return "leaklens" if Path(sys.argv[0]).name == "leaklens" else "python3 -m engine"


# --- the other commands ------------------------------------------------------------------------------------


def tell_epsilon(args: argparse.Namespace) -> int:
    from engine.privacy.solver import sampled_gaussian_epsilon, sampled_gaussian_noise

    missing = [name for name in ("rate", "steps", "delta") if getattr(args, name) is None]
    if missing:
        raise BadInput(
            f"epsilon: {missing[0]}: is missing", "Give --noise (or --target-epsilon), --rate, --steps and --delta"
        )
    if (args.noise is None) == (args.target_epsilon is None):
        rule = "epsilon: noise and target-epsilon: exactly one of them must be given"
        raise BadInput(rule, "Give --noise to get its ε, or --target-epsilon to get the noise")
    if args.target_epsilon is not None:
        noise = sampled_gaussian_noise(args.target_epsilon, args.rate, args.steps, args.delta)
    else:
        noise = args.noise
    body = sampled_gaussian_epsilon(noise, args.rate, args.steps, args.delta)
    if args.target_epsilon is not None:
        body = {"noise": noise, **body}
    if args.json:
        emit(body)
    else:
        for name, value in body.items():
            print(f"{name:<6} {'none' if value is None else format(value, '.5g')}")
    return 0


def list_runs(args: argparse.Namespace) -> int:
    from engine.jobs.store import Store

    rows = Store().runs()
    if args.json:
        emit([row.json() for row in rows])
        return 0
    for row in rows:
        place = f" (place {row.place} in the queue)" if row.place else ""
        print(f"{row.id}  {row.status:<12} {described(row.spec, row.round):<34} {row.bytes / 1e6:.1f} MB{place}")
    if not rows:
        print("No runs yet. Start one with: python3 -m engine run --method udp-fedavg")
    return 0


def described(spec: Mapping[str, Any], round: int) -> str:
    """What a run or an attack is, in a few words."""
    if "attack" in spec:
        run = spec.get("run")
        return f"{_name(spec['attack'])} on {_name(run.get('method')) if isinstance(run, Mapping) else 'a run'}"
    return f"{_name(spec.get('method'))}, round {round}"


def _name(part: Any) -> str:
    return str(part.get("name", "") if isinstance(part, Mapping) else part)


def list_batches(args: argparse.Namespace) -> int:
    from engine.jobs.store import Store

    store = Store()
    batches = store.batches.listed()
    statuses = store.statuses({run for batch in batches for run in batch.runs})
    if args.json:
        emit([{**batch.json(), "statuses": batch.counts(statuses)} for batch in batches])
        return 0
    for batch in batches:
        counts = ", ".join(f"{count} {status}" for status, count in batch.counts(statuses).items())
        refused = f", {len(batch.problems)} refused" if batch.problems else ""
        print(f"{batch.id}  {batch.kind:<10} {counts}{refused}  {batch.title}")
    if not batches:
        print("No batches yet. Start one with: python3 -m engine sweep --methods udp-fedavg")
    return 0


def cancel(args: argparse.Namespace) -> int:
    from engine.jobs.store import Store

    store = Store()
    batch = store.batches.find(args.id)
    if batch:
        return _cancel_batch(store, batch, args.json)
    status = store.cancel(args.id)
    emit({"id": args.id, "status": status}) if args.json else print(f"{args.id}: {status}")
    return 0


def _cancel_batch(store: Store, batch: ListedBatch, as_json: bool) -> int:
    """Cancel every unended run of a batch, no matter who requested it: the command line owns the machine."""
    from engine.jobs.requests import UNENDED

    statuses = store.statuses(batch.runs)
    unended = [run for run in batch.runs if statuses.get(run) in UNENDED]
    for name in unended:
        store.cancel(name)
    if as_json:
        emit({"id": batch.id, "status": "cancelled" if unended else "ended", "cancelled": len(unended)})
    else:
        print(f"{batch.id}: {len(unended)} of {len(batch.runs)} runs cancelled")
    return 0


def delete(args: argparse.Namespace) -> int:
    from engine.jobs.store import Store

    store = Store()
    batch = store.batches.find(args.id)
    if batch:
        running = [run for run, status in store.statuses(batch.runs).items() if status == "running"]
        if running:
            raise BadInput(f"batch {batch.id}: {len(running)} of its runs are running", "Cancel it first")
        for run in store.statuses(batch.runs):
            store.delete(run)
        if store.batches.find(batch.id):  # it goes with its last run; one without runs is left
            store.batches.delete(batch.id)
    else:
        store.delete(args.id)
    emit({"id": args.id, "status": "deleted"}) if args.json else print(f"{args.id}: deleted")
    return 0


def doctor(args: argparse.Namespace) -> int:
    from engine.doctor import can_run, examine

    findings = examine()
    if args.json:
        emit([finding.json() for finding in findings])
    else:
        for finding in findings:
            print(f"{'ok  ' if finding.ok else 'look'} {finding.name:<22} {finding.text}")
            if finding.remedy:
                print(f"     {'':<22} {finding.remedy}")
    return 0 if can_run(findings) else 1


def bench_all(args: argparse.Namespace) -> int:
    from engine.bench import BENCHES, CHECKS, measure

    known = (*BENCHES, *CHECKS)
    unknown = [name for name in args.names if name not in known]
    if unknown:
        raise UnknownName(f"bench: no {unknown[0]}", f"Known here: {', '.join(known)}")
    rows = []
    for name in args.names or BENCHES:
        row = measure(name, args.main, count=args.count, seed=args.seed)
        rows.append(row)
        if not args.json:
            print(f"{name:<16} {row.words()}", flush=True)
    if args.json:
        emit([row.json() for row in rows])
    return 0


def make_gallery(args: argparse.Namespace) -> int:
    from engine.examples import attack_gallery, attacks, start, start_gallery, sweep
    from engine.examples.runs import chosen, make, row

    collections = {attacks.NAME: attack_gallery.make, sweep.NAME: sweep.make, start.NAME: start_gallery.make}
    named = [name for name in args.names if name not in collections]
    presets = chosen(named, tuple(collections)) if named or not args.names else ()
    rows = []
    for name, make_collection in collections.items():
        if not args.names or name in args.names:
            rows += make_collection(read_threads(None))
    for name in presets:
        rows.append(row(make(name, read_threads(None))))
    if args.json:
        emit(rows)
        return 0
    for example in rows:
        result = "{attack} against {method}: {psnr:.1f} dB, {state}"
        if "accuracy" in example:
            result = "accuracy {accuracy:.1%}"
        print(("{name:<20} {id}  " + result + "  {seconds:.1f} s").format_map(example))
    return 0


# --- option names ------------------------------------------------------------------------------------------


def option(word: str) -> str:
    """An option with hyphens: `--weight_decay` becomes `--weight-decay`. Its value stays as it is."""
    name, equals, value = word.partition("=")
    return f"{hyphened(name)}{equals}{value}" if word.startswith("--") else word
