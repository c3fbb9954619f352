"""The budget of one side of Try: `draw` is its slider."""

from app.screens.try_it.budget.slider import draw as draw
