"""A benchmark as arrays: its items, anchors and training models, and whom new models resemble."""

from typing import NamedTuple

import numpy as np

from sklearn_irt.kernels.logistic import (
    Abilities,
    ItemModel,
    map_abilities,
    response_probabilities,
    row_blocks,
)
from sklearn_irt.kernels.relatives import (
    DISTANCES,
    Relatives,
    copy_log_likelihood,
    kin_blocks,
    kinship,
    make_relatives,
    none_evidence,
    twins,
)

# New models may be further from the training models than these are from each other. The prior of
# several scenarios is learned, and widening it would loosen what ties them together.
WIDE = 4.0


class Training(NamedTuple):
    """What is known of the training models.

    Attributes
    ----------
    ability : ndarray of shape (n_training, n_abilities)
    responses : ndarray of shape (n_training, n_anchors)
        On the anchors, in [0, 1], NaN where not asked.
    scores : ndarray of shape (n_training, n_scenarios)
        On the scale of [0, 1].
    noise : ndarray of shape (n_training, n_scenarios, n_distances)
        Variance of the score of a copy of each at each distance, see `copy_noise`.
    """

    ability: np.ndarray
    responses: np.ndarray
    scores: np.ndarray
    noise: np.ndarray


class Benchmark(NamedTuple):
    """Items, scenarios and anchors of a benchmark, and its training models.

    Attributes
    ----------
    items : ItemModel
    scenario : ndarray of shape (n_items,), int
    weights : ndarray of shape (n_items,)
        Of the items in their scenario's score; sum 1 in each.
    anchors : ndarray of shape (n_anchors,), int
    training : Training
    """

    items: ItemModel
    scenario: np.ndarray
    weights: np.ndarray
    anchors: np.ndarray
    training: Training


def copy_noise(
    responses: np.ndarray, probabilities: np.ndarray, weights: np.ndarray, scenario: np.ndarray
) -> np.ndarray:
    """Variance of the scores of a copy of each training model at each distance.

    Parameters
    ----------
    responses, probabilities : ndarray of shape (n_training, n_items)
        NaN responses were not asked.
    weights : ndarray of shape (n_items,)
    scenario : ndarray of shape (n_items,), int

    Returns
    -------
    ndarray of shape (n_training, n_scenarios, n_distances)
    """
    members = np.zeros((len(weights), scenario.max() + 1))
    members[np.arange(len(weights)), scenario] = weights**2
    known = np.where(np.isnan(responses), probabilities, responses)
    noise = np.empty((len(responses), members.shape[1], len(DISTANCES)))
    for e, distance in enumerate(DISTANCES):
        chance = (1.0 - distance) * known + distance * probabilities
        noise[:, :, e] = (chance * (1.0 - chance)) @ members
    return noise


class TrainingFigures(NamedTuple):
    """What the responses of models to all items say, see `training_figures`.

    Attributes
    ----------
    scores : ndarray of shape (n_models, n_scenarios)
    noise : ndarray of shape (n_models, n_scenarios, n_distances)
        See `copy_noise`.
    squares, spread : ndarray of shape (n_scenarios,)
        Weighted sums over the responses of the squared residuals, and of p (1 - p).
    observed : ndarray of shape (n_models, n_scenarios)
        Share of each score that the responses make known.
    """

    scores: np.ndarray
    noise: np.ndarray
    squares: np.ndarray
    spread: np.ndarray
    observed: np.ndarray


def training_figures(
    responses: np.ndarray,
    ability: np.ndarray,
    items: ItemModel,
    weights: np.ndarray,
    scenario: np.ndarray,
) -> TrainingFigures:
    """Scores of models with these responses, and how their copies would spread.

    Parameters
    ----------
    responses : ndarray of shape (n_models, n_items)
        In [0, 1]; the IRT model fills in what was not asked (NaN).
    ability : ndarray of shape (n_models, n_abilities)
    items : ItemModel
    weights : ndarray of shape (n_items,)
        Of the items in their scenario's score.
    scenario : ndarray of shape (n_items,), int

    Returns
    -------
    TrainingFigures
    """
    n_scenarios = scenario.max() + 1
    members = np.zeros((len(weights), n_scenarios))
    members[np.arange(len(weights)), scenario] = weights
    scores, observed = np.empty((2, len(responses), n_scenarios))
    noise = np.empty((len(responses), n_scenarios, len(DISTANCES)))
    squares, spread = np.zeros(n_scenarios), np.zeros(n_scenarios)
    for rows in row_blocks(*responses.shape):
        given = np.asarray(responses[rows], dtype=float)
        expected = response_probabilities(ability[rows], items.discrimination, items.difficulty)
        seen = ~np.isnan(given)
        known = np.where(seen, given, expected)
        scores[rows], observed[rows] = known @ members, seen @ members
        noise[rows] = copy_noise(given, expected, weights, scenario)
        squares += ((known - expected) ** 2 @ members).sum(axis=0)
        spread += (np.where(seen, expected * (1.0 - expected), 0.0) @ members).sum(axis=0)
    return TrainingFigures(scores, noise, squares, spread, observed)


def relatives_at(benchmark: Benchmark, positions: np.ndarray) -> Relatives:
    """The training models on the items at `positions`: responses are known on the anchors."""
    training = benchmark.training
    items = benchmark.items
    chance = response_probabilities(
        training.ability, items.discrimination[positions], items.difficulty[positions]
    )
    responses = np.full_like(chance, np.nan)
    place = np.minimum(np.searchsorted(benchmark.anchors, positions), len(benchmark.anchors) - 1)
    known = benchmark.anchors[place] == positions
    responses[:, known] = training.responses[:, place[known]]
    return make_relatives(responses, chance, twins(training.responses, training.scores))


def wide_precision(benchmark: Benchmark) -> np.ndarray:
    """Prior precision of the abilities of a new model that may be unlike the training models."""
    several = benchmark.scenario.max() > 0
    return benchmark.items.prior_precision / (1.0 if several else WIDE)


class Evidence(NamedTuple):
    """What answers say for each relative, and for none.

    Attributes
    ----------
    relatives : ndarray of shape (n_models, n_training, n_distances)
        Log-likelihood of a copy of each training model at each distance.
    none : ndarray of shape (n_models,)
        Log-evidence of the IRT model.
    """

    relatives: np.ndarray
    none: np.ndarray


def kin_evidence(
    benchmark: Benchmark,
    relatives: Relatives,
    answers: np.ndarray,
    positions: np.ndarray,
    likely: Abilities,
    exclude: np.ndarray | None = None,
) -> Evidence:
    """Evidence for each relative and for none.

    Parameters
    ----------
    benchmark : Benchmark
    relatives : Relatives
        On the items at `positions`.
    answers : ndarray of shape (n_models, n_asked)
        In [0, 1], NaN where not answered.
    positions : ndarray of shape (n_asked,), int
    likely : Abilities
        The most probable ones, see `likely_abilities`.
    exclude : ndarray of shape (n_models,), int, or (n_training,), bool, optional
        Training model that each row is, and whose relative it must not be; or those that nobody
        may have as a relative.

    Returns
    -------
    Evidence
    """
    items = benchmark.items
    none = none_evidence(
        answers,
        likely.ability,
        likely.covariance,
        items.discrimination[positions],
        items.difficulty[positions],
        wide_precision(benchmark),
    )
    likelihood = copy_log_likelihood(answers, relatives)
    if exclude is not None and exclude.dtype == bool:
        likelihood[:, exclude] = -np.inf
    elif exclude is not None:
        likelihood[np.arange(len(answers)), exclude] = -np.inf
    return Evidence(likelihood, none)


def likely_abilities(
    benchmark: Benchmark, modelled: np.ndarray, positions: np.ndarray
) -> Abilities:
    """Most probable abilities of models that may be unlike the training models."""
    items = benchmark.items
    return map_abilities(
        modelled,
        items.discrimination[positions],
        items.difficulty[positions],
        prior_precision=wide_precision(benchmark),
    )


def find_kin(
    benchmark: Benchmark,
    share: float,
    answers: np.ndarray,
    modelled: np.ndarray,
    positions: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Whom models resemble.

    Parameters
    ----------
    benchmark : Benchmark
    share : float
        Prior share of models with a relative.
    answers, modelled : ndarray of shape (n_models, n_asked)
        As in `estimate`.
    positions : ndarray of shape (n_asked,), int

    Returns
    -------
    weights : ndarray of shape (n_models, n_training)
        Posterior probability that each training model is the relative.
    none : ndarray of shape (n_models,)
    """
    relatives = relatives_at(benchmark, positions)
    weights, none = np.empty((len(answers), len(relatives.prior))), np.empty(len(answers))
    for rows in kin_blocks(len(answers), len(relatives.prior)):
        likely = likely_abilities(benchmark, modelled[rows], positions)
        evidence = kin_evidence(benchmark, relatives, answers[rows], positions, likely)
        kin = kinship(evidence.relatives, evidence.none, relatives.prior, share)
        weights[rows], none[rows] = kin.weights.sum(axis=2), kin.none
    return weights, none


def unexplained(
    benchmark: Benchmark, answers: np.ndarray, positions: np.ndarray, likely: Abilities
) -> np.ndarray:
    """Answers less what the IRT model expects of them, 0 where not answered."""
    items = benchmark.items
    expected = response_probabilities(
        likely.ability, items.discrimination[positions], items.difficulty[positions]
    )
    return np.nan_to_num(answers - expected)
