"""The supervisor: claims runs, hands them to workers, writes down what they tell, and lets go of what must stop."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from queue import Empty, Full, Queue
from typing import Any

from engine.errors import Damaged, HomeError, LeakLensError, LeaseLost
from engine.events import Cancelled, Event, Failed, Round, decode, encode
from engine.jobs.leases import Lease
from engine.jobs.process_id import ProcessId, cores
from engine.jobs.store import Store
from engine.jobs.worker_handle import Inbox, WarmWorkerSlots, WorkerHandle

TICK_S = 0.05
BEAT_S = 2.0
TIDY_S = 5.0
CANCEL_S = 0.7  # for a worker to stop by itself; after it the process is ended
CRASHES = 3  # at the same place, then the run has failed
JOBS = 100  # of one worker
IDLE_S = 30.0  # for more than one worker without work
SOON_S = 120.0  # so long a worker is kept for runs that may be asked for
SPARE_S = 2.0  # a run that has just begun keeps its cores to itself before the next spare is warmed up
LOOK_S = 1.0  # how often it is looked whether a warm worker would get a slot
QUEUED_S = 3.0  # so long a warm worker waits although all slots are in use
PAUSE_S = 1.0  # after trouble with the home
ENTRIES = {False: "engine.training.loop:run_json", True: "engine.jobs.entries:attack_json"}  # is it an attack?
INBOX = 4096  # lines; a worker that tells more has to wait


@dataclass
class RunningJob:
    """One lease in the hands of one worker."""

    lease: Lease
    threads: int
    round: int
    crashes: int = 0
    deadline: float | None = None  # set by a cancel
    beat: float = field(default_factory=time.monotonic)
    next_look: float = 0.0  # when it is asked again whether anybody wants it


class Supervisor:
    """One thread beside a page or a command; many of them, in many processes, may share one store."""

    def __init__(
        self,
        store: Store,
        workers: int | None = None,
        entry: str | None = None,
        preload: Sequence[str] = ("torch", "engine.training.loop"),
        only: Container[str] | None = None,
    ) -> None:
        """`only`: claim these runs and no others, as a command does that ends with its own run."""
        self.store, self.entry, self.preload, self.only = store, entry, tuple(preload), only
        self.workers = workers or cores()
        self._inbox: Inbox = Queue(INBOX)
        self._crew: list[WorkerHandle] = []
        self._tasks: dict[WorkerHandle, RunningJob] = {}
        self._spare = WarmWorkerSlots(store.home.path, self.workers)
        self._next_spare = self._next_tidy = self._next_look = self._next_try = 0.0
        self._soon = (1, 0.0)  # how many workers may be needed, and until when that is believed
        self._crowded: float | None = None  # since when all slots are in use
        self._unsaid: list[tuple[Lease, Failed]] = []  # how runs ended that the store could not be told
        self._lost: Exception | None = None  # what cost us a run
        self._stuck: Exception | None = None  # what cost us the last step
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> Supervisor:
        if self._thread is None:
            self._stopping.clear()
            self._thread = threading.Thread(target=self._live, name="supervisor", daemon=True)
            self._thread.start()
        return self

    def stop(self) -> None:
        """End the workers and give every lease back: its run is interrupted, and goes on when it is asked again."""
        thread, self._thread = self._thread, None
        if thread:
            self._stopping.set()
            thread.join()

    def __enter__(self) -> Supervisor:
        return self.start()

    def wake(self) -> None:
        """Look for new questions now, not at the next tick."""
        with suppress(Full):
            self._inbox.put_nowait((None, None))

    def __exit__(self, *how: object) -> None:
        self.stop()

    def expect(self, runs: int) -> None:
        """So many runs may be asked for in a moment: as many workers as may work on them are kept warm for a while."""
        self._soon = (max(1, min(runs, self.workers)), time.monotonic() + SOON_S)
        self._next_spare = 0.0
        self.wake()

    @property
    def warm(self) -> bool:
        """Whether the workers that may be needed have imported what they need."""
        ready = sum(worker.ready and not worker.busy for worker in list(self._crew))
        return ready >= self._expected(time.monotonic())

    def _expected(self, now: float) -> int:
        """How many workers wait for work where there is none."""
        return self._soon[0] if now < self._soon[1] else 1

    @property
    def working(self) -> bool:
        """Whether it holds a run."""
        return bool(self._tasks)

    @property
    def trouble(self) -> Exception | None:
        """Why a run was lost or nothing moves, until something works again."""
        return self._lost or self._stuck

    # --- the thread ----------------------------------------------------------------------------------------------

    def _live(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    self._step()
                    self._stuck = None
                except Exception as error:  # a server outlives any trouble; what it held can be asked again
                    self._stuck = error
                    if not isinstance(error, HomeError):
                        self._lost = error if self._tasks else self._lost
                        self._let_go()
                    self._stopping.wait(PAUSE_S)
        finally:
            self._let_go()

    def _step(self) -> None:
        for worker, lines in self._collect(TICK_S).items():
            self._hear(worker, lines)
            if None in lines:
                self._lose(worker)
        for worker, task in list(self._tasks.items()):
            with self._holding(worker, task):
                self._watch(worker, task)
        for worker in self._crew:
            if worker.stuck:  # what it was given since goes to a fresh one
                worker.kill()
        self._catch_up()
        if time.monotonic() > self._next_tidy:
            self._next_tidy = time.monotonic() + TIDY_S
            self.store.tidy()
        self._staff()
        self._claim()

    def _collect(self, wait: float) -> dict[WorkerHandle, list[bytes | None]]:
        """What the workers said since the last time: gathered, so that one transaction writes it."""
        heard: dict[WorkerHandle, list[bytes | None]] = {}
        with suppress(Empty):
            for count in range(INBOX):
                worker, line = self._inbox.get(block=count == 0, timeout=wait)
                if worker:
                    heard.setdefault(worker, []).append(line)
        return heard

    def _hear(self, worker: WorkerHandle, lines: Sequence[bytes | None]) -> None:
        told: list[Event] = []
        done = ""
        for line in lines:
            if line is None or not line.endswith(b"\n"):  # the end, or a line cut by it
                continue
            message = understood(line)
            if message is None:  # something may be missing now: a fresh worker tells it again from the checkpoint
                worker.garbled = True
                worker.kill()
                break
            if isinstance(message, Event):
                told.append(message)
            worker.ready |= isinstance(message, dict) and "ready" in message
            done = message.get("done", done) if isinstance(message, dict) else done
        if told and (task := self._tasks.get(worker)):
            with self._holding(worker, task):
                self._record(worker, task, told)
        if done:
            worker.done(done)

    def _record(self, worker: WorkerHandle, task: RunningJob, told: list[Event]) -> None:
        self.store.append(task.lease, told)
        task.round = max([task.round, *(event.round for event in told if isinstance(event, Round))])
        if told[-1].ends:
            del self._tasks[worker]
            worker.told_its_end()
            self._next_tidy = 0.0  # it may be what a deletion waits for

    def _watch(self, worker: WorkerHandle, task: RunningJob) -> None:
        """Cancel what nobody wants any more; show that the rest is still held."""
        now = time.monotonic()
        if task.deadline is None and now > task.next_look:
            task.next_look = now + TICK_S
            if self.store.unwanted(task.lease):
                task.deadline = now + CANCEL_S
                worker.cancel(task.lease.token)
        elif task.deadline is not None and now > task.deadline:
            self._dismiss(worker)
            self.store.append(task.lease, [Cancelled(task.round)])
            self._next_tidy = 0.0
        if now - task.beat > BEAT_S and worker in self._tasks:
            task.beat = now
            self.store.renew(task.lease)

    def _claim(self) -> None:
        holder = ProcessId.me()
        while len(self._tasks) < self.workers:
            lease = self.store.take(holder, self.workers, self.only)
            if lease is None:
                return
            threads = lease.options.get("threads") or (cores() if lease.alone else 1)
            self._lost = None
            self._assign(RunningJob(lease, threads, lease.resume.round if lease.resume else 0))
            self._next_spare = time.monotonic() + SPARE_S

    def _assign(self, task: RunningJob) -> None:
        # one that has told its ending is about to be free: it takes the next job from its queue
        free = [worker for worker in self._crew if worker not in self._tasks and worker.jobs < JOBS]
        worker = min(free, key=lambda worker: (worker.busy, not worker.ready)) if free else self._hire()
        lease = task.lease
        self._tasks[worker] = task
        worker.begin(
            {
                "token": lease.token,
                "run": lease.run,
                "entry": self.entry or ENTRIES["attack" in lease.spec],
                "spec": lease.spec,
                "resume": encode(lease.resume) if lease.resume else None,
                "home": str(self.store.home.path),
                "threads": task.threads,
                "device": lease.options.get("device") or "cpu",
            }
        )

    # --- the team ------------------------------------------------------------------------------------------------

    def _hire(self) -> WorkerHandle:
        worker = WorkerHandle(self._inbox, self.preload)
        self._crew.append(worker)
        return worker

    def _staff(self) -> None:
        """Warm workers wait where a run may still come and get a slot."""
        now = time.monotonic()
        if now > self._next_look:
            self._next_look = now + LOOK_S
            crowded = self.store.demand() >= self.workers
            self._crowded = (self._crowded or now) if crowded else None
        idle = self._idle(now)
        wanted = min(self._expected(now), self.workers - len(self._tasks))
        if self.only is not None and self._tasks:
            wanted = 0
        self._spare.leave(keep=max(idle, wanted))
        if idle >= max(1, wanted):
            return
        if not wanted or self._crowded:
            self._spare.leave()
        elif now > self._next_spare:
            self._next_spare = now + LOOK_S
            for _ in range(self._spare.take(wanted) - idle):
                self._hire()

    def _idle(self, now: float) -> int:
        """How many workers wait for work; the worn out and the superfluous are sent away."""
        idle = [worker for worker in self._crew if not worker.busy]
        for place, worker in enumerate(idle):
            late = self._crowded is not None and now - max(self._crowded, worker.idle_since) > QUEUED_S
            spare = place >= self._expected(now) and now - worker.idle_since > IDLE_S
            if late or worker.jobs >= JOBS or spare:
                self._dismiss(worker)
        return len(idle)

    def _dismiss(self, worker: WorkerHandle) -> None:
        self._tasks.pop(worker, None)
        if worker in self._crew:
            self._crew.remove(worker)
        worker.kill()

    def _lose(self, worker: WorkerHandle) -> None:
        """A worker's last line is read: it is dead, whether we ended it or not."""
        task = self._tasks.get(worker)
        self._dismiss(worker)
        if not worker.ready:  # it died while it warmed up, and so may the next one
            self._next_spare = time.monotonic() + TIDY_S
        how, words = worker.obituary(), worker.last_words()
        worker.bury()
        if task:
            with self._holding(worker, task):
                self._go_on(task, how, words)

    def _go_on(self, task: RunningJob, how: str, words: str) -> None:
        """A fresh worker goes on from the checkpoint, unless workers die again and again at the same place."""
        if task.deadline is not None:
            self.store.append(task.lease, [Cancelled(task.round)])
            return
        lease = self.store.rewind(task.lease)
        task.crashes = 1 if lease.after > task.lease.after else task.crashes + 1
        task.lease = lease
        if task.crashes < CRASHES:
            self._assign(task)
            return
        reason = f"the worker process stopped {CRASHES} times at the same place: it {how}"
        remedy = "Choose a smaller model or fewer clients per round, or ask again: it goes on from its checkpoint"
        self.store.append(lease, [Failed(reason, remedy, words)])

    @contextmanager
    def _holding(self, worker: WorkerHandle, task: RunningJob) -> Iterator[None]:
        """What to do with a run when the store refuses: forget what is not ours, fail what cannot be written."""
        try:
            yield
        except LeaseLost:
            self._dismiss(worker)
        except LeakLensError as trouble:
            self._lost = trouble
            self._dismiss(worker)
            end = Failed(trouble.message, trouble.remedy)
            if not self._said(task.lease, end):
                self._unsaid.append((task.lease, end))

    def _said(self, lease: Lease, end: Failed) -> bool:
        try:
            self.store.append(lease, [end])
        except LeaseLost:
            pass  # it was asked again or deleted meanwhile
        except LeakLensError:
            self.store.let_go(lease)
            return False
        return True

    def _catch_up(self) -> None:
        """Say what could not be said when it happened."""
        if self._unsaid and time.monotonic() > self._next_try:
            self._next_try = time.monotonic() + PAUSE_S
            self._unsaid = [one for one in self._unsaid if not self._said(*one)]
            self._lost = self._lost if self._unsaid else None

    def _let_go(self) -> None:
        """End all workers, write what they still said, give the leases back."""
        for worker in self._crew:
            worker.kill()
        speaking, last = set(self._crew), time.monotonic() + PAUSE_S
        while speaking and time.monotonic() < last:
            for worker, lines in self._collect(TICK_S).items():
                self._hear(worker, lines)
                if None in lines:
                    speaking.discard(worker)
                    worker.bury()
        for worker in list(self._crew):
            task = self._tasks.get(worker)
            self._dismiss(worker)
            worker.bury()
            with suppress(LeakLensError):
                if task:
                    self.store.release(task.lease)
        self._spare.leave()
        self._next_try = 0.0
        self._catch_up()


def understood(line: bytes) -> Event | dict[str, Any] | None:
    """A worker's line: an event, a word about itself, or nothing that we know."""
    try:
        message = json.loads(line)
        if isinstance(message, dict) and "event" in message:
            return decode(message)
    except (ValueError, Damaged):
        return None
    return message if isinstance(message, dict) and ("ready" in message or "done" in message) else None
