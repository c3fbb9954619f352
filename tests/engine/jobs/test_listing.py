"""The list of all runs: what is kept of finished runs is what the store says, and threads share one read."""

from __future__ import annotations

import random
import threading
from pathlib import Path

from engine.errors import LeakLensError
from engine.events import Failed, Finished, Round, Started
from engine.jobs.database import SharedRead
from engine.jobs.process_id import ProcessId
from engine.jobs.store import Store
from tests.engine.jobs.conftest import wait_until

RUNS = ("one", "two", "three")
ME = ProcessId.me()


def act(store: Store, rng: random.Random) -> None:
    """One thing that may happen to a store."""
    run = rng.choice(RUNS)
    action = rng.choice(("submit", "cancel", "delete", "finish", "finish", "fail", "begin"))
    if action == "submit":
        store.submit(run, {"seed": RUNS.index(run)})
    elif action == "cancel":
        store.cancel(run)
    elif action == "delete":
        store.delete(run)
    else:
        lease = store.take(ME, 8)
        if lease is None:
            return
        ending = {"finish": Finished(2, 0.5), "fail": Failed("broke")}.get(action, Round(1, 2, 3))
        store.append(lease, [Started(lease.run, {}, {}), ending])
        if action != "begin":
            store.release(lease)


def test_a_kept_list_is_that_of_a_store_which_was_just_opened(home: Path) -> None:
    rng = random.Random(7)
    store = Store(home)
    seen = set()
    for _ in range(300):
        try:
            act(store, rng)
        except LeakLensError:  # an action that the store refuses, such as deleting what is not there
            continue
        fresh = Store(home)
        assert store.runs() == fresh.runs()
        fresh.close()
        seen |= {run.status for run in store.runs()}
    store.close()
    assert {"finished", "queued", "running", "failed"} <= seen


class CountedLock:
    """A lock that counts who came to it."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self.count += 1
        self._lock.acquire()

    def __exit__(self, *how: object) -> None:
        self._lock.release()


def test_an_answer_is_read_after_each_thread_has_asked() -> None:
    version = 0
    reads: list[int] = []
    first_began, changed = threading.Event(), threading.Event()

    def read() -> int:
        reads.append(version)
        answer = version
        if len(reads) == 1:
            first_began.set()
            assert changed.wait(10)
        return answer

    shared = SharedRead(read)
    doors = CountedLock()
    shared._reading = doors  # type: ignore[assignment]
    answers: dict[str, int] = {}
    early = threading.Thread(target=lambda: answers.setdefault("early", shared()))
    early.start()
    assert first_began.wait(10)
    version = 1  # while the first read is under way
    late = [threading.Thread(target=lambda name=name: answers.setdefault(name, shared())) for name in ("a", "b", "c")]
    for thread in late:
        thread.start()
    wait_until(lambda: doors.count == 4, "the reader, and those that wait for the next read")
    changed.set()
    for thread in (early, *late):
        thread.join(10)
    assert answers == {"early": 0, "a": 1, "b": 1, "c": 1}
    assert reads == [0, 1]
