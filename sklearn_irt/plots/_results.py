"""Plots of a comparison of strategies: the table of `compare_strategies`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from sklearn_irt.evaluation._table import check_results
from sklearn_irt.plots._style import (
    Unit,
    add_legend,
    open_axes,
    read_unit,
    shorten,
    strategy_styles,
)

MOST_STRATEGIES, MOST_TICKS = 4, 10


def read_results(
    results: Any,
    scenario: str,
    strategies: str | Sequence[str] | None,
    k: int | None = None,
    needed: Sequence[str] = ("true", "estimated"),
) -> pd.DataFrame:
    """Rows of a table of results that a plot is about.

    Parameters
    ----------
    results : DataFrame
    scenario : str
    strategies : str, sequence of str or None
        None: all.
    k : int, default=None
        None: all.
    needed : sequence of str
        Columns of figures that the plot uses.

    Returns
    -------
    DataFrame

    Raises
    ------
    TypeError
        Where it is no DataFrame.
    ValueError
        Naming what is missing from the table, or wrong in it.
    """
    # Without splits the errors are told by model.
    results = check_results(results, ["strategy", "k", "scenario", *needed])
    if strategies is not None:
        strategies = [strategies] if isinstance(strategies, str) else list(strategies)
    choices = {"scenario": [scenario], "k": None if k is None else [k], "strategy": strategies}
    for column, chosen in choices.items():
        for value in [] if chosen is None else chosen:
            if not (results[column] == value).any():
                known = results[column].unique().tolist()
                raise ValueError(f"results has no row of the {column} {value!r}; it has {known}")
        if chosen is not None:
            results = results[results[column].isin(chosen)]
    results = results.dropna(subset=list(needed))
    have = set(results["strategy"])
    for value in strategies or []:
        if value not in have:
            raise ValueError(
                f"the strategy {value!r} has no figures: its {', '.join(needed)} are NaN"
            )
    if not len(results):
        raise ValueError(f"results has no row with the figures {', '.join(needed)}: they are NaN")
    return results


def at_largest_k(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of the largest number of anchors that every strategy has."""
    shared = set.intersection(*(set(k) for _, k in rows.groupby("strategy", observed=True)["k"]))
    if not shared:
        raise ValueError("results has no k that all of the strategies share: give k or strategies")
    return rows[rows["k"] == max(shared)]


class KPlaces:
    """Where on the axis numbers of anchors lie; strategies with a single one lie side by side."""

    def __init__(self, k: Any, n_strategies: int):
        self.k = np.unique(np.asarray(k, dtype=float))
        self.step = 1.0 / n_strategies if len(self.k) == 1 else 0.0

    def of(self, k: Any, strategy: int) -> np.ndarray:
        """Places of the numbers `k` of the strategy with this number."""
        shift = (strategy + 0.5) * self.step - 0.5 if self.step else 0.0
        return np.asarray(k, dtype=float) + shift

    def widened(self, x: np.ndarray, *heights: np.ndarray) -> list[np.ndarray]:
        """Places and heights of a band, which has a width also at a single number."""
        if not self.step:
            return [x, *heights]
        return [x + 0.4 * self.step * np.array([-1, 1]), *(np.repeat(h, 2) for h in heights)]

    def ends(self) -> np.ndarray:
        """Both ends of the axis."""
        return self.k[[0, -1]] + (0.5 * np.array([-1, 1]) if self.step else 0.0)

    def number(self, ax: Any) -> None:
        """Number the axis."""
        ax.set_xlabel("anchors per scenario")
        if len(self.k) <= MOST_TICKS:
            ax.set_xticks(self.k, [f"{k:g}" for k in self.k])


def error_of(rows: pd.DataFrame) -> pd.Series:
    return (rows["estimated"] - rows["true"]).abs()


def _mean_errors(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean error and its standard error by strategy and k."""
    errors, keys = error_of(rows), [rows["strategy"], rows["k"]]
    if "split" in rows and rows["split"].nunique() > 1:
        errors = errors.groupby([*keys, rows["split"]], sort=False, observed=True).mean()
        keys = ["strategy", "k"]
    found = errors.groupby(keys, sort=False, observed=True)
    return pd.DataFrame({"mean_error": found.mean(), "standard_error": found.sem()})


class StrategiesDisplay:
    """Mean absolute error by number of anchors, for every strategy, with standard errors.

    The standard error is that over the splits, or over the models where there is one split.
    Strategies with a single number of anchors are drawn side by side.

    Parameters
    ----------
    table : DataFrame
        Index (strategy, k); columns mean_error and standard_error, in the unit of the responses.
    percent : bool, default=True
        Whether the scores are shares, to be shown in percent.

    Attributes
    ----------
    lines_ : dict of str to Line2D
        By strategy.
    bands_ : dict of str to PolyCollection
        One standard error to either side.
    ax_ : Axes
    figure_ : Figure

    References
    ----------
    .. [1] Maia Polo et al. (2024), tinyBenchmarks: evaluating LLMs with fewer examples, ICML.
       Figure 3.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_irt.plots import StrategiesDisplay
    >>> results = pd.DataFrame({"strategy": "irt/gpirt", "k": [30, 30, 60, 60], "scenario": "all",
    ...                         "true": 0.5, "estimated": [0.53, 0.49, 0.51, 0.51]})
    >>> StrategiesDisplay.from_results(results).table["mean_error"].round(2).tolist()
    [0.02, 0.01]
    """

    def __init__(self, table, *, percent=True):
        self.table = table
        self.percent = percent

    @classmethod
    def from_results(
        cls,
        results: pd.DataFrame,
        *,
        strategies: Sequence[str] | None = None,
        scenario: str = "all",
        response_range: Any = None,
        ax: Any = None,
    ) -> "StrategiesDisplay":
        """Draw a comparison.

        Parameters
        ----------
        results : DataFrame
            Of `compare_strategies`: columns strategy, k, scenario, true and estimated, a row for
            every model (and split).
        strategies : list of str, default=None
            Only these; None: all.
        scenario : str, default="all"
            Whose scores are drawn.
        response_range : (low, high), default=None
            Of the responses; None: [0, 1] where all true scores lie in it.
        ax : Axes, default=None
            None: a new figure.

        Returns
        -------
        StrategiesDisplay

        Raises
        ------
        ValueError
            Where a column, strategy or scenario is missing, or a column holds what it must not.
        """
        rows = read_results(results, scenario, strategies)
        table = _mean_errors(rows)
        unit = read_unit(response_range, rows["true"])
        return cls(table, percent=unit.percent).plot(ax)

    def plot(self, ax: Any = None) -> "StrategiesDisplay":
        """Draw.

        Parameters
        ----------
        ax : Axes, default=None
            None: a new figure.

        Returns
        -------
        StrategiesDisplay
            Itself.
        """
        unit = Unit(self.percent)
        ax, roomy = open_axes(ax)
        names = list(self.table.index.get_level_values("strategy").unique())
        places = KPlaces(self.table.index.get_level_values("k"), len(names))
        self.lines_, self.bands_ = {}, {}
        for number, (name, look) in enumerate(strategy_styles(names).items()):
            rows = self.table.loc[name].sort_index()
            x, mean = places.of(rows.index, number), rows["mean_error"].to_numpy()
            error = np.nan_to_num(rows["standard_error"].to_numpy())
            self.bands_[name] = ax.fill_between(
                *places.widened(x, mean - error, mean + error),
                color=look["color"],
                alpha=0.12,
                linewidth=0,
            )
            (self.lines_[name],) = ax.plot(x, mean, label=shorten(name), markersize=5, **look)
        places.number(ax)
        ax.set_ylabel(unit.error_label("mean absolute error"))
        ax.set_ylim(bottom=0)
        unit.format(ax.yaxis)
        ax.grid(alpha=0.3)
        add_legend(ax, outside=roomy)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class ModelErrorsDisplay:
    """Absolute error of every model against its true score.

    Parameters
    ----------
    table : DataFrame
        Columns strategy, k, true and error (absolute), a row per model, in the unit of the
        responses.
    percent : bool, default=True
        Whether the scores are shares, to be shown in percent.

    Attributes
    ----------
    points_ : dict of str to Line2D
        By strategy.
    ax_ : Axes
    figure_ : Figure

    References
    ----------
    .. [1] Maia Polo et al. (2024), tinyBenchmarks: evaluating LLMs with fewer examples, ICML.
       Figure 6.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_irt.plots import ModelErrorsDisplay
    >>> results = pd.DataFrame({"strategy": "irt/gpirt", "k": 30, "scenario": "all",
    ...                         "true": [0.5, 0.7], "estimated": [0.53, 0.69]})
    >>> ModelErrorsDisplay.from_results(results).table["error"].round(2).tolist()
    [0.03, 0.01]
    """

    def __init__(self, table, *, percent=True):
        self.table = table
        self.percent = percent

    @classmethod
    def from_results(
        cls,
        results: pd.DataFrame,
        *,
        strategies: str | Sequence[str] | None = None,
        k: int | None = None,
        scenario: str = "all",
        response_range: Any = None,
        ax: Any = None,
    ) -> "ModelErrorsDisplay":
        """Draw the models of a comparison.

        Parameters
        ----------
        results : DataFrame
            Of `compare_strategies`.
        strategies : str or list of str, default=None
            At most four; None: the one with the least mean error.
        k : int, default=None
            Number of anchors; None: the largest.
        scenario : str, default="all"
            Whose scores are drawn.
        response_range : (low, high), default=None
            Of the responses; None: [0, 1] where all true scores lie in it.
        ax : Axes, default=None
            None: a new figure.

        Returns
        -------
        ModelErrorsDisplay

        Raises
        ------
        ValueError
            Where a column, strategy, k or scenario is missing, or strategies are more than four.
        """
        rows = read_results(results, scenario, strategies, k)
        rows = at_largest_k(rows)
        table = rows[["strategy", "k", "true"]].assign(error=error_of(rows))
        if "model" in rows:
            table = table.assign(model=rows["model"])
        if strategies is None:
            table = table[
                table["strategy"]
                == table.groupby("strategy", observed=True)["error"].mean().idxmin()
            ]
        if table["strategy"].nunique() > MOST_STRATEGIES:
            raise ValueError(
                f"strategies holds {table['strategy'].nunique()} of them, at most "
                f"{MOST_STRATEGIES} are legible: choose some"
            )
        unit = read_unit(response_range, rows["true"])
        return cls(table, percent=unit.percent).plot(ax)

    def plot(self, ax: Any = None) -> "ModelErrorsDisplay":
        """Draw.

        Parameters
        ----------
        ax : Axes, default=None
            None: a new figure.

        Returns
        -------
        ModelErrorsDisplay
            Itself.
        """
        unit = Unit(self.percent)
        ax, _ = open_axes(ax)
        self.points_ = {}
        for name, look in strategy_styles(self.table["strategy"].unique()).items():
            rows = self.table[self.table["strategy"] == name]
            mean = rows["error"].mean()
            (self.points_[name],) = ax.plot(
                rows["true"].to_numpy(dtype=float),
                rows["error"].to_numpy(dtype=float),
                markersize=5,
                alpha=0.8,
                label=f"{shorten(name)}, k={rows['k'].iloc[0]}: mean {unit.text(mean)}",
                **look | {"linestyle": ""},
            )
            ax.axhline(mean, color=look["color"], linestyle=look["linestyle"], linewidth=1)
        ax.set(xlabel=unit.label("true score"), ylabel=unit.error_label("absolute error"))
        ax.set_ylim(bottom=0)
        unit.format(ax.xaxis)
        unit.format(ax.yaxis)
        ax.grid(alpha=0.3)
        add_legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
