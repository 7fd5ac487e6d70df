"""How all plots look: axes, colours, markers, names and units."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

# Okabe and Ito's palette, told apart by colour-blind people; its yellow is too pale on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#777777"
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", ":", "-.")
FIGURE_SIZE = (6.0, 4.0)  # inches; 600 pixels wide at the usual 100 dots per inch
SMALL, MEDIUM = 8.0, 9.0  # points
LONGEST_NAME = 28
MOST_MARKERS = 60  # longer lines have none

# So that a strategy looks the same in every plot, whichever others there are.
ANCHORS = ("random", "correctness", "irt", "information", "design", "adaptive")
ESTIMATE_DASHES = {"naive": "--", "pirt": ":", "gpirt": "-", "default": "-."}


def open_axes(ax: Any, size: tuple[float, float] = FIGURE_SIZE) -> tuple[Any, bool]:
    """The axes to draw on, and whether their figure makes room for a legend beside them."""
    if ax is not None:
        layout = type(ax.figure.get_layout_engine()).__name__
        return _small_type(ax), layout == "ConstrainedLayoutEngine"
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('plots need matplotlib: pip install "sklearn-irt[plot]"') from error
    _, ax = plt.subplots(figsize=size, layout="constrained")
    return _small_type(ax), True


def _small_type(ax: Any) -> Any:
    ax.tick_params(labelsize=MEDIUM)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_size(MEDIUM)
    return ax


def add_legend(ax: Any, outside: bool = False, **options: Any) -> Any:
    """A legend in small type: where it hides least, or right of the axes."""
    if outside:
        options = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), **options}
    return ax.legend(**{"fontsize": SMALL, "frameon": not outside} | options)


def style(number: int) -> dict[str, str]:
    """Colour, marker and line style of the series with this number, unlike those before it."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[(number + number // len(COLOURS)) % len(MARKERS)],
        "linestyle": DASHES[number % len(DASHES)],
    }


def strategy_styles(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Style of each strategy: colour and marker tell the anchors, the line the estimate."""
    pairs = {name: (str(name).partition("/")[0], str(name).partition("/")[2]) for name in names}
    anchors = [*ANCHORS, *dict.fromkeys(a for a, _ in pairs.values() if a not in ANCHORS)]
    others = list(dict.fromkeys(e for _, e in pairs.values() if e not in ESTIMATE_DASHES))
    dashes = ESTIMATE_DASHES | {e: DASHES[i % len(DASHES)] for i, e in enumerate(others)}
    return {
        name: {
            "color": COLOURS[anchors.index(a) % len(COLOURS)],
            "marker": MARKERS[anchors.index(a) % len(MARKERS)],
            "linestyle": dashes[e],
            "markerfacecolor": "white"
            if e == "naive"
            else COLOURS[anchors.index(a) % len(COLOURS)],
        }
        for name, (a, e) in pairs.items()
    }


def shorten(name: Any, longest: int = LONGEST_NAME) -> str:
    """A name that fits, with both of its ends, and that matplotlib takes literally."""
    text = " ".join(str(name).split())
    if len(text) > longest:
        end = (longest - 1) // 2
        text = f"{text[: longest - 1 - end]}…{text[len(text) - end :]}"
    text = text.replace("$", r"\$")  # else the start of a formula
    return f" {text}" if text.startswith("_") else text  # else kept out of legends


def number_by_percent(axis: Any) -> None:
    """Number an axis of shares in percent."""
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(1.0, symbol=None))


def number_by_integers(axis: Any) -> None:
    """Number an axis of counts by round integers."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))


class Unit(NamedTuple):
    """The unit of scores: percent where they are shares, else that of the responses."""

    percent: bool

    def label(self, name: str) -> str:
        """Label of an axis of scores."""
        return f"{name} (%)" if self.percent else f"{name} (unit of the responses)"

    def error_label(self, name: str) -> str:
        """Label of an axis of differences of scores."""
        return f"{name} (percentage points)" if self.percent else self.label(name)

    def text(self, value: float) -> str:
        """A score or error as a short text, without its unit."""
        return f"{100.0 * value:.1f}" if self.percent else f"{value:.3g}"

    def format(self, axis: Any) -> None:
        """Number an axis; what is drawn stays in the unit of the responses."""
        if self.percent:
            number_by_percent(axis)


def read_unit(response_range: Any, *scores: Any) -> Unit:
    """Percent where the range is [0, 1]; without a range, where all scores lie in it."""
    if response_range is not None:
        low, high = read_pair("response_range", response_range)
        return Unit(low == 0.0 and high == 1.0)
    values = np.concatenate([np.ravel(np.asarray(s, dtype=float)) for s in scores])
    values = values[np.isfinite(values)]
    return Unit(bool(((values >= -1e-9) & (values <= 1.0 + 1e-9)).all()))


def read_pair(name: str, pair: Any) -> tuple[float, float]:
    """A pair of finite numbers (low, high), low < high."""
    try:
        low, high = (float(bound) for bound in tuple(pair)[:3])
    except (TypeError, ValueError):
        low = high = np.nan
    if not (np.isfinite([low, high]).all() and low < high):
        raise ValueError(f"{name} must be a pair of numbers (low, high), low < high, got {pair!r}")
    return low, high
