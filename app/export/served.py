"""The exported page of a run or an attack for one visitor of the dashboard."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from app.export.document import page
from engine.errors import BadInput, LeakLensError, UnknownName
from engine.jobs.owners import own_pictures
from engine.jobs.status import ListedRun
from engine.jobs.store import Store

KINDS = ("run", "attack")


@dataclass(frozen=True)
class ServedExport:
    """An answer to a request for a page."""

    status: int  # of HTTP
    text: str  # the page, or a sentence
    name: str = ""  # of the file


def served_export(store: Store, kind: str, id: str, owner: str) -> ServedExport:
    """The page with this id. `owner` is the visitor, or empty where every visitor owns all uploaded pictures.

    Privacy: a page holds pictures. The page of a run leaves out attacks on uploaded pictures of other visitors, and the
    page of such an attack does not exist for this visitor.
    """
    may_see = partial(_may_see, store, owner)
    try:
        listed = store.run(id)
        if kind not in KINDS or ("attack" in listed.spec) != (kind == "attack") or not may_see(listed):
            raise UnknownName(f"export: there is no {kind} {id} here", "Open Runs to see what there is")
        return ServedExport(200, page(store, id, may_see=may_see), f"leaklens-{kind}-{id}.html")
    except UnknownName as error:
        return ServedExport(404, str(error))
    except BadInput as error:
        return ServedExport(409, str(error))
    except LeakLensError as error:
        return ServedExport(500, str(error))


def _may_see(store: Store, owner: str, run: ListedRun) -> bool:
    names = own_pictures(run.spec)
    return not owner or not names or store.owners.owns(names, owner)
