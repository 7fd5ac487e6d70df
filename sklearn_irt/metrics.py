"""Aggregates over scenarios."""

from typing import Any

import numpy as np
from scipy.special import ndtr

__all__ = ["mean_win_rate"]


def mean_win_rate(scores: Any, reference: Any = None) -> np.ndarray:
    """Mean win rate of models, HELM's aggregate.

    On each scenario the share of the other models that a model beats, a tie counting one half;
    then the mean over the scenarios on which the model has a score and anyone to be compared with.

    Parameters
    ----------
    scores : array-like of shape (n_models, n_scenarios)
        NaN where a model has no score.
    reference : array-like of shape (n_reference, n_scenarios), default=None
        Scores of the models to compare with; None: the other rows of `scores`.

    Returns
    -------
    ndarray of shape (n_models,)
        In [0, 1]; NaN for a model without any comparison.

    References
    ----------
    Liang et al. (2023), Holistic evaluation of language models, TMLR.

    Examples
    --------
    >>> from sklearn_irt.metrics import mean_win_rate
    >>> mean_win_rate([[0.9, 0.5], [0.7, 0.5], [0.1, 0.8]])
    array([0.625, 0.375, 0.5  ])
    """
    scores = _score_matrix("scores", scores)
    others = scores if reference is None else _score_matrix("reference", reference)
    if others.shape[1] != scores.shape[1]:
        raise ValueError(
            f"reference has {others.shape[1]} scenarios (columns), scores has {scores.shape[1]}"
        )
    rates = np.empty(scores.shape)
    for s in range(scores.shape[1]):
        known = np.sort(others[~np.isnan(others[:, s]), s])
        below = np.searchsorted(known, scores[:, s], side="left")
        equal = np.searchsorted(known, scores[:, s], side="right") - below
        count = len(known)
        if reference is None:  # a model is not compared with itself
            equal, count = equal - 1, count - 1
        rates[:, s] = (below + 0.5 * equal) / count if count else np.nan
    rates[np.isnan(scores)] = np.nan
    return _row_means(rates)


def win_rate_error(scores: np.ndarray, stds: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Standard error of the mean win rate of scores that are known up to a normal error.

    Parameters
    ----------
    scores, stds : ndarray of shape (n_models, n_scenarios)
        NaN where a model has no score; then the scenario does not count.
    reference : ndarray of shape (n_reference, n_scenarios)
        Known scores of the models to compare with.

    Returns
    -------
    ndarray of shape (n_models,)
        With errors independent over the scenarios.
    """
    variances = np.empty(scores.shape)
    count = len(reference)
    # Of two models the higher one decides whether both are beaten.
    pairs = 2.0 * np.arange(1, count + 1) - 1.0
    for s in range(scores.shape[1]):
        known = np.sort(reference[:, s])
        beaten = ndtr((scores[:, s, None] - known) / np.maximum(stds[:, s, None], 1e-12))
        variances[:, s] = beaten @ pairs / count**2 - beaten.mean(axis=1) ** 2
    variances = np.maximum(variances, 0.0)
    known = ~np.isnan(scores)
    variance = np.where(known, variances, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1) ** 2
    return np.where(known.any(axis=1), np.sqrt(variance), np.nan)


def _score_matrix(name: str, values: Any) -> np.ndarray:
    matrix = np.asarray(values, dtype=float)
    if matrix.ndim != 2:
        raise ValueError(f"{name} must have shape (n_models, n_scenarios), got {matrix.shape}")
    if np.isinf(matrix).any():
        row, column = np.argwhere(np.isinf(matrix))[0]
        raise ValueError(f"{name} is infinite at row {row} and column {column}")
    return matrix


def _row_means(rates: np.ndarray) -> np.ndarray:
    known = ~np.isnan(rates)
    total = np.where(known, rates, 0.0).sum(axis=1)
    return np.divide(total, known.sum(axis=1), out=np.full(len(rates), np.nan), where=known.any(1))
