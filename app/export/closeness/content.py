"""The results of an exported page, as the section "How close is this to your system?" needs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from app.export.gather import PageContent, attack_name
from engine.errors import LeakLensError
from engine.examples import closeness
from engine.examples.closeness import MeasuredUpload, SystemChoices
from engine.results.attack_summary import AttackCell

if TYPE_CHECKING:
    from app.export.grid_content import ExportedGrid
    from engine.specs.run import RunSpec

ORDINARY = SystemChoices("many", "several", "honest", "no", "none", "later")  # of a run whose data are not here


@dataclass(frozen=True)
class ExportedSystem:
    """What the page measured: its uploads, or its runs where no picture was attacked."""

    uploads: tuple[MeasuredUpload, ...]
    choices: tuple[SystemChoices, ...]  # of the uploads, or of the runs; those with noise first
    attacks: tuple[str, ...]  # the names of the attacks, each once
    membership: bool  # whether one of them asks who was in the data
    noun: str  # what the data are: pictures or sentences
    own: bool = False  # whether a visitor uploaded a picture
    shown: int = 0  # attacks on the page
    left_out: int = 0  # attacks that are not on the page, because it has room for fewer

    @property
    def main(self) -> SystemChoices:
        """The values that are chosen when the page opens."""
        return self.choices[0]

    @property
    def other_observers(self) -> tuple[str, ...]:
        """The views of participants and outsiders, who see no more than the sum of a round."""
        return tuple(dict.fromkeys(each.view for each in self.uploads if each.view in closeness.OTHER_VIEWS))


Result = tuple[str, Mapping[str, Any], AttackCell]  # of an attack: its id, its spec and its cell


def of_run(content: PageContent, run: RunSpec) -> ExportedSystem:
    """The system of a run with its attacks."""
    results: list[Result] = []
    for attack in content.attacks:
        results.append((attack.id, attack.spec, attack.cell))
    names = [attack.cell.attack for attack in content.attacks]
    names += [attack_name(attack.spec) for attack in content.memberships]
    system = _system(results, [run], names, bool(content.memberships))
    return replace(system, shown=len(content.attacks) + len(content.memberships), left_out=content.left_out)


def of_grids(grids: Sequence[ExportedGrid], left_out: int = 0) -> ExportedSystem:
    """The system of a grid of attacks. `left_out` attacks of it are not on the page."""
    results: list[Result] = []
    for grid in grids:
        for attack, cell in zip(grid.attacks, grid.cells, strict=True):
            results.append((attack.id, attack.spec, cell))
    runs = [column.run for grid in grids for column in grid.columns]
    finished = [attack_name(spec) for _, spec, cell in results if cell.done]
    system = _system(results, runs, finished, membership=False)
    return replace(system, shown=len(results), left_out=left_out)


def of_runs(runs: Sequence[RunSpec]) -> ExportedSystem:
    """The system of a sweep, which attacks nothing."""
    return _system([], runs, [], membership=False)


def _system(
    results: Iterable[Result], runs: Sequence[RunSpec], names: Iterable[str], membership: bool
) -> ExportedSystem:
    given = list(results)
    uploads = closeness.uploads(given)
    choices = [upload.choices for upload in uploads] or _choices_of(runs)
    ordered = sorted(dict.fromkeys(choices), key=lambda each: each.noise == "none")
    pictures = [str(name) for _, spec, _ in given for name in spec.get("pictures", ())]
    return ExportedSystem(
        uploads=uploads,
        choices=tuple(ordered),
        attacks=tuple(dict.fromkeys(names)),
        membership=membership,
        noun=runs[0].dataset.noun,
        own=any(name.startswith("own-") for name in pictures),
    )


def _choices_of(runs: Sequence[RunSpec]) -> list[SystemChoices]:
    """The choices of the ordinary uploads of these runs. Runs of one method share them."""
    first: dict[str, RunSpec] = {}
    for run in runs:
        place = closeness.noise_place(run.canonical()["method"])
        first.setdefault(f"{run.method.name} {place}", run)
    return [_of_run(run) for run in first.values()]


def _of_run(run: RunSpec) -> SystemChoices:
    try:
        return closeness.choices_of_run(run)
    except LeakLensError:
        return ORDINARY
