"""The Wright map: models and items on one scale."""

from typing import Any

import numpy as np

from sklearn_irt.plots._source import axis_name, read_direction, read_source
from sklearn_irt.plots._style import COLOURS, MEDIUM, open_axes

N_BINS = 24


class WrightMapDisplay:
    """Wright map: the abilities of the models beside the difficulties of the items, in logits.

    A model's ability is its logit on an item of difficulty zero that discriminates as the items
    do on average: the ability times the mean discrimination. Where it equals an item's
    difficulty, the model gets half of such an item right. A model of several dimensions is thus
    shown along the direction of the mean discrimination.

    Parameters
    ----------
    ability : ndarray of shape (n_models,)
        In logits.
    difficulty : ndarray of shape (n_items,)
        In logits.
    axis_name : str, default="ability"
        What `ability` is called.

    Attributes
    ----------
    edges_ : ndarray of shape (n_bins + 1,)
        Of the bins of both histograms.
    model_bars_, item_bars_ : BarContainer
        Share of the models to the left, as negative widths, and of the items to the right.
    ax_ : Axes
    figure_ : Figure

    References
    ----------
    .. [1] Wilson (2005), Constructing measures: an item response modeling approach. Chapter 5.

    Examples
    --------
    >>> from sklearn_irt import IRTRegressor
    >>> from sklearn_irt.datasets import make_responses
    >>> from sklearn_irt.plots import WrightMapDisplay
    >>> irt = IRTRegressor(n_dims=2).fit(make_responses(n_models=40, random_state=0).responses)
    >>> display = WrightMapDisplay.from_estimator(irt)
    >>> len(display.ability), len(display.difficulty)
    (40, 200)
    """

    def __init__(self, ability, difficulty, *, axis_name="ability"):
        self.ability = ability
        self.difficulty = difficulty
        self.axis_name = axis_name

    @classmethod
    def from_estimator(
        cls,
        irt: Any,
        *,
        scenario: str | None = None,
        dimension: int | None = None,
        ax: Any = None,
    ) -> "WrightMapDisplay":
        """Draw the training models and the items of a fitted object.

        Parameters
        ----------
        irt : IRTRegressor, AnchorSelector, GPIRTEstimator, Pipeline or TinyBenchmark
            Fitted.
        scenario : str, default=None
            Only the items of this scenario, whose mean discrimination is the direction.
        dimension : int, default=None
            Of the mean discrimination, only the part in this dimension.
        ax : Axes, default=None
            None: a new figure.

        Returns
        -------
        WrightMapDisplay

        Raises
        ------
        ValueError
            Where the scenario or dimension is unknown, or the benchmark holds no training models.
        NotFittedError
        """
        source = read_source(irt)
        members = source.in_scenario(scenario)
        direction = read_direction(source, members, dimension)
        if not len(source.irt.ability_):
            raise ValueError("a Wright map needs abilities, and this benchmark holds no models'")
        display = cls(
            np.asarray(source.irt.ability_, dtype=float) @ direction,
            np.asarray(source.irt.difficulty_, dtype=float)[members],
            axis_name=axis_name(source, dimension),
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> "WrightMapDisplay":
        """Draw.

        Parameters
        ----------
        ax : Axes, default=None
            None: a new figure.

        Returns
        -------
        WrightMapDisplay
            Itself.
        """
        ax, _ = open_axes(ax)
        from matplotlib.ticker import FuncFormatter

        both = np.concatenate([self.ability, self.difficulty])
        self.edges_ = np.histogram_bin_edges(both, N_BINS)
        height = np.diff(self.edges_)
        sides = (self.ability, self.difficulty)
        shares = [np.histogram(side, self.edges_)[0] / len(side) for side in sides]
        bars = {"height": height, "align": "edge", "edgecolor": "white", "linewidth": 0.5}
        self.model_bars_ = ax.barh(self.edges_[:-1], -shares[0], color=COLOURS[0], **bars)
        self.item_bars_ = ax.barh(
            self.edges_[:-1], shares[1], color=COLOURS[1], hatch="///", **bars
        )
        ax.axvline(0.0, color="black", linewidth=0.8)
        reach = 1.08 * max(share.max() for share in shares)
        for x, side, text in (
            (0.02, "left", f"{len(self.ability)} models"),
            (0.98, "right", f"{len(self.difficulty)} items"),
        ):
            ax.text(x, 0.98, text, transform=ax.transAxes, ha=side, va="top", fontsize=MEDIUM)
        low, high = self.edges_[0], self.edges_[-1]
        gap = "\n" if len(self.axis_name) > 10 else " "
        ax.set(
            xlim=(-reach, reach),
            ylim=(low - 0.02 * (high - low), high + 0.1 * (high - low)),  # room for the two texts
            xlabel="share (%)",
            ylabel=f"{self.axis_name}{gap}and difficulty of the items (logits)",
        )
        ax.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * abs(share):g}"))
        ax.grid(axis="y", alpha=0.3)
        self.ax_, self.figure_ = ax, ax.figure
        return self
