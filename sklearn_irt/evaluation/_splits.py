"""The splits of a comparison: rows of training models and of new ones."""

from numbers import Integral
from typing import Any

import numpy as np

from sklearn_irt.model_selection import RandomModelsSplit


def read_splits(
    cv: Any, X: Any, y: Any, groups: Any, models: np.ndarray, seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows of the training models and of the new ones, of every split.

    Parameters
    ----------
    cv, X, y, groups : as for `compare_strategies`
    models : ndarray of shape (n_models,)
        Names, for messages.
    seed : int
        Of the random splits, where `cv` is a number.

    Returns
    -------
    list of (train, new)

    Raises
    ------
    ValueError
        Naming the split that has a wrong row, a model twice, or too few.
    """
    if isinstance(cv, Integral) and not isinstance(cv, bool) and cv >= 1:
        cv = RandomModelsSplit(int(cv), random_state=seed)
    if hasattr(cv, "split") and not isinstance(cv, (str, type)):
        found = cv.split(X, y, groups)
    elif np.iterable(cv) and not isinstance(cv, (str, bytes)):
        found = cv
    else:
        raise ValueError(
            f"cv must be a number of splits, a splitter, or pairs (train, new), got {cv!r}"
        )
    splits = [_read_split(pair, number, models) for number, pair in enumerate(found)]
    if not splits:
        raise ValueError("cv has no split")
    return splits


def _read_split(pair: Any, number: int, models: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sides = list(pair) if np.iterable(pair) and not isinstance(pair, (str, bytes)) else []
    if len(sides) != 2 or not all(np.iterable(rows) for rows in sides):
        raise ValueError(
            f"split {number} of cv must be a pair (train, new) of rows, got {_short(pair)}; a "
            "single split is a list too: cv=[(train, new)]"
        )
    train, new = (
        _read_rows(rows, f"the {side} side of split {number} of cv", len(models))
        for rows, side in zip(sides, ("training", "new"), strict=True)
    )
    if len(train) < 2 or not len(new):
        raise ValueError(
            f"split {number} of cv has {len(train)} training models and {len(new)} new ones; "
            "at least 2 and 1 are needed"
        )
    both = np.intersect1d(train, new)
    if len(both):
        raise ValueError(f"split {number} of cv has model {models[both[0]]!r} on both sides")
    rows, counts = np.unique(new, return_counts=True)
    if (counts > 1).any():
        twice = models[rows[np.argmax(counts > 1)]]
        raise ValueError(f"split {number} of cv has model {twice!r} more than once on its new side")
    return train, new


def _read_rows(given: Any, where: str, n_models: int) -> np.ndarray:
    """Row numbers, from numbers or a mask."""
    try:
        rows = np.asarray(given)
    except ValueError:  # ragged
        rows = np.empty((0, 0))
    if rows.ndim != 1:
        raise ValueError(f"{where} must be a sequence of row numbers, got {_short(given)}")
    if rows.dtype == bool:
        if len(rows) != n_models:
            raise ValueError(f"{where} is a mask of {len(rows)} rows, but X has {n_models} models")
        return np.flatnonzero(rows)
    if not len(rows):
        return rows.astype(int)
    if rows.dtype.kind not in "iu":
        raise ValueError(f"{where} must be row numbers (int) or a mask (bool), got {_short(given)}")
    outside = (rows < 0) | (rows >= n_models)
    if outside.any():
        raise ValueError(
            f"{where} has row {rows[outside][0]}, but X has {n_models} models: rows are numbers "
            f"from 0 to {n_models - 1}"
        )
    return rows.astype(int)


def _short(value: Any, most: int = 60) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= most else f"{text[:most]}…"
