"""The private parts of many clients: in memory while they are few, in one nameless file beyond that."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping
from typing import IO

import numpy as np
import torch

from engine.records import Private

LIMIT_BYTES = 200_000_000


class ClientStore(MutableMapping[int, Private]):
    """What clients keep, by client id. The file has no name: nothing of it stays behind when the process is killed."""

    def __init__(self, limit: int = LIMIT_BYTES) -> None:
        self._limit, self._held = limit, 0
        self._near: dict[int, Private] = {}
        self._far: dict[int, int] = {}  # client -> where its bytes begin
        self._layout: dict[str, torch.Size] = {}  # the same for every client of a run
        self._file: IO[bytes] | None = None
        self._end = 0  # of the file: places are never given twice

    def __setitem__(self, client: int, private: Private) -> None:
        many = sum(tensor.nbytes for tensor in private.values())
        shapes = {name: tensor.shape for name, tensor in private.items()}
        plain = all(tensor.dtype == torch.float32 for tensor in private.values())
        if client in self._near or not plain or self._layout not in ({}, shapes) or self._held + many <= self._limit:
            self._held += 0 if client in self._near else many
            self._near[client] = private
            self._far.pop(client, None)
            return
        self._layout, self._file = shapes, self._file or tempfile.TemporaryFile()  # noqa: SIM115  (closed with the run)
        place = self._far.setdefault(client, self._end)
        self._end = max(self._end, place + many)
        flat = np.concatenate([tensor.detach().cpu().numpy().ravel() for tensor in private.values()])
        os.pwrite(self._file.fileno(), flat.tobytes(), place)

    def __getitem__(self, client: int) -> Private:
        if client not in self._far:
            return self._near[client]
        assert self._file is not None
        sizes = [shape.numel() for shape in self._layout.values()]
        flat = torch.frombuffer(
            bytearray(os.pread(self._file.fileno(), 4 * sum(sizes), self._far[client])), dtype=torch.float32
        )
        parts = zip(self._layout.items(), flat.split(sizes), strict=True)
        return {name: part.view(shape) for (name, shape), part in parts}

    def __delitem__(self, client: int) -> None:
        raise TypeError("a client's private part is replaced, never removed")

    def __iter__(self) -> Iterator[int]:
        return iter(sorted({*self._near, *self._far}))

    def __len__(self) -> int:
        return len(self._near) + len(self._far)


def client_store(privates: Mapping[int, Private]) -> ClientStore:
    """The same private parts, ready to grow."""
    if isinstance(privates, ClientStore):
        return privates
    made = ClientStore()
    made.update(privates)
    return made
