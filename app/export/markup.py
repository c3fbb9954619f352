"""HTML as values: whatever is not markup already is escaped on its way in."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

EMPTY = {"meta", "img", "input", "br"}  # elements that hold nothing and are not closed
Value = str | int | float | bool | None


class Html(str):
    """Markup that `tag` made; any other text is a stranger's."""


Child = str | None


def tag(name: str, /, *children: Child, **attributes: Value) -> Html:
    """`tag("p", "a < b", class_="x")`; an attribute that is None or False is left out."""
    said = "".join(_attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
    if name in EMPTY:
        return Html(f"<{name}{said}>")
    return Html(f"<{name}{said}>{joined(children)}</{name}>")


def joined(children: Iterable[Child]) -> Html:
    return Html("".join(_safe(child) for child in children if child))


def table(
    caption: str, heads: Sequence[str], rows: Iterable[Sequence[Child]], class_: str = "", headed: bool = False
) -> Html:
    """The first cell of each row is its head; under a heading of the same words the caption is only heard."""
    top = tag("tr", *(tag("th", head, scope="col") for head in heads))
    body = (tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:])) for row in rows)
    name = tag("caption", caption, class_="unseen" if headed else None)
    inner = tag("table", name, tag("thead", top), tag("tbody", *body), class_=class_ or None)
    return tag("div", inner, class_="wide", tabindex=0, role="group", aria_label=caption)


def more(summary: str, *children: Child) -> Html:
    return tag("details", tag("summary", summary), *children)


def _attribute(name: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{html.escape(str(value))}"'


def _safe(child: str) -> str:
    return child if isinstance(child, Html) else html.escape(child)
