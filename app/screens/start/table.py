"""The table behind the slider: every stop for every upload, from the stored sweep or from the attacks on a photo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.screens.start import texts
from app.screens.start.settings import StartSettings
from app.screens.start.texts import OWN_WORDS, PORTRAIT_WORDS, PictureWords, StopResult
from app.texts import privacy, verdicts
from app.widgets.stop_slider import StopSheet, StopView, UploadView
from engine.examples.attacks import AttackExample
from engine.examples.start import StartExample, StartStop
from engine.results import attack_summary
from engine.results.attack_summary import AttackCell, AttackEvents
from engine.results.shown_cell import shown_cell
from engine.specs.attack_grid import RequestedAttack

# By observer: judging all stored attacks takes a tenth of a second, and a page needs them at each pass.
_uploads: dict[str, tuple[StartExample, tuple[UploadView, ...]]] = {}
VICTIM = 0  # the first picture of each upload


def portrait_sheet(example: StartExample, start: StartSettings) -> StopSheet:
    """The stored sweep for the chosen observer."""
    uploads = _stored_uploads(example, start.eyes)
    greyed = any(not upload.stops for upload in uploads)
    return _sheet(uploads, start, texts.SERVER_ONLY if greyed else "")


def _stored_uploads(example: StartExample, view: str) -> tuple[UploadView, ...]:
    """Every upload for one observer, computed once. One that was not attacked for the server is left out."""
    known = _uploads.get(view)
    if known is not None and known[0] is example:
        return known[1]
    uploads = []
    for key, title in texts.CONTENTS.items():
        columns = [stored_cells(example.cells(stop, view, key)) for stop in example.stops]
        if any(columns):
            uploads.append(_upload_view(key, title, columns, example, view, PORTRAIT_WORDS))
        elif view != "server":
            uploads.append(UploadView(key, title, "", "", ()))
    _uploads[view] = example, tuple(uploads)
    return tuple(uploads)


def own_sheet(
    example: StartExample, start: StartSettings, cells: Sequence[AttackCell | None], original: str
) -> StopSheet:
    """The attacks on a photo of the visitor. Accuracy and ε are those of the stored sweep."""
    columns = [[] if cell is None else [cell] for cell in cells]
    view = _upload_view("1", texts.CONTENTS["1"], columns, example, "server", OWN_WORDS, original)
    others = [UploadView(key, title, "", "", ()) for key, title in texts.CONTENTS.items() if key != "1"]
    reason = texts.INSTANT_ONLY if start.eyes == "server" else f"{texts.SERVER_READS} {texts.INSTANT_ONLY}"
    return _sheet([view, *others], start, reason)


def stored_cells(examples: Sequence[AttackExample]) -> list[AttackCell]:
    """The stored attacks on one stop."""
    cells = []
    for example in examples:
        request = RequestedAttack("", str(example.spec["attack"]["name"]), None)
        cells.append(attack_summary.collect_cell(request, AttackEvents("stored", example.events)))
    return cells


def _sheet(uploads: Sequence[UploadView], start: StartSettings, reason: str) -> StopSheet:
    """The sheet with the chosen upload, or the first that can be chosen."""
    offered = [upload.key for upload in uploads if upload.stops]
    chosen = start.content if start.content in offered else next(iter(offered), "")
    stops = next((len(upload.stops) for upload in uploads if upload.stops), 1)
    return StopSheet(tuple(uploads), min(start.stop, stops - 1), chosen, _words(start), reason)


def _words(start: StartSettings) -> Mapping[str, str]:
    """The texts of the slider that do not depend on the stop."""
    view = "server" if start.own else start.eyes
    return {
        "original": texts.ON_PHONE,
        "rebuilt": texts.REBUILT.format(who=texts.who(view), rebuilt=texts.rebuilt(view)),
        "turn_original": texts.TURN_ORIGINAL,
        "turn_rebuilt": texts.TURN_REBUILT,
        "protection": texts.PROTECTION,
        "off": texts.OFF,
        "strong": texts.STRONG,
        "accuracy": texts.ACCURACY,
        "accuracy_short": texts.ACCURACY_SHORT,
        "promise": texts.PROMISE,
        "contents": texts.IN_UPLOAD,
        "ordinary": texts.ORDINARY,
    }


def _upload_view(
    key: str, title: str, columns: Sequence[Sequence[AttackCell]], example: StartExample, view: str,
    words: PictureWords, original: str = "",
) -> UploadView:  # fmt: skip
    """All stops for one upload. `columns` has the attacks on each stop."""
    pairs = list(zip(example.stops, columns, strict=True))
    results = [stop_result(stop, cells, example.stops[0].accuracy, view) for stop, cells in pairs]
    views = []
    for place, (stop, cells) in enumerate(pairs):
        lesson = texts.lesson(results) if place == len(pairs) - 1 else ""
        views.append(_stop_view(stop, cells, results[place], words, view, lesson, easiest=key == "1"))
    for cell in (cell for cells in columns for cell in cells):
        if cell.seen and not original:
            original = cell.seen.originals[VICTIM]
    return UploadView(key, title, original, texts.original_alt(words), tuple(views))


def stop_result(stop: StartStop, cells: Sequence[AttackCell], baseline: float | None, view: str) -> StopResult:
    """The results of one stop for one observer: all of the same run."""
    ended = [cell for cell in cells if cell.done]
    best = shown_cell(ended, VICTIM)
    verdict = best.verdict(VICTIM) if best else None
    return StopResult(verdict, stop.accuracy, baseline, stop.epsilon(view), len(ended))


def _stop_view(
    stop: StartStop, cells: Sequence[AttackCell], result: StopResult, words: PictureWords, view: str, lesson: str,
    easiest: bool,
) -> StopView:  # fmt: skip
    shown = shown_cell(cells, VICTIM)
    guess = attack_summary.guess_of(shown.path[-1], VICTIM) if shown and shown.path else None
    state = verdicts.caption(cells[0], VICTIM) if cells else texts.NOT_ATTACKED
    word = texts.word(result.verdict, words, state)
    promise, tone = privacy.promise(result.epsilon)
    notes = [texts.note(result, easiest), _upload_note(shown)]
    small = [texts.terms(result.epsilon), texts.training(stop.run.spec, stop.step, len(stop.tried), stop.run.made)]
    return StopView(
        tick=texts.tick(stop.noise),
        place=texts.place(stop.noise, word, result.accuracy, promise),
        src=guess[0] if guess else "",
        alt=texts.alt(result.verdict, words, state),
        word=word,
        tone="leaking" if result.leaks else "",
        by=_by(shown, result) if shown and result.attacks else "",
        accuracy=texts.share(result.accuracy),
        spread=texts.spread(stop.accuracies),
        promise=promise,
        promise_terms=texts.delta(result),
        promise_observer=privacy.AGAINST[view] if result.promises else "",
        promise_tone=tone,
        sentence=texts.sentence(result, words, view),
        lesson=lesson,
        note=" ".join(filter(None, notes)),
        easiest=easiest and result.leaks,
        terms=" ".join(filter(None, small)),
    )


def _by(shown: AttackCell, result: StopResult) -> str:
    """The attack whose picture is shown."""
    return texts.best_of(texts.TITLES.get(shown.attack, shown.attack), result.attacks, result.leaks)


def _upload_note(shown: AttackCell | None) -> str:
    """What an upload of several pictures holds, and how many of the others the shown attack brings back.

    Hits that chance explains are left out. Most hits of several attacks, with the chance of one, would be a best-of
    choice, and contradict the sentence that no attacker succeeded.
    """
    if shown is None or shown.seen is None or shown.picture_count < 2:
        return ""
    facts = shown.seen.facts
    pictures = int(facts.get("pictures", shown.picture_count))
    others = texts.others(shown.leaking_others, shown.picture_count, shown.by_chance) if shown.works else ""
    cheats = texts.CHEATS if facts.get("tampered") else ""
    return " ".join(filter(None, [texts.upload(pictures, int(facts.get("steps", 1))), cheats, others]))
