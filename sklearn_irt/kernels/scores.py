"""Scores of scenarios from the answers to some items: naive, p-IRT, and their errors."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from sklearn_irt.kernels.logistic import row_blocks


class ScenarioScores(NamedTuple):
    """Estimates of every model's score on every scenario, on the scale of [0, 1].

    Attributes
    ----------
    n_asked : ndarray of shape (n_models, n_scenarios), int
        Answers that were used.
    n_weighted : ndarray of shape (n_models, n_scenarios), int
        Those of them that have a weight in the naive mean.
    naive : ndarray of shape (n_models, n_scenarios)
        Weighted mean of the answers, the weights renormalised over what was answered; NaN where
        nothing was.
    naive_weight : ndarray of shape (n_models, n_scenarios)
        Sum of the squared weights of that mean.
    pirt : ndarray of shape (n_models, n_scenarios)
    known : ndarray of shape (n_models, n_scenarios)
        Part of the score that the answers make known.
    asked_weight : ndarray of shape (n_models, n_scenarios)
        Weight in the score of the answered items.
    gradient : ndarray of shape (n_models, n_scenarios, n_dims)
        Of p-IRT in the ability, over the items not answered.
    noise : ndarray of shape (n_models, n_scenarios)
        Variance of the responses not seen, given the ability.
    anchor_weight : ndarray of shape (n_models, n_scenarios)
        Weight in the score of the answered items that count in the naive mean.
    """

    n_asked: np.ndarray
    n_weighted: np.ndarray
    naive: np.ndarray
    naive_weight: np.ndarray
    pirt: np.ndarray
    known: np.ndarray
    asked_weight: np.ndarray
    gradient: np.ndarray
    noise: np.ndarray
    anchor_weight: np.ndarray


def weighted_sums(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """``values @ weights`` in double precision, without a copy of values in single.

    Parameters
    ----------
    values : ndarray of shape (n_models, n_items)
    weights : ndarray of shape (n_items,)

    Returns
    -------
    ndarray of shape (n_models,)
    """
    return np.einsum("li,i->l", values, weights)


def scenario_scores(
    responses: np.ndarray,
    positions: np.ndarray,
    naive_weights: np.ndarray,
    ability: np.ndarray,
    discrimination: np.ndarray,
    difficulty: np.ndarray,
    weights: np.ndarray,
    scenario: np.ndarray,
) -> ScenarioScores:
    """Naive and p-IRT estimates of the scenarios' scores.

    p-IRT takes the responses that are known and the model's probabilities for the others.

    Parameters
    ----------
    responses : ndarray of shape (n_models, n_asked)
        Answers in [0, 1] to the items at `positions`, NaN where not answered.
    positions : ndarray of shape (n_asked,), int
    naive_weights : ndarray of shape (n_asked,)
        Weights of the anchors in the naive mean of their scenario.
    ability : ndarray of shape (n_models, n_dims)
    discrimination : ndarray of shape (n_items, n_dims)
    difficulty : ndarray of shape (n_items,)
    weights : ndarray of shape (n_items,)
        Of the items in their scenario's score; sum 1 in each scenario.
    scenario : ndarray of shape (n_items,), int
        Scenario of each item, 0 to n_scenarios - 1.

    Returns
    -------
    ScenarioScores

    References
    ----------
    Maia Polo et al. (2024), tinyBenchmarks, equations 3.1 and 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_irt.kernels.scores import scenario_scores
    >>> scores = scenario_scores(
    ...     np.array([[1.0]]), np.array([0]), np.array([1.0]),
    ...     ability=np.zeros((1, 1)), discrimination=np.ones((4, 1)), difficulty=np.zeros(4),
    ...     weights=np.full(4, 0.25), scenario=np.zeros(4, dtype=int),
    ... )
    >>> scores.naive, scores.pirt
    (array([[1.]]), array([[0.625]]))
    """
    n_models, n_dims = ability.shape
    n_scenarios = int(scenario.max()) + 1
    shape = (n_models, n_scenarios)
    n_asked, n_weighted = np.zeros(shape, dtype=int), np.zeros(shape, dtype=int)
    naive, naive_weight = np.full(shape, np.nan), np.zeros(shape)
    pirt, asked_weight, noise = np.empty(shape), np.empty(shape), np.empty(shape)
    known_score = np.empty(shape)
    gradient, anchors_weight = np.empty((*shape, n_dims)), np.empty(shape)
    for s in range(n_scenarios):
        members = np.flatnonzero(scenario == s)
        columns = np.flatnonzero(scenario[positions] == s)
        local = np.searchsorted(members, positions[columns])
        own = slice(None) if len(members) == len(weights) else members  # a view where it can be
        weight, loadings, threshold = weights[own], discrimination[own], difficulty[own]
        for rows in row_blocks(n_models, len(members)):
            known = np.asarray(responses[rows][:, columns], dtype=float)
            seen = ~np.isnan(known)
            known = np.where(seen, known, 0.0)
            probability = expit(ability[rows] @ loadings.T - threshold)
            spread = probability * (1.0 - probability)
            seen_spread = np.where(seen, spread[:, local], 0.0)
            asked = weight[local]
            known_score[rows, s] = known @ asked
            pirt[rows, s] = (
                probability @ weight + np.where(seen, known - probability[:, local], 0.0) @ asked
            )
            gradient[rows, s] = (spread * weight) @ loadings - (seen_spread * asked) @ loadings[
                local
            ]
            noise[rows, s] = spread @ weight**2 - seen_spread @ asked**2
            asked_weight[rows, s] = seen @ asked
            n_asked[rows, s] = seen.sum(axis=1)
            anchors_weight[rows, s] = seen @ np.where(naive_weights[columns] > 0, asked, 0.0)
            anchor_weight = seen * naive_weights[columns]
            n_weighted[rows, s] = (anchor_weight > 0).sum(axis=1)
            mass = anchor_weight.sum(axis=1)
            some = mass > 0
            mean = (anchor_weight[some] * known[some]).sum(axis=1) / mass[some]
            naive[rows, s][some] = mean
            naive_weight[rows, s][some] = (anchor_weight[some] ** 2).sum(axis=1) / mass[some] ** 2
    noise = np.maximum(noise, 0.0)
    return ScenarioScores(
        n_asked,
        n_weighted,
        naive,
        naive_weight,
        pirt,
        known_score,
        asked_weight,
        gradient,
        noise,
        anchors_weight,
    )


class Predicted(NamedTuple):
    """Predicted scores of the scenarios and of their mean, with variances.

    Attributes
    ----------
    score, variance : ndarray of shape (n_models, n_scenarios)
    overall_score, overall_variance : ndarray of shape (n_models,)
    """

    score: np.ndarray
    variance: np.ndarray
    overall_score: np.ndarray
    overall_variance: np.ndarray


def pirt_scores(found: ScenarioScores, covariance: np.ndarray) -> Predicted:
    """p-IRT with its variance: of the abilities, and of the responses not seen.

    Parameters
    ----------
    found : ScenarioScores
    covariance : ndarray of shape (n_models, n_dims, n_dims)
        Posterior covariance of the abilities.

    Returns
    -------
    Predicted
    """
    n_scenarios = found.pirt.shape[1]

    def quadratic(gradient: np.ndarray) -> np.ndarray:
        along = (gradient[:, None] @ covariance)[:, 0]
        return np.maximum(np.einsum("ld,ld->l", along, gradient), 0.0)

    variance = found.noise.copy()
    for s in range(n_scenarios):
        variance[:, s] += quadratic(found.gradient[:, s])
    overall = quadratic(found.gradient.mean(axis=1)) + found.noise.sum(axis=1) / n_scenarios**2
    return Predicted(found.pirt, variance, found.pirt.mean(axis=1), overall)


def naive_variance(found: ScenarioScores, variance: np.ndarray) -> np.ndarray:
    """Variance of the naive scores as those of a sample, (n_models, n_scenarios).

    `variance` (n_scenarios,) is that of a model's responses over the items. A sample can only be
    wrong about the share of the score that is not in it. NaN where nothing was answered.
    """
    sampled = variance * found.naive_weight * np.maximum(1.0 - found.anchor_weight, 0.0)
    return np.where(found.n_weighted > 0, sampled, np.nan)
