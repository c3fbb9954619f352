"""HTML as values. Text is escaped when it becomes a child of an element; markup is not."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

EMPTY = {"meta", "img", "input", "br"}  # elements without content and without an end tag
Value = str | int | float | bool | None


class Html(str):
    """Markup made by `tag`. Every other string may come from outside and is escaped."""


Child = str | None


def tag(name: str, /, *children: Child, **attributes: Value) -> Html:
    """An element: `tag("p", "a < b", class_="x")`. An attribute that is None or False is left out."""
    written = "".join(_attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
    if name in EMPTY:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{joined(children)}</{name}>")


def joined(children: Iterable[Child]) -> Html:
    """The children one after the other, without None."""
    return Html("".join(_safe(child) for child in children if child))


def table(
    caption: str, heads: Sequence[str], rows: Iterable[Sequence[Child]], class_: str = "", headed: bool = False
) -> Html:
    """A table. The first cell of each row is its heading.

    With `headed`, a heading above the table has the same words, so only screen readers get the caption.
    """
    top = tag("tr", *(tag("th", head, scope="col") for head in heads))
    body = []
    for row in rows:
        cells = [tag("td", cell) for cell in row[1:]]
        body.append(tag("tr", tag("th", row[0], scope="row"), *cells))
    name = tag("caption", caption, class_="unseen" if headed else None)
    inner = tag("table", name, tag("thead", top), tag("tbody", *body), class_=class_ or None)
    return tag("div", inner, class_="wide", tabindex=0, role="group", aria_label=caption)


def more(summary: str, *children: Child) -> Html:
    """A part of the page that opens at a click."""
    return tag("details", tag("summary", summary), *children)


def _attribute(name: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{html.escape(str(value))}"'


def _safe(child: str) -> str:
    return child if isinstance(child, Html) else html.escape(child)
