"""Reading what the items cost."""

from typing import Any

import numpy as np

from sklearn_irt._scenarios import in_order_of_items


def read_costs(
    costs: Any, n_items: int, budget: float | None, item_names: Any = None
) -> np.ndarray:
    """Validate the cost of every item.

    Parameters
    ----------
    costs : array-like of shape (n_items,)
        A Series indexed by the item names is matched by name.
    n_items : int
    budget : float, optional
    item_names : array-like of str, optional

    Returns
    -------
    ndarray of shape (n_items,)
        Free items cost a millionth of the mean.

    Raises
    ------
    ValueError
        Naming the item whose cost is negative, missing or infinite; where all are zero; where the
        budget is below the cheapest item.
    """
    costs = in_order_of_items(costs, item_names, "costs")
    try:
        values = np.asarray(costs, dtype=float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"costs must be numbers, one per item: {error}") from None
    if values.shape != (n_items,):
        raise ValueError(f"costs has shape {values.shape}, but X has {n_items} items (columns)")
    wrong = ~np.isfinite(values) | (values < 0)
    if wrong.any():
        item = int(np.argmax(wrong))
        name = repr(item_names[item]) if item_names is not None else f"(column) {item}"
        raise ValueError(f"costs has {values[item]:g} for item {name}; give a number of at least 0")
    if not values.any():
        raise ValueError("costs are all zero; leave them out")
    if budget is not None and budget < values.min():
        raise ValueError(
            f"budget={budget:g} is below the cheapest item, which costs {values.min():g}"
        )
    return np.maximum(values, 1e-6 * values.mean())
