"""Estimated scores: against the true ones, and by scenario with their intervals."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from sklearn_irt._scenarios import OVERALL
from sklearn_irt.plots._style import (
    COLOURS,
    GREY,
    MARKERS,
    SMALL,
    add_legend,
    open_axes,
    read_unit,
    shorten,
)

ESTIMATES = ("gpirt", "pirt", "naive")
MOST_MODELS = len(COLOURS)


class ScoresDisplay:
    """Estimated against true scores of models, with their intervals.

    Parameters
    ----------
    true, estimated : ndarray of shape (n_models,)
        In the unit of the responses; NaN is left out.
    low, high : ndarray of shape (n_models,), default=None
        Ends of the intervals.
    response_range : (low, high), default=None
        Of the responses; None: [0, 1] where all scores lie in it. Scores in [0, 1] are shown in
        percent.

    Attributes
    ----------
    points_ : Line2D
    bars_ : ErrorbarContainer or None
        The intervals.
    ax_ : Axes
    figure_ : Figure

    Examples
    --------
    >>> from sklearn_irt.plots import ScoresDisplay
    >>> display = ScoresDisplay.from_scores([0.3, 0.6], [0.32, 0.57], [0.2, 0.5], [0.4, 0.62])
    >>> display.points_.get_ydata()
    array([0.32, 0.57])
    """

    def __init__(self, true, estimated, *, low=None, high=None, response_range=None):
        self.true = true
        self.estimated = estimated
        self.low = low
        self.high = high
        self.response_range = response_range

    @classmethod
    def from_scores(
        cls,
        true: Any,
        estimated: Any,
        low: Any = None,
        high: Any = None,
        *,
        response_range: Any = None,
        ax: Any = None,
    ) -> "ScoresDisplay":
        """Draw scores.

        Parameters
        ----------
        true, estimated : array-like of shape (n_models,)
            In the unit of the responses. Series are matched by their index.
        low, high : array-like of shape (n_models,), default=None
            Ends of the intervals; both or none.
        response_range : (low, high), default=None
            Of the responses; None: [0, 1] where all scores lie in it.
        ax : Axes, default=None
            None: a new figure.

        Returns
        -------
        ScoresDisplay

        Raises
        ------
        ValueError
            Where lengths or indices differ, an interval has one end only or its ends are
            exchanged, or no model has both scores.
        """
        if (low is None) != (high is None):
            raise ValueError("give both low and high, or neither")
        given = {"true": true, "estimated": estimated, "low": low, "high": high}
        columns = _aligned({name: value for name, value in given.items() if value is not None})
        if not np.isfinite(columns["true"] + columns["estimated"]).any():
            raise ValueError("true and estimated hold no model with both scores")
        if low is not None and (columns["low"] > columns["high"]).any():
            first = int(np.argmax(columns["low"] > columns["high"]))
            raise ValueError(f"low exceeds high at position {first}: are they exchanged?")
        return cls(**columns, response_range=response_range).plot(ax)

    def plot(self, ax: Any = None) -> "ScoresDisplay":
        """Draw.

        Parameters
        ----------
        ax : Axes, default=None
            None: a new figure.

        Returns
        -------
        ScoresDisplay
            Itself.
        """
        ax, _ = open_axes(ax)
        unit = read_unit(self.response_range, self.true, self.estimated)
        self.bars_ = None
        if self.low is not None:
            middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
            self.bars_ = ax.errorbar(
                self.true,
                middle,
                yerr=half,
                fmt="none",
                ecolor=COLOURS[5],
                elinewidth=1.2,
                label="interval",
            )
        (self.points_,) = ax.plot(
            self.true,
            self.estimated,
            linestyle="",
            marker="o",
            markersize=4,
            color=COLOURS[0],
            label="model",
        )
        ends = np.array([np.nanmin(self.true), np.nanmax(self.true)])
        ax.plot(ends, ends, color="black", linestyle="--", linewidth=1, label="equal")
        error = np.nanmean(np.abs(self.estimated - self.true))
        points = " points" if unit.percent else ""
        ax.text(
            0.98,
            0.03,
            f"mean absolute error {unit.text(error)}{points}",
            transform=ax.transAxes,
            ha="right",
            fontsize=SMALL,
        )
        ax.set(xlabel=unit.label("true score"), ylabel=unit.label("estimated score"))
        unit.format(ax.xaxis)
        unit.format(ax.yaxis)
        ax.grid(alpha=0.3)
        add_legend(ax, loc="upper left")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _aligned(columns: dict[str, Any]) -> dict[str, np.ndarray]:
    """Columns as arrays of one length; Series in the order of the first one."""
    series = {name: c for name, c in columns.items() if isinstance(c, pd.Series)}
    if series:
        first, reference = next(iter(series.items()))
        for name, other in series.items():
            if other.index.equals(reference.index):
                continue
            same = len(other) == len(reference) and set(other.index) == set(reference.index)
            if not (same and reference.index.is_unique):
                raise ValueError(f"{name} and {first} are Series of different models (index)")
            columns = columns | {name: other.loc[reference.index]}
    arrays = {name: np.asarray(column, dtype=float) for name, column in columns.items()}
    n_models = len(arrays["true"]) if arrays["true"].ndim == 1 else -1
    for name, array in arrays.items():
        if array.shape != (n_models,):
            raise ValueError(
                f"{name} has shape {array.shape}, but one score per model is needed, as many as "
                f"in true, which has shape {arrays['true'].shape}"
            )
    return arrays


class EstimatesDisplay:
    """Estimated score of every scenario with its interval, of one or several models.

    Parameters
    ----------
    estimate, low, high : DataFrame of shape (n_models, n_scenarios)
        In the unit of the responses.
    true : DataFrame of shape (n_models, n_scenarios), default=None
        NaN where unknown.
    response_range : (low, high), default=None
        Of the responses; None: [0, 1] where all scores lie in it. Scores in [0, 1] are shown in
        percent.

    Attributes
    ----------
    points_ : list of Line2D
        The estimates of each model.
    bars_ : list of ErrorbarContainer
        The intervals of each model.
    true_ : list of Line2D
        The true scores of each model; empty where none are known.
    ax_ : Axes
    figure_ : Figure

    Examples
    --------
    >>> from sklearn_irt import GPIRTEstimator
    >>> from sklearn_irt.datasets import make_responses
    >>> from sklearn_irt.plots import EstimatesDisplay
    >>> data = make_responses(n_models=40, scenarios=2, random_state=0)
    >>> estimator = GPIRTEstimator(scenarios=data["items"]["scenario"], random_state=0)
    >>> table = estimator.fit(data.responses).predict_table(data.responses[:2])
    >>> display = EstimatesDisplay.from_table(table)
    >>> display.estimate.shape
    (2, 3)
    """

    def __init__(self, estimate, low, high, *, true=None, response_range=None):
        self.estimate = estimate
        self.low = low
        self.high = high
        self.true = true
        self.response_range = response_range

    @classmethod
    def from_table(
        cls,
        table: pd.DataFrame,
        true: Any = None,
        *,
        response_range: Any = None,
        ax: Any = None,
    ) -> "EstimatesDisplay":
        """Draw a table of estimates.

        Parameters
        ----------
        table : DataFrame
            Of `GPIRTEstimator.predict_table`, `TinyBenchmark.estimate` or
            `AdaptiveSession.estimate`: index scenario or (model, scenario), columns low, high and
            those of the estimates, of which the one in the middle of the intervals is drawn. At
            most 7 models.
        true : Series, DataFrame, mapping or float, default=None
            True scores by scenario, or by (model, scenario); a DataFrame of models by scenarios;
            a number, where the table has one row.
        response_range : (low, high), default=None
            Of the responses; None: [0, 1] where all scores lie in it.
        ax : Axes, default=None
            None: a new figure, the higher the more scenarios.

        Returns
        -------
        EstimatesDisplay

        Raises
        ------
        ValueError
            Where a column is missing, the table is empty or of more than 7 models, or a true
            score is of no row of it.
        """
        _check_table(table)
        if not isinstance(table.index, pd.MultiIndex):
            table = pd.concat({"": table}, names=["model"])
        name = _drawn_estimate(table)
        models, scenarios = (table.index.get_level_values(i).unique() for i in (0, 1))
        if len(models) > MOST_MODELS:
            raise ValueError(
                f"table holds {len(models)} models, at most {MOST_MODELS} are legible: choose "
                "some, e.g. table.loc[names]"
            )
        grid = {
            column: table[column].unstack().reindex(index=models, columns=scenarios)
            for column in (name, "low", "high")
        }
        display = cls(
            grid[name],
            grid["low"],
            grid["high"],
            true=None if true is None else _read_true(true, table).reindex(models)[scenarios],
            response_range=response_range,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> "EstimatesDisplay":
        """Draw.

        Parameters
        ----------
        ax : Axes, default=None
            None: a new figure, the higher the more scenarios.

        Returns
        -------
        EstimatesDisplay
            Itself.
        """
        scenarios, n_models = list(self.estimate.columns), len(self.estimate)
        known = [] if self.true is None else [self.true]
        unit = read_unit(self.response_range, self.estimate, self.low, self.high, *known)
        row = 0.28 + 0.1 * (n_models - 1)  # inches
        ax, roomy = open_axes(ax, (6.0, max(2.2, 1.0 + row * len(scenarios))))
        self.points_, self.bars_, self.true_ = [], [], []
        for number, model in enumerate(self.estimate.index):
            y = np.arange(len(scenarios)) + 0.7 * ((number + 0.5) / n_models - 0.5)
            self._draw(ax, number, model, y)
        ax.set_yticks(range(len(scenarios)), [shorten(name) for name in scenarios])
        ax.set_ylim(len(scenarios) - 0.5, -0.5)
        if OVERALL in scenarios:
            ax.axhline(scenarios.index(OVERALL) - 0.5, color=GREY, linewidth=0.8)
        ax.set_xlabel(unit.label("score"))
        unit.format(ax.xaxis)
        ax.grid(axis="x", alpha=0.3)
        if n_models > 1 or self.true_:
            handles = [*self.points_, *self.true_[:1]]
            above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 3}
            add_legend(ax, handles=handles, frameon=False, **(above if roomy else {}))
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw(self, ax: Any, number: int, model: Any, y: np.ndarray) -> None:
        """Draw one model at the heights `y`."""
        low, high = (side.iloc[number].to_numpy(dtype=float) for side in (self.low, self.high))
        color, marker = COLOURS[number], MARKERS[number]
        self.bars_.append(
            ax.errorbar(
                (low + high) / 2,
                y,
                xerr=(high - low) / 2,
                fmt="none",
                ecolor=color,
                elinewidth=1.6,
                capsize=3,
            )
        )
        self.points_ += ax.plot(
            self.estimate.iloc[number].to_numpy(dtype=float),
            y,
            linestyle="",
            marker=marker,
            markersize=5,
            color=color,
            label=shorten(model, 22) or "estimate, interval",
        )
        if self.true is not None:
            self.true_ += ax.plot(
                self.true.iloc[number].to_numpy(dtype=float),
                y,
                linestyle="",
                marker="|",
                markersize=13,
                zorder=1.5,
                markeredgewidth=2,
                color="black",
                label="true score",
            )


def _check_table(table: Any) -> None:
    needed = {"low", "high"}
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"table must be a DataFrame, got {type(table).__name__}")
    missing = sorted(needed - set(table.columns))
    if missing or not set(ESTIMATES) & set(table.columns):
        raise ValueError(
            f"table has the columns {list(table.columns)}, but low, high and one of "
            f"{', '.join(ESTIMATES)} are needed: give the table of predict_table or estimate"
        )
    if table.index.nlevels > 2:
        raise ValueError("the index of table must be scenario, or model and scenario")
    if not len(table):
        raise ValueError("table has no row")
    if not table.index.is_unique:
        raise ValueError(f"table has the row {table.index[table.index.duplicated()][0]!r} twice")


def _drawn_estimate(table: pd.DataFrame) -> str:
    """The estimate that the intervals belong to: the one in their middle."""
    middle = (table["low"] + table["high"]) / 2
    names = [name for name in ESTIMATES if name in table.columns]
    # By the median: the range of the responses cuts some intervals off.
    away = [(table[name] - middle).abs().median() for name in names]
    away = [np.inf if np.isnan(distance) else distance for distance in away]
    least = min(away)
    return next(n for n, a in zip(names, away, strict=True) if a <= least + 1e-12)


def _read_true(true: Any, table: pd.DataFrame) -> pd.DataFrame:
    """True scores of the rows of a table, models by scenarios."""
    models = table.index.get_level_values(0).unique()
    if isinstance(true, pd.DataFrame):
        given = pd.concat({scenario: true[scenario] for scenario in true.columns}).swaplevel()
    elif np.ndim(true) == 0 and not isinstance(true, Mapping):
        if len(table) != 1:
            raise ValueError(f"true is one number, but table has {len(table)} rows: give a Series")
        given = pd.Series(true, table.index, dtype=float)
    else:
        given = pd.Series(true, dtype=float)
        if given.index.nlevels == 1:
            if len(models) > 1:
                raise ValueError("table has several models: index true by (model, scenario)")
            given = pd.concat({models[0]: given})
    for row in given.index:
        if row not in table.index:
            raise ValueError(f"true has a score of {row!r}, of which table has no row")
    return given.reindex(table.index).unstack()
