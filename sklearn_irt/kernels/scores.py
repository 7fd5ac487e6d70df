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
    naive : ndarray of shape (n_models, n_scenarios)
        Weighted mean of the answers, the weights renormalised over what was answered; NaN where
        nothing was.
    naive_weight : ndarray of shape (n_models, n_scenarios)
        Sum of the squared weights of that mean.
    pirt : ndarray of shape (n_models, n_scenarios)
    asked_weight : ndarray of shape (n_models, n_scenarios)
        Weight in the score of the answered items.
    gradient : ndarray of shape (n_models, n_scenarios, n_dims)
        Of p-IRT in the ability, over the items not answered.
    noise : ndarray of shape (n_models, n_scenarios)
        Variance of the responses not seen, given the ability.
    """

    n_asked: np.ndarray
    naive: np.ndarray
    naive_weight: np.ndarray
    pirt: np.ndarray
    asked_weight: np.ndarray
    gradient: np.ndarray
    noise: np.ndarray


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
    n_asked = np.zeros(shape, dtype=int)
    naive, naive_weight = np.full(shape, np.nan), np.zeros(shape)
    pirt, asked_weight, noise = np.empty(shape), np.empty(shape), np.empty(shape)
    gradient = np.empty((*shape, n_dims))
    for s in range(n_scenarios):
        members = np.flatnonzero(scenario == s)
        columns = np.flatnonzero(scenario[positions] == s)
        local = np.searchsorted(members, positions[columns])
        weight, loadings, threshold = weights[members], discrimination[members], difficulty[members]
        for rows in row_blocks(n_models, len(members)):
            known = np.asarray(responses[rows][:, columns], dtype=float)
            seen = ~np.isnan(known)
            known = np.where(seen, known, 0.0)
            probability = expit(ability[rows] @ loadings.T - threshold)
            spread = probability * (1.0 - probability)
            seen_spread = np.where(seen, spread[:, local], 0.0)
            asked = weight[local]
            pirt[rows, s] = (
                probability @ weight + np.where(seen, known - probability[:, local], 0.0) @ asked
            )
            gradient[rows, s] = (spread * weight) @ loadings - (seen_spread * asked) @ loadings[
                local
            ]
            noise[rows, s] = spread @ weight**2 - seen_spread @ asked**2
            asked_weight[rows, s] = seen @ asked
            n_asked[rows, s] = seen.sum(axis=1)
            anchor_weight = seen * naive_weights[columns]
            mass = anchor_weight.sum(axis=1)
            some = mass > 0
            mean = (anchor_weight[some] * known[some]).sum(axis=1) / mass[some]
            naive[rows, s][some] = mean
            naive_weight[rows, s][some] = (anchor_weight[some] ** 2).sum(axis=1) / mass[some] ** 2
    return ScenarioScores(
        n_asked, naive, naive_weight, pirt, asked_weight, gradient, np.maximum(noise, 0.0)
    )
