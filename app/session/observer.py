"""The one observer of all screens: who must not learn it. The header shows it, and every address holds it as `eyes`."""

from __future__ import annotations

from app.session import session, url
from app.texts import privacy

PARAMETER = "eyes"
DEFAULT = privacy.OBSERVER
OFFERED = ("server", "client", "outsider")  # in the header; a link may also name the aggregate


def current() -> str:
    """The observer that every ε, badge, limit and sentence of this visitor is about."""
    return str(session.recall("observer", DEFAULT))


def choose(view: str) -> None:
    """Choose the observer. No run starts: the noise of each run stays, and its ε follows."""
    session.remember("observer", view)
    session.remember("acted", True)  # the next pass must not read the address, which still has the old one


def arrive() -> None:
    """Take over the observer of an address that the page did not write: at a first visit, and after going back."""
    view = url.params().get(PARAMETER)
    if view in privacy.VIEWS and not session.recall("acted"):
        session.remember("observer", view)


def offered() -> tuple[str, ...]:
    """The observers of the header: the three, and the chosen one."""
    return OFFERED if current() in OFFERED else (*OFFERED, current())
