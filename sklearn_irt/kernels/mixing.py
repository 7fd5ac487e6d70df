"""The share of the anchors' mean in gp-IRT: bias, variance and lambda."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from sklearn_irt.kernels.logistic import (
    ItemModel,
    estimate_abilities,
    response_probabilities,
    row_blocks,
)

# Clustered anchors have half the standard error of as many random ones (paper, section 4.2).
CLUSTER_GAIN = 4.0
MIN_VARIANCE = 1e-3
# Share of new models that are unlike all training models, and the size of the bias on them.
UNLIKE = 0.15
LARGE_BIAS = 0.15


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
) -> tuple[np.ndarray, ItemModel, np.ndarray]:
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
    bias : ndarray of shape (n_scenarios,)
        Mean absolute error, on the scale of [0, 1].
    items : ItemModel
        The fit of the one half.
    test : ndarray of int
        The models of the other half.

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
    bias = np.divide(errors, counts, out=np.zeros_like(errors), where=counts > 0)
    return bias, model, np.sort(test)


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


class Correction(NamedTuple):
    """Share of the anchors' residual by which a prediction is corrected.

    Attributes
    ----------
    share : ndarray
        lambda, in [0, 1].
    variance : ndarray
        Posterior variance of the bias.
    """

    share: np.ndarray
    variance: np.ndarray


def robust_mixing(
    residual: np.ndarray,
    variance: np.ndarray,
    bias: np.ndarray | float,
    unlike: np.ndarray | float = UNLIKE,
) -> Correction:
    """How much of the anchors' mean residual is bias of the prediction, model by model.

    The bias of a prediction is small for most models, ``N(0, bias**2)``, and large for those
    unlike the training models, ``N(0, 0.15**2)``; the residual is the bias plus the noise of the
    anchors' answers.

    Parameters
    ----------
    residual : ndarray
        Weighted mean of the answers less their predictions, each from the other anchors.
    variance : ndarray
        Of its noise; infinite where nothing was answered, and the bias is taken as usual.
    bias : float or ndarray
        Usual size of the bias, on the scale of [0, 1].
    unlike : float or ndarray
        Prior probability that the model is unlike the training models.

    Returns
    -------
    Correction
        The posterior mean of the bias as a share of the residual, and its posterior variance.

    Examples
    --------
    A small residual is noise, a large one is bias:

    >>> import numpy as np
    >>> from sklearn_irt.kernels.mixing import robust_mixing
    >>> robust_mixing(np.array([0.01, 0.3]), np.full(2, 0.002), 0.01).share.round(2)
    array([0.09, 0.92])
    """
    residual, variance = np.asarray(residual, dtype=float), np.asarray(variance, dtype=float)
    none = ~np.isfinite(variance)
    noise = np.where(none, 1.0, np.maximum(variance, 1e-12))
    small, large = np.square(bias), np.full_like(noise, LARGE_BIAS**2)

    def log_density(prior: np.ndarray) -> np.ndarray:
        total = prior + noise
        return -0.5 * (residual**2 / total + np.log(total))

    odds = np.log(unlike / (1.0 - unlike)) + log_density(large) - log_density(small)
    unlike = expit(odds)
    shrink_small, shrink_large = small / (small + noise), large / (large + noise)
    share = (1.0 - unlike) * shrink_small + unlike * shrink_large
    spread = (
        share * noise + unlike * (1.0 - unlike) * ((shrink_large - shrink_small) * residual) ** 2
    )
    return Correction(np.where(none, 0.0, share), np.where(none, small, spread))
