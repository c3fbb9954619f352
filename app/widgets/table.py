"""A small table of texts. It is part of the page: it wraps, prints, and a screen reader reads it row by row."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import streamlit as st

CSS = """
<style>
.ll-rows { overflow-x: auto; font-size: .92rem; font-variant-numeric: tabular-nums; }
.ll-rows table { border-collapse: collapse; border: 0; margin: 0; }
.ll-rows th, .ll-rows td { border: 0; border-bottom: 1px solid var(--hair); padding: .3rem 1.4rem .3rem 0;
  text-align: left; vertical-align: top; min-width: 5.5rem; }
.ll-rows thead th { color: var(--faint); font-weight: 400; }
.ll-rows tbody th { font-weight: 600; min-width: 8rem; }
</style>
"""


def show(rows: Sequence[Mapping[str, str]], label: str) -> None:
    """Draw one row for each mapping; its keys are the heads, in the order of their first use."""
    st.html(CSS + table_html(rows, label))


def table_html(rows: Sequence[Mapping[str, str]], label: str, missing: str = "–") -> str:
    """The table as HTML. The first cell of a row is its name."""
    heads = list(dict.fromkeys(head for row in rows for head in row))
    top = "".join(f'<th scope="col">{html.escape(head)}</th>' for head in heads)
    lines = []
    for row in rows:
        texts = [html.escape(row.get(head, missing)) for head in heads]
        cells = "".join(f"<td>{text}</td>" for text in texts[1:])
        lines.append(f'<tr><th scope="row">{texts[0]}</th>{cells}</tr>')
    body = f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    # A region that may scroll has a name, and the keyboard reaches it.
    return f'<div class="ll-rows" role="region" tabindex="0" aria-label="{html.escape(label)}">{body}</div>'
