"""The exported page of a run with its attacks, of one attack, or of several runs without attacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime

from app.export import attack_section, document, grid_texts, membership_section, run_section
from app.export import texts as export_texts
from app.export.closeness import content as closeness_content
from app.export.document import PageParts
from app.export.gather import ExportedRun, PageContent, attack_name, everything, find
from app.export.markup import Html, tag
from app.export.slides import deck
from app.session import run_settings
from app.texts import states
from app.texts.runs import runs as count_of_runs
from engine.jobs.status import ListedRun
from engine.jobs.store import Store


def run_page(
    store: Store,
    run: str,
    made: date | None = None,
    may_see: Callable[[ListedRun], bool] = everything,
    style: str = deck.STYLES[0],
) -> str:
    """One run with its attacks, or one attack, as an HTML file without links to other files."""
    return document.checked(run, lambda: document.written(parts(find(store, run, may_see)), made, style))


def runs_page(
    name: str,
    runs: Mapping[str, ExportedRun],
    made: date | None = None,
    notes: Sequence[str] = (),
    style: str = deck.STYLES[0],
) -> str:
    """These finished runs, by their id, as one HTML file. Unlike a sweep, they may differ in any setting."""
    return document.checked(name, lambda: document.written(_runs_parts(name, runs, notes), made, style))


def _runs_parts(name: str, runs: Mapping[str, ExportedRun], notes: Sequence[str]) -> PageParts:
    settings = next(iter(runs.values())).settings
    dataset = run_settings.part_title("dataset", settings["dataset"])
    model = run_settings.part_title("model", settings["model"])
    title = grid_texts.SWEEP_TITLE.format(dataset=dataset, model=model, rounds=settings["rounds"])
    done = grid_texts.RUNS_DONE.format(all=count_of_runs(len(runs)).capitalize())
    top = [document.brand(), tag("h1", title), tag("p", done), *(tag("p", note, class_="note") for note in notes)]
    sections = (*run_section.short_sections(runs), run_section.short_requests(runs), document.limits(sweep=True))
    foot = f"LeakLens{document.version()}. {name}. {done}"
    system = closeness_content.of_runs([run_settings.spec_of(run.settings) for run in runs.values()])
    question = tag("div", *top, data_slide=deck.QUESTION)
    return PageParts(title, (question,), sections, foot, system, run_section.only_method(runs))


def parts(content: PageContent) -> PageParts:
    """The page of this content."""
    attacks, frames = attack_section.attacks(content)
    sections = (
        attacks,
        membership_section.memberships(content),
        membership_section.not_here(content),
        run_section.accuracy_section(content.run),
        run_section.epsilon_section(content.run),
        run_section.request_section(content),
        document.limits(),
    )
    method = str(content.run.settings["method"])
    system = closeness_content.of_run(content, run_settings.spec_of(content.run.settings))
    return PageParts(_title(content), tuple(_top(content)), sections, _foot(content), system, method, frames)


def _title(content: PageContent) -> str:
    method = run_section.title(content.run)
    data = run_section.data(content.run)
    if content.listed and content.is_attack:
        attack = run_settings.attack_title(attack_name(content.listed.spec))
        return export_texts.AGAINST.format(attack=attack, method=method, data=data)
    text = export_texts.ON if content.attacks or content.memberships else export_texts.PLAIN
    return text.format(method=method, data=data)


def _top(content: PageContent) -> list[Html]:
    question = [document.brand(), tag("h1", _title(content)), _split(content)]
    heading = tag("h2", export_texts.COST, class_="slide-only")
    facts = [heading, run_section.headline(content.run), run_section.reason(content.run)]
    return [tag("div", *question, data_slide=deck.QUESTION), tag("div", *facts, data_slide=deck.COST)]


def _split(content: PageContent) -> Html:
    """Small print below the title: who adds the noise."""
    split = run_section.split(content.run)
    return tag("p", tag("small", f"{run_section.title(content.run)}: {split}")) if split else Html("")


def _foot(content: PageContent) -> str:
    if content.stored:
        example = content.stored
        made = document.day_text(date.fromisoformat(example.made))
        return grid_texts.EXAMPLE_FOOT.format(version=document.version(), name=example.name, id=example.id, made=made)
    assert content.listed is not None
    submitted = datetime.fromtimestamp(content.listed.submitted, UTC).date()
    kind = export_texts.NAMES["attack" if content.is_attack else "run"]
    status = states.STATES[content.listed.status]
    return export_texts.FOOT.format(
        version=document.version(), kind=kind, id=content.id, submitted=document.day_text(submitted), status=status
    )
