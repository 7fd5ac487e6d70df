"""Models that become relatives without a refit: their responses and names, read and checked."""

from typing import Any

import numpy as np
import pandas as pd

from sklearn_irt._responses import ResponseRange, model_names, read_all_items


def read_added(
    responses: Any,
    names: Any,
    *,
    taken: np.ndarray,
    n_items: int,
    item_names: np.ndarray | None,
    bounds: ResponseRange,
) -> tuple[np.ndarray, np.ndarray]:
    """Responses in [0, 1] to all items, and names that are not `taken`."""
    values = read_all_items(responses, n_items, item_names, bounds, "responses")
    if names is None:
        names = model_names(responses, len(values))
        if not isinstance(responses, pd.DataFrame):
            raise ValueError("names must be given: responses have no row names")
    nameless = [i for i, name in enumerate(names) if pd.isna(name) or not str(name)]
    if nameless:
        raise ValueError(f"names has no name for row {nameless[0]} of responses")
    names = np.array([str(name) for name in names], dtype=object)
    if len(names) != len(values):
        raise ValueError(f"names has {len(names)} entries, but responses {len(values)} rows")
    taken = [str(name) for name in taken]
    for i, name in enumerate(names):
        if name in taken or name in names[:i]:
            raise ValueError(f"names has {name!r}, which is a training model's name already")
    empty = np.isnan(values).all(axis=1)
    if empty.any():
        raise ValueError(f"responses of the model {names[np.argmax(empty)]!r} are all missing")
    return values, names
