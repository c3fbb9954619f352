"""The states that ship: the one before the last round of each run of the first page.

An attack on the last round starts from there in place of the rounds before. Each state has a checksum. A damaged file
gives no state, so the rounds are replayed, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from engine.environment import ROOT
from engine.events import Kept, Payload

FILE = ROOT / "assets" / "start" / "models.safetensors"
UNREADABLE = (OSError, ValueError, LookupError, SafetensorError)


def shipped_states(run: str) -> tuple[Kept, ...]:
    """The states of this run that ship: none or one. Its arrays are named RUN/ROUND/NAME in the file."""
    try:
        with safe_open(FILE, framework="numpy") as file:
            names = file.keys()
            own = [name for name in names if name.startswith(f"{run}/")]
            checksums = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in own}
        if not arrays or _checksum(arrays) != checksums.get(run):
            return ()
        round = int(own[0].split("/")[1])
        payload = {name.split("/", 2)[2]: array for name, array in arrays.items()}
        return (Kept("state", f"state-{round}", round, payload=payload),)
    except UNREADABLE:
        return ()


def packed(states: Iterable[tuple[str, Kept]]) -> bytes:
    """The states of these runs as the file that ships."""
    arrays: dict[str, np.ndarray] = {}
    checksums: dict[str, str] = {}
    for run, state in states:
        assert state.payload is not None
        own = {f"{run}/{state.round}/{name}": np.ascontiguousarray(array) for name, array in state.payload.items()}
        arrays |= own
        checksums[run] = _checksum(own)
    return save(arrays, checksums)


def _checksum(arrays: Payload) -> str:
    """SHA-256 of names and values, in the order of the names."""
    digest = sha256()
    for name in sorted(arrays):
        digest.update(name.encode() + arrays[name].tobytes())
    return digest.hexdigest()
