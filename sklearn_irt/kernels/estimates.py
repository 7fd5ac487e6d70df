"""From answers to estimates: naive, p-IRT or relatives, and their mixture, with errors."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from sklearn_irt.kernels.benchmark import (
    Benchmark,
    kin_evidence,
    likely_abilities,
    relatives_at,
    wide_precision,
)
from sklearn_irt.kernels.logistic import Abilities, estimate_abilities, map_abilities
from sklearn_irt.kernels.mixing import UNLIKE, paper_mixing, robust_mixing
from sklearn_irt.kernels.relatives import (
    DISTANCES,
    N_FOLDS,
    Relatives,
    copy_log_likelihood,
    kin_blocks,
    kinship,
    none_evidence,
)
from sklearn_irt.kernels.scores import (
    Predicted,
    ScenarioScores,
    naive_variance,
    pirt_scores,
    scenario_scores,
)

# Models without a relative are unlike the training models more often.
UNLIKE_NONE = 0.7


class Tuning(NamedTuple):
    """What was learned from training models that were left out.

    Attributes
    ----------
    bias : ndarray of shape (n_scenarios,)
        The paper's b: mean absolute error of the IRT model's predictions.
    variance : ndarray of shape (n_scenarios,)
        The paper's sigma squared.
    gain : float
        The paper's c: how many random items an anchor is worth.
    usual_bias : ndarray of shape (2, n_scenarios)
        Usual bias of a prediction without and with relatives, for the robust mixing.
    dispersion : ndarray of shape (n_scenarios,)
        Variance of responses as a share of p (1 - p).
    share : float
        Of new models that have a relative.
    """

    bias: np.ndarray
    variance: np.ndarray
    gain: float
    usual_bias: np.ndarray
    dispersion: np.ndarray
    share: float


class Settings(NamedTuple):
    """How to estimate.

    Attributes
    ----------
    ability : {"map", "mle"}
    mixing : {"paper", "robust"} or float
    share : float
        Of new models that have a relative; 0 switches relatives off.
    """

    ability: str
    mixing: str | float
    share: float


class Estimates(NamedTuple):
    """Naive, predicted ("pirt") and mixed ("gpirt") scores, on the scale of [0, 1].

    Attributes
    ----------
    n_asked : ndarray of shape (n_models, n_scenarios), int
    scores, stds : dict of ndarray of shape (n_models, n_scenarios)
        By "naive", "pirt" and "gpirt".
    overall_scores, overall_stds : dict of ndarray of shape (n_models,)
        Of the mean over the scenarios.
    mixing : ndarray of shape (n_models, n_scenarios)
        Share of the naive score, or of the residual in the robust mixing.
    bounded : ndarray of shape (n_models,), bool
        Whose ability was held at the bound of the norm (maximum likelihood only).
    """

    n_asked: np.ndarray
    scores: dict[str, np.ndarray]
    stds: dict[str, np.ndarray]
    overall_scores: dict[str, np.ndarray]
    overall_stds: dict[str, np.ndarray]
    mixing: np.ndarray
    bounded: np.ndarray


class Ingredients(NamedTuple):
    """What every mixing of the same answers is made of.

    Attributes
    ----------
    found : ScenarioScores
    predicted : Predicted
        p-IRT, or its mixture with the relatives.
    base : Predicted
        What the residual corrects: with a wider prior than p-IRT.
    residual, noise : ndarray of shape (n_models, n_scenarios), or None
        Of the anchors' answers less their predictions from other anchors.
    none : ndarray of shape (n_models,)
        Posterior probability of having no relative; 0 where there are none to have.
    bounded : ndarray of shape (n_models,), bool
    """

    found: ScenarioScores
    predicted: Predicted
    base: Predicted
    residual: np.ndarray | None
    noise: np.ndarray | None
    none: np.ndarray
    bounded: np.ndarray


def estimate(
    benchmark: Benchmark,
    tuning: Tuning,
    settings: Settings,
    answers: np.ndarray,
    modelled: np.ndarray,
    positions: np.ndarray,
    naive_weights: np.ndarray,
) -> Estimates:
    """Estimate the scores of models from their answers to some items.

    Parameters
    ----------
    benchmark, tuning, settings
    answers : ndarray of shape (n_models, n_asked)
        In [0, 1], NaN where not answered.
    modelled : ndarray of shape (n_models, n_asked)
        The answers as the IRT model sees them (right or wrong where it has a threshold).
    positions : ndarray of shape (n_asked,), int
        Items that the columns are about, ascending.
    naive_weights : ndarray of shape (n_asked,)
        Of the anchors in the naive mean of their scenario; 0 for items that are no anchors.

    Returns
    -------
    Estimates
    """
    if not len(benchmark.training.scores):
        settings = settings._replace(share=0.0)
    related = settings.share > 0
    corrected = settings.mixing == "robust" or (related and settings.mixing != "paper")
    parts = [
        mix(tuning, settings, part)
        for part in ingredients(
            benchmark,
            tuning,
            settings.ability,
            settings.share,
            answers,
            modelled,
            positions,
            naive_weights,
            corrected=corrected,
        )
    ]
    return parts[0] if len(parts) == 1 else concatenate(parts)


def ingredients(
    benchmark: Benchmark,
    tuning: Tuning,
    ability: str,
    share: float,
    answers: np.ndarray,
    modelled: np.ndarray,
    positions: np.ndarray,
    naive_weights: np.ndarray,
    *,
    corrected: bool,
    exclude: np.ndarray | None = None,
    relatives: Relatives | None = None,
) -> Iterator[Ingredients]:
    """The ingredients of blocks of models, of a size that bounds the memory.

    Parameters
    ----------
    benchmark, tuning, ability, share, answers, modelled, positions, naive_weights
        As in `estimate`.
    corrected : bool
        Whether residuals are needed.
    exclude : ndarray of shape (n_models,), int, or (n_training,), bool, optional
        Training model that each row is, and whose relative it must not be; or those that nobody
        may have as a relative.
    relatives : Relatives, optional
        `relatives_at(benchmark, positions)`, where they are at hand.

    Yields
    ------
    Ingredients
    """
    if share > 0 and relatives is None:
        relatives = relatives_at(benchmark, positions)
    related = relatives if share > 0 else None
    n_training = len(benchmark.training.scores) if share > 0 else 0
    for rows in kin_blocks(len(answers), max(n_training, len(positions)) * (N_FOLDS + 2)):
        yield _ingredients(
            benchmark,
            tuning,
            ability,
            share,
            related,
            answers[rows],
            modelled[rows],
            positions,
            naive_weights,
            corrected,
            exclude if exclude is None or exclude.dtype == bool else exclude[rows],
        )


def concatenate(parts: list[Estimates]) -> Estimates:
    """The estimates of several blocks of models as one."""

    def join(values: list) -> object:
        if isinstance(values[0], dict):
            return {key: np.concatenate([value[key] for value in values]) for key in values[0]}
        return np.concatenate(values)

    return Estimates(*(join(list(values)) for values in zip(*parts, strict=True)))


def _ingredients(
    benchmark,
    tuning,
    ability,
    share,
    relatives,
    answers,
    modelled,
    positions,
    naive_weights,
    corrected,
    exclude,
) -> Ingredients:
    items = benchmark.items
    asked = items.discrimination[positions], items.difficulty[positions]

    def irt(precision: np.ndarray) -> tuple[Abilities, ScenarioScores, Predicted]:
        abilities = estimate_abilities(ability, modelled, *asked, precision)
        found = scenario_scores(
            answers,
            positions,
            naive_weights,
            abilities.ability,
            items.discrimination,
            items.difficulty,
            benchmark.weights,
            benchmark.scenario,
        )
        return abilities, found, pirt_scores(found, abilities.covariance)

    wide = wide_precision(benchmark)
    likelihood, alone_share = None, np.zeros(len(answers))
    if relatives is None:
        abilities, found, predicted = irt(items.prior_precision)
        base = irt(wide)[2] if corrected else predicted
    else:
        abilities, found, alone = irt(wide)
        likely = abilities
        if ability == "mle":
            likely = likely_abilities(benchmark, modelled, positions)
        evidence = kin_evidence(benchmark, relatives, answers, positions, likely, exclude)
        likelihood = evidence.relatives
        kin = kinship(likelihood, evidence.none, relatives.prior, share)
        alone_share = kin.none
        base = predicted = _with_relatives(
            benchmark, relatives, kin, found, alone, answers, positions
        )
    residual = noise = None
    if corrected:
        folds = _Folds(benchmark, answers, modelled, positions, asked, wide)
        expected = folds.expected(relatives, likelihood, share)
        residual, noise = _residuals(
            answers, expected, naive_weights, benchmark.scenario[positions], found.pirt.shape[1]
        )
        noise = noise * tuning.dispersion
    return Ingredients(found, predicted, base, residual, noise, alone_share, abilities.bounded)


def _with_relatives(
    benchmark, relatives, kin, found: ScenarioScores, predicted: Predicted, answers, positions
) -> Predicted:
    """The mixture of p-IRT and of the relatives' scores."""
    training, n_scenarios = benchmark.training, found.pirt.shape[1]
    seen = ~np.isnan(answers)
    weights, scenario = benchmark.weights[positions], benchmark.scenario[positions]
    each = kin.weights.sum(axis=2)
    score, variance = np.empty_like(found.pirt), np.empty_like(found.pirt)
    total = np.zeros(each.shape)  # overall score with each relative
    total_noise = np.zeros(len(answers))
    squares = np.bincount(benchmark.scenario, benchmark.weights**2, n_scenarios)
    for s in range(n_scenarios):
        own = scenario == s
        shown = seen[:, own] * weights[own]
        known, left = found.known[:, [s]], 1.0 - found.asked_weight[:, [s]]
        rest = training.scores[:, s] - shown @ relatives.responses[:, own].T
        # Of items that are no anchors a relative's answer is not known, only expected.
        with_relative = known + np.clip(rest, 0.0, np.maximum(left, 0.0))
        score[:, s] = (each * with_relative).sum(axis=1) + kin.none * predicted.score[:, s]
        hidden = 1.0 - (seen[:, own] @ weights[own] ** 2) / squares[s]
        noise = np.einsum("lne,ne->l", kin.weights, training.noise[:, s]) * np.maximum(hidden, 0.0)
        variance[:, s] = _mixture_variance(
            each,
            with_relative,
            score[:, s],
            kin.none,
            predicted.score[:, s],
            predicted.variance[:, s],
        )
        variance[:, s] += noise
        total += with_relative / n_scenarios
        total_noise += noise / n_scenarios**2
    overall = score.mean(axis=1)
    overall_variance = total_noise + _mixture_variance(
        each, total, overall, kin.none, predicted.overall_score, predicted.overall_variance
    )
    return Predicted(score, variance, overall, overall_variance)


def _mixture_variance(each, values, mean, none, other, other_variance):
    between = (each * (values - mean[:, None]) ** 2).sum(axis=1)
    return between + none * ((other - mean) ** 2 + other_variance)


class _Folds:
    """Predictions of every answer from the answers in the other folds of the anchors."""

    def __init__(self, benchmark, answers, modelled, positions, asked, precision):
        self.answers, self.asked, self.precision = answers, asked, precision
        self.fold = np.empty(len(positions), dtype=int)
        for s in range(benchmark.scenario.max() + 1):
            own = benchmark.scenario[positions] == s
            self.fold[own] = np.arange(own.sum()) % N_FOLDS
        hidden = np.tile(modelled, (N_FOLDS, 1, 1))
        for f in range(N_FOLDS):
            hidden[f][:, self.fold == f] = np.nan
        flat = hidden.reshape(-1, modelled.shape[1])
        self.abilities = map_abilities(flat, *asked, prior_precision=precision)

    def expected(self, relatives, likelihood, share) -> np.ndarray:
        n_models = len(self.answers)
        out = np.empty(self.answers.shape)
        for f in range(N_FOLDS):
            rows = slice(f * n_models, (f + 1) * n_models)
            own = self.fold == f
            ability = self.abilities.ability[rows]
            chance = expit(ability @ self.asked[0][own].T - self.asked[1][own])
            out[:, own] = chance
            if relatives is None or not own.any():
                continue
            part = Relatives(
                relatives.responses[:, own], relatives.probabilities[:, own], relatives.prior
            )
            others = self.answers.copy()
            others[:, own] = np.nan
            none = none_evidence(
                others, ability, self.abilities.covariance[rows], *self.asked, self.precision
            )
            left = likelihood - copy_log_likelihood(self.answers[:, own], part)
            kin = kinship(left, none, relatives.prior, share)
            copied = (kin.weights * (1.0 - DISTANCES)).sum(axis=2)
            drawn = (kin.weights * DISTANCES).sum(axis=2)
            out[:, own] = (
                copied @ part.responses + drawn @ part.probabilities + kin.none[:, None] * chance
            )
        return out


def _residuals(answers, expected, weights, scenario, n_scenarios):
    """Weighted mean residual of each scenario's anchors, and the variance of its noise."""
    seen = ~np.isnan(answers)
    difference = np.where(seen, answers - expected, 0.0)
    spread = np.where(seen, np.maximum(expected * (1.0 - expected), 1e-3), 0.0)
    members = np.zeros((len(weights), n_scenarios))
    members[np.arange(len(weights)), scenario] = weights
    mass = seen @ members
    some = np.where(mass > 0, mass, 1.0)
    residual = (difference @ members) / some
    variance = np.where(mass > 0, (spread @ members**2) / some**2, np.inf)
    return residual, variance


def _scores_and_stds(tuning, found, predicted) -> list[dict]:
    """Naive and predicted scores and standard errors, by scenario and overall."""
    n_scenarios = found.pirt.shape[1]
    sampled = naive_variance(found, tuning.variance)
    return [
        {"naive": found.naive, "pirt": predicted.score},
        {"naive": np.sqrt(sampled), "pirt": np.sqrt(predicted.variance)},
        {"naive": found.naive.mean(axis=1), "pirt": predicted.overall_score},
        {
            "naive": np.sqrt(sampled.sum(axis=1)) / n_scenarios,
            "pirt": np.sqrt(predicted.overall_variance),
        },
    ]


def mix(tuning: Tuning, settings: Settings, parts: Ingredients) -> Estimates:
    """gp-IRT from its ingredients: with the naive mean, or corrected by the residual.

    Parameters
    ----------
    tuning : Tuning
    settings : Settings
        Residuals are needed for the robust mixing, and for a number with relatives.
    parts : Ingredients

    Returns
    -------
    Estimates
    """
    scores, stds, overall_scores, overall_stds = _scores_and_stds(
        tuning, parts.found, parts.predicted
    )
    corrected = settings.mixing == "robust" or (settings.share > 0 and settings.mixing != "paper")
    blend = _corrected if corrected else _mixed_with_naive
    mixing, score, std, overall, overall_std = blend(tuning, settings, parts, stds, overall_stds)
    scores["gpirt"], stds["gpirt"] = score, std
    overall_scores["gpirt"], overall_stds["gpirt"] = overall, overall_std
    return Estimates(
        parts.found.n_asked, scores, stds, overall_scores, overall_stds, mixing, parts.bounded
    )


def _corrected(tuning, settings, parts, stds, overall_stds):
    """The prediction, corrected by a share of the anchors' residual."""
    found, base, residual, noise = parts.found, parts.base, parts.residual, parts.noise
    if settings.mixing == "robust":
        usual = tuning.usual_bias[int(settings.share > 0)]
        unlike = (UNLIKE + (UNLIKE_NONE - UNLIKE) * parts.none)[:, None]
        mixing, bias_variance = robust_mixing(residual, noise, usual, unlike)
    else:
        mixing = np.where(found.n_weighted > 0, float(settings.mixing), 0.0)
        bias_variance = mixing**2 * np.where(np.isfinite(noise), noise, 0.0)
    left = np.maximum(1.0 - found.asked_weight, 0.0)
    more = left**2 * bias_variance
    # Whatever the rest is, its answers are in [0, 1].
    score = np.clip(base.score + left * mixing * residual, found.known, found.known + left)
    return (
        mixing,
        score,
        np.sqrt(base.variance + more),
        score.mean(axis=1),
        np.sqrt(base.overall_variance + more.sum(axis=1) / more.shape[1] ** 2),
    )


def _mixed_with_naive(tuning, settings, parts, stds, overall_stds):
    """The mean of the naive score and the prediction (paper, equation 4.4)."""
    found, predicted = parts.found, parts.predicted
    some = found.n_weighted > 0
    if settings.mixing == "paper":
        # p-IRT errs on what was not asked only, so answers beyond the anchors lower its bias.
        left, beyond = 1.0 - found.asked_weight, 1.0 - found.anchor_weight
        share = np.divide(left, beyond, out=np.ones_like(left), where=beyond > 1e-9)
        bias = tuning.bias * np.where(share > 1e-9, share, 0.0)
        mixing = paper_mixing(bias, tuning.variance, found.n_weighted, tuning.gain)
    else:
        mixing = np.where(some, float(settings.mixing), 0.0)
    naive_std = np.where(some, stds["naive"], 0.0)
    score = mixing * np.where(some, found.naive, 0.0) + (1.0 - mixing) * predicted.score
    # Both see the same answers: their errors are taken as fully correlated.
    overall_std = (
        np.sqrt(((mixing * naive_std) ** 2).sum(axis=1)) / mixing.shape[1]
        + (1.0 - mixing).mean(axis=1) * overall_stds["pirt"]
    )
    std = mixing * naive_std + (1.0 - mixing) * stds["pirt"]
    return mixing, score, std, score.mean(axis=1), overall_std
