"""The share of the anchors' mean in gp-IRT: bias, variance and lambda."""

from collections.abc import Callable

import numpy as np

from sklearn_irt.kernels.logistic import (
    ItemModel,
    estimate_abilities,
    response_probabilities,
    row_blocks,
)

# Clustered anchors have half the standard error of as many random ones (paper, section 4.2).
CLUSTER_GAIN = 4.0
MIN_VARIANCE = 1e-3


def response_variance(responses: np.ndarray, weights: np.ndarray) -> float:
    """Variance of a model's responses over the items, averaged over the models.

    Parameters
    ----------
    responses : ndarray of shape (n_models, n_items)
        In [0, 1], NaN where not asked.
    weights : ndarray of shape (n_items,)
        Weights of the items in the score.

    Returns
    -------
    float
        sigma squared of lambda: the weighted sample variance, 1/4 (the largest) where no model
        has two responses, and never less than 0.001, so that constant responses do not make a
        sample of them certain.

    References
    ----------
    Maia Polo et al. (2024), tinyBenchmarks, section 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_irt.kernels.mixing import response_variance
    >>> response_variance(np.array([[0.0, 1.0], [1.0, 1.0]]), np.full(2, 0.5))
    0.25
    """
    total, n_rows = 0.0, 0
    for rows in row_blocks(*responses.shape):
        block = np.asarray(responses[rows], dtype=float)
        weight = np.where(np.isnan(block), 0.0, weights)
        mass = weight.sum(axis=1)
        weight = weight / np.where(mass > 0, mass, 1.0)[:, None]
        known = 1.0 - (weight**2).sum(axis=1)  # of a sample of n: (n - 1) / n
        some = (mass > 0) & (known > 1e-9)
        block, weight = np.nan_to_num(block[some]), weight[some]
        mean = (weight * block).sum(axis=1)
        spread = (weight * (block - mean[:, None]) ** 2).sum(axis=1)
        total += float((spread / known[some]).sum())
        n_rows += int(some.sum())
    return max(total / n_rows, MIN_VARIANCE) if n_rows else 0.25


def prediction_bias(
    responses: np.ndarray,
    scenario_weights: np.ndarray,
    fit: Callable[[np.ndarray], ItemModel],
    random_state: np.random.RandomState,
    ability: str = "map",
    truth: np.ndarray | None = None,
) -> np.ndarray:
    """Error of the IRT model's predicted scores on models that it was not fitted on.

    One half of the models is fitted. Of each other model one half of the items gives the
    ability, and the predicted score of the rest is compared with the observed one.

    Parameters
    ----------
    responses : ndarray of shape (n_models, n_items)
        In [0, 1], NaN where not asked.
    scenario_weights : ndarray of shape (n_scenarios, n_items)
        Weights of the items in each scenario's score; an item has weight in one scenario.
    fit : callable
        From responses to the fitted items.
    random_state : RandomState
    ability : {"map", "mle"}
    truth : ndarray of shape (n_models, n_items), optional
        Responses whose mean is the score, where the model was fitted to others (right or wrong by
        a threshold).

    Returns
    -------
    ndarray of shape (n_scenarios,)
        Mean absolute error, on the scale of [0, 1].

    References
    ----------
    Maia Polo et al. (2024), tinyBenchmarks, section 4.2.
    """
    n_models, n_items = responses.shape
    order = random_state.permutation(n_models)
    train, test = order[: (n_models + 1) // 2], order[(n_models + 1) // 2 :]
    # Half of the items of every scenario.
    asked = np.zeros(n_items, dtype=bool)
    for weights in scenario_weights:
        members = np.flatnonzero(weights)
        asked[random_state.permutation(members)[: (len(members) + 1) // 2]] = True
    model = fit(responses[np.sort(train)])
    rest = np.flatnonzero(~asked)
    errors = np.zeros(len(scenario_weights))
    counts = np.zeros(len(scenario_weights))
    for block in row_blocks(len(test), n_items):
        rows = test[block]
        known = np.asarray(responses[rows], dtype=float)
        theta = estimate_abilities(
            ability,
            known[:, asked],
            model.discrimination[asked],
            model.difficulty[asked],
            model.prior_precision,
        ).ability
        predicted = response_probabilities(
            theta, model.discrimination[rest], model.difficulty[rest]
        )
        if truth is not None:
            known = np.asarray(truth[rows], dtype=float)
        difference = known[:, rest] - predicted
        observed = ~np.isnan(difference)
        mass = observed @ scenario_weights[:, rest].T
        error = np.abs(np.nan_to_num(difference) @ scenario_weights[:, rest].T)
        some = mass > 0
        errors += np.where(some, error / np.where(some, mass, 1.0), 0.0).sum(axis=0)
        counts += some.sum(axis=0)
    return np.divide(errors, counts, out=np.zeros_like(errors), where=counts > 0)


def paper_mixing(
    bias: np.ndarray | float, variance: np.ndarray | float, n_asked: np.ndarray, gain: float
) -> np.ndarray:
    """Weight lambda of the anchors' mean in gp-IRT.

    Parameters
    ----------
    bias, variance : float or ndarray
        b and sigma squared, see `prediction_bias` and `response_variance`.
    n_asked : ndarray, int
        Answered anchors.
    gain : float
        How many random items a clustered anchor is worth; 1 for random anchors.

    Returns
    -------
    ndarray
        ``b**2 / (variance / (gain * n_asked) + b**2)``; 0 where nothing was asked.

    References
    ----------
    Maia Polo et al. (2024), tinyBenchmarks, section 4.2; Song (1988), corollary 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_irt.kernels.mixing import paper_mixing
    >>> paper_mixing(0.02, 0.2, np.array([0, 100]), gain=4.0).round(3)
    array([0.   , 0.444])
    """
    squared = np.square(bias)
    n_asked = np.asarray(n_asked, dtype=float)
    noise = np.asarray(variance) / np.maximum(gain * n_asked, 1.0)
    total = noise + squared
    ratio = np.divide(
        squared, total, out=np.zeros(np.broadcast(squared, noise).shape), where=total > 0
    )
    return np.where(n_asked > 0, ratio, 0.0)
