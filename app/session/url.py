"""The address of a page. A visit reads it into settings; every change of the settings rewrites it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn
from urllib.parse import urlencode, urlsplit

import streamlit as st

from app.session import run_settings, screens, session
from app.session.run_settings import Settings
from app.texts import product
from engine.errors import shown

PINS = 8  # at most


def linked(name: str) -> tuple[str, ...]:
    """The ids of the runs under this name: `run` (one for each seed), `twin`, which is the baseline, or `pins`."""
    return tuple(st.session_state.get("ids", {}).get(name, ()))


def show(**ids: Sequence[str]) -> None:
    """Show other runs, and put them into the link."""
    unique = {name: tuple(dict.fromkeys(values))[:PINS] for name, values in ids.items()}
    st.session_state["ids"] = {**st.session_state.get("ids", {}), **unique}


def pin(run: str) -> None:
    """Keep a run on the page of the Lab, to compare others with it."""
    show(pins=[*linked("pins"), run])


def unpin(run: str) -> None:
    show(pins=[pinned for pinned in linked("pins") if pinned != run])


def read_settings(default: Settings) -> None:
    """Read the settings from a link that this page did not write: at a first visit, and after going back."""
    params = {name: str(value) for name, value in st.query_params.items()}
    if not params and "seen" in st.session_state:  # back from another screen: the address is empty
        st.session_state.update(seen=params, written=None)
        return
    if "seen" in st.session_state and (session.recall("acted") or params == st.session_state["seen"]):
        return
    read_runs()
    settings, notes = run_settings.read_link(params, default)
    st.session_state.update(seen=params, settings=settings, notes=notes)
    _arrive_seeds(params.get("seeds", ""), notes)


def _arrive_seeds(text: str, notes: list[str]) -> None:
    """Read the number of seeds from a link. Adds a note if the number is over the limit."""
    seeds = int(text[:9]) if text.isdecimal() else 1
    if seeds > run_settings.SEEDS:
        notes.append(product.FEWER_SEEDS.format(most=run_settings.SEEDS, asked=shown(text)))
    session.remember("seeds", max(1, min(run_settings.SEEDS, seeds)))


def read_runs() -> None:
    """Read the runs from the link. They can be shown before the shelves are loaded."""
    ids: dict[str, list[str]] = {}
    for name in ("run", "twin", "pins"):
        words = str(st.query_params.get(name, "")).split(",")
        ids[name] = [word for word in words if word]
    show(**ids)


def write_link() -> None:
    """Write everything that the page shows into its address. Going back in the browser then restores it."""
    link = _link()
    if link != st.session_state.get("written"):
        st.session_state.update(written=link, seen=link)
        st.query_params.from_dict(link)
    session.remember("acted", False)


def address() -> str:
    """The address of this page with everything that it shows."""
    return f"{_base()}?{urlencode(_link())}"


def _base() -> str:
    return (st.context.url or "").partition("?")[0]


def offers_camera() -> bool:
    """Whether a browser offers its camera to this page: only over https, and on the computer of the server."""
    address = urlsplit(_base())
    return address.scheme == "https" or address.hostname in ("localhost", "127.0.0.1", "::1")


def _link() -> dict[str, str]:
    ids = {name: ",".join(values) for name, values in st.session_state.get("ids", {}).items() if values}
    seeds = session.recall("seeds", 1)
    seeds_param = {"seeds": str(seeds)} if seeds != 1 else {}
    return {**run_settings.link(session.settings()), **seeds_param, **ids}


def params() -> dict[str, str]:
    """The parameters that are in the address now."""
    return {name: str(value) for name, value in st.query_params.items()}


def changed_link(screen: str) -> dict[str, str] | None:
    """The link of a screen if the screen did not write it: at a first visit, and after going back."""
    linked = params()
    seen = session.recall(f"seen:{screen}")
    if seen is not None and (session.recall("acted") or not linked or linked == seen):
        return None
    session.remember(f"seen:{screen}", linked)
    return linked


def write_screen_link(screen: str, link: Mapping[str, str]) -> None:
    """Write everything that a screen shows into its address."""
    if params() != link:
        st.query_params.from_dict(dict(link))
    session.remember(f"seen:{screen}", dict(link))
    session.remember("acted", False)


def open_screen(screen: str, link: Mapping[str, str]) -> NoReturn:
    """Open another screen. It reads this link, even if a setting changed in the same pass."""
    st.session_state.update({"acted": False, "seen" if screen == "lab" else f"seen:{screen}": None})
    screens.go_to(screen, dict(link))


def export_path(kind: str, id: str) -> str:
    """The address of the exported page of a run, an attack, a batch or an example."""
    return f"/export/{kind}/{id}.html"


def export_list_path(kind: str, ids: Sequence[str], **params: str) -> str:
    """The address of the exported page of several attacks (`grid`) or runs (`sweep`), stored or live."""
    return f"/export/{kind}.html?{urlencode({'ids': ','.join(ids), **params}, safe=',')}"


def current_address() -> str:
    """The address of this page with the parameters that are in it now."""
    return f"{_base()}?{urlencode(st.query_params.to_dict())}"
