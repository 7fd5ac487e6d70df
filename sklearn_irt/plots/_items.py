"""Items: their characteristic curves, and a map of difficulty and discrimination."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from sklearn_irt.kernels.logistic import response_probabilities
from sklearn_irt.plots._source import (
    Source,
    ability_line,
    axis_name,
    read_direction,
    read_source,
)
from sklearn_irt.plots._style import (
    COLOURS,
    GREY,
    MARKERS,
    SMALL,
    add_legend,
    open_axes,
    shorten,
    style,
)

N_CURVES, MOST_CURVES = 6, 12
# Standard deviations of the abilities: curves are drawn, and difficulties shown, so far.
CURVE_REACH, MAP_REACH = 3.0, 8.0
MOST_SCENARIOS = len(COLOURS)


class ItemCurvesDisplay:
    """Characteristic curves of items: the expected response by the ability.

    A model of several dimensions is shown along a line through its space of abilities: that of
    the items' mean discrimination, on which other abilities take the values expected with it.

    Parameters
    ----------
    position : ndarray of shape (n_points,)
        On that line, in standard deviations of the abilities of a new model.
    expected : ndarray of shape (n_items, n_points)
        Expected responses, in the unit of the responses.
    items : list of str
        Their names.
    response_range : (low, high), default=(0, 1)
        Of the responses.
    axis_name : str, default="ability"
        What `position` is called.

    Attributes
    ----------
    lines_ : list of Line2D
    ax_ : Axes
    figure_ : Figure

    Examples
    --------
    >>> from sklearn_irt import IRTRegressor
    >>> from sklearn_irt.datasets import make_responses
    >>> from sklearn_irt.plots import ItemCurvesDisplay
    >>> irt = IRTRegressor(n_dims=2).fit(make_responses(n_models=40, random_state=0).responses)
    >>> display = ItemCurvesDisplay.from_estimator(irt, items=[0, 5, 9])
    >>> display.expected.shape
    (3, 121)
    """

    def __init__(
        self, position, expected, items, *, response_range=(0.0, 1.0), axis_name="ability"
    ):
        self.position = position
        self.expected = expected
        self.items = items
        self.response_range = response_range
        self.axis_name = axis_name

    @classmethod
    def from_estimator(
        cls,
        irt: Any,
        items: Sequence[Hashable] | None = None,
        *,
        scenario: str | None = None,
        dimension: int | None = None,
        ax: Any = None,
    ) -> "ItemCurvesDisplay":
        """Draw the curves of some items.

        Parameters
        ----------
        irt : IRTRegressor, AnchorSelector, GPIRTEstimator, Pipeline or TinyBenchmark
            Fitted.
        items : list of str or int, default=None
            At most 12 item names, or positions. None: six, spaced evenly from the easiest to the
            hardest tenth.
        scenario : str, default=None
            The direction is the mean discrimination of this scenario's items, and items that are
            not given are chosen from it. None: of all items.
        dimension : int, default=None
            Draw along this dimension instead.
        ax : Axes, default=None
            None: a new figure.

        Returns
        -------
        ItemCurvesDisplay

        Raises
        ------
        ValueError
            Where an item, the scenario or the dimension is unknown, or more than 12 items are
            given.
        NotFittedError
        """
        source = read_source(irt)
        members = source.in_scenario(scenario)
        positions = _chosen(source, items, members)
        direction = read_direction(source, members, dimension)
        if dimension is not None:  # not turned round where items discriminate negatively
            direction = np.eye(len(direction))[dimension]
        line = np.linspace(-CURVE_REACH, CURVE_REACH, 121)
        model = source.irt
        chance = response_probabilities(
            ability_line(source, direction, line),
            np.asarray(model.discrimination_, dtype=float)[positions],
            np.asarray(model.difficulty_, dtype=float)[positions],
        )
        bounds = model._bounds
        display = cls(
            line,
            bounds.low + bounds.width * chance.T,
            [source.item_name(position) for position in positions],
            response_range=(bounds.low, bounds.low + bounds.width),
            axis_name=axis_name(source, dimension),
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> "ItemCurvesDisplay":
        """Draw.

        Parameters
        ----------
        ax : Axes, default=None
            None: a new figure.

        Returns
        -------
        ItemCurvesDisplay
            Itself.
        """
        ax, roomy = open_axes(ax)
        self.lines_ = []
        for number, (item, curve) in enumerate(zip(self.items, self.expected, strict=True)):
            look = style(number)
            # Markers at other places on each curve, so that they do not hide one another.
            every = (10 * (number % 2) + 2 * number % 10, 20)
            self.lines_ += ax.plot(
                self.position, curve, label=shorten(item, 22), markevery=every, markersize=4, **look
            )
        low, high = self.response_range
        pad = 0.02 * (high - low)
        ax.set(
            xlabel=f"{self.axis_name} (standard deviations)",
            ylabel="expected response (0 wrong, 1 right)"
            if (low, high) == (0.0, 1.0)
            else "expected response (unit of the responses)",
            xlim=(self.position[0], self.position[-1]),
            ylim=(low - pad, high + pad),
        )
        ax.grid(alpha=0.3)
        add_legend(ax, outside=roomy)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _chosen(source: Source, items: Any, members: np.ndarray) -> list[int]:
    """Positions of the items that are given, or of some from easy to hard."""
    if items is None:
        members = np.flatnonzero(members)
        order = members[np.argsort(source.irt.difficulty_[members], kind="stable")]
        ranks = np.linspace(0.1, 0.9, N_CURVES) * (len(order) - 1)
        return list(dict.fromkeys(order[ranks.round().astype(int)].tolist()))
    if isinstance(items, (str, bytes)) or np.ndim(items) == 0:
        items = [items]
    items = list(items)
    if not 0 < len(items) <= MOST_CURVES:
        raise ValueError(
            f"items holds {len(items)} items, but 1 to {MOST_CURVES} curves are legible: "
            "choose some"
        )
    return [source.position(item) for item in items]


class ItemMapDisplay:
    """Map of the items: difficulty against discrimination, anchors sized by weight.

    Discrimination is the length of an item's vector of discriminations, difficulty the distance
    (difficulty / length) from the mean ability at which a response is half of the range: both are
    Reckase's multidimensional parameters, and the usual ones of a model of one dimension.

    Parameters
    ----------
    discrimination : ndarray of shape (n_items,)
        In logits per standard deviation of the abilities.
    difficulty : ndarray of shape (n_items,)
        In standard deviations of the abilities. Those beyond 8 are drawn at 8.
    anchors : ndarray of shape (n_anchors,), int
        Positions of the anchors; may be empty.
    weights : ndarray of shape (n_anchors,)
        Their weights, sum 1 in each scenario.
    scenario : ndarray of shape (n_items,), int, default=None
        Scenario of each item, that anchors are coloured by.
    scenarios : sequence of str, default=("all",)
        Names of the scenarios. More than seven have one colour.

    Attributes
    ----------
    items_ : PathCollection
        The items that are no anchors.
    anchors_ : list of PathCollection
        The anchors of each scenario, or of all.
    ax_ : Axes
    figure_ : Figure

    References
    ----------
    .. [1] Reckase (2009), Multidimensional item response theory. Chapter 5.

    Examples
    --------
    >>> from sklearn_irt import AnchorSelector
    >>> from sklearn_irt.datasets import make_responses
    >>> from sklearn_irt.plots import ItemMapDisplay
    >>> data = make_responses(n_models=40, random_state=0)
    >>> selector = AnchorSelector(k=20, random_state=0).fit(data.responses)
    >>> display = ItemMapDisplay.from_estimator(selector)
    >>> len(display.anchors)
    20
    """

    def __init__(
        self, discrimination, difficulty, anchors, weights, *, scenario=None, scenarios=("all",)
    ):
        self.discrimination = discrimination
        self.difficulty = difficulty
        self.anchors = anchors
        self.weights = weights
        self.scenario = scenario
        self.scenarios = scenarios

    @classmethod
    def from_estimator(
        cls, source: Any, *, scenario: str | None = None, ax: Any = None
    ) -> "ItemMapDisplay":
        """Draw the items of a fitted object.

        Parameters
        ----------
        source : AnchorSelector, GPIRTEstimator, Pipeline, TinyBenchmark or IRTRegressor
            Fitted; an IRTRegressor has no anchors.
        scenario : str, default=None
            Only the items of this scenario.
        ax : Axes, default=None
            None: a new figure.

        Returns
        -------
        ItemMapDisplay

        Raises
        ------
        ValueError
            Where the scenario is unknown, or the selector fits no IRT model.
        NotFittedError
        """
        found = read_source(source)
        kept = np.flatnonzero(found.in_scenario(scenario))
        irt = found.irt
        length = np.linalg.norm(np.asarray(irt.discrimination_, dtype=float)[kept], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            difficulty = np.asarray(irt.difficulty_, dtype=float)[kept] / length
        inside = np.isin(found.anchors, kept)
        display = cls(
            length,
            difficulty,
            np.searchsorted(kept, found.anchors[inside]),
            found.weights[inside],
            scenario=irt._scenario_index[kept],
            scenarios=irt.scenarios_,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> "ItemMapDisplay":
        """Draw.

        Parameters
        ----------
        ax : Axes, default=None
            None: a new figure.

        Returns
        -------
        ItemMapDisplay
            Itself.
        """
        ax, roomy = open_axes(ax)
        x, y = np.asarray(self.discrimination), np.clip(self.difficulty, -MAP_REACH, MAP_REACH)
        rest = np.setdiff1d(np.arange(len(x)), self.anchors)
        self.items_ = ax.scatter(
            x[rest], y[rest], s=6, color=GREY, alpha=0.5, linewidths=0, label="no anchor"
        )
        self.anchors_ = []
        for number, (label, members) in enumerate(self._groups()):
            self.anchors_.append(
                ax.scatter(
                    x[self.anchors[members]],
                    y[self.anchors[members]],
                    s=_areas(self.weights, members),
                    color=COLOURS[number % len(COLOURS)],
                    marker=MARKERS[number % len(MARKERS)],
                    edgecolors="white",
                    linewidths=0.5,
                    alpha=0.75,
                    label=label,
                )
            )
        ax.set(
            xlabel="discrimination (logits per SD of ability)",
            ylabel="difficulty (SD of ability)",
        )
        ax.set_xlim(left=0)
        ax.grid(alpha=0.3)
        if self.anchors_:
            legend = add_legend(ax, outside=roomy, title="area: weight", title_fontsize=SMALL)
            for handle in legend.legend_handles:
                handle.set_sizes([30.0])
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _groups(self) -> list[tuple[str, np.ndarray]]:
        """Label of each colour of anchors, and which of the anchors have it."""
        if not len(self.anchors):
            return []
        if self.scenario is None:
            return [("anchor", np.arange(len(self.anchors)))]
        own = np.asarray(self.scenario)[self.anchors]
        present = np.unique(own)
        if not 1 < len(present) <= MOST_SCENARIOS:
            return [("anchor", np.arange(len(self.anchors)))]
        return [(shorten(self.scenarios[s], 18), np.flatnonzero(own == s)) for s in present]


def _areas(weights: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Areas in square points, in proportion to the weights; the more anchors, the smaller."""
    largest = np.clip(6000.0 / len(weights), 30.0, 120.0)
    return np.maximum(largest * weights[members] / max(weights.max(), 1e-12), 4.0)
