"""Widgets that several screens share: fields of a part, a chart, the numbers of a run."""
