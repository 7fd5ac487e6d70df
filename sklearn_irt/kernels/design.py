"""How much of a score stays unknown after some items are asked."""

import numpy as np

from sklearn_irt.kernels.logistic import pack, unpack


def unknown_after(
    asked: np.ndarray, spread: np.ndarray, discrimination: np.ndarray, weights: np.ndarray
) -> float:
    """Expected standard error of p-IRT after asking some items.

    Parameters
    ----------
    asked : ndarray of shape (n_asked,), int
        Positions of the items that are asked.
    spread : ndarray of shape (n_models, n_items)
        Variance p (1 - p) of the responses at the abilities to average over.
    discrimination : ndarray of shape (n_items, n_dims)
    weights : ndarray of shape (n_items,)
        Weights of the items in the score.

    Returns
    -------
    float
        Mean over the models of the root of ``g @ inv(I + H) @ g`` plus the noise of the items
        not asked, where H is the information of those asked and g the gradient of the rest of
        the score in the ability.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_irt.kernels.design import unknown_after
    >>> spread, items, weights = np.full((1, 3), 0.25), np.array([[0.0], [1], [3]]), np.ones(3) / 3
    >>> bool(
    ...     unknown_after(np.array([2]), spread, items, weights)
    ...     < unknown_after(np.array([0]), spread, items, weights)
    ... )
    True
    """
    n_dims = discrimination.shape[1]
    rest = np.ones(len(weights), dtype=bool)
    rest[asked] = False
    outer = pack(discrimination[asked, :, None] * discrimination[asked, None, :])
    precision = unpack(spread[:, asked] @ outer, n_dims) + np.eye(n_dims)
    gradient = (spread[:, rest] * weights[rest]) @ discrimination[rest]
    explained = np.linalg.solve(precision, gradient[:, :, None])[:, :, 0]
    variance = (gradient * explained).sum(axis=1) + spread[:, rest] @ weights[rest] ** 2
    return float(np.sqrt(np.maximum(variance, 0.0)).mean())
