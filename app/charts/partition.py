"""The partition chart: how many pictures of each class every client has."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from app import theme
from app.charts.base import figure

SHOWN = 200  # clients at most; with more, the chart shows an even sample


def draw(counts: Sequence[Sequence[int]], dark: bool, names: Sequence[str] = ()) -> go.Figure:
    """A heat map with the clients across and the classes up."""
    classes = range(len(counts[0]))
    clients = range(0, len(counts), max(1, -(-len(counts) // SHOWN)))
    side = "dark" if dark else "light"
    darkest = theme.FAMILIES["blue"][dark]
    chart = figure(240, dark)
    chart.add_heatmap(
        x=[str(client) for client in clients],
        y=[names[label] if label < len(names) else f"class {label}" for label in classes],
        z=[[counts[client][label] for client in clients] for label in classes],
        colorscale=[[0, theme.PAPER[side]], [1, darkest]],
        colorbar={"title": "pictures", "thickness": 10},
        hovertemplate="client %{x}, %{y}: %{z} pictures<extra></extra>",
    )
    chart.update_xaxes(title="client", type="category", nticks=12, showgrid=False)
    chart.update_yaxes(showgrid=False)
    chart.update_layout(hovermode="closest")
    return chart


def describe(counts: Sequence[Sequence[int]]) -> str:
    """The smallest and largest client, by pictures and by classes."""
    sizes = [sum(row) for row in counts]
    class_counts = [sum(count > 0 for count in row) for row in counts]
    return (
        f"{len(counts)} clients hold {min(sizes)} to {max(sizes)} pictures each, "
        f"of {min(class_counts)} to {max(class_counts)} of the {len(counts[0])} classes."
    )
