"""The rows of the Runs screen in groups: what was requested as one stays together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from app.screens.runs.listing import STOPPED, RunRow
from app.session import services, session
from app.texts import batches as batch_texts
from app.texts import runs as run_texts
from engine.jobs.batches import ListedBatch
from engine.jobs.owners import own_pictures


@dataclass(frozen=True)
class RunGroup:
    """The runs of one batch, or one run by itself."""

    rows: tuple[RunRow, ...]
    batch: ListedBatch | None = None
    own: bool = False  # whether this visitor requested the batch
    wanted: bool = False  # and wants a run of it that is under way
    private: bool = False  # whether it names an uploaded picture, whose owners all read its name

    @property
    def id(self) -> str:
        return self.batch.id if self.batch else self.rows[0].id

    @property
    def title(self) -> str:
        return self.batch.title if self.batch else self.rows[0].sentence

    @property
    def kind(self) -> str:
        return batch_texts.TITLES.get(self.batch.kind, self.batch.kind) if self.batch else ""

    @property
    def moving(self) -> bool:
        return any(row.moving for row in self.rows)

    @property
    def stopped(self) -> bool:
        return any(row.listed.status in STOPPED for row in self.rows)

    @property
    def deletable(self) -> list[str]:
        return [row.id for row in self.rows if row.deletable]

    @property
    def bytes(self) -> int:
        return sum(row.listed.bytes for row in self.rows)

    @property
    def accuracy(self) -> float | None:
        """The best accuracy of its runs."""
        known = [row.result.accuracy for row in self.rows if row.result.accuracy is not None]
        return max(known, default=None)

    @property
    def summary(self) -> str:
        """How many runs are in each state, and why members could not be requested."""
        counts = Counter(row.listed.status for row in self.rows)
        text = run_texts.group_summary(counts, len(self.rows), self.bytes)
        problems = dict.fromkeys(self.batch.problems.values()) if self.batch else {}
        return " ".join([text, *(run_texts.REFUSED.format(why=problem) for problem in problems)])


def groups(rows: Sequence[RunRow]) -> list[RunGroup]:
    """The rows in groups, each where its newest row is. A run of several batches is in the one requested last."""
    by_run: dict[str, ListedBatch] = {}
    for batch in _visible_batches():
        for run in batch.runs:
            by_run.setdefault(run, batch)  # the last requested batch comes first
    rows_of: dict[str, list[RunRow]] = {}
    for row in rows:
        owner = by_run.get(row.id)
        rows_of.setdefault(owner.id if owner else row.id, []).append(row)
    batches = {batch.id: batch for batch in by_run.values()}
    visitor = session.visitor()
    wanted_runs = services.wanted([row.id for row in rows if row.moving])
    grouped = []
    for name, members in rows_of.items():
        stored = batches.get(name) if len(members) > 1 else None
        own = stored is not None and (services.at_home() or visitor in stored.visitors)
        private = stored is not None and bool(own_pictures(stored.spec)) and not services.at_home()
        wanted = own and (services.at_home() or any(row.id in wanted_runs for row in members))
        grouped.append(RunGroup(tuple(members), stored, own, wanted, private))
    return grouped


def _visible_batches() -> list[ListedBatch]:
    """The batches whose title and settings name no picture of another visitor."""
    visible = []
    for batch in services.store().batches.listed():
        names = own_pictures({"title": batch.title, "spec": batch.spec})
        if all(services.may_see_picture(name) for name in names):
            visible.append(batch)
    return visible


def in_order(grouped: Sequence[RunGroup], sort: str) -> list[RunGroup]:
    """The groups sorted as the visitor chose. What has no accuracy comes last."""
    if sort == "name":
        return sorted(grouped, key=lambda group: group.title.lower())
    if sort == "accuracy":
        return sorted(grouped, key=lambda group: -1.0 if group.accuracy is None else group.accuracy, reverse=True)
    if sort == "size":
        return sorted(grouped, key=lambda group: group.bytes, reverse=True)
    return sorted(grouped, key=lambda group: max(row.listed.submitted for row in group.rows), reverse=True)
