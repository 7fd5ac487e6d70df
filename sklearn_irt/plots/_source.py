"""What a plot reads from a fitted object: items, anchors, abilities and the scale they lie on."""

from collections.abc import Hashable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sklearn_irt._anchors import AnchorSelector
from sklearn_irt._gpirt import GPIRTEstimator
from sklearn_irt._irt import IRTRegressor


class Source(NamedTuple):
    """A fitted object as the plots read it.

    Attributes
    ----------
    irt : IRTRegressor
    items : ndarray of shape (n_items,) of str, or None
        Names of the items, where they are known.
    anchors : ndarray of shape (n_anchors,), int
        Positions of the anchors; empty where none were chosen.
    weights : ndarray of shape (n_anchors,)
    """

    irt: IRTRegressor
    items: np.ndarray | None
    anchors: np.ndarray
    weights: np.ndarray

    def item_name(self, position: int) -> str:
        """Name of an item, or its number."""
        return f"item {position}" if self.items is None else str(self.items[position])

    def in_scenario(self, scenario: str | None) -> np.ndarray:
        """Which items are those of the scenario; None: all. Shape (n_items,), bool."""
        index, names = self.irt._scenario_index, list(self.irt.scenarios_)
        if scenario is None:
            return np.ones(len(index), dtype=bool)
        if scenario not in names:
            raise ValueError(f"there is no scenario {scenario!r}; the scenarios are {names}")
        return index == names.index(scenario)

    def position(self, item: Hashable) -> int:
        """Position of an item given by name, or by position as an integer."""
        n_items = len(self.irt.difficulty_)
        if isinstance(item, Integral) and not isinstance(item, bool):
            if not 0 <= item < n_items:
                raise ValueError(f"there is no item {item}: positions are 0 to {n_items - 1}")
            return int(item)
        if self.items is None:
            raise ValueError(f"there is no item {item!r}: it has no item names, give positions")
        found = np.flatnonzero(np.asarray(self.items, dtype=object) == item)
        if not len(found):
            raise ValueError(f"there is no item {item!r}; names look like {str(self.items[0])!r}")
        return int(found[0])


def read_estimator(source: Any) -> tuple[Any, np.ndarray | None]:
    """The estimator inside a Pipeline, search or loaded benchmark, and the item names if known.

    Raises
    ------
    TypeError
        Where there is none of this package.
    NotFittedError
    """
    items = None
    source = getattr(source, "best_estimator_", source)
    if isinstance(source, Pipeline):
        source = source.steps[-1][1]
    elif hasattr(source, "estimator") and isinstance(getattr(source, "items", None), pd.DataFrame):
        source, items = source.estimator, source.items["item"].to_numpy(dtype=object)
    if not isinstance(source, (GPIRTEstimator, AnchorSelector, IRTRegressor)):
        raise TypeError(
            "a plot needs a loaded benchmark, a fitted GPIRTEstimator, AnchorSelector or "
            f"IRTRegressor, or a Pipeline that ends in one, got {type(source).__name__}"
        )
    check_is_fitted(source)
    if items is None and isinstance(source, GPIRTEstimator):
        items = source._item_names
    elif items is None:
        items = getattr(source, "feature_names_in_", None)
    return source, items


def read_source(source: Any) -> Source:
    """Read a fitted IRTRegressor, AnchorSelector, GPIRTEstimator, Pipeline or loaded benchmark."""
    estimator, items = read_estimator(source)
    if isinstance(estimator, IRTRegressor):
        return Source(estimator, items, np.empty(0, dtype=int), np.empty(0))
    if not hasattr(estimator, "irt_"):
        raise ValueError(
            f"AnchorSelector(method={estimator.method!r}) fits no IRT model, so items have no "
            "difficulty; give the GPIRTEstimator that follows it"
        )
    return Source(estimator.irt_, items, estimator.anchors_, estimator.weights_)


def mean_discrimination(source: Source, members: np.ndarray) -> np.ndarray:
    """Mean of the discriminations of some items by their weights in the score.

    Returns
    -------
    ndarray of shape (n_abilities,)
    """
    weights = np.where(members, source.irt.item_weights_, 0.0)
    return weights @ np.asarray(source.irt.discrimination_, dtype=float) / weights.sum()


def read_direction(source: Source, members: np.ndarray, dimension: Any) -> np.ndarray:
    """The direction in which abilities are read, of shape (n_abilities,).

    The mean discrimination of the items; with `dimension`, its part in that dimension.
    """
    direction = mean_discrimination(source, members)
    if dimension is None:
        if not np.linalg.norm(direction) > 1e-9:
            raise ValueError(
                "the discriminations of the items cancel out, so that they share no direction; "
                "give a dimension"
            )
        return direction
    n_abilities = len(direction)
    if (
        not isinstance(dimension, Integral)
        or isinstance(dimension, bool)
        or not 0 <= dimension < n_abilities
    ):
        raise ValueError(
            f"dimension must be an integer from 0 to {n_abilities - 1} or None, got {dimension!r}"
        )
    return np.where(np.arange(n_abilities) == dimension, direction, 0.0)


def ability_line(source: Source, direction: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Expected abilities of models that lie so far along a direction.

    Parameters
    ----------
    direction : ndarray of shape (n_abilities,)
    positions : ndarray of shape (n_points,)
        In standard deviations of a new model's position along the direction (by the prior).

    Returns
    -------
    ndarray of shape (n_points, n_abilities)
        A straight line through zero; with independent abilities it has the given direction, with
        correlated ones the other abilities follow.
    """
    slope = np.linalg.solve(np.asarray(source.irt.prior_precision_, dtype=float), direction)
    return np.outer(positions, slope / np.sqrt(direction @ slope))


def axis_name(source: Source, dimension: int | None) -> str:
    """What positions along the direction are called."""
    if dimension is not None:
        return f"ability in dimension {dimension}"
    one = source.irt.discrimination_.shape[1] == 1
    return "ability" if one else "ability along the mean discrimination"
