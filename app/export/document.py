"""The whole exported page: its head, its content security policy, and its sections in reading order."""

from __future__ import annotations

import base64
import hashlib
import tomllib
from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path

from app import theme
from app.export import attack_section, membership_section, run_section
from app.export import texts as export_texts
from app.export.gather import PageContent, attack_name, everything, find
from app.export.markup import Html, joined, tag
from app.session import run_settings
from app.texts import privacy, product, states
from engine.environment import ROOT
from engine.errors import Damaged, LeakLensError
from engine.jobs.status import ListedRun
from engine.jobs.store import Store

MARK = "leaklens-page"  # the generator in the head, which identifies a page of LeakLens
HERE = Path(__file__).parent


# What drawing damaged events raises: a value of the right type may still be none that this program writes.
DATA_ERRORS = (KeyError, IndexError, TypeError, ValueError, AttributeError, ZeroDivisionError, OverflowError)


def page(store: Store, run: str, made: date | None = None, may_see: Callable[[ListedRun], bool] = everything) -> str:
    """One run with its attacks, or one attack, as an HTML file without links to other files."""
    try:
        return _page(find(store, run, may_see), made)
    except LeakLensError:
        raise
    except DATA_ERRORS as error:
        raise Damaged(f"export: {run}: its stored data are damaged", "Delete it, then run it again") from error


def _page(content: PageContent, made: date | None) -> str:
    attacks, frames = attack_section.attacks(content)
    day = _day(made or datetime.now(UTC).date())
    body = joined(
        [
            tag("header", *_top(content)),
            tag(
                "main",
                attacks,
                membership_section.memberships(content),
                membership_section.not_here(content),
                run_section.accuracy_section(content.run),
                run_section.epsilon_section(content.run),
                run_section.request_section(content),
                _limits(),
            ),
            tag("footer", tag("p", _foot(content), export_texts.MADE.format(made=day))),
            frames,
            tag("script", Html(_file("scrub.js"))) if frames else None,
        ]
    )
    return "<!doctype html>\n" + tag("html", _head(content), tag("body", body), lang="en") + "\n"


def _head(content: PageContent) -> Html:
    """The head. Its policy allows only this page's own script and style, and no network."""
    style = _style(content)
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(_file('scrub.js'))}; "
        "form-action 'none'; base-uri 'none'"
    )
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="generator", content=MARK),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{_title(content)} · {product.PRODUCT}"),
        tag("style", Html(style)),
    )


def _title(content: PageContent) -> str:
    method = run_section.title(content.run)
    data = run_section.data(content.run)
    if content.is_attack:
        attack = run_settings.attack_title(attack_name(content.listed.spec))
        return export_texts.AGAINST.format(attack=attack, method=method, data=data)
    text = export_texts.ON if content.attacks or content.memberships else export_texts.PLAIN
    return text.format(method=method, data=data)


def _top(content: PageContent) -> list[Html]:
    return [
        tag("p", product.PRODUCT, class_="brand"),
        tag("h1", _title(content)),
        _split(content),
        run_section.headline(content.run),
        run_section.reason(content.run) or Html(""),
    ]


def _split(content: PageContent) -> Html:
    """Small print below the title: who adds the noise."""
    split = run_section.split(content.run)
    return tag("p", tag("small", f"{run_section.title(content.run)}: {split}")) if split else Html("")


def _limits() -> Html:
    return tag(
        "section",
        tag("h2", export_texts.LIMITS),
        tag("ul", *(tag("li", text) for text in export_texts.LIMIT_TEXTS)),
        tag("h3", export_texts.NOT_COVERED),
        tag("ul", *(tag("li", text) for text in privacy.NOT_COVERED)),
    )


def _foot(content: PageContent) -> str:
    submitted = datetime.fromtimestamp(content.listed.submitted, UTC).date()
    kind = export_texts.NAMES["attack" if content.is_attack else "run"]
    status = states.STATES[content.listed.status]
    return export_texts.FOOT.format(
        version=version(), kind=kind, id=content.id, submitted=_day(submitted), status=status
    )


def _day(day: date) -> str:
    return f"{day.day} {day:%B %Y}"


@cache
def version() -> str:
    """The version from pyproject.toml. Empty if only the program was copied, as in a container."""
    if not (ROOT / "pyproject.toml").exists():
        return ""
    return " " + str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


# --- script and style --------------------------------------------------------------------------------------


@cache
def _file(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _style(content: PageContent) -> str:
    """The CSS rules, with the colours of the dashboard for light and dark."""
    method = str(content.run.settings["method"])
    light = f":root {{ {_colours(method, 'light')} }}"
    dark = f"@media (prefers-color-scheme: dark) {{ :root {{ {_colours(method, 'dark')} }} }}"
    return f"{light}\n{dark}\n{_file('page.css')}"


def _colours(method: str, side: str) -> str:
    named = {
        "private": theme.PRIVATE[side], "leaking": theme.LEAKING[side], "ink": theme.INK[side],
        "paper": theme.PAPER[side], "faint": theme.FAINT[side], "hair": theme.LINE[side],
        "run": theme.colour(method, side == "dark"),
    }  # fmt: skip
    return " ".join(f"--{name}: {colour};" for name, colour in named.items())


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
