"""Models that become relatives without a refit: their responses and names, read and checked."""

from collections.abc import Mapping
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
    if not isinstance(responses, pd.DataFrame) and _is_one_row(responses):
        raise ValueError(
            "responses must be 2-d, a row per model; of one model give a DataFrame of one row "
            "(series.to_frame().T) or X[None] with names"
        )
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


def _is_one_row(responses: Any) -> bool:
    """Whether these are one model's responses without an axis of models."""
    if isinstance(responses, Mapping):
        return True
    try:
        return np.ndim(responses) == 1
    except ValueError:  # ragged
        return False
