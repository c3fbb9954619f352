"""A store for the private parts of clients: in memory up to a limit, beyond it in one unnamed file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping
from typing import IO

import numpy as np
import torch

from engine.records import Private

LIMIT_BYTES = 50_000_000


class ClientStore(MutableMapping[int, Private]):
    """Private parts by client id.

    The file has no name, so no private data stay behind: the system frees it when the process ends, even when it is
    killed. A file with a name would remain on disk.
    """

    def __init__(self, limit: int = LIMIT_BYTES) -> None:
        self._limit = limit
        self._memory_bytes = 0
        self._in_memory: dict[int, Private] = {}
        self._offsets: dict[int, int] = {}  # client -> where its bytes begin in the file
        self._layout: dict[str, torch.Size] = {}  # the same for every client of a run
        self._device = torch.device("cpu")  # of the tensors that were stored
        self._file: IO[bytes] | None = None
        self._end = 0  # of the file: an offset is never used for a second client

    def __setitem__(self, client: int, private: Private) -> None:
        size = sum(tensor.nbytes for tensor in private.values())
        if self._stays_in_memory(client, private, size):
            if client not in self._in_memory:
                self._memory_bytes += size
            self._in_memory[client] = private
            self._offsets.pop(client, None)
            return
        self._layout = {name: tensor.shape for name, tensor in private.items()}
        self._device = next(iter(private.values())).device
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the run)
        offset = self._offsets.setdefault(client, self._end)
        self._end = max(self._end, offset + size)
        flat = np.concatenate([tensor.detach().cpu().numpy().ravel() for tensor in private.values()])
        os.pwrite(self._file.fileno(), flat.tobytes(), offset)

    def _stays_in_memory(self, client: int, private: Private, size: int) -> bool:
        """The file holds only float32 tensors of one layout; a client that is in memory stays there."""
        if client in self._in_memory or self._memory_bytes + size <= self._limit:
            return True
        if any(tensor.dtype != torch.float32 for tensor in private.values()):
            return True
        shapes = {name: tensor.shape for name, tensor in private.items()}
        return self._layout not in ({}, shapes)

    def __getitem__(self, client: int) -> Private:
        if client not in self._offsets:
            return self._in_memory[client]
        assert self._file is not None
        sizes = [shape.numel() for shape in self._layout.values()]
        stored = bytearray(os.pread(self._file.fileno(), 4 * sum(sizes), self._offsets[client]))
        flat = torch.frombuffer(stored, dtype=torch.float32).to(self._device)
        private: dict[str, torch.Tensor] = {}
        for (name, shape), part in zip(self._layout.items(), flat.split(sizes), strict=True):
            private[name] = part.view(shape)
        return private

    def __delitem__(self, client: int) -> None:
        raise TypeError("a client's private part is replaced, never removed")

    def __iter__(self) -> Iterator[int]:
        return iter(sorted({*self._in_memory, *self._offsets}))

    def __len__(self) -> int:
        return len(self._in_memory) + len(self._offsets)


def client_store(privates: Mapping[int, Private]) -> ClientStore:
    """These private parts in a store, or the store itself if they are in one already."""
    if isinstance(privates, ClientStore):
        return privates
    store = ClientStore()
    store.update(privates)
    return store
