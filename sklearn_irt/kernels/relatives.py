"""Relatives: a new model as a more or less exact copy of one of the training models."""

from collections import Counter
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logsumexp

# Elements of the (models x relatives x distances) workspace of one block of models.
BLOCK_ELEMENTS = 4_000_000
# Distances of a relative: the share of its answers that are not copied but drawn anew.
DISTANCES = np.array([0.3, 0.6, 1.0])
# No answer is certain, however close the relative.
CLIP = 1e-3
N_FOLDS = 5


class Relatives(NamedTuple):
    """The training models on the items that a new model may be asked.

    Attributes
    ----------
    responses : ndarray of shape (n_training, n_items)
        In [0, 1]; their probability where they were not asked.
    probabilities : ndarray of shape (n_training, n_items)
        What the IRT model expects of them.
    prior : ndarray of shape (n_training,)
        Prior weight of each, sum 1.
    """

    responses: np.ndarray
    probabilities: np.ndarray
    prior: np.ndarray


class Kinship(NamedTuple):
    """Posterior of whom each of some new models resembles.

    Attributes
    ----------
    weights : ndarray of shape (n_models, n_training, n_distances)
    none : ndarray of shape (n_models,)
        Posterior probability that it resembles none; with the weights, sum 1.
    """

    weights: np.ndarray
    none: np.ndarray


def make_relatives(responses: np.ndarray, probabilities: np.ndarray, twin: np.ndarray) -> Relatives:
    """Relatives of the training models; twins (equal in all that is known) share their weight.

    Parameters
    ----------
    responses : ndarray of shape (n_training, n_items)
        In [0, 1], NaN where not asked.
    probabilities : ndarray of shape (n_training, n_items)
    twin : ndarray of shape (n_training,), int
        See `twins`.

    Returns
    -------
    Relatives
    """
    known = np.where(np.isnan(responses), probabilities, responses)
    return Relatives(known, np.clip(probabilities, CLIP, 1.0 - CLIP), shared_prior(twin))


def shared_prior(twin: np.ndarray) -> np.ndarray:
    """Prior weight of each training model, the same for every group of twins; sum 1."""
    if not len(twin):
        return np.empty(0)
    size = np.bincount(twin)
    return 1.0 / (len(size) * size[twin])


def twins(responses: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Number of the group of equal training models that each belongs to, (n_training,).

    Parameters
    ----------
    responses : ndarray of shape (n_training, n_items)
        NaN where not asked.
    scores : ndarray of shape (n_training, n_scenarios)
    """
    # Only rows with equal scores can be equal: the responses of few are looked at.
    keys = [row.tobytes() for row in scores.round(9) + 0.0]
    shared = {key for key, count in Counter(keys).items() if count > 1}
    numbers: dict = {}
    group = np.empty(len(keys), dtype=int)
    for i, key in enumerate(keys):
        if key in shared:
            key = key, np.nan_to_num(responses[i], nan=-1.0).tobytes()
        group[i] = numbers.setdefault(key, len(numbers))
    return group


def copy_probabilities(relatives: Relatives, distance: float) -> np.ndarray:
    """Probability of each answer of a copy of each training model, (n_training, n_items)."""
    copied = (1.0 - distance) * relatives.responses + distance * relatives.probabilities
    return np.clip(copied, CLIP, 1.0 - CLIP)


def copy_log_likelihood(answers: np.ndarray, relatives: Relatives) -> np.ndarray:
    """Log-likelihood of the answers under every relative and distance.

    Parameters
    ----------
    answers : ndarray of shape (n_models, n_items)
        In [0, 1], NaN where not asked.
    relatives : Relatives

    Returns
    -------
    ndarray of shape (n_models, n_training, n_distances)
    """
    seen = ~np.isnan(answers)
    right = np.where(seen, answers, 0.0)
    wrong = np.where(seen, 1.0 - answers, 0.0)
    out = np.empty((len(answers), len(relatives.prior), len(DISTANCES)))
    for e, distance in enumerate(DISTANCES):
        probability = copy_probabilities(relatives, distance)
        out[:, :, e] = right @ np.log(probability).T + wrong @ np.log1p(-probability).T
    return out


def none_evidence(
    answers: np.ndarray,
    ability: np.ndarray,
    covariance: np.ndarray,
    discrimination: np.ndarray,
    difficulty: np.ndarray,
    prior_precision: np.ndarray,
) -> np.ndarray:
    """Log-evidence of the IRT model for each row of answers (Laplace at the most probable ability).

    Parameters
    ----------
    answers : ndarray of shape (n_models, n_items)
        In [0, 1], NaN where not asked.
    ability, covariance : ndarray of shape (n_models, n_dims) and (n_models, n_dims, n_dims)
        Most probable ability and its posterior covariance.
    discrimination, difficulty : ndarray of shape (n_items, n_dims) and (n_items,)
    prior_precision : ndarray of shape (n_dims, n_dims)

    Returns
    -------
    ndarray of shape (n_models,)
    """
    seen = ~np.isnan(answers)
    answers = np.where(seen, answers, 0.0)
    probability = np.clip(expit(ability @ discrimination.T - difficulty), CLIP, 1.0 - CLIP)
    likelihood = answers * np.log(probability) + (1.0 - answers) * np.log1p(-probability)
    penalty = np.einsum("ld,de,le->l", ability, prior_precision, ability)
    log_det = np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(prior_precision)[1]
    return np.where(seen, likelihood, 0.0).sum(axis=1) - 0.5 * penalty + 0.5 * log_det


def kinship(
    log_likelihood: np.ndarray, none: np.ndarray, prior: np.ndarray, share: float
) -> Kinship:
    """Posterior weights of the relatives and of none.

    Parameters
    ----------
    log_likelihood : ndarray of shape (n_models, n_training, n_distances)
    none : ndarray of shape (n_models,)
        Log-evidence of the IRT model.
    prior : ndarray of shape (n_training,)
    share : float in [0, 1)
        Prior probability of having a relative.

    Returns
    -------
    Kinship
    """
    weights = weighted_likelihood(log_likelihood, share * prior)
    none = none + np.log1p(-share)
    total = np.logaddexp(related_evidence(weights), none)
    return Kinship(np.exp(weights - total[:, None, None]), np.exp(none - total))


def weighted_likelihood(log_likelihood: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Log-likelihoods plus the log of the relatives' prior, which all distances share alike.

    Parameters
    ----------
    log_likelihood : ndarray of shape (n_models, n_training, n_distances)
    prior : ndarray of shape (n_training,)

    Returns
    -------
    ndarray of shape (n_models, n_training, n_distances)
    """
    with np.errstate(divide="ignore"):
        return log_likelihood + np.log(prior / len(DISTANCES))[:, None]


def related_evidence(weighted: np.ndarray) -> np.ndarray:
    """Log-evidence that a model is a copy of some relative.

    Parameters
    ----------
    weighted : ndarray of shape (n_models, n_training, n_distances)
        From `weighted_likelihood`.

    Returns
    -------
    ndarray of shape (n_models,)
    """
    flat = weighted.reshape(len(weighted), weighted.shape[1] * weighted.shape[2])
    return logsumexp(flat, axis=1) if flat.shape[1] else np.full(len(flat), -np.inf)


def learn_share(log_likelihood: np.ndarray, none: np.ndarray, prior: np.ndarray) -> float:
    """Share of models with a relative that makes the answers most probable.

    Expectation-maximisation from 1/2 with one prior observation on either side.

    Parameters
    ----------
    log_likelihood : ndarray of shape (n_models, n_training, n_distances)
        Minus infinity where a model must not be its own relative.
    none : ndarray of shape (n_models,)
    prior : ndarray of shape (n_training,)

    Returns
    -------
    float
    """
    evidence = related_evidence(weighted_likelihood(log_likelihood, prior)) - none
    share = 0.5
    for _ in range(100):
        found = expit(evidence + np.log(share) - np.log1p(-share))
        before, share = share, (found.sum() + 1.0) / (len(found) + 2.0)
        if abs(share - before) < 1e-4:
            break
    return float(share)


def kin_blocks(n_models: int, n_training: int) -> list[slice]:
    """Slices of rows whose arrays over relatives stay within a fixed workspace."""
    step = max(1, BLOCK_ELEMENTS // max(1, n_training * len(DISTANCES)))
    return [slice(start, min(start + step, n_models)) for start in range(0, n_models, step)]
