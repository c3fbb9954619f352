"""Hands: processes that take restarts of an attack, because threads of one process wait for each other's Python.

A hand is told one exposure and what the attacker knows beside it; the truth never reaches its process.
"""

from __future__ import annotations

import hashlib
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

from engine.attacks import Attack, Prior
from engine.compute.threads import set_thread_modes
from engine.errors import RunFailed
from engine.pipes import private_pipes, serving
from engine.records import Exposure, Guess
from engine.seeds import Seeds


@dataclass(frozen=True)
class RestartOrder:
    """All that one attack knows."""

    attack: Attack
    build: Callable[[torch.Generator], nn.Module]
    exposure: Exposure
    prior: Prior | None
    seed: int

    def guesses(self, restart: int) -> Iterator[Guess]:
        """One restart's guesses, here and now, with a module and a chance of its own: nothing of the run's."""
        digest = hashlib.sha256(f"attack:{self.seed}:{restart}".encode()).digest()
        chance = Seeds(int.from_bytes(digest[:8], "big"))
        return self.attack.reconstruct(self.exposure, self.build(torch.Generator()), self.prior, chance)


class AttackProcess:
    """One such process, as seen from the one that gives the orders."""

    def __init__(self) -> None:
        self._order: RestartOrder | None = None
        self._process = serving("engine.leakage.processes")
        self._warm: Future[None] = Future()
        threading.Thread(target=self._await, daemon=True).start()

    def when_warm(self, call: Callable[[], None]) -> None:
        """Call, in a second or two, or now where it is warm; never, where it dies before."""
        self._warm.add_done_callback(lambda _: call())

    def _await(self) -> None:
        assert self._process.stdout
        with suppress(OSError, EOFError, ValueError):
            pickle.load(self._process.stdout)
            self._warm.set_result(None)

    def guesses(self, order: RestartOrder, restart: int) -> Generator[Guess, None, None]:
        """The same guesses as the order's own, made over there; left in the middle, the process ends."""
        news, self._order = (None if order is self._order else packed(order)), order
        over = False
        try:
            assert self._process.stdin and self._process.stdout
            say(self._process.stdin, (news, restart))
            while not over:
                word = pickle.load(self._process.stdout)
                over = not isinstance(word, Guess)
                if isinstance(word, BaseException):
                    raise word
                if not over:
                    yield word
        except (OSError, EOFError, pickle.UnpicklingError):
            law = f"a process of this attack ended by itself with exit code {self._process.wait()}"
            raise RunFailed(law, "If memory is short, ask for fewer restarts; then attack again") from None
        finally:
            if not over:
                self.end()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        """Its core is free when this returns."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe:
                    pipe.close()


_idle: list[AttackProcess] = []  # warm, and nobody's: they wait for the next attack as long as this process lives
_lock = threading.Lock()


@contextmanager
def borrowed_processes(count: int) -> Iterator[Sequence[AttackProcess]]:
    """So many hands for a while, started where too few are warm."""
    with _lock:
        warm = [hand for hand in (_idle.pop() for _ in range(min(count, len(_idle)))) if hand.alive]
    hands = [*warm, *(AttackProcess() for _ in range(count - len(warm)))]
    try:
        yield hands
    finally:
        with _lock:
            _idle.extend(hand for hand in hands if hand.alive)


def packed(order: RestartOrder) -> bytes:
    """Views of one memory as tensors of their own: each of them would carry the whole of it."""
    seen = order.exposure
    sent, received = ({name: tensor.clone() for name, tensor in one.items()} for one in (seen.sent, seen.received))
    return pickle.dumps(replace(order, exposure=replace(seen, sent=sent, received=received)))


def main() -> None:
    """Serve orders until whoever gives them closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever gives the orders
    orders, out = private_pipes()
    set_thread_modes()
    heard: SimpleQueue[tuple[bytes | None, int]] = SimpleQueue()
    threading.Thread(target=listen, args=(orders, heard), daemon=True).start()
    order: RestartOrder | None = None
    say(out, "warm")
    while True:
        news, restart = heard.get()
        if news is not None:
            order = pickle.loads(news)
        assert order is not None
        for word in words(order, restart):
            say(out, word)


def say(out: IO[bytes], word: object) -> None:
    pickle.dump(word, out)
    out.flush()


def listen(orders: BinaryIO, heard: SimpleQueue[tuple[bytes | None, int]]) -> None:
    """Runs beside the work, so that a lost owner ends the process whatever it computes."""
    try:
        while True:
            heard.put(pickle.load(orders))
    finally:
        os._exit(0)


def words(order: RestartOrder, restart: int) -> Iterator[Guess | BaseException | None]:
    """The guesses, an error where one came in between, and None at the end."""
    try:
        yield from order.guesses(restart)
        yield None
    except Exception as error:
        yield error


if __name__ == "__main__":
    main()
