"""Abilities of several scenarios that were fitted one by one, as one correlated vector."""

from typing import NamedTuple

import numpy as np


class StackedAbilities(NamedTuple):
    """Abilities of all scenarios side by side, and their distribution over the models.

    Attributes
    ----------
    ability : ndarray of shape (n_models, n_abilities)
        Posterior means.
    covariance : ndarray of shape (n_models, n_abilities, n_abilities)
        Posterior covariances.
    prior_covariance : ndarray of shape (n_abilities, n_abilities)
        Of the abilities of a new model, whose mean is zero.
    """

    ability: np.ndarray
    covariance: np.ndarray
    prior_covariance: np.ndarray


def block_diagonal(blocks: list[np.ndarray]) -> np.ndarray:
    """Stacks of square matrices put along the diagonal, (n, d, d) each."""
    sizes = [block.shape[1] for block in blocks]
    out = np.zeros((len(blocks[0]), sum(sizes), sum(sizes)))
    start = 0
    for block, size in zip(blocks, sizes, strict=True):
        out[:, start : start + size, start : start + size] = block
        start += size
    return out


def correlate(
    abilities: list[np.ndarray], covariances: list[np.ndarray], n_iter: int = 30
) -> StackedAbilities:
    """Learn the covariance of the abilities of several scenarios, and sharpen each by the others.

    Expectation-maximisation: a scenario's posterior, without the standard normal prior under
    which it was fitted, is what its responses say; the stacked abilities have the prior N(0, C).
    A model that lacks a scenario says nothing about it there.

    Parameters
    ----------
    abilities : list of ndarray of shape (n_models, n_dims)
        Posterior means of each scenario's fit.
    covariances : list of ndarray of shape (n_models, n_dims, n_dims)
        Posterior covariances of each scenario's fit.
    n_iter : int
        Rounds of expectation-maximisation.

    Returns
    -------
    StackedAbilities

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_irt.kernels.correlated import correlate
    >>> ability = np.random.default_rng(0).normal(size=(200, 1))
    >>> sure = np.full((200, 1, 1), 0.01)
    >>> stacked = correlate([ability, ability], [sure, sure])
    >>> bool(stacked.prior_covariance[0, 1] > 0.8)
    True
    """
    precision = block_diagonal([np.linalg.inv(covariance) for covariance in covariances])
    stacked = np.concatenate(abilities, axis=1, dtype=float)
    linear = np.einsum("lde,le->ld", precision, stacked)
    # Rounding and the standardisation of a fit can leave slightly negative information.
    values, axes = np.linalg.eigh(precision - np.eye(precision.shape[1]))
    information = (axes * np.maximum(values, 0.0)[:, None, :]) @ axes.transpose(0, 2, 1)
    mean, covariance = stacked, block_diagonal(covariances)
    for _ in range(n_iter):
        prior = mean.T @ mean / len(mean) + covariance.mean(axis=0)
        covariance = np.linalg.inv(information + np.linalg.inv(prior))
        mean = np.einsum("lde,le->ld", covariance, linear)
    return StackedAbilities(mean, covariance, prior)
