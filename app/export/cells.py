"""One picture of an exported page: an original, or a guess with its scores and its verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.export import texts as export_texts
from app.export.frames import ScrubberFrames
from app.export.markup import Html, tag
from app.texts import attacks as attack_texts
from app.texts import verdicts
from app.texts.attacks import decibel
from engine.results.attack_summary import AttackCell, guess_of

SHORT = ("psnr", "ssim", "lpips")


def original(cell: AttackCell, picture: int, classes: Sequence[str], place: int | None = None) -> Html:
    """An original as the cell of a table, with the name of its class. `place` is its place on a slide, if any."""
    seen = cell.seen
    head = attack_texts.ORIGINAL
    if seen is None or picture >= len(seen.originals):
        return tag("td", data_head=head, data_best=place)
    labels = seen.facts.get("labels", ())
    name = ""
    if picture < len(labels) and labels[picture] < len(classes):
        name = classes[labels[picture]]
    alt = f"{attack_texts.ORIGINAL_ALT}: {name}" if name else attack_texts.ORIGINAL_ALT
    shown = image(seen.originals[picture], alt)
    return tag("td", shown, tag("span", name), class_="truth", data_head=head, data_best=place)


def guess(
    cell: AttackCell | None,
    picture: int,
    frames: ScrubberFrames,
    title: str,
    column: str,
    remarks: bool = True,
    place: int | None = None,
) -> Html:
    """The last guess of one original with its verdict, and small its scores. No verdict claims protection.

    `remarks` adds whether the attack converged, once for all pictures. `place` is its place on a slide, if any.
    """
    if cell is None:
        return tag("td", tag("span", attack_texts.NOT_REQUESTED), data_head=column, data_best=place)
    if cell.judged is None:
        return tag("td", tag("span", attack_texts.state(cell)), data_head=column, data_best=place)
    png = last_png(cell, picture)
    if png is None:
        return tag("td", tag("span", "–"), data_head=column, data_best=place)
    psnr = cell.psnr(picture)
    state = verdicts.caption(cell, picture)
    last = cell.path[-1]
    leaking = cell.leaks(picture)
    return tag(
        "td",
        image(png, attack_texts.alt(title, column, state)),
        tag("b", state, class_="word leaking" if leaking else "word"),
        tag("span", decibel(psnr), class_="near"),
        tag("span", export_texts.AT.format(now=f"{last.iteration:,}", of=f"{last.of:,}"), class_="at"),
        tag("span", _end_scores(cell, picture), class_="scores"),
        *(_reasons(cell) if remarks and picture == cell.judged.places[0] else ()),
        tag("span", attack_texts.BY.format(attack=title), class_="slide-only") if place else None,
        id=frames.add(cell, picture, f"{title} against {column}"),
        data_head=column,
        data_best=place,
    )


def last_png(cell: AttackCell, picture: int) -> str | None:
    """The last guess of one original, as a base64 PNG."""
    for guess in reversed(cell.path):
        shown = guess_of(guess, picture)
        if shown:
            return shown[0]
    return None


def _end_scores(cell: AttackCell, picture: int) -> str:
    scores = []
    for name in SHORT[1:]:
        value = cell.number(name, picture)
        if value is not None:
            scores.append(f"{name.upper()} {value:.2f}")
    return export_texts.END.format(numbers=", ".join(scores))


def _reasons(cell: AttackCell) -> Iterator[Html]:
    """Facts that hold for all pictures of one attack. Only its first row shows them."""
    if cell.judged is None:
        return
    yield tag("span", verdicts.remark(cell.judged))
    restarts = len(cell.judged.restarts)
    if restarts > 1:
        yield tag("span", export_texts.RESTARTS.format(count=restarts))


def number(name: str, value: float | None) -> str:
    """A score as text: the known ones with two decimals, so that an LPIPS near 0 is 0.00."""
    if value is None:
        return "–"
    return f"{value:.2f}" if name in SHORT else f"{value:.3g}"


def image(png: str, alt: str) -> Html:
    """A picture inside the file."""
    return tag("img", src=f"data:image/png;base64,{png}", alt=alt)
