"""The end of a run that lacked memory: it names the memory that the run needs and the limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine import memory
from engine.errors import LeakLensError
from engine.events import Failed

SMALLER = "choose a smaller model, a smaller batch or fewer clients per round"
SIGNALS = ("SIGKILL", "SIGSEGV", "SIGABRT", "SIGBUS")  # how a process ends that gets no memory
MARGIN = 1.25  # of a suggested limit over the forecast


def of_error(spec: Mapping[str, Any], threads: int, trace: str) -> Failed:
    """The failure of a run whose worker reported the lack of memory itself."""
    if memory.CARD_SHORTAGE.search(trace):
        return Failed("the GPU has too little memory for this run", f"Leave --device out, or {SMALLER}", trace)
    limit = memory.limit()
    need = needed(spec, threads)
    if limit is None and need is None:
        return Failed("the run needs more memory than this machine has left", f"C{SMALLER[1:]}", trace)
    return _failed(limit, need, trace)


def of_exit(spec: Mapping[str, Any], threads: int, ending: str, trace: str, oom_kills: int) -> Failed | None:
    """The failure of a run whose worker ended by a signal or by itself. None if nothing shows a lack of memory.

    `ending` is the name of the signal, or empty. `oom_kills` is the count of the container when the worker started.
    """
    limit = memory.limit()
    shown = memory.SHORTAGE.search(trace) is not None
    killed = ending == "SIGKILL" and memory.oom_kills() > oom_kills
    if not (shown or killed or (limit and ending in SIGNALS)):
        return None
    need = needed(spec, threads)
    beyond = limit is not None and need is not None and ending in SIGNALS and total(need, limit) > limit.bytes
    return _failed(limit, need, trace) if shown or killed or beyond else None


def total(need: float, limit: memory.MemoryLimit) -> float:
    """The bytes of the run that count against a limit. Everything in a container shares its limit."""
    return need + (memory.resident() if limit.shared else 0.0)


def needed(spec: Mapping[str, Any], threads: int) -> float | None:
    """The forecast of the bytes of a run, or of the run that is attacked; None if there is no forecast."""
    run = spec.get("run", spec)
    if not isinstance(run, Mapping) or "method" not in run:
        return None
    try:
        from engine.specs.run import RunSpec
        from engine.training.forecast import memory as forecast_memory
        from engine.training.plan import make_plan

        return forecast_memory(make_plan(RunSpec(**run), False), threads)
    except (LeakLensError, MemoryError, ImportError, RuntimeError, OSError, TypeError, ValueError):
        return None  # no memory for a forecast either


def _failed(limit: memory.MemoryLimit | None, need: float | None, trace: str) -> Failed:
    allowed = f"the limit of {limit.source} is {gigabytes(limit.bytes)}" if limit else "this machine has less left"
    if need is None:
        return Failed(f"the run needs more memory than it may use: {allowed}", f"Raise it, or {SMALLER}", trace)
    wanted = total(need, limit) if limit else need
    if limit and wanted <= limit.bytes:  # an address space also holds the libraries, which no forecast counts
        reason = f"the run needs about {gigabytes(wanted)} of memory and its libraries more: {allowed}"
        return Failed(reason, f"Allow {gigabytes(2 * limit.bytes)}, or {SMALLER}", trace)
    reason = f"the run needs about {gigabytes(wanted)} of memory, and {allowed}"
    remedy = f"Allow {gigabytes(MARGIN * wanted)}, or {SMALLER}" if limit else f"Free some, or {SMALLER}"
    return Failed(reason, remedy, trace)


def gigabytes(count: float) -> str:
    return f"{count / 1e9:.2g} GB" if count < 10e9 else f"{count / 1e9:,.0f} GB"
