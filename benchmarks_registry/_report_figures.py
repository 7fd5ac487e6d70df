"""The plots of a report as SVG inside the page, each told in words too."""

import io
import re
from collections.abc import Callable
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pandas as pd

from benchmarks_registry._benchmark import TinyBenchmark
from benchmarks_registry._report_scores import Evaluation, legible, named, unit_of
from sklearn_irt._scenarios import OVERALL

# Models whose scenarios are drawn, and scenarios read out in words.
DRAWN, READ_OUT = 6, 8
# More points than this become an image inside the SVG.
MANY_POINTS, DPI = 600, 150
STYLE = {
    "svg.hashsalt": "sklearn-irt",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
}
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_XLINK = "{http://www.w3.org/1999/xlink}href"


class Figure(NamedTuple):
    """A plot as the template shows it."""

    title: str
    words: str
    svg: Any  # Markup


def benchmark_figures(tiny: TinyBenchmark, evaluation: Evaluation | None) -> list[Figure]:
    """Plots of the answers, where there are any, and of the benchmark.

    Parameters
    ----------
    tiny : TinyBenchmark
    evaluation : Evaluation or None

    Returns
    -------
    list of Figure
    """
    from sklearn_irt import plots

    found = []
    if evaluation is not None:
        found += _evaluation_figures(tiny, evaluation)
    found.append(
        (
            "Questions and anchors",
            lambda display: _map_in_words(tiny, display),
            lambda: plots.ItemMapDisplay.from_estimator(tiny),
        )
    )
    if len(tiny.estimator.irt_.ability_):
        found.append(
            (
                "Models and questions on one scale",
                f"Abilities of {len(tiny.estimator.irt_.ability_)} training models beside the "
                f"difficulties of {len(tiny.items):,} questions: where there are models but no "
                "questions, the benchmark tells them apart badly",
                lambda: plots.WrightMapDisplay.from_estimator(tiny.estimator.irt_),
            )
        )
    return [_drawn(f"plot{i}", *parts) for i, parts in enumerate(found)]


def _map_in_words(tiny: TinyBenchmark, display: Any) -> str:
    chosen = display.difficulty[display.anchors]
    span = f"{chosen.min():.1f} to {chosen.max():.1f}".replace("-", "−")
    return (
        f"Difficulty against discrimination of {len(tiny.items):,} questions; the {len(chosen)} "
        f"anchors, sized by weight, have difficulties from {span}"
    )


def _evaluation_figures(tiny: TinyBenchmark, evaluation: Evaluation) -> list[tuple]:
    from sklearn_irt import plots

    estimate, unit, bounds = tiny.estimator.estimate, unit_of(tiny), tiny.estimator._bounds
    bounds = (bounds.low, bounds.low + bounds.width)
    table, models, found = evaluation.table, evaluation.models, []
    several = len(table.index.unique("scenario")) > 1
    if several and len(models) <= DRAWN and tiny.estimator.aggregate == "mean":
        told = [
            f"{'whole benchmark' if scenario == OVERALL else scenario} {unit.score(score)}"
            for (model, scenario), score in table[estimate].items()
            if model == models[0]
        ]
        words = (
            f"Estimates and 90\u00a0% intervals by scenario. {models[0]}: {named(told, READ_OUT)}"
        )
        true = table["true"] if table["true"].notna().any() else None
        plain = table.drop(columns="true")
        draw = plots.EstimatesDisplay.from_table
        found.append(
            ("Estimates by scenario", words, lambda: draw(plain, true=true, response_range=bounds))
        )
    main = table.xs(evaluation.main, level="scenario")
    known = main[main["true"].notna()]
    if len(known) > 2:
        error = np.abs(known[estimate] - known["true"])
        words = (
            f"Estimated against true scores of {len(known)} models: mean error "
            f"{unit.number(error.mean())}, largest {unit.number(error.max())}; "
            f"{int(known['true'].between(known['low'], known['high']).sum())} of the 90\u00a0% "
            "intervals hold the true score"
        )
        parts = [known[name].to_numpy() for name in ("true", estimate, "low", "high")]
        draw_scores = plots.ScoresDisplay.from_scores
        found.append(
            ("Estimated and true scores", words, lambda: draw_scores(*parts, response_range=bounds))
        )
    if len(models) == 1 and tiny.estimator._relative_share() > 0:
        kin = main["relatives"].iloc[0].replace("%", "\u00a0%")
        words = f"Probability of each relative of {models[0]}: {kin}"
        answers, draw_kin = evaluation.given, plots.RelativesDisplay.from_estimator
        found.append(("Relatives", words, lambda: draw_kin(tiny.estimator, answers)))
    return found


def comparison_figures(comparison: pd.DataFrame, summary: pd.DataFrame) -> list[Figure]:
    """Plots of a comparison of strategies.

    Parameters
    ----------
    comparison : DataFrame
        From `compare_strategies`.
    summary : DataFrame
        Its `summarize`, with the columns strategy, k and coverage.

    Returns
    -------
    list of Figure
    """
    from sklearn_irt import plots

    most = summary["k"].max()
    at_most = summary[summary["k"] == most].sort_values("mean_error", kind="stable")
    order = named(at_most["strategy"], len(at_most))
    covered = summary["coverage"].dropna()
    span = "no strategy has intervals"
    if len(covered):
        span = f"from {covered.min():.2f} to {covered.max():.2f}, 0.90 is meant"
    found = [
        (
            "Error by number of anchors",
            f"Mean error of each strategy; with {most:g} anchors, best first: {order}",
            lambda: plots.StrategiesDisplay.from_results(comparison),
        ),
        (
            "Errors of the models",
            _errors_in_words,
            lambda: plots.ModelErrorsDisplay.from_results(comparison),
        ),
        (
            "Coverage of the intervals",
            f"Share of the 90\u00a0% intervals that hold the true score: {span}",
            lambda: plots.CoverageDisplay.from_results(comparison),
        ),
    ]
    return [_drawn(f"strategies{i}", *parts) for i, parts in enumerate(found)]


def _errors_in_words(display: Any) -> str:
    table = display.table
    largest = table.loc[table["error"].idxmax()]
    points = 100.0 if display.percent else 1.0
    who = f" ({largest['model']})" if "model" in table else ""
    return (
        f"Absolute error of each model against its true score, by {largest['strategy']} with "
        f"{largest['k']:g} anchors: median {points * table['error'].median():.2f}, largest "
        f"{points * largest['error']:.2f}{who}"
    )


def _drawn(
    prefix: str, title: str, words: str | Callable[[Any], str], draw: Callable[[], Any]
) -> Figure:
    """Draw one plot and close it again; its words may depend on what was drawn."""
    import matplotlib.pyplot as plt

    with plt.style.context(["default", STYLE]):
        before = set(plt.get_fignums())
        try:
            display = draw()
            figure = display.figure_
            _rasterise(figure)
            stream = io.StringIO()
            figure.savefig(stream, format="svg", metadata={"Date": None}, dpi=DPI)
        finally:
            for number in set(plt.get_fignums()) - before:
                plt.close(number)
    words = (words if isinstance(words, str) else words(display)).rstrip(".") + "."
    return Figure(title, words, inline_svg(stream.getvalue(), prefix, f"{title}. {words}"))


def _rasterise(figure: Any) -> None:
    """Draw what has very many points as an image."""
    for axes in figure.axes:
        for line in axes.lines:
            line.set_rasterized(len(line.get_xdata()) > MANY_POINTS)
        for points in axes.collections:
            points.set_rasterized(len(points.get_offsets()) > MANY_POINTS)


def inline_svg(svg: str, prefix: str, words: str) -> Any:
    """An SVG file as markup inside a page.

    Parameters
    ----------
    svg : str
    prefix : str
        Of all ids, which must be unique in a page.
    words : str
        The text alternative.

    Returns
    -------
    Markup
        Without document type, metadata, styles and namespaces.
    """
    from markupsafe import Markup

    root = ElementTree.fromstring(legible(svg).encode())
    for parent in list(root.iter()):
        for child in list(parent):
            if _plain(child.tag) in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        element.tag = _plain(element.tag)
        for name in list(element.attrib):
            value = element.attrib.pop(name)
            if name == _XLINK or name == "href":
                name, value = "href", f"#{prefix}-{value[1:]}" if value[:1] == "#" else value
            elif name == "id":
                value = f"{prefix}-{value}"
            element.set(_plain(name), _REFERENCE.sub(rf"url(#{prefix}-\1)", value))
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("role", "img")
    root.set("aria-label", legible(words))
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _plain(name: str) -> str:
    """A name without its namespace."""
    return name.rsplit("}", 1)[-1]
