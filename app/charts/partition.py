"""Who holds what: how many pictures of each class every client has."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from app import theme
from app.charts.base import figure

SHOWN = 200  # clients at most; of more, an even sample


def draw(counts: Sequence[Sequence[int]], dark: bool, names: Sequence[str] = ()) -> go.Figure:
    """Clients from left to right, classes from bottom to top."""
    places = range(0, len(counts), max(1, -(-len(counts) // SHOWN)))
    side = "dark" if dark else "light"
    drawn = figure(240, dark)
    drawn.add_heatmap(
        x=[str(place) for place in places],
        y=[names[label] if label < len(names) else f"class {label}" for label in range(len(counts[0]))],
        z=[[counts[place][label] for place in places] for label in range(len(counts[0]))],
        colorscale=[[0, theme.PAPER[side]], [1, theme.OKABE_ITO[0] if not dark else theme.OKABE_ITO[5]]],
        colorbar={"title": "pictures", "thickness": 10},
        hovertemplate="client %{x}, %{y}: %{z} pictures<extra></extra>",
    )
    drawn.update_xaxes(title="client", type="category", nticks=12, showgrid=False)
    drawn.update_yaxes(showgrid=False)
    drawn.update_layout(hovermode="closest")
    return drawn


def describe(counts: Sequence[Sequence[int]]) -> str:
    sizes = [sum(row) for row in counts]
    held = [sum(count > 0 for count in row) for row in counts]
    return (
        f"{len(counts)} clients hold {min(sizes)} to {max(sizes)} pictures each, "
        f"of {min(held)} to {max(held)} of the {len(counts[0])} classes."
    )
