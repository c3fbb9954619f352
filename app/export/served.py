"""The exported pages for one visitor of the dashboard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from app.export import pages
from app.export.slides import deck
from engine.errors import BadInput, LeakLensError, UnknownName, shown
from engine.jobs.owners import own_pictures
from engine.jobs.status import ListedRun
from engine.jobs.store import Store

NOT_HERE = "export: there is no {kind} {id} here. Open Runs to see what there is."
NOT_ALL_HERE = "export: not every run of this page is here. Open it again from its screen."


@dataclass(frozen=True)
class ServedExport:
    """An answer to a request for a page."""

    status: int  # of HTTP
    text: str  # the page, or a sentence
    name: str = ""  # of the file


def served_export(
    store: Store,
    kind: str,
    id: str,
    owner: str,
    view: str = "server",
    whose: str = "global",
    style: str = deck.STYLES[0],
) -> ServedExport:
    """The page with this id. `owner` is the visitor, or empty where every visitor owns all uploaded pictures.

    Kinds: a run, an attack, a batch, an example by its name, and a grid or a sweep of listed ids. `view` and `whose`
    choose the ε and the models of a sweep. `style` is that in which the file opens; an unknown one is the page.

    Privacy: a page holds pictures. The page of a run leaves out attacks on uploaded pictures of other visitors. Any
    other page with such an attack does not exist for this visitor.
    """
    may_see = partial(_may_see, store, owner)
    opens = style if style in deck.STYLES else deck.STYLES[0]
    request = pages.PageRequest(id, may_see, view, whose, style=opens)
    try:
        make = _maker(store, kind, id, may_see)
        return ServedExport(200, make(store, request), _file_name(kind, id, opens))
    except UnknownName:
        sentence = NOT_ALL_HERE if kind in pages.LISTS else NOT_HERE.format(kind=shown(kind), id=shown(id))
        return ServedExport(404, sentence)
    except BadInput as error:
        return ServedExport(409, str(error))
    except LeakLensError as error:
        return ServedExport(500, str(error))


def _maker(store: Store, kind: str, id: str, may_see: Callable[[ListedRun], bool]) -> pages.PageMaker:
    """The function that makes a page of this kind. An unknown kind, or an id of another kind, is refused."""
    if kind not in pages.KINDS or not id.isascii():
        raise UnknownName(f"export: no {shown(kind)}")
    if kind in ("run", "attack"):
        listed = store.run(id)
        if ("attack" in listed.spec) != (kind == "attack") or not may_see(listed):
            raise UnknownName(f"export: no {kind} {shown(id)}")
    return pages.KINDS[kind]


def _file_name(kind: str, id: str, style: str) -> str:
    names = ["leaklens", kind, "" if kind in pages.LISTS else id, "" if style == deck.STYLES[0] else style]
    return f"{'-'.join(filter(None, names))}.html"


def _may_see(store: Store, owner: str, run: ListedRun) -> bool:
    names = own_pictures(run.spec)
    return not owner or not names or store.owners.owns(names, owner)
