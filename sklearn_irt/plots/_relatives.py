"""Whom a model resembles."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from sklearn_irt._gpirt import GPIRTEstimator
from sklearn_irt._responses import as_numbers
from sklearn_irt.plots._source import read_estimator
from sklearn_irt.plots._style import (
    COLOURS,
    GREY,
    SMALL,
    number_by_percent,
    open_axes,
    read_unit,
    shorten,
)


class RelativesDisplay:
    """Relatives of one model: the posterior over the training models, and none.

    Parameters
    ----------
    table : DataFrame
        Index relative, heaviest first and "(none)" last; columns weight and score (the
        relative's own, in the unit of the responses).
    response_range : (low, high), default=(0, 1)
        Of the responses.

    Attributes
    ----------
    bars_ : BarContainer
        One for each row of the table.
    ax_ : Axes
    figure_ : Figure

    Examples
    --------
    >>> from sklearn_irt import GPIRTEstimator
    >>> from sklearn_irt.datasets import make_responses
    >>> from sklearn_irt.plots import RelativesDisplay
    >>> data = make_responses(n_models=41, random_state=0).responses
    >>> estimator = GPIRTEstimator(relatives=0.5, random_state=0).fit(data.iloc[:40])
    >>> display = RelativesDisplay.from_estimator(estimator, data.iloc[40], n=3)
    >>> display.table.shape
    (4, 2)
    """

    def __init__(self, table, *, response_range=(0.0, 1.0)):
        self.table = table
        self.response_range = response_range

    @classmethod
    def from_estimator(
        cls, source: Any, answers: Any, *, n: int = 5, ax: Any = None
    ) -> "RelativesDisplay":
        """Draw the relatives of a model.

        Parameters
        ----------
        source : GPIRTEstimator, Pipeline or TinyBenchmark
            Fitted.
        answers : array-like of shape (n_anchors,) or (1, n_anchors), mapping, Series or DataFrame
            One model's answers to the anchors, NaN where not asked: in the order of the anchors,
            or by item name. By name anchors may be left out; other items are of no effect.
        n : int, default=5
            Relatives to draw, besides none.
        ax : Axes, default=None
            None: a new figure.

        Returns
        -------
        RelativesDisplay

        Raises
        ------
        ValueError
            Where the answers are not those of one model, or relatives are off.
        NotFittedError
        """
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise ValueError(f"n must be an integer of at least 1, got {n!r}")
        estimator, items = read_estimator(source)
        if not isinstance(estimator, GPIRTEstimator):
            raise TypeError(
                "relatives are known to a loaded benchmark, a fitted GPIRTEstimator, or a Pipeline "
                f"that ends in one, got {type(source).__name__}"
            )
        answers = _one_row(source, estimator, items, answers)
        bounds = estimator._bounds
        display = cls(
            estimator.relatives_of(answers, n=n).droplevel("model"),
            response_range=(bounds.low, bounds.low + bounds.width),
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> "RelativesDisplay":
        """Draw.

        Parameters
        ----------
        ax : Axes, default=None
            None: a new figure.

        Returns
        -------
        RelativesDisplay
            Itself.
        """
        unit = read_unit(self.response_range)
        rows = np.arange(len(self.table))
        ax, _ = open_axes(ax, (6.0, max(2.2, 1.0 + 0.32 * len(rows))))
        weights = self.table["weight"].to_numpy(dtype=float)
        none = np.array([name == "(none)" for name in self.table.index])
        self.bars_ = ax.barh(rows, weights, color=np.where(none, GREY, COLOURS[0]), height=0.7)
        for bar, lone in zip(self.bars_, none, strict=True):
            if lone:
                bar.set(hatch="///", edgecolor="white")
        names = []
        for row, (weight, score) in enumerate(
            zip(weights, self.table["score"].to_numpy(dtype=float), strict=True)
        ):
            share = "<1 %" if 0.0 < weight < 0.005 else f"{100 * weight:.0f} %"
            ax.annotate(
                share,
                (weight, row),
                (3, 0),
                textcoords="offset points",
                va="center",
                fontsize=SMALL,
            )
            names.append(
                "none of them"
                if none[row]
                else f"{_twins(self.table.index[row])} ({unit.text(score)})"
            )
        ax.set_yticks(rows, names)
        ax.set_ylim(len(rows) - 0.5, -0.5)
        ax.set_xlim(0.0, 1.19 * max(weights.max(), 0.05))  # room for the texts beside the bars
        in_percent = " in %" if unit.percent else ""
        ax.set_ylabel(f"model (score{in_percent})")
        ax.set_xlabel("posterior probability (%)")
        number_by_percent(ax.xaxis)
        ax.grid(axis="x", alpha=0.3)
        ax.set_axisbelow(True)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _twins(name: str) -> str:
    """Label of a relative; of twins the first, and how many more."""
    first, *others = str(name).split(" = ")
    return f"{shorten(first, 22)} (+{len(others)} equal)" if others else shorten(first)


def _one_row(source: Any, estimator: GPIRTEstimator, items: np.ndarray | None, answers: Any) -> Any:
    """One model's answers to the anchors in one row, as the estimator takes them."""
    names = None if items is None else np.asarray(items, dtype=object)[estimator.anchors_].tolist()
    if isinstance(answers, pd.DataFrame):
        answers = _of_one_model(answers)
    if isinstance(answers, (Mapping, pd.Series)) and names is None:
        raise ValueError("the items have no names: give the answers as an array, in their order")
    if isinstance(answers, (Mapping, pd.Series)):
        answers, known = pd.Series(answers, dtype=object), set(items)
        for item in answers.index:
            if item not in known:
                raise ValueError(f"there is no item {item!r}; ids look like {names[0]!r}")
        if not answers.index.is_unique:
            twice = answers.index[answers.index.duplicated()][0]
            raise ValueError(f"answers hold the item {twice!r} more than once")
        return answers.reindex(names).to_frame("answers").T
    answers = np.asarray(as_numbers(np.asarray(answers)), dtype=float)
    if answers.size != len(estimator.anchors_):
        raise ValueError(
            f"answers have shape {answers.shape}, but one model's answers to the "
            f"{len(estimator.anchors_)} anchors are needed"
        )
    if names is None:
        return answers.reshape(1, -1)
    # A loaded benchmark may ask its anchors in another order.
    order = source.anchors() if hasattr(source, "anchors") else names
    return pd.DataFrame([answers.ravel()], ["answers"], order)[names]


def _of_one_model(table: pd.DataFrame) -> Any:
    """The only row of a DataFrame with items as columns, or a tidy one's scores by item."""
    tidy = {"item", "score"} <= set(table.columns)
    n_models = len(table) if not tidy else table["model"].nunique() if "model" in table else 1
    if n_models != 1:
        raise ValueError(f"answers are of {n_models} models: choose one of them")
    if tidy:
        return table.set_index("item")["score"]
    # Columns without names are in the order of the anchors.
    return table.to_numpy() if isinstance(table.columns, pd.RangeIndex) else table.iloc[0]
