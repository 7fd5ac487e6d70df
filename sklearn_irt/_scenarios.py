"""Scenario and subscenario labels of the items, as slices and item weights."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sklearn_irt.kernels.anchors import item_weights


class Scenarios(NamedTuple):
    """The scenarios of a benchmark.

    Attributes
    ----------
    names : tuple of str
        In order of first appearance.
    index : ndarray of shape (n_items,), int
        Scenario of each item.
    strata : ndarray of shape (n_items,), int
        Subscenario of each item, numbered within its scenario.
    weights : ndarray of shape (n_items,)
        Weight of each item in its scenario's score; sum 1 in each scenario.
    subscenarios : tuple of tuple of str
        Names of the subscenarios of every scenario; empty where there are none.
    """

    names: tuple[str, ...]
    index: np.ndarray
    strata: np.ndarray
    weights: np.ndarray
    subscenarios: tuple[tuple[str, ...], ...]

    def members(self, s: int) -> np.ndarray:
        """Positions of the items of scenario `s`, ascending."""
        return np.flatnonzero(self.index == s)

    def part(self, responses: np.ndarray, s: int) -> np.ndarray:
        """Columns of scenario `s`; no copy where there is one scenario only."""
        return responses if len(self.names) == 1 else responses[:, self.members(s)]


# The row of the whole benchmark in tables of scenarios.
OVERALL = "(all)"


def read_scenarios(labels: Any, n_items: int, item_names: Any = None) -> Scenarios:
    """Scenarios from one label, or a pair of labels, per item.

    Parameters
    ----------
    labels : None or array-like of shape (n_items,) or (n_items, 2)
        Scenario, or scenario and subscenario, of every item; None: one scenario "all".
        A missing subscenario label counts as a subscenario of its own.
    n_items : int
    item_names : array-like of shape (n_items,) of str, optional
        Labels that are a Series or DataFrame indexed by these names are matched by name.

    Returns
    -------
    Scenarios

    Raises
    ------
    ValueError
        Naming the item, where the number of labels is not that of the items or one is missing.
    """
    if labels is None:
        zeros = np.zeros(n_items, dtype=int)
        return Scenarios(("all",), zeros, zeros, np.full(n_items, 1.0 / n_items), ((),))
    labels = in_order_of_items(labels, item_names, "scenarios")
    try:
        table = np.asarray(labels, dtype=object)
    except ValueError:
        raise ValueError("scenarios must hold one label, or one pair of labels, per item") from None
    if table.ndim not in (1, 2) or (table.ndim == 2 and table.shape[1] != 2):
        raise ValueError(f"scenarios must have shape (n_items,) or (n_items, 2), got {table.shape}")
    if len(table) != n_items:
        raise ValueError(f"scenarios has {len(table)} labels, but X has {n_items} items (columns)")
    scenario = table if table.ndim == 1 else table[:, 0]
    missing = pd.isna(scenario)
    if missing.any():
        raise ValueError(f"scenarios has no scenario for item (column) {np.argmax(missing)}")
    index, names = _codes(scenario)
    if OVERALL in names:
        raise ValueError(f"no scenario may be called {OVERALL!r}: that is the whole benchmark")
    strata, weights = np.zeros(n_items, dtype=int), np.empty(n_items)
    subscenarios = []
    for s in range(len(names)):
        members = np.flatnonzero(index == s)
        within: tuple[str, ...] = ()
        if table.ndim == 2:
            label = table[members, 1]
            # A scenario without subscenarios has a missing label for all of its items.
            if not pd.isna(label).all():
                strata[members], within = _codes(label)
        weights[members] = item_weights(strata[members])
        subscenarios.append(within)
    return Scenarios(names, index, strata, weights, tuple(subscenarios))


def in_order_of_items(values: Any, item_names: Any, parameter: str) -> Any:
    """A Series or DataFrame indexed by the items' names, in their order; others as they are.

    Parameters
    ----------
    values : object
    item_names : array-like of str, optional
    parameter : str
        For the error.

    Returns
    -------
    object

    Raises
    ------
    ValueError
        Where an item is missing from the index or there twice. An index of integers that are no
        items' names says nothing: such values are taken by position.
    """
    if item_names is None or not isinstance(values, (pd.Series, pd.DataFrame)):
        return values
    index = pd.Index([str(name) for name in values.index])
    missing = [name for name in item_names if name not in index]
    if missing and pd.api.types.is_integer_dtype(values.index):
        return values
    if missing:
        raise ValueError(
            f"{parameter} is indexed by item, but has no item {missing[0]!r}, which X has"
        )
    if not index.is_unique:
        repeated = index[index.duplicated()][0]
        raise ValueError(f"{parameter} has the item {repeated!r} more than once")
    return values.set_axis(index, axis=0).loc[list(item_names)]


def _codes(labels: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Numbers and names of labels in order of first appearance; a missing one is "(none)"."""
    texts = ["(none)" if pd.isna(label) else str(label) for label in labels]
    known: dict[str, Any] = {}
    for text, label in zip(texts, labels, strict=True):
        if not pd.isna(label) and known.setdefault(text, label) != label:
            raise ValueError(f"scenarios has the labels {known[text]!r} and {label!r}: one name")
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    return np.array([numbers[text] for text in texts]), tuple(numbers)
