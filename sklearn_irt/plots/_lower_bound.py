"""How a fit went: the lower bound by iteration."""

from typing import Any

import numpy as np

from sklearn_irt._irt import IRTRegressor
from sklearn_irt.plots._source import read_estimator
from sklearn_irt.plots._style import (
    COLOURS,
    MOST_MARKERS,
    add_legend,
    number_by_integers,
    open_axes,
    shorten,
    style,
)

# More fits than this have one colour and no legend.
MOST_LINES = len(COLOURS)


class LowerBoundDisplay:
    """Lower bound of the log-evidence (ELBO) by iteration of the fit.

    Parameters
    ----------
    lower_bounds : list of ndarray of shape (n_iter,)
        In nats per observed response; one array for each fit.
    names : list of str
        Of the fits: scenarios, where each has its own.

    Attributes
    ----------
    lines_ : list of Line2D
    ax_ : Axes
    figure_ : Figure

    Examples
    --------
    >>> from sklearn_irt import IRTRegressor
    >>> from sklearn_irt.datasets import make_responses
    >>> from sklearn_irt.plots import LowerBoundDisplay
    >>> irt = IRTRegressor(n_dims=2).fit(make_responses(n_models=40, random_state=0).responses)
    >>> display = LowerBoundDisplay.from_estimator(irt)
    >>> len(display.lower_bounds[0]) == irt.n_iter_
    True
    """

    def __init__(self, lower_bounds, names):
        self.lower_bounds = lower_bounds
        self.names = names

    @classmethod
    def from_estimator(cls, irt: Any, *, ax: Any = None) -> "LowerBoundDisplay":
        """Draw the lower bounds of a fitted model.

        Parameters
        ----------
        irt : IRTRegressor, AnchorSelector, GPIRTEstimator or Pipeline
            Fitted.
        ax : Axes, default=None
            None: a new figure.

        Returns
        -------
        LowerBoundDisplay

        Raises
        ------
        ValueError
            Where none are kept, as in a benchmark that was loaded from a file.
        NotFittedError
        """
        estimator, _ = read_estimator(irt)
        model = (
            estimator if isinstance(estimator, IRTRegressor) else getattr(estimator, "irt_", None)
        )
        bounds = getattr(model, "lower_bounds_", None)
        if bounds is None:
            raise ValueError(
                "this object keeps no lower bounds: give one that was fitted here, with an IRT "
                "model; a loaded benchmark holds the parameters only"
            )
        several = isinstance(bounds, (list, tuple))
        names = [str(name) for name in model.scenarios_] if several else ["all"]
        parts = bounds if several else [bounds]
        display = cls([np.asarray(part, dtype=float) for part in parts], names)
        return display.plot(ax)

    def plot(self, ax: Any = None) -> "LowerBoundDisplay":
        """Draw.

        Parameters
        ----------
        ax : Axes, default=None
            None: a new figure.

        Returns
        -------
        LowerBoundDisplay
            Itself.
        """
        ax, _ = open_axes(ax)
        told_apart = len(self.lower_bounds) <= MOST_LINES
        self.lines_ = []
        for number, (bounds, name) in enumerate(zip(self.lower_bounds, self.names, strict=True)):
            look = style(number if told_apart else 0)
            if len(bounds) > MOST_MARKERS or not told_apart:
                look["marker"] = ""
            iterations = np.arange(1, len(bounds) + 1)
            self.lines_ += ax.plot(iterations, bounds, markersize=4, label=shorten(name), **look)
        ax.set(xlabel="iteration", ylabel="lower bound (nats per response)")
        number_by_integers(ax.xaxis)
        ax.grid(alpha=0.3)
        if 1 < len(self.lines_) and told_apart:
            add_legend(ax, loc="lower right")
        self.ax_, self.figure_ = ax, ax.figure
        return self
