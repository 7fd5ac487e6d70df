"""The paper's way with responses between 0 and 1: right or wrong by a threshold."""

import numpy as np

from sklearn_irt.kernels.logistic import row_blocks


def response_threshold(responses: np.ndarray) -> float:
    """Threshold at which as many responses count as right as their sum says.

    Parameters
    ----------
    responses : ndarray of shape (n_models, n_items)
        Of one scenario, in [0, 1], NaN where not asked.

    Returns
    -------
    float
        The response c for which the number of responses of at least c is closest to the sum of
        all responses; the higher one of two. NaN where nothing was asked.

    References
    ----------
    Maia Polo et al. (2024), tinyBenchmarks, section 4.3.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_irt.kernels.threshold import response_threshold
    >>> response_threshold(np.array([[0.1, 0.4], [0.7, 0.9]]))
    0.7
    """
    observed = responses[~np.isnan(responses)]
    if not observed.size:
        return np.nan
    values, counts = np.unique(observed, return_counts=True)
    at_least = np.cumsum(counts[::-1])  # of the highest value, the two highest, ...
    closest = np.argmin(np.abs(at_least - observed.sum(dtype=float)))
    return float(values[::-1][closest])


def is_right_or_wrong(responses: np.ndarray) -> bool:
    """Whether every response is 0, 1 or missing."""
    return all(
        bool(((part == 0.0) | (part == 1.0) | np.isnan(part)).all())
        for part in (responses[rows] for rows in row_blocks(*responses.shape))
    )


def right_or_wrong(responses: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """1 where a response is at least its item's threshold, else 0; NaN stays.

    Parameters
    ----------
    responses : ndarray of shape (n_models, n_items)
    thresholds : ndarray of shape (n_items,)

    Returns
    -------
    ndarray of shape (n_models, n_items), of the same type
    """
    right = (responses >= thresholds).astype(responses.dtype)
    return np.where(np.isnan(responses), responses.dtype.type(np.nan), right)
