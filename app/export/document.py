"""The whole exported page: its head, its content security policy, and its sections in reading order."""

from __future__ import annotations

import base64
import hashlib
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path

from app import theme
from app.export import texts as export_texts
from app.export.closeness import section as closeness_section
from app.export.closeness.content import ExportedSystem
from app.export.markup import Html, joined, tag
from app.export.slides import deck
from app.texts import privacy, product
from engine.environment import ROOT
from engine.errors import Damaged, LeakLensError

MARK = "leaklens-page"  # the generator in the head, which identifies a page of LeakLens
HERE = Path(__file__).parent
STYLES = ("page.css", "closeness/closeness.css", "slides/slides.css")
SCRIPTS = ("slides/slides.js", "closeness/closeness.js")  # of every page

# What drawing damaged events raises: a value of the right type may still be none that this program writes.
DATA_ERRORS = (KeyError, IndexError, TypeError, ValueError, AttributeError, ZeroDivisionError, OverflowError)


@dataclass(frozen=True)
class PageParts:
    """What differs between exported pages."""

    title: str
    top: tuple[Html, ...]  # the first heading, and what follows it
    sections: tuple[Html | None, ...]
    foot: str
    system: ExportedSystem  # what a reader compares with another system
    method: str = ""  # whose colour the lines of the run have
    frames: Html | None = None  # the data of the scrubber


def checked(name: str, make: Callable[[], str]) -> str:
    """The page that `make` returns. Damaged events give an error with a remedy."""
    try:
        return make()
    except LeakLensError:
        raise
    except DATA_ERRORS as error:
        raise Damaged(f"export: {name}: its stored data are damaged", "Delete it, then run it again") from error


def written(parts: PageParts, made: date | None = None, opens: str = deck.STYLES[0]) -> str:
    """The page as one HTML file without links to other files. It opens in the style `opens`."""
    day = day_text(made or datetime.now(UTC).date())
    script = _script(parts.frames is not None)
    body = joined(
        [
            deck.controls(),
            tag("header", *parts.top),
            tag("main", *parts.sections, closeness_section.section(parts.system)),
            tag("footer", tag("p", f"{parts.foot} ", export_texts.MADE.format(made=day))),
            parts.frames,
            closeness_section.data(parts.system),
            tag("script", Html(script)),
        ]
    )
    page = tag("html", _head(parts, script), tag("body", body), lang="en", data_opens=opens)
    return f"<!doctype html>\n{page}\n"


def _head(parts: PageParts, script: str) -> Html:
    """The head. Its policy allows only this page's own script and style, and no network."""
    style = _style(parts.method)
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "form-action 'none'; base-uri 'none'"
    )
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="generator", content=MARK),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{parts.title} · {product.PRODUCT}"),
        tag("style", Html(style)),
    )


def brand() -> Html:
    """The name of the product above the first heading."""
    return tag("p", product.PRODUCT, class_="brand")


def limits(sweep: bool = False) -> Html:
    """What the results of a page do not show. A sweep has no attacks."""
    texts = () if sweep else export_texts.LIMIT_TEXTS
    return tag(
        "section",
        tag("h2", export_texts.LIMITS),
        tag("ul", *(tag("li", text) for text in texts)) if texts else None,
        tag(
            "div",
            tag("h3", export_texts.NOT_COVERED),
            tag("ul", *(tag("li", text) for text in privacy.NOT_COVERED)),
            data_slide=deck.LIMITS,
        ),
        data_slide=deck.LIMITS if texts else None,
    )


def day_text(day: date) -> str:
    """A day in words: 1 March 2026."""
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


@cache
def _script(frames: bool) -> str:
    """All scripts of a page. Each is a function, so that none sees the names of another."""
    files = [*SCRIPTS, "scrub.js"] if frames else SCRIPTS
    return "\n".join(f"(() => {{\n{_file(name)}}})();" for name in files)


def _style(method: str) -> str:
    """The CSS rules, with the colours of the dashboard for light and dark."""
    light = f":root {{ {_colours(method, 'light')} }}"
    dark = f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_colours(method, 'dark')} }} }}"
    return "\n".join([light, dark, *map(_file, STYLES)])


def _colours(method: str, side: str) -> str:
    named = {
        "private": theme.PRIVATE[side], "leaking": theme.LEAKING[side], "weak": theme.WEAK[side],
        "ink": theme.INK[side], "paper": theme.PAPER[side], "faint": theme.FAINT[side], "hair": theme.LINE[side],
        "run": theme.colour(method, side == "dark"),
    }  # fmt: skip
    for name, pair in theme.FAMILIES.items():
        named[f"family-{name}"] = pair[side == "dark"]
    return " ".join(f"--{name}: {colour};" for name, colour in named.items())


def family(method: str) -> str:
    """The family of a method, which names its colour."""
    return theme.METHODS.get(method, "ink")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
