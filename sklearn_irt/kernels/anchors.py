"""Choosing k weighted anchor items of one scenario: stratified random sampling and clusters."""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from sklearn_irt.kernels.logistic import row_blocks


class Anchors(NamedTuple):
    """Anchor items and their weights.

    Attributes
    ----------
    positions : ndarray of shape (n_anchors,), int
        Distinct and ascending.
    weights : ndarray of shape (n_anchors,)
        Non-negative, sum 1.
    """

    positions: np.ndarray
    weights: np.ndarray


def item_weights(strata: np.ndarray) -> np.ndarray:
    """Balanced weights of the items of a scenario: every stratum counts the same.

    Parameters
    ----------
    strata : ndarray of shape (n_items,), int
        Subscenario of each item.

    Returns
    -------
    ndarray of shape (n_items,)
        ``1 / (number of subscenarios * size of the item's subscenario)``, sum 1.

    References
    ----------
    Maia Polo et al. (2024), tinyBenchmarks, appendix A.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_irt.kernels.anchors import item_weights
    >>> item_weights(np.array([0, 0, 0, 1])).round(3)
    array([0.167, 0.167, 0.167, 0.5  ])
    """
    _, index, counts = np.unique(strata, return_inverse=True, return_counts=True)
    return 1.0 / (len(counts) * counts[index])


def effective_sample_size(weights: np.ndarray) -> float:
    """Kish's effective sample size ``sum(w)**2 / sum(w**2)``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_irt.kernels.anchors import effective_sample_size
    >>> effective_sample_size(np.array([0.25, 0.25, 0.25, 0.25]))
    4.0
    """
    return float(weights.sum() ** 2 / (weights**2).sum())


def random_anchors(
    k: int,
    weights: np.ndarray,
    *,
    strata: np.ndarray | None = None,
    eligible: np.ndarray | None = None,
    random_state: np.random.RandomState,
) -> Anchors:
    """Draw anchors at random, as equally many from every stratum as there are.

    Parameters
    ----------
    k : int
        Number of anchors; ``min(k, n_items)`` are drawn.
    weights : ndarray of shape (n_items,)
        Weights of the items in the score, sum 1.
    strata : ndarray of shape (n_items,), int, optional
        Subscenario of each item; the counts of two strata differ by at most one, unless a
        stratum is exhausted.
    eligible : ndarray of shape (n_items,), bool, optional
        Items to prefer; others are drawn only when these are used up.
    random_state : RandomState

    Returns
    -------
    Anchors
        Weights such that every stratum counts as it does in the score.

    References
    ----------
    Maia Polo et al. (2024), tinyBenchmarks, section 3.1; Perlitz et al. (2023).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_irt.kernels.anchors import random_anchors
    >>> rng = np.random.RandomState(0)
    >>> random_anchors(2, np.full(4, 0.25), strata=np.array([0, 0, 1, 1]), random_state=rng)
    Anchors(positions=array([1, 2]), weights=array([0.5, 0.5]))
    """
    n_items = len(weights)
    strata = np.zeros(n_items, dtype=int) if strata is None else np.asarray(strata)
    order = stratified_order(strata, eligible, random_state)
    chosen = np.sort(order[: min(k, n_items)])
    return Anchors(chosen, stratified_weights(weights, strata, chosen))


def stratified_order(
    strata: np.ndarray, eligible: np.ndarray | None, random_state: np.random.RandomState
) -> np.ndarray:
    """All items in a random order of which every beginning is stratified.

    Parameters
    ----------
    strata : ndarray of shape (n_items,), int
    eligible : ndarray of shape (n_items,), bool, optional
        Items that come first.
    random_state : RandomState

    Returns
    -------
    ndarray of shape (n_items,), int
    """
    n_items = len(strata)
    order = random_state.permutation(n_items)
    if eligible is not None:
        order = order[np.argsort(~eligible[order], kind="stable")]
    # Rank of each item within its stratum; ties between strata are broken at random.
    rank = np.empty(n_items)
    labels = np.unique(strata)
    for label, lot in zip(labels, random_state.permutation(len(labels)), strict=True):
        members = order[strata[order] == label]
        rank[members] = np.arange(len(members)) + lot / len(labels)
    if eligible is not None:
        rank[~eligible] += n_items
    return np.argsort(rank, kind="stable")


def stratified_weights(weights: np.ndarray, strata: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Weights of anchors such that every stratum counts as it does in the score.

    Parameters
    ----------
    weights : ndarray of shape (n_items,)
    strata : ndarray of shape (n_items,), int
    chosen : ndarray of shape (n_anchors,), int
        Positions of the anchors.

    Returns
    -------
    ndarray of shape (n_anchors,)
        Sum 1.
    """
    total = np.bincount(strata, weights)
    counts = np.bincount(strata[chosen], minlength=len(total))
    share = total[strata[chosen]] / counts[strata[chosen]]
    return share / share.sum()


def cluster_anchors(
    k: int,
    points: np.ndarray,
    weights: np.ndarray,
    *,
    eligible: np.ndarray | None = None,
    n_init: int = 10,
    loss: Callable[[np.ndarray], float] | None = None,
    random_state: np.random.RandomState,
) -> Anchors:
    """Cluster items by k-means and take the item nearest to each centre.

    Parameters
    ----------
    k : int
        Number of anchors; always ``min(k, n_items)`` distinct ones are returned.
    points : ndarray of shape (n_items, n_features)
        The items: their training responses (`correctness` anchors) or their IRT parameters.
    weights : ndarray of shape (n_items,)
        Weights of the items in the score, sum 1.
    eligible : ndarray of shape (n_items,), bool, optional
        Items to prefer; others become anchors only when these are used up.
    n_init : int
        Starts of k-means; one is kept.
    loss : callable, optional
        Of `Anchors`; of the starts, that with the least loss is kept. Without
        it, that with the tightest clusters.
    random_state : RandomState

    Returns
    -------
    Anchors
        The weight of an anchor is its cluster's share of `weights`. Where there are fewer
        clusters than k (duplicate points), the heaviest clusters get a second anchor, the next
        nearest item, and split their weight.

    References
    ----------
    Maia Polo et al. (2024), tinyBenchmarks, section 3.2; Vivek et al. (2024), Anchor points.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_irt.kernels.anchors import cluster_anchors
    >>> points = np.array([[0.0], [0.1], [0.2], [9.0]])
    >>> rng = np.random.RandomState(0)
    >>> cluster_anchors(2, points, np.full(4, 0.25), random_state=rng)
    Anchors(positions=array([1, 3]), weights=array([0.75, 0.25]))
    """
    n_items = len(points)
    k = min(k, n_items)
    if k == n_items:
        return Anchors(np.arange(n_items), weights / weights.sum())
    eligible = np.ones(n_items, dtype=bool) if eligible is None else eligible
    if loss is None:
        return _nearest_to_centres(k, points, weights, eligible, n_init, random_state)
    found = [
        _nearest_to_centres(k, points, weights, eligible, 1, random_state) for _ in range(n_init)
    ]
    return found[int(np.argmin([loss(anchors) for anchors in found]))]


def _nearest_to_centres(k, points, weights, eligible, n_init, random_state) -> Anchors:
    """The anchors of one clustering."""
    n_items = len(points)
    kmeans = KMeans(k, n_init=n_init, random_state=random_state)
    uniform = np.ptp(weights) == 0.0
    with warnings.catch_warnings(), threadpool_limits(1, "openmp"):
        # Fewer distinct points than k are dealt with below. One thread: the sums of several
        # are added in the order in which they finish, which decides ties.
        warnings.simplefilter("ignore", ConvergenceWarning)
        kmeans.fit(points, sample_weight=None if uniform else weights)
    labels = kmeans.labels_
    # Rounded, so that equal distances stay equal whatever the order of the sums.
    distance = np.empty(n_items, dtype=np.float32)
    for rows in row_blocks(*points.shape):
        difference = points[rows] - kmeans.cluster_centers_[labels[rows]]
        distance[rows] = np.einsum("if,if->i", difference, difference)
    order = np.lexsort((np.arange(n_items), distance, ~eligible, labels))
    starts = np.flatnonzero(np.r_[True, np.diff(labels[order]) != 0])
    members = np.split(order, starts[1:])
    share = np.array([weights[m].sum() for m in members])
    taken = np.ones(len(members), dtype=int)
    available = np.array([eligible[m].sum() for m in members])
    taken = np.minimum(taken, available)
    if available.sum() < k:  # all the eligible, then the nearest of the others
        taken, available = available, np.array([len(m) for m in members])
    while taken.sum() < k:
        room = taken < available
        taken[np.argmax(np.where(room, share / (taken + 1), -1.0))] += 1
    # The weight of a cluster without an anchor (nobody eligible) is shared by all the others.
    chosen = np.concatenate([m[:t] for m, t in zip(members, taken, strict=True)])
    value = np.concatenate([np.full(t, s / t) for s, t in zip(share, taken, strict=True) if t])
    by_position = np.argsort(chosen)
    return Anchors(chosen[by_position], value[by_position] / value.sum())


def calibrated_weights(
    responses: np.ndarray, scores: np.ndarray, start: np.ndarray, ridge: float = 2.0
) -> np.ndarray:
    """Weights of anchors near `start` with which their means are the training models' scores.

    Parameters
    ----------
    responses : ndarray of shape (n_models, n_anchors)
        On the anchors, without missing ones.
    scores : ndarray of shape (n_models,)
    start : ndarray of shape (n_anchors,)
        Sum 1.
    ridge : float
        Weight of staying near `start`, per anchor, beside one model's squared error.

    Returns
    -------
    ndarray of shape (n_anchors,)
        Non-negative, sum 1: the minimum of ``sum((responses @ a - scores)**2) +
        ridge * n_anchors * sum((a - start)**2)``.

    References
    ----------
    Deville & Sarndal (1992), Calibration estimators in survey sampling, JASA 87.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_irt.kernels.anchors import calibrated_weights
    >>> answers = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 50)
    >>> scores = 0.8 * answers[:, 0] + 0.2 * answers[:, 1]
    >>> calibrated_weights(answers, scores, np.array([0.5, 0.5])).round(2)
    array([0.76, 0.24])
    """
    n_anchors = len(start)
    root = np.sqrt(ridge * n_anchors)
    # A heavy last row holds the sum at 1.
    heavy = 1e3 * np.sqrt(len(responses) + 1.0)
    rows = [responses, root * np.eye(n_anchors), np.full((1, n_anchors), heavy)]
    target = [scores, root * start, [heavy]]
    weights, _ = nnls(np.concatenate(rows), np.concatenate(target))
    return weights / weights.sum()
