"""The numbers behind the grid of the Leak screen, each as one entry of the list *Look closer*."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import streamlit as st

from app.charts import psnr
from app.screens.leak import series
from app.screens.leak.columns import GridColumn
from app.screens.leak.results import GridView, answer_of, first_seen, shown_picture
from app.session import run_settings, session
from app.texts import attacks as attack_texts
from app.texts import numbers, privacy, verdicts
from app.widgets import chart as chart_widget
from app.widgets.picture_grid import mean_colour_psnr
from engine.results import attack_summary
from engine.results.attack_summary import AttackCell

DECIMALS = {"psnr": "{:.1f}", "ssim": "{:.2f}", "lpips": "{:.2f}"}


def scores(view: GridView, cells: Sequence[AttackCell]) -> None:
    """Draw the table of all scores, and the matching test of each upload with several pictures."""
    st.html(f'<h2 class="ll-title">{html.escape(attack_texts.TABLE)}</h2>{table(view, cells, shown_picture())}')
    for sentence in verdicts.matchings(cells, view.titles):
        series.explain(sentence)


def curves(view: GridView, cells: Sequence[AttackCell]) -> None:
    """Draw how near each attack came, by iteration."""
    picture = shown_picture()
    drawn = curves_of(view, cells, picture)
    mean_colour = mean_colour_psnr(cells, picture)
    st.html(f'<h2 class="ll-title">{html.escape(attack_texts.CURVES)}</h2>')
    st.plotly_chart(
        psnr.draw(drawn, mean_colour, session.dark()), key="chart-psnr", theme=None, config=chart_widget.CONFIG,
        alt=psnr.describe(drawn, mean_colour),
    )  # fmt: skip
    chart_widget.save_buttons({"psnr": attack_texts.CURVES})


def promises(view: GridView, cells: Sequence[AttackCell]) -> None:
    """Draw what each protection promises."""
    del cells
    st.html(guarantees(view))


def attacks(view: GridView, cells: Sequence[AttackCell]) -> None:
    """Draw what the attackers saw, and how each attack works, in words."""
    seen = first_seen(cells)
    if seen:
        series.explain(f"{attack_texts.realistic(seen.facts, view.eyes)} {attack_texts.NO_PROOF}")
    st.html(_attack_summaries(view))


def _attack_summaries(view: GridView) -> str:
    paragraphs = []
    for name, title in view.attacks.items():
        part = run_settings.attack_class(name)
        text = f"{part.summary()} ({part.source})"
        paragraphs.append(f"<p><b>{html.escape(title)}</b>. {html.escape(text)}</p>")
    return "".join(paragraphs)


def table(view: GridView, cells: Sequence[AttackCell], picture: int) -> str:
    """Return a table with the PSNR, SSIM and LPIPS of every cell and of the mean colour."""
    by_place = {(cell.attack, cell.column): cell for cell in cells}
    rows = []
    for attack, title in view.attacks.items():
        boxes = []
        for column in view.columns:
            numbers_text = _cell_numbers(by_place.get((attack, column.key)), picture)
            boxes.append(f"<td>{numbers_text}</td>")
        rows.append(f'<tr><th scope="row">{html.escape(title)}</th>{"".join(boxes)}</tr>')
    judged = next((cell for cell in cells if cell.judged), None)
    if judged:
        values = _metrics_text({metric: judged.trivial(picture, metric) for metric in attack_summary.METRICS})
        rows.append(f'<tr><th scope="row">{attack_texts.GREY}</th><td colspan="{len(view.columns)}">{values}</td></tr>')
    heads = "".join(f'<th scope="col">{_title_and_split(column)}</th>' for column in view.columns)
    head = f'<thead><tr><th scope="col">{attack_texts.METRICS}</th>{heads}</tr></thead>'
    body = f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"
    return f'{attack_texts.TABLE_CSS}<div class="ll-numbers" tabindex="0">{body}</div>'


def _title_and_split(column: GridColumn) -> str:
    """Return the title of a column as HTML, and in small print who adds the noise."""
    split = f"<small>{html.escape(column.split)}</small>" if column.split else ""
    return f"{html.escape(column.title)}{split}"


def _cell_numbers(cell: AttackCell | None, picture: int) -> str:
    if cell is None or not cell.done:
        return "–"
    values = _metrics_text({metric: cell.number(metric, picture) for metric in attack_summary.METRICS})
    return f"{values}<small>{html.escape(verdicts.caption(cell, picture))}</small>"


def _metrics_text(values: Mapping[str, float | None]) -> str:
    texts = []
    for metric, value in values.items():
        texts.append("–" if value is None else DECIMALS[metric].format(value))
    return " / ".join(texts)


def curves_of(view: GridView, cells: Sequence[AttackCell], picture: int) -> list[psnr.PsnrCurve]:
    """Return the PSNR of each attack over its iterations."""
    column_places = {column.key: place for place, column in enumerate(view.columns)}
    row_places = {attack: place for place, attack in enumerate(view.attacks)}
    curves = []
    for cell in cells:
        iterations, values = _path_of(cell, picture)
        if values:
            curve = psnr.PsnrCurve(
                view.attacks[cell.attack], view.titles[cell.column],
                row_places[cell.attack], column_places[cell.column], iterations, values,
            )  # fmt: skip
            curves.append(curve)
    return curves


def _path_of(cell: AttackCell, picture: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the iterations of an attack with a finite PSNR, and these PSNR."""
    iterations = []
    values = []
    for event in cell.path:
        shown = attack_summary.guess_of(event, picture)
        if shown and shown[1] is not None:
            iterations.append(event.iteration)
            values.append(shown[1])
    return tuple(iterations), tuple(values)


def guarantees(view: GridView) -> str:
    """Return each column's ε in the chosen view, with the terms that give it a meaning."""
    paragraphs = []
    for column in view.columns:
        text = _guarantee(view, column)
        split = f" ({html.escape(column.split)})" if column.split else ""
        paragraphs.append(f"<p><b>{html.escape(column.title)}</b>{split}. {html.escape(text)}</p>")
    return "".join(paragraphs)


def _guarantee(view: GridView, column: GridColumn) -> str:
    answer = answer_of(view, column)
    if answer is None:
        guarantee = view.forecasts[column.key].guarantee
        absent = guarantee.absent.get(view.eyes, "") if guarantee else ""
        return absent or attack_texts.UNPROMISED
    odds = privacy.odds(answer)
    return f"ε = {numbers.epsilon(answer.value)} ({privacy.terms(answer)}), {attack_texts.WHOLE_RUN}. {odds}"
