"""The section "How close is this to your system?": six choices, the table of stored results, and the sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from app.export.closeness import texts
from app.export.closeness.content import ExportedSystem
from app.export.grid_content import column_title, run_of_body
from app.export.markup import Html, table, tag
from app.export.slides import deck
from app.export.texts import pictures as picture_names
from app.export.texts import when
from app.session import run_settings
from app.texts import numbers, privacy, verdicts
from engine.examples import closeness
from engine.examples.closeness import CHOICES, MeasuredUpload, RiskMove
from engine.results.verdict import LEAKS, rank


def section(system: ExportedSystem) -> Html:
    """The section. Without its script, it has the values of this result and the sentence."""
    selects = [_select(name, str(getattr(system.main, name))) for name in CHOICES]
    lead = tag("p", texts.LEAD, data_page=True)
    return tag(
        "section",
        tag("h2", texts.TITLE),
        tag("p", sentence(system), class_="note"),
        tag("div", lead, tag("div", *selects, class_="choices"), id="chooser", hidden=True),
        tag("div", id="nearest", aria_live="polite"),
        tag("div", _values(system), id="values"),
        *_other_observers(system),
        id="closeness",
        data_slide=deck.CLOSE,
    )


def sentence(system: ExportedSystem) -> str:
    """What was tested, and what was not. Every page has it. One with a part of the results speaks of these alone."""
    names = [run_settings.attack_title(name) for name in system.attacks]
    tested = texts.TESTED.get(len(names), texts.TESTED_MANY).format(count=len(names), names=", ".join(names))
    data = texts.WITH_OWN if system.own else texts.PUBLIC.format(noun=system.noun)
    rest = ", ".join(_not_tested(system))
    if system.left_out:
        every = system.shown + system.left_out
        return texts.SENTENCE_OF_PART.format(data=data, shown=system.shown, all=every, tested=tested, rest=rest)
    return texts.SENTENCE.format(data=data, tested=tested, rest=rest)


def _not_tested(system: ExportedSystem) -> Iterator[str]:
    from engine.specs.run import SHELVES

    for attack in SHELVES["attack"]:
        if attack.name not in system.attacks:
            yield attack.title
    if not system.membership:
        yield texts.NO_MEMBERSHIP
    yield from (noun for noun in texts.NOUNS if noun != system.noun)
    yield from texts.REST


def _select(name: str, chosen: str) -> Html:
    options = []
    for value in CHOICES[name]:
        options.append(tag("option", texts.VALUES[name][value], value=value, selected=value == chosen))
    label = tag("label", texts.CHOICES[name], for_=f"choice-{name}")
    return tag("div", label, tag("select", *options, name=name, id=f"choice-{name}"))


def _values(system: ExportedSystem) -> Html:
    """The values of this result: all of them, where its uploads or runs differ."""
    rows = []
    for name, title in texts.CHOICES.items():
        own = dict.fromkeys(getattr(choices, name) for choices in system.choices)
        rows.append((title, "; ".join(texts.VALUES[name][value] for value in own)))
    return table(texts.TABLE, texts.TABLE_HEADS, rows)


def _other_observers(system: ExportedSystem) -> Iterator[Html]:
    """A note about each observer whom no choice describes."""
    for view in system.other_observers:
        yield tag("p", texts.OTHER_OBSERVER.format(observer=privacy.OBSERVERS[view]), class_="faint")


# --- the data of the script --------------------------------------------------------------------------------


def data(system: ExportedSystem) -> Html:
    """The stored results and what each difference does, as JSON. `<` is escaped: no text can end the element."""
    own = [_row(upload, own=True) for upload in system.uploads]
    known = {id for upload in system.uploads for id in upload.ids}
    stored = [_row(upload) for upload in closeness.shipped_uploads() if not known & set(upload.ids)]
    body = {
        "choices": list(CHOICES),
        "titles": texts.CHOICES,
        "values": texts.VALUES,
        "results": [*own, *stored],
        "moves": {f"{move.choice} {move.old} {move.new}": _move(move) for move in closeness.shipped_moves()},
        "words": texts.WORDS,
    }
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return tag("script", Html(text), type="application/json", id="stored")


def _row(upload: MeasuredUpload, own: bool = False) -> dict[str, Any]:
    """One stored result: its values, its verdict, its settings and its ids."""
    run = run_of_body(upload.run)
    title = column_title(run)
    pictures, moment, _ = json.loads(upload.place)
    alone = upload.choices.pictures == "one"
    held = texts.ALONE if alone else texts.AMONG.format(count=texts.VALUES["pictures"][upload.choices.pictures])
    where = f"{picture_names(pictures)} {held}, {when(moment)}, {run.dataset.title}, {run.model.title}."
    names = dict.fromkeys(run_settings.attack_title(attack.title) for attack in upload.attacks)
    return {
        "values": list(upload.choices.values),
        "title": texts.OWN_RESULT.format(title=title) if own else title,
        "verdict": upload.verdict or verdicts.NO_GUESS,
        "rank": rank(upload.verdict),
        "leaks": upload.verdict in LEAKS,
        "settings": texts.RESULT.format(upload=where, attacks=numbers.joined(list(names))),
        "ids": list(upload.ids),
        "own": own,
    }


def _move(move: RiskMove) -> Mapping[str, Any]:
    """The direction of one difference in words, with its source and the ids of its pairs."""
    return {
        "direction": move.direction,
        "sign": texts.DIRECTIONS[move.direction],
        "source": source(move),
        "pairs": [" → ".join(pair) for pair in move.ids],
    }


def source(move: RiskMove) -> str:
    """Where a direction comes from: stored pairs, a paper, or nothing."""
    if move.pairs:
        pairs = texts.PAIRS.get(move.pairs, texts.PAIRS_MANY.format(count=move.pairs))
        counts = {"more": move.more, "less": move.less, "same": move.same}
        words = [texts.COUNTS[name].format(count=count) for name, count in counts.items() if count]
        measured = texts.MEASURED.format(pairs=pairs, counts=", ".join(words))
        return f"{measured} {texts.NOTES.get(move.choice, '')}".rstrip()
    if move.cited:
        return texts.CITED.format(claim=move.cited.claim, citation=move.cited.citation)
    return texts.NOT_MEASURED
