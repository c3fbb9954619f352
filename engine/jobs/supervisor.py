"""The supervisor: it claims runs, gives them to workers, stores their events, and stops what was cancelled."""

from __future__ import annotations

import threading
import time
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, Full, Queue

from engine.errors import HomeError, LeakLensError, LeaseLost
from engine.events import Cancelled, Event, Failed, Round
from engine.jobs.backends.base import Backend, BackendWorker, Inbox, job_message
from engine.jobs.backends.local import LocalBackend, parsed_line
from engine.jobs.leases import EXPRESS, Lease, RunningJob
from engine.jobs.process_id import ProcessId
from engine.jobs.store import Store

TICK_S = 0.05
BEAT_S = 2.0
TIDY_S = 5.0
CANCEL_GRACE_S = 0.7  # a cancelled worker may stop by itself within this time; then its process is killed
CRASHES = 3  # at the same place, then the run has failed
JOBS_PER_WORKER = 100
IDLE_S = 30.0  # an idle worker is kept this long, unless it is the last one
EXPECT_S = 120.0  # workers stay warm this long for runs that are expected
WARM_UP_PAUSE_S = 2.0  # a run that has just started keeps its cores this long before another worker warms up
DEMAND_S = 1.0  # how often the demand is checked to see whether a warm worker would get a slot
QUEUED_S = 3.0  # a warm worker waits this long while all slots are in use
PAUSE_S = 1.0  # after an error of the home
INBOX = 4096  # lines; a worker that writes more has to wait


class Supervisor:
    """One thread next to a page or a command. Many supervisors, in many processes, may share one store."""

    def __init__(
        self,
        store: Store,
        workers: int | None = None,
        entry: str | None = None,
        preload: Sequence[str] = ("torch", "engine.training.loop"),
        only: Container[str] | None = None,
        backend: Backend | None = None,
        warm: int = 1,
    ) -> None:
        """`only`: claim these runs and no others. A command uses it, because it ends with its own run.

        `backend`: where the jobs run; processes on this machine by default. `warm`: idle workers that are always kept.
        """
        self.store = store
        self.entry = entry
        self.preload = tuple(preload)
        self.only = only
        self.backend: Backend = backend or LocalBackend()
        self.workers = workers or self.backend.slots
        self._reserve = EXPRESS if only is None else 0  # idle workers for instant attacks while all slots are in use
        self._inbox: Inbox = Queue(INBOX)
        self._handles: list[BackendWorker] = []
        self._jobs: dict[BackendWorker, RunningJob] = {}
        self._warm_slots = self.backend.warm_slots(store.home.path, self.workers)
        self._next_warm_up = self._next_tidy = self._next_demand = self._next_retry = 0.0
        self._warm = warm
        self._expectation = (warm, 0.0)  # the workers to keep warm, and until when; one tuple, read by two threads
        self._full_since: float | None = None  # since when all slots are in use
        self._unwritten: list[tuple[Lease, Failed]] = []  # failures that the store could not write yet
        self._run_error: Exception | None = None  # the error that ended a run
        self._step_error: Exception | None = None  # the error of the last step
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> Supervisor:
        if self._thread is None:
            self._stopping.clear()
            self._thread = threading.Thread(target=self._loop, name="supervisor", daemon=True)
            self._thread.start()
        return self

    def stop(self) -> None:
        """End the workers and release every lease. The runs are interrupted, and resume when submitted again."""
        thread = self._thread
        self._thread = None
        if thread:
            self._stopping.set()
            thread.join()

    def __enter__(self) -> Supervisor:
        return self.start()

    def wake(self) -> None:
        """Look for new runs now, not at the next tick."""
        with suppress(Full):
            self._inbox.put_nowait((None, None))

    def __exit__(self, *how: object) -> None:
        self.stop()

    def expect(self, runs: int) -> None:
        """Prepare for this many runs: keep enough workers warm for them for a while."""
        self._expectation = (max(1, min(runs, self.workers)), time.monotonic() + EXPECT_S)
        self._next_warm_up = 0.0
        self.wake()

    @property
    def warm(self) -> bool:
        """True if enough idle workers have finished their imports."""
        ready = sum(worker.ready and not worker.busy for worker in list(self._handles))
        return ready >= self._expected_workers(time.monotonic())

    def _expected_workers(self, now: float) -> int:
        """How many idle workers to keep warm."""
        workers, until = self._expectation
        return max(self._warm, workers) if now < until else self._warm

    @property
    def working(self) -> bool:
        """True if a worker of this supervisor runs a job."""
        return bool(self._jobs)

    @property
    def trouble(self) -> Exception | None:
        """The error that ended a run or stops all runs. It clears when the next step or claim works."""
        return self._run_error or self._step_error

    # --- the thread ----------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    self._step()
                    self._step_error = None
                except Exception as error:  # a server survives any error; its runs can be submitted again
                    self._step_error = error
                    if not isinstance(error, HomeError):
                        self._run_error = error if self._jobs else self._run_error
                        self._release_all()
                    self._stopping.wait(PAUSE_S)
        finally:
            self._release_all()

    def _step(self) -> None:
        for worker, lines in self._collect(TICK_S).items():
            self._handle_lines(worker, lines)
            if None in lines:
                self._worker_ended(worker)
        for worker, job in list(self._jobs.items()):
            with self._store_errors(worker, job):
                self._check_job(worker, job)
        for worker in self._handles:
            if worker.stuck:  # a new worker gets the job that was given to it meanwhile
                worker.kill()
        self._retry_unwritten()
        if time.monotonic() > self._next_tidy:
            self._next_tidy = time.monotonic() + TIDY_S
            self.store.complete_deletions()
            if self.only is None:  # a command ends with its own runs
                self.store.batches.resume_interrupted()
        self._adjust_warm_workers()
        self._claim_runs()

    def _collect(self, wait: float) -> dict[BackendWorker, list[bytes | None]]:
        """The new lines of all workers, collected so that one transaction writes the events of a worker."""
        collected: dict[BackendWorker, list[bytes | None]] = {}
        with suppress(Empty):
            for count in range(INBOX):
                worker, line = self._inbox.get(block=count == 0, timeout=wait)
                if worker:
                    collected.setdefault(worker, []).append(line)
        return collected

    def _handle_lines(self, worker: BackendWorker, lines: Sequence[bytes | None]) -> None:
        events: list[Event] = []
        done = ""
        for line in lines:
            if line is None or not line.endswith(b"\n"):  # the end, or the line it cut off
                continue
            message = parsed_line(line)
            if message is None:  # an event may be lost: a new worker produces it again from the checkpoint
                worker.garbled = True
                worker.kill()
                break
            if isinstance(message, Event):
                events.append(message)
            else:
                worker.ready |= "ready" in message
                done = message.get("done", done)
        job = self._jobs.get(worker)
        if events and job:
            with self._store_errors(worker, job):
                self._record(worker, job, events)
        if done:
            worker.done(done)

    def _record(self, worker: BackendWorker, job: RunningJob, events: list[Event]) -> None:
        self.store.append(job.lease, events)
        for event in events:
            if isinstance(event, Round):
                job.round = max(job.round, event.round)
        if events[-1].ends:
            del self._jobs[worker]
            worker.run_ended()
            self._next_tidy = 0.0  # a deletion may be waiting for this run to end

    def _check_job(self, worker: BackendWorker, job: RunningJob) -> None:
        """Cancel the job if that was requested, and renew its lease."""
        now = time.monotonic()
        if job.deadline is None and now > job.next_check:
            job.next_check = now + TICK_S
            if self.store.stop_requested(job.lease):
                job.deadline = now + CANCEL_GRACE_S
                worker.cancel(job.lease.token)
        elif job.deadline is not None and now > job.deadline:
            self._dismiss(worker)
            self.store.append(job.lease, [Cancelled(job.round)])
            self._next_tidy = 0.0
        if now - job.beat > BEAT_S and worker in self._jobs:
            job.beat = now
            self.store.renew(job.lease)

    def _claim_runs(self) -> None:
        owner = ProcessId.me()
        while len(self._jobs) < self.workers + EXPRESS and not self._soon_free():
            lease = self.store.take(owner, self.workers, self.only)
            if lease is None:
                return
            default = self.backend.slots if lease.alone else 1
            threads = lease.options.get("threads") or default
            self._run_error = None
            self._assign(RunningJob(lease, threads, lease.resume.round if lease.resume else 0))
            self._next_warm_up = time.monotonic() + WARM_UP_PAUSE_S

    def _soon_free(self) -> bool:
        """True if a warm worker ends an instant attack soon, and no warm one is free: a cold one takes longer."""
        ready = [self._jobs.get(worker) for worker in self._handles if worker.ready]
        running = [job for job in ready if job]
        return len(running) == len(ready) and any(job.soon_ends for job in running)

    def _assign(self, job: RunningJob) -> None:
        # A worker whose run has ended, but which is still busy, counts as free: it takes this job next. That is sooner
        # than a worker that has not finished its imports.
        free = [worker for worker in self._handles if worker not in self._jobs and worker.jobs < JOBS_PER_WORKER]
        lease = job.lease
        try:
            worker = min(free, key=lambda worker: (not worker.ready, worker.busy)) if free else self._start_worker()
        except OSError as error:  # no more processes or files: the run is interrupted, and resumes when submitted again
            self._run_error = error
            self.store.release(lease)
            raise
        self._jobs[worker] = job
        worker.begin(job_message(lease, job.threads, self.store.home, self.entry))

    # --- workers -------------------------------------------------------------------------------------------------

    def _start_worker(self) -> BackendWorker:
        worker = self.backend.start(self._inbox, self.preload)
        self._handles.append(worker)
        return worker

    def _adjust_warm_workers(self) -> None:
        """Keep idle warm workers where a run may still come and get a slot."""
        now = time.monotonic()
        self._check_demand(now)
        idle = self._dismiss_idle(now)
        wanted = max(self._reserve, min(self._expected_workers(now), self.workers - len(self._jobs)))
        if self.only is not None and self._jobs:
            wanted = 0
        self._warm_slots.leave(keep=max(idle, wanted))
        if idle >= max(1, wanted):
            return
        if not wanted or (self._full_since and idle >= self._reserve):
            self._warm_slots.leave()
        elif now > self._next_warm_up:
            self._next_warm_up = now + DEMAND_S
            for _ in range(self._warm_slots.take(wanted) - idle):
                self._start_worker()

    def _check_demand(self, now: float) -> None:
        if now <= self._next_demand:
            return
        self._next_demand = now + DEMAND_S
        if self.store.demand() < self.workers:
            self._full_since = None
        elif not self._full_since:
            self._full_since = now

    def _dismiss_idle(self, now: float) -> int:
        """Count the idle workers, and end those that are worn out or no longer needed."""
        idle = [worker for worker in self._handles if not worker.busy]
        for number, worker in enumerate(idle):
            full = self._full_since is not None and number >= self._reserve
            late = full and now - max(self._full_since or 0.0, worker.idle_since) > QUEUED_S
            surplus = number >= self._expected_workers(now) and now - worker.idle_since > IDLE_S
            if late or worker.jobs >= JOBS_PER_WORKER or surplus:
                self._dismiss(worker)
        return len(idle)

    def _dismiss(self, worker: BackendWorker) -> None:
        self._jobs.pop(worker, None)
        if worker in self._handles:
            self._handles.remove(worker)
        worker.kill()

    def _worker_ended(self, worker: BackendWorker) -> None:
        """Clean up after a worker whose last line was read, and resume its job."""
        job = self._jobs.get(worker)
        self._dismiss(worker)
        if not worker.ready:  # it ended while it warmed up, and so may the next one
            self._next_warm_up = time.monotonic() + TIDY_S
        reason = worker.exit_reason()
        trace = worker.stderr_tail()
        failure = worker.failure(job.lease.spec, job.threads) if job else None
        worker.close()
        if job:
            with self._store_errors(worker, job):
                self._resume_or_fail(job, failure, reason, trace)

    def _resume_or_fail(self, job: RunningJob, failure: Failed | None, exit_reason: str, trace: str) -> None:
        """Resume on a new worker from the checkpoint. Fail after crashes at the same place, or for lack of memory."""
        if job.deadline is not None:
            self.store.append(job.lease, [Cancelled(job.round)])
            return
        lease = self.store.rewind(job.lease)
        if failure:
            self.store.append(lease, [failure])
            return
        job.crashes = 1 if lease.after > job.lease.after else job.crashes + 1
        job.lease = lease
        if job.crashes < CRASHES:
            self._assign(job)
            return
        reason = f"the worker process stopped {CRASHES} times at the same place: it {exit_reason}"
        remedy = "Choose a smaller model or fewer clients per round, or run it again: it resumes from its checkpoint"
        self.store.append(lease, [Failed(reason, remedy, trace)])

    @contextmanager
    def _store_errors(self, worker: BackendWorker, job: RunningJob) -> Iterator[None]:
        """End a worker whose lease was lost, or whose events the store cannot write. The latter fails the run."""
        try:
            yield
        except LeaseLost:
            self._dismiss(worker)
        except LeakLensError as error:
            self._run_error = error
            self._dismiss(worker)
            failed = Failed(error.message, error.remedy)
            if not self._write_failure(job.lease, failed):
                self._unwritten.append((job.lease, failed))

    def _write_failure(self, lease: Lease, failed: Failed) -> bool:
        try:
            self.store.append(lease, [failed])
        except LeaseLost:
            pass  # the run was submitted again or deleted meanwhile
        except LeakLensError:
            self.store.release_in_memory(lease)
            return False
        return True

    def _retry_unwritten(self) -> None:
        """Write failures that the store could not write when they happened."""
        if self._unwritten and time.monotonic() > self._next_retry:
            self._next_retry = time.monotonic() + PAUSE_S
            pending = self._unwritten
            self._unwritten = [entry for entry in pending if not self._write_failure(*entry)]
            self._run_error = self._run_error if self._unwritten else None

    def _release_all(self) -> None:
        """End all workers, store the events that they still wrote, and release the leases."""
        for worker in self._handles:
            worker.kill()
        open_workers = set(self._handles)
        deadline = time.monotonic() + PAUSE_S
        while open_workers and time.monotonic() < deadline:
            for worker, lines in self._collect(TICK_S).items():
                self._handle_lines(worker, lines)
                if None in lines:
                    open_workers.discard(worker)
                    worker.close()
        for worker in list(self._handles):
            job = self._jobs.get(worker)
            self._dismiss(worker)
            worker.close()
            with suppress(LeakLensError):
                if job:
                    self.store.release(job.lease)
        self._warm_slots.leave()
        self._next_retry = 0.0
        self._retry_unwritten()
