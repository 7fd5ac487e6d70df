"""Relatives: likelihoods, evidence and posteriors against loops and integrals."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from sklearn_irt.kernels import relatives as module
from sklearn_irt.kernels.logistic import map_abilities
from sklearn_irt.kernels.relatives import (
    CLIP,
    DISTANCES,
    Relatives,
    copy_log_likelihood,
    copy_probabilities,
    kin_blocks,
    kinship,
    learn_share,
    make_relatives,
    none_evidence,
    twins,
)


def make_case(seed, n_models=6, n_training=5, n_items=9, fractional=False, missing=0.3):
    """Answers of new models and training models with what is known of them."""
    rng = np.random.default_rng(seed)
    responses = rng.random((n_training, n_items))
    answers = rng.random((n_models, n_items))
    if not fractional:
        responses, answers = (responses < 0.6).astype(float), (answers < 0.6).astype(float)
    answers[rng.random(answers.shape) < missing] = np.nan
    probabilities = rng.uniform(0.05, 0.95, size=responses.shape)
    scores = rng.random((n_training, 2))
    return answers, make_relatives(responses, probabilities, twins(responses, scores))


def loop_log_likelihood(answers, relatives):
    out = np.zeros((len(answers), len(relatives.prior), len(DISTANCES)))
    for row, model in enumerate(answers):
        for t in range(len(relatives.prior)):
            for e, distance in enumerate((0.3, 0.6, 1.0)):
                for item, y in enumerate(model):
                    if math.isnan(y):
                        continue
                    copied, drawn = relatives.responses[t, item], relatives.probabilities[t, item]
                    q = (1 - distance) * copied + distance * drawn
                    q = min(max(q, 0.001), 0.999)
                    out[row, t, e] += y * math.log(q) + (1 - y) * math.log(1 - q)
    return out


@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.4, 1.0])
def test_log_likelihood_of_copies_is_that_of_the_loops(fractional, missing):
    answers, relatives = make_case(0, fractional=fractional, missing=missing)
    expected = loop_log_likelihood(answers, relatives)
    np.testing.assert_allclose(copy_log_likelihood(answers, relatives), expected, atol=1e-12)
    assert (expected == 0).all() == (missing == 1.0)


def test_no_copy_is_certain():
    sure = Relatives(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0]]), np.ones(1))
    for distance in DISTANCES:
        np.testing.assert_array_equal(copy_probabilities(sure, distance), [[1 - CLIP, CLIP]])
    wrong = copy_log_likelihood(np.array([[0.0, 1.0]]), sure)
    np.testing.assert_allclose(wrong, 2 * math.log(CLIP))


def test_what_a_training_model_was_not_asked_is_as_likely_as_the_model_says():
    responses = np.array([[1.0, np.nan], [np.nan, 0.0]])
    probabilities = np.array([[0.3, 0.4], [0.0, 1.0]])
    relatives = make_relatives(responses, probabilities, np.arange(2))
    np.testing.assert_array_equal(relatives.responses, [[1.0, 0.4], [0.0, 0.0]])
    np.testing.assert_array_equal(relatives.probabilities, [[0.3, 0.4], [CLIP, 1 - CLIP]])
    np.testing.assert_array_equal(relatives.prior, [0.5, 0.5])
    at_any_distance = copy_log_likelihood(np.array([[np.nan, 1.0]]), relatives)[0, 0]
    np.testing.assert_allclose(at_any_distance, math.log(0.4))


def test_twins_share_a_weight():
    responses = np.array([[1, 0], [1, np.nan], [1, 0], [0, 0], [1, np.nan], [1, 0]], dtype=float)
    scores = np.array([[0.5], [0.5], [0.5], [0.5], [0.5], [0.7]])
    group = twins(responses, scores)
    assert group[0] == group[2] and group[1] == group[4] and len(set(group)) == 4
    prior = make_relatives(responses, np.full((6, 2), 0.5), twins(responses, scores)).prior
    np.testing.assert_allclose(prior, [1 / 8, 1 / 8, 1 / 8, 1 / 4, 1 / 8, 1 / 4])
    assert prior.sum() == pytest.approx(1.0)


def test_no_training_model_is_no_relative():
    nobody = make_relatives(np.empty((0, 3)), np.empty((0, 3)), np.empty(0, dtype=int))
    assert nobody.prior.shape == (0,)
    likelihood = copy_log_likelihood(np.ones((2, 3)), nobody)
    kin = kinship(likelihood, np.zeros(2), nobody.prior, 0.5)
    assert kin.weights.shape == (2, 0, 3)
    # The share that stands for relatives is left to none.
    np.testing.assert_allclose(kin.none, 1.0)


@pytest.mark.parametrize("n_asked", [4, 12, 60])
@pytest.mark.parametrize("precision", [0.25, 1.0, 3.0])
def test_evidence_of_none_is_near_the_integral_over_the_ability(n_asked, precision):
    rng = np.random.default_rng(n_asked)
    loadings, difficulty = rng.uniform(0.3, 1.2, size=(n_asked, 1)), rng.normal(size=n_asked)
    ability = rng.normal(size=(5, 1))
    answers = (rng.random((5, n_asked)) < expit(ability @ loadings.T - difficulty)).astype(float)
    answers[1] = 1.0
    answers[2, ::3] = np.nan
    answers[3] = rng.random(n_asked)
    prior = np.array([[precision]])
    fit = map_abilities(answers, loadings, difficulty, prior_precision=prior)
    found = none_evidence(answers, fit.ability, fit.covariance, loadings, difficulty, prior)
    for row, model in enumerate(answers):
        seen = ~np.isnan(model)

        def density(
            theta, model=model[seen], a=loadings[seen, 0], b=difficulty[seen], level=found[row]
        ):
            logit = a * theta - b
            likelihood = (model * logit - np.logaddexp(0, logit)).sum()
            return np.exp(likelihood - level) * norm.pdf(theta, scale=precision**-0.5)

        # Laplace's method errs by a few per cent, less the more is known.
        total = quad(density, -15, 15, limit=500, points=[float(fit.ability[row, 0])])[0]
        assert math.log(total) == pytest.approx(0.0, abs=0.08 if n_asked < 60 else 0.02)


def test_evidence_without_answers_is_one():
    answers = np.full((2, 4), np.nan)
    precision = np.array([[2.0, 0.3], [0.3, 1.0]])
    items = np.random.default_rng(0).normal(size=(4, 2)), np.zeros(4)
    fit = map_abilities(answers, *items, prior_precision=precision)
    found = none_evidence(answers, fit.ability, fit.covariance, *items, precision)
    np.testing.assert_allclose(found, 0.0, atol=1e-12)


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_kinship_is_bayes_rule(share):
    answers, relatives = make_case(1)
    likelihood = copy_log_likelihood(answers, relatives)
    none = np.random.default_rng(1).normal(-5, 1, size=len(answers))
    kin = kinship(likelihood, none, relatives.prior, share)
    np.testing.assert_allclose(kin.weights.sum(axis=(1, 2)) + kin.none, 1.0, rtol=1e-12)
    for row in range(len(answers)):
        joint = np.exp(likelihood[row]) * share * relatives.prior[:, None] / 3
        rest = math.exp(none[row]) * (1 - share)
        total = joint.sum() + rest
        np.testing.assert_allclose(kin.weights[row], joint / total, rtol=1e-10)
        assert kin.none[row] == pytest.approx(rest / total, rel=1e-10)


@pytest.mark.filterwarnings("error")
def test_without_a_share_nobody_has_a_relative():
    answers, relatives = make_case(2)
    likelihood = copy_log_likelihood(answers, relatives)
    kin = kinship(likelihood, np.full(len(answers), -900.0), relatives.prior, 0.0)
    np.testing.assert_array_equal(kin.weights, 0.0)
    np.testing.assert_array_equal(kin.none, 1.0)


@pytest.mark.filterwarnings("error")
def test_likelihoods_far_below_rounding_are_no_matter():
    answers, relatives = make_case(3)
    likelihood = copy_log_likelihood(answers, relatives)
    none = np.full(len(answers), -6.0)
    kin = kinship(likelihood, none, relatives.prior, 0.6)
    far = kinship(likelihood - 1e5, none - 1e5, relatives.prior, 0.6)
    np.testing.assert_allclose(far.weights, kin.weights, rtol=1e-8)
    np.testing.assert_allclose(far.none, kin.none, rtol=1e-8)


@pytest.mark.filterwarnings("error")
def test_an_excluded_model_has_no_weight_and_the_others_share_the_rest():
    answers, relatives = make_case(4)
    likelihood = copy_log_likelihood(answers, relatives)
    none = np.full(len(answers), -6.0)
    kin = kinship(likelihood, none, relatives.prior, 0.6)
    likelihood[:, 2] = -np.inf
    without = kinship(likelihood, none, relatives.prior, 0.6)
    np.testing.assert_array_equal(without.weights[:, 2], 0.0)
    left = 1.0 - kin.weights[:, 2].sum(axis=1)
    np.testing.assert_allclose(without.none, kin.none / left, rtol=1e-10)
    kept = [0, 1, 3, 4]
    np.testing.assert_allclose(
        without.weights[:, kept], kin.weights[:, kept] / left[:, None, None], rtol=1e-10
    )


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_share_of_simulated_models_is_learned(share):
    """600 new models, some copies of one of 20 training models and the others unlike any."""
    rng = np.random.default_rng(7)
    probabilities = rng.uniform(0.05, 0.95, size=(20, 60))
    responses = (rng.random((20, 60)) < probabilities).astype(float)
    relatives = make_relatives(responses, probabilities, np.arange(20))
    answers = (rng.random((600, 60)) < 0.5).astype(float)
    for row in np.flatnonzero(rng.random(600) < share):
        parent, distance = rng.integers(20), rng.choice(DISTANCES)
        drawn = (rng.random(60) < probabilities[parent]).astype(float)
        answers[row] = np.where(rng.random(60) < distance, drawn, responses[parent])
    none = np.full(600, 60 * math.log(0.5))
    found = learn_share(copy_log_likelihood(answers, relatives), none, relatives.prior)
    assert found == pytest.approx(share, abs=0.06)


def test_the_learned_share_is_a_maximum_of_the_penalised_likelihood():
    answers, relatives = make_case(5, n_models=40)
    likelihood = copy_log_likelihood(answers, relatives)
    none = np.random.default_rng(5).normal(-4, 1, size=40)
    found = learn_share(likelihood, none, relatives.prior)
    alike = np.exp(likelihood + np.log(relatives.prior / 3)[:, None]).sum(axis=(1, 2))

    def objective(share):
        total = np.log(share * alike + (1 - share) * np.exp(none)).sum()
        return total + math.log(share) + math.log(1 - share)

    grid = np.linspace(0.001, 0.999, 999)
    assert found == pytest.approx(grid[np.argmax([objective(s) for s in grid])], abs=0.02)


def test_the_share_is_never_zero_or_one():
    sure = np.zeros((50, 3, 3))
    prior = np.full(3, 1 / 3)
    assert 0.9 < learn_share(sure, np.full(50, -1e3), prior) < 1.0
    assert 0.0 < learn_share(sure - 1e3, np.zeros(50), prior) < 0.1


@pytest.mark.parametrize("n_models, n_training", [(0, 5), (1, 5), (10, 0), (10, 3), (7, 10**9)])
def test_blocks_cover_every_row_once_within_the_workspace(monkeypatch, n_models, n_training):
    monkeypatch.setattr(module, "BLOCK_ELEMENTS", 30)
    blocks = kin_blocks(n_models, n_training)
    rows = [row for block in blocks for row in range(block.start, block.stop)]
    assert rows == list(range(n_models))
    assert all(
        (block.stop - block.start) * n_training * 3 <= 30 or block.stop - block.start == 1
        for block in blocks
    )
