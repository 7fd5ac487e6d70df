"""Coverage of the intervals of a comparison of strategies."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from sklearn_irt._reports import check_coverage
from sklearn_irt.plots._results import KPlaces, at_largest_k, error_of, read_results
from sklearn_irt.plots._style import (
    GREY,
    add_legend,
    number_by_percent,
    open_axes,
    shorten,
    strategy_styles,
)

LEVELS = np.round([*np.arange(0.1, 0.95, 0.1), 0.95], 2)


class CoverageDisplay:
    """Share of the true scores inside the intervals: by number of anchors, or nominal level.

    Parameters
    ----------
    table : DataFrame
        Index (strategy, k) or (strategy, level); columns coverage and n_models.
    nominal : float or None
        The level of the intervals; None where the index holds it.

    Attributes
    ----------
    lines_ : dict of str to Line2D
        By strategy.
    band_ : PolyCollection
        Where nine of ten right intervals' coverages lie by chance, with so many models as the
        strategy with fewest has, as if these were independent.
    ax_ : Axes
    figure_ : Figure

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_irt.plots import CoverageDisplay
    >>> results = pd.DataFrame({"strategy": "irt/gpirt", "k": [30, 30, 60, 60], "scenario": "all",
    ...                         "true": 0.5, "estimated": [0.53, 0.49, 0.51, 0.51], "std": 0.01,
    ...                         "low": [0.51, 0.48, 0.49, 0.49], "high": 0.55})
    >>> CoverageDisplay.from_results(results).table["coverage"].tolist()
    [0.5, 1.0]
    """

    def __init__(self, table, *, nominal=None):
        self.table = table
        self.nominal = nominal

    @classmethod
    def from_results(
        cls,
        results: pd.DataFrame,
        *,
        by: str = "k",
        strategies: str | Sequence[str] | None = None,
        k: int | None = None,
        nominal: float = 0.9,
        scenario: str = "all",
        ax: Any = None,
    ) -> "CoverageDisplay":
        """Draw the coverage of a comparison.

        Parameters
        ----------
        results : DataFrame
            Of `compare_strategies`. Rows without an interval are left out.
        by : {"k", "level"}, default="k"
            "k": coverage of the intervals from low to high, by number of anchors. "level": of
            the intervals by `std` and the normal approximation, by their nominal level.
        strategies : str or list of str, default=None
            Only these; None: all that have intervals.
        k : int, default=None
            Number of anchors; None: all, or the largest with ``by="level"``.
        nominal : float in (0, 1), default=0.9
            Level of the intervals from low to high.
        scenario : str, default="all"
            Whose scores are drawn.
        ax : Axes, default=None
            None: a new figure.

        Returns
        -------
        CoverageDisplay

        Raises
        ------
        ValueError
            Where a column, strategy, k or scenario is missing, or no row has an interval.
        """
        if by not in ("k", "level"):
            raise ValueError(f'by must be "k" or "level", got {by!r}')
        check_coverage(nominal)
        figures = ("std",) if by == "level" else ("low", "high")
        rows = read_results(results, scenario, strategies, k, ("true", "estimated", *figures))
        if by == "k":
            inside = (rows["low"] <= rows["true"]) & (rows["true"] <= rows["high"])
            found = inside.groupby([rows["strategy"], rows["k"]], sort=False, observed=True)
            return cls(_coverage_table(found), nominal=nominal).plot(ax)
        rows = at_largest_k(rows)
        parts = {
            level: _coverage_table(
                (error_of(rows) <= ndtri(0.5 * (1.0 + level)) * rows["std"]).groupby(
                    rows["strategy"], sort=False, observed=True
                )
            )
            for level in LEVELS.tolist()
        }
        return cls(pd.concat(parts, names=["level"]).swaplevel()).plot(ax)

    def plot(self, ax: Any = None) -> "CoverageDisplay":
        """Draw.

        Parameters
        ----------
        ax : Axes, default=None
            None: a new figure.

        Returns
        -------
        CoverageDisplay
            Itself.
        """
        ax, roomy = open_axes(ax)
        names = list(self.table.index.get_level_values("strategy").unique())
        x = np.unique(self.table.index.get_level_values(1)).astype(float)
        places = KPlaces(x, len(names)) if self.nominal is not None else None
        if places is not None:
            x = places.ends()
        right = x if places is None else np.full(len(x), self.nominal)
        chance = ndtri(0.95) * np.sqrt(right * (1.0 - right) / self.table["n_models"].min())
        self.band_ = ax.fill_between(
            x,
            np.maximum(right - chance, 0.0),
            np.minimum(right + chance, 1.0),
            color=GREY,
            alpha=0.2,
            linewidth=0,
            label="nominal, by chance",
        )
        ax.plot(x, right, color="black", linewidth=1, label="nominal")
        self.lines_ = {}
        for number, (name, look) in enumerate(strategy_styles(names).items()):
            rows = self.table.loc[name].sort_index()
            at = (
                rows.index.to_numpy(dtype=float)
                if places is None
                else places.of(rows.index, number)
            )
            (self.lines_[name],) = ax.plot(
                at,
                rows["coverage"].to_numpy(dtype=float),
                label=shorten(name),
                markersize=5,
                **look,
            )
        if places is not None:
            places.number(ax)
        else:
            ax.set_xlabel("nominal level of the interval (%)")
            number_by_percent(ax.xaxis)
        level = "" if self.nominal is None else f" of {self.nominal:.0%} intervals"
        ax.set_ylabel(f"coverage{level} (% of models)")
        number_by_percent(ax.yaxis)
        ax.grid(alpha=0.3)
        add_legend(ax, outside=roomy)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _coverage_table(inside: Any) -> pd.DataFrame:
    return pd.DataFrame({"coverage": inside.mean(), "n_models": inside.size()})
