"""The address of a page: read into settings at a visit, written back after each change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn
from urllib.parse import urlencode

import streamlit as st

from app.session import run_settings, screens, session
from app.session.run_settings import Settings
from app.texts import product
from engine.errors import shown

PINS = 8  # at most


def linked(name: str) -> tuple[str, ...]:
    """Runs that the page shows under this name: `run` (one for each seed), `twin`, `pins`."""
    return tuple(st.session_state.get("ids", {}).get(name, ()))


def show(**ids: Sequence[str]) -> None:
    """Name other runs in the link."""
    unique = {name: tuple(dict.fromkeys(values))[:PINS] for name, values in ids.items()}
    st.session_state["ids"] = {**st.session_state.get("ids", {}), **unique}


def arrive(usual: Settings) -> None:
    """Take everything from a link that we did not write: at a first visit, and after going back."""
    params = {name: str(value) for name, value in st.query_params.items()}
    if not params and "seen" in st.session_state:  # back from another screen, whose address holds nothing
        st.session_state.update(seen=params, written=None)
        return
    if "seen" in st.session_state and (session.recall("acted") or params == st.session_state["seen"]):
        return
    arrive_runs()
    found, told = run_settings.read_link(params, usual)
    st.session_state.update(seen=params, settings=found, told=told)
    _arrive_seeds(params.get("seeds", ""), told)


def _arrive_seeds(said: str, told: list[str]) -> None:
    many = int(said[:9]) if said.isdecimal() else 1
    if many > run_settings.SEEDS:
        told.append(product.FEWER_SEEDS.format(most=run_settings.SEEDS, asked=shown(said)))
    session.remember("seeds", max(1, min(run_settings.SEEDS, many)))


def arrive_runs() -> None:
    """The runs that the link names: they can be shown before any shelf is loaded."""
    said = {name: str(st.query_params.get(name, "")) for name in ("run", "twin", "pins")}
    show(**{name: [one for one in ids.split(",") if one] for name, ids in said.items()})


def write_link() -> None:
    """Everything that the page shows into its address; going back in the browser brings it back."""
    found = _link()
    if found != st.session_state.get("written"):
        st.session_state.update(written=found, seen=found)
        st.query_params.from_dict(found)
    session.remember("acted", False)


def address() -> str:
    """This page with everything it shows."""
    return f"{(st.context.url or '').partition('?')[0]}?{urlencode(_link())}"


def _link() -> dict[str, str]:
    ids = {name: ",".join(values) for name, values in st.session_state.get("ids", {}).items() if values}
    seeds = {"seeds": str(session.recall("seeds", 1))} if session.recall("seeds", 1) != 1 else {}
    return {**run_settings.link(session.settings()), **seeds, **ids}


def in_address() -> dict[str, str]:
    """What stands in the address, whoever wrote it."""
    return {name: str(value) for name, value in st.query_params.items()}


def news(screen: str) -> dict[str, str] | None:
    """The link of a screen, where it is not the one we wrote: at a first visit, and after going back."""
    params, seen = in_address(), session.recall(f"seen:{screen}")
    if seen is not None and (session.recall("acted") or not params or params == seen):
        return None
    session.remember(f"seen:{screen}", params)
    return params


def sign(screen: str, found: Mapping[str, str]) -> None:
    """Everything that a screen shows into its address."""
    if in_address() != found:
        st.query_params.from_dict(dict(found))
    session.remember(f"seen:{screen}", dict(found))
    session.remember("acted", False)


def leave(screen: str, link: Mapping[str, str]) -> NoReturn:
    """To another screen, which takes this link whatever was typed here in the same pass."""
    st.session_state.update({"acted": False, "seen" if screen == "lab" else f"seen:{screen}": None})
    screens.go_to(screen, dict(link))


def here() -> str:
    """The address of this page with everything that stands in it."""
    return f"{(st.context.url or '').partition('?')[0]}?{urlencode(st.query_params.to_dict())}"
