"""Processes that run restarts of an attack; in threads of one process, restarts wait for each other's Python code.

Privacy: a process receives one exposure and what the attacker knows besides. The truth never enters its memory.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import IO, BinaryIO

import torch
from torch import nn

from engine.attacks.pictures.base import PictureAttack, Prior
from engine.compute.context import AttackContext
from engine.compute.devices import PROCESSOR, copied, on_device, use_full_precision
from engine.compute.threads import set_thread_modes
from engine.errors import RunFailed
from engine.pipes import start_child, take_pipes
from engine.records import Exposure, Guess
from engine.seeds import Seeds


@dataclass(frozen=True)
class RestartRequest:
    """Everything that a restart of an attack may read."""

    attack: PictureAttack
    build: Callable[[torch.Generator], nn.Module]
    exposure: Exposure
    prior: Prior | None
    seed: int
    device: str = "cpu"  # where the attack computes; its exposure and its guesses are on the processor

    def guesses(self, restart: int) -> Iterator[Guess]:
        """The guesses of one restart, computed in this process.

        Privacy: the module and the seeds are the attack's own. The run's seeds would reproduce its noise and batches.
        """
        seeds = Seeds.of_text(f"attack:{self.seed}:{restart}")
        use_full_precision(self.device)
        context = AttackContext(seeds, torch.device(self.device))
        module = self.build(torch.Generator()).to(context.device)
        exposure = on_device(self.exposure, context.device)
        prior = on_device(self.prior, context.device)
        for guess in self.attack.reconstruct(exposure, module, prior, context):
            yield on_device(guess, PROCESSOR)


class AttackProcess:
    """A process that runs restarts, seen from its parent."""

    def __init__(self) -> None:
        self._request: RestartRequest | None = None
        self._process = start_child("engine.leakage.processes")
        self._ready: Future[None] = Future()
        threading.Thread(target=self._await_ready, daemon=True).start()

    def when_ready(self, call: Callable[[], None]) -> None:
        """Calls once the process is ready, after a second or two or at once; never if it ends before."""
        self._ready.add_done_callback(lambda _: call())

    def _await_ready(self) -> None:
        assert self._process.stdout
        with suppress(OSError, EOFError, ValueError):
            pickle.load(self._process.stdout)
            self._ready.set_result(None)

    def guesses(self, request: RestartRequest, restart: int) -> Generator[Guess, None, None]:
        """The same guesses as `request.guesses`, computed in the process; closing the generator early ends it."""
        new = None if request is self._request else packed(request)  # the process keeps its last request
        self._request = request
        finished = False
        try:
            assert self._process.stdin and self._process.stdout
            send(self._process.stdin, (new, restart))
            while not finished:
                reply = pickle.load(self._process.stdout)
                if isinstance(reply, Guess):
                    yield reply
                    continue
                finished = True
                if isinstance(reply, BaseException):
                    raise reply
        except (OSError, EOFError, pickle.UnpicklingError):
            rule = f"a process of this attack ended by itself with exit code {self._process.wait()}"
            raise RunFailed(rule, "If memory is short, choose fewer restarts; then run the attack again") from None
        finally:
            if not finished:
                self.end()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        """Kills the process, and waits until its core is free."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe:
                    pipe.close()


_idle: list[AttackProcess] = []  # started and unused; they wait for the next attack until this process ends
_lock = threading.Lock()


@contextmanager
def borrowed_processes(count: int) -> Iterator[Sequence[AttackProcess]]:
    """This many processes until the block ends: idle ones first, then new ones."""
    processes: list[AttackProcess] = []
    with _lock:
        for _ in range(min(count, len(_idle))):
            process = _idle.pop()
            if process.alive:
                processes.append(process)
    for _ in range(count - len(processes)):
        processes.append(AttackProcess())
    try:
        yield processes
    finally:
        with _lock:
            _idle.extend(process for process in processes if process.alive)


def packed(request: RestartRequest) -> bytes:
    """The request as bytes; tensors that are views of one memory are copied, because each would carry all of it."""
    return pickle.dumps(replace(request, exposure=copied(request.exposure)))


def main() -> None:
    """Serves restarts until the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which then closes the pipe
    requests, out = take_pipes()
    set_thread_modes()
    pending: SimpleQueue[tuple[bytes | None, int]] = SimpleQueue()
    threading.Thread(target=read_requests, args=(requests, pending), daemon=True).start()
    request: RestartRequest | None = None
    send(out, "ready")
    while True:
        new, restart = pending.get()
        if new is not None:
            request = pickle.loads(new)
        assert request is not None
        for reply in replies(request, restart):
            send(out, reply)


def send(out: IO[bytes], message: object) -> None:
    """Writes one message to a pipe."""
    pickle.dump(message, out)
    out.flush()


def read_requests(requests: BinaryIO, pending: SimpleQueue[tuple[bytes | None, int]]) -> None:
    """Reads requests in a thread of its own, so that a closed pipe ends the process also in the middle of a restart."""
    try:
        while True:
            pending.put(pickle.load(requests))
    finally:
        os._exit(0)


def replies(request: RestartRequest, restart: int) -> Iterator[Guess | BaseException | None]:
    """The guesses of a restart, then None; an error ends them instead."""
    try:
        yield from request.guesses(restart)
        yield None
    except Exception as error:
        yield error


if __name__ == "__main__":
    main()
