"""The commands about batches: listed, cancelled and deleted as a whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.__main__ import main
from engine.events import Finished
from engine.jobs.batches import Batch, BatchMember
from engine.jobs.process_id import ProcessId
from engine.jobs.store import Store


@pytest.fixture
def batch(home: Path) -> Batch:
    """Three members: one finished, one waiting, one that could not be requested."""
    members = (
        BatchMember("one", {"id": 1}),
        BatchMember("two", {"id": 2}),
        BatchMember("three", {}, "it is too large"),
    )
    batch = Batch("sweep", "two noises", members)
    store = Store()
    store.batches.request(batch, "ann")
    lease = store.take(ProcessId.me(), 9, {"one"})
    assert lease
    store.append(lease, [Finished(1, 1.0)])
    return batch


def test_batches_are_listed(batch: Batch, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["batches"]) == 0
    line = capsys.readouterr().out
    assert line == f"{batch.id}  sweep      1 finished, 1 queued, 1 refused  two noises\n"
    assert main(["batches", "--json"]) == 0
    (body,) = json.loads(capsys.readouterr().out)
    assert body["id"] == batch.id and body["problems"] == ["it is too large"]
    assert body["statuses"] == {"finished": 1, "queued": 1} and "ann" not in str(body)


def test_a_batch_is_cancelled_and_deleted(batch: Batch, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store()
    assert main(["cancel", batch.id]) == 0
    assert capsys.readouterr().out == f"{batch.id}: 1 of 2 runs cancelled\n"
    assert store.statuses(["one", "two"]) == {"one": "finished", "two": "cancelled"}
    assert main(["delete", batch.id, "--json"]) == 0
    assert store.runs() == [] and store.batches.listed() == []
    assert main(["cancel", batch.id]) == 2


def test_a_batch_under_way_is_not_deleted(batch: Batch, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store()
    lease = store.take(ProcessId.me(), 9, {"two"})
    assert lease
    assert main(["delete", batch.id]) == 2
    assert "1 of its runs are running. Cancel it first" in capsys.readouterr().err
    assert store.status("one") == "finished"
