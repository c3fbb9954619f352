"""The whole page: its head, what may run in it, and its parts in the order in which they are read."""

from __future__ import annotations

import base64
import hashlib
import tomllib
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path

from app import theme
from app.export import attack_section, run_section
from app.export import texts as said
from app.export.gather import PageContent, find
from app.export.markup import Html, joined, tag
from app.session import run_settings
from app.texts import privacy, product, states
from engine.environment import ROOT
from engine.jobs.store import Store

MARK = "leaklens-page"  # by which a page of ours is known again
HERE = Path(__file__).parent


def page(store: Store, run: str, made: date | None = None) -> str:
    """One run with the attacks on it, or one attack, as an HTML file that needs nothing else."""
    found = find(store, run)
    attacks, film = attack_section.attacks(found)
    body = joined(
        [
            tag("header", *_top(found)),
            tag(
                "main",
                attacks,
                run_section.learnt(found.run),
                run_section.spent(found.run),
                run_section.asked(found),
                _limits(),
            ),
            tag("footer", tag("p", _foot(found), said.MADE.format(made=_day(made or datetime.now(UTC).date())))),
            film,
            tag("script", Html(_file("scrub.js"))) if film else None,
        ]
    )
    return "<!doctype html>\n" + tag("html", _head(found), tag("body", body), lang="en") + "\n"


def _head(found: PageContent) -> Html:
    style = _style(found)
    allowed = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(_file('scrub.js'))}; "
        "form-action 'none'; base-uri 'none'"
    )
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=allowed),
        tag("meta", name="generator", content=MARK),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{_title(found)} · {product.PRODUCT}"),
        tag("style", Html(style)),
    )


def _title(found: PageContent) -> str:
    what, data = run_section.title(found.run), run_section.data(found.run)
    if found.of_attack:
        return said.AGAINST.format(attack=run_settings.attack_title(found.attacks[0].mine.attack), what=what, data=data)
    return (said.ON if found.attacks else said.PLAIN).format(what=what, data=data)


def _top(found: PageContent) -> list[Html]:
    return [
        tag("p", product.PRODUCT, class_="brand"),
        tag("h1", _title(found)),
        run_section.headline(found.run),
        run_section.reason(found.run) or Html(""),
    ]


def _limits() -> Html:
    return tag(
        "section",
        tag("h2", said.LIMITS),
        tag("ul", *(tag("li", text) for text in said.SAYS)),
        tag("h3", said.NOT_COVERED),
        tag("ul", *(tag("li", text) for text in privacy.NOT_COVERED)),
    )


def _foot(found: PageContent) -> str:
    asked = datetime.fromtimestamp(found.asked.submitted, UTC).date()
    kind = said.NAMES["attack" if found.of_attack else "run"]
    return said.FOOT.format(
        version=version(), kind=kind, id=found.id, asked=_day(asked), status=states.STATES[found.asked.status]
    )


def _day(day: date) -> str:
    return f"{day.day} {day:%B %Y}"


@cache
def version() -> str:
    """As the project itself says it; empty where only the program was copied, as into a container."""
    if not (ROOT / "pyproject.toml").exists():
        return ""
    return " " + str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


# --- what may run and how it looks -------------------------------------------------------------------------


@cache
def _file(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _style(found: PageContent) -> str:
    """The rules, with the colours of the dashboard on light and on dark paper."""
    method = str(found.run.part["method"])
    sides = {side: _colours(method, side) for side in ("light", "dark")}
    dark = f"@media (prefers-color-scheme: dark) {{ :root {{ {sides['dark']} }} }}"
    return f":root {{ {sides['light']} }}\n{dark}\n{_file('page.css')}"


def _colours(method: str, side: str) -> str:
    named = {
        "private": theme.PRIVATE[side], "leaking": theme.LEAKING[side], "ink": theme.INK[side],
        "paper": theme.PAPER[side], "faint": theme.FAINT[side], "hair": theme.LINE[side],
        "run": theme.colour(method, side == "dark"),
    }  # fmt: skip
    return " ".join(f"--{name}: {colour};" for name, colour in named.items())


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
