"""The exported page of a run that ships with LeakLens. It needs no store."""

from __future__ import annotations

from datetime import date

from app.export import document, run_page
from app.export.gather import ExportedRun, PageContent, recorded_run
from app.export.slides import deck
from app.session import run_settings
from engine.errors import UnknownName, shown
from engine.examples import files
from engine.specs import attack_grid


def example_page(name: str, made: date | None = None, style: str = deck.STYLES[0]) -> str:
    """The example with this name as an HTML file without links to other files."""
    example = next((example for example in files.examples() if example.name == name), None)
    if example is None:
        raise UnknownName(f"export: no example {shown(name)}", "See: python3 -m engine gallery")
    content = PageContent(example.id, None, stored_run(example), (), stored=example)
    return document.checked(name, lambda: document.written(run_page.parts(content), made, style))


def stored_run(example: files.RunExample) -> ExportedRun:
    """The content of an example, next to its baseline where that ships, too."""
    baseline = files.example(example.baseline) if example.baseline else None
    events = baseline.events if baseline else ()
    spec = run_settings.spec_of(run_settings.flat(example.spec))
    is_baseline = attack_grid.baseline_of(spec) is None
    return recorded_run(example.spec, None, example.events, events, is_baseline)
