"""The section of membership attacks on an exported page: a sentence, the ROC curve and a table for each."""

from __future__ import annotations

from app.export import chart, run_section
from app.export import texts as export_texts
from app.export.chart import SvgChart, SvgLine
from app.export.gather import ExportedMembership, PageContent
from app.export.markup import Html, more, table, tag
from app.export.slides import deck
from app.texts import membership as texts
from app.texts import privacy
from engine.events import Scored

LOWEST = 0.1  # %, where the axis begins if no attack has a smaller share of false alarms


def memberships(content: PageContent) -> Html | None:
    """All membership attacks of a page; None without one."""
    if not content.memberships:
        return None
    attacks = [_attack(content, place, attack) for place, attack in enumerate(content.memberships)]
    return tag("section", tag("h2", texts.TITLE), *attacks, id="membership")


def not_here(content: PageContent) -> Html | None:
    """How many attacks are missing because their package is."""
    return tag("p", export_texts.NOT_HERE.format(count=content.not_here), class_="note") if content.not_here else None


def _attack(content: PageContent, place: int, attack: ExportedMembership) -> Html:
    scored = attack.scored
    when = export_texts.when(attack.spec["round"])
    client = "" if scored.client is None else f", client {scored.client}"
    heading = f"{attack.title}, {when}, {privacy.SEEN_BY[scored.view]}{client}, {texts.SCORED[scored.unit]}"
    sentences = [tag("p", texts.verdict(scored, run_section.title(content.run)), class_="verdict")]
    if attack.baseline:
        sentences.append(tag("p", texts.verdict(attack.baseline, "Without protection")))
    rows = table(texts.TABLE, texts.HEADS, texts.rates(scored.tpr))
    return tag(
        "section",
        tag("h3", heading),
        *sentences,
        tag("figure", tag("figcaption", texts.CURVE), _curve(place, attack)),
        tag("p", texts.HOW[scored.unit], class_="faint", data_page=True),
        tag("p", texts.NO_PROOF, class_="faint"),
        tag("div", more(texts.TABLE, rows), data_page=True) if scored.tpr else None,
        class_="upload",
        data_slide=deck.ANSWER if place < deck.ANSWERS else None,
    )


def _curve(place: int, attack: ExportedMembership) -> Html:
    """The ROC curve over a logarithmic axis, because what matters is found at few false alarms."""
    curves = {"run": attack.scored} | ({"baseline": attack.baseline} if attack.baseline else {})
    lowest = min([LOWEST, *(100 * scored.roc[0][0] for scored in curves.values())])
    across = chart.decades(texts.ACROSS, [lowest, 100.0])
    lines = [SvgLine(_name(kind), _points(scored), kind) for kind, scored in curves.items()]
    shares = [lowest * (100.0 / lowest) ** (step / 40) for step in range(41)]
    guessing = tuple((share, share) for share in shares)
    lines.append(SvgLine(texts.GUESSING, guessing, "guess", "4 4"))
    drawing = SvgChart(
        f"roc-{place}", texts.CURVE, texts.verdict(attack.scored, attack.title), lines, across,
        chart.even(texts.UP, 0, 100),
    )  # fmt: skip
    return chart.svg(drawing)


def _name(kind: str) -> str:
    return "without protection" if kind == "baseline" else "this run"


def _points(scored: Scored) -> tuple[tuple[float, float], ...]:
    return tuple((100 * fpr, 100 * tpr) for fpr, tpr in scored.roc)
