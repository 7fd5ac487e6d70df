"""What is learned from training models that were left out."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from sklearn_irt.kernels import tuning as module
from sklearn_irt.kernels.benchmark import Benchmark, Training, copy_noise
from sklearn_irt.kernels.estimates import Settings, Tuning, estimate
from sklearn_irt.kernels.logistic import ItemModel, map_abilities
from sklearn_irt.kernels.mixing import robust_mixing
from sklearn_irt.kernels.tuning import KINDS, HeldOut, tune


def simulated(seed, n_models=60, n_items=80, n_anchors=20, n_scenarios=1, families=0, bias=0.0):
    """A benchmark with known items; `families` of near copies; some models all of one score."""
    rng = np.random.default_rng(seed)
    loadings, difficulty = rng.uniform(0.5, 1.5, size=(n_items, 1)), rng.normal(size=n_items)
    ability = rng.normal(size=(n_models, 1))
    responses = (rng.random((n_models, n_items)) < expit(ability @ loadings.T - difficulty)) * 1.0
    for row in range(families, n_models if families else 0):
        copied = rng.random(n_items) < 0.8
        responses[row, copied] = responses[row % families, copied]
    scenario = np.arange(n_items) % n_scenarios
    weights = 1.0 / np.bincount(scenario)[scenario]
    anchors = np.sort(rng.permutation(n_items)[:n_anchors])
    items = ItemModel(loadings, difficulty + bias, np.eye(1))
    fit = map_abilities(responses, loadings, difficulty + bias, prior_precision=np.eye(1)).ability
    chance = expit(fit @ loadings.T - difficulty - bias)
    members = np.zeros((n_items, n_scenarios))
    members[np.arange(n_items), scenario] = weights
    scores = responses @ members
    noise = copy_noise(responses, chance, weights, scenario)
    training = Training(fit, responses[:, anchors], scores, noise)
    benchmark = Benchmark(items, scenario, weights, anchors, training)
    figures = Tuning(
        np.full(n_scenarios, 0.03),
        np.full(n_scenarios, 0.2),
        1.0,
        np.zeros((2, n_scenarios)),
        np.ones(n_scenarios),
        0.0,
    )
    fold = np.arange(n_models) % 2
    held_out = HeldOut([items, items], fold)
    naive_weights = 1.0 / np.bincount(scenario[anchors], minlength=n_scenarios)[scenario[anchors]]
    observed = np.ones((n_models, n_scenarios))
    return benchmark, held_out, figures, naive_weights, observed


def tuned(case, seed=0, ability="map"):
    benchmark, held_out, figures, weights, observed = case
    modelled = benchmark.training.responses
    rng = np.random.RandomState(seed)
    return tune(benchmark, held_out, figures, modelled, weights, observed, ability, rng)


@pytest.mark.parametrize("n_scenarios", [1, 2])
def test_shapes_and_ranges(n_scenarios):
    tuning, calibration, pairing = tuned(simulated(0, n_scenarios=n_scenarios))
    assert 0.0 < tuning.share < 1.0
    assert tuning.usual_bias.shape == (2, n_scenarios)
    assert np.isin(tuning.usual_bias, module.BIAS_GRID).all()
    assert calibration.shape == (7, n_scenarios + 1)
    assert pairing.shape == (7, n_scenarios + 1, 3)
    assert (calibration > 0.2).all() and (calibration < 5.0).all()
    assert np.isfinite(pairing).all() and (pairing[..., 2] > 0.2).all()
    if n_scenarios == 1:  # the whole is the one scenario
        np.testing.assert_allclose(calibration[:, 0], calibration[:, 1], rtol=1e-12)
    # The paper's figures are as they were.
    np.testing.assert_array_equal(tuning.bias, 0.03)
    np.testing.assert_array_equal(tuning.variance, 0.2)


def test_only_families_have_relatives():
    strangers, families = (tuned(simulated(1, families=f))[0].share for f in (0, 6))
    assert families > strangers and families > 0.75


def test_a_model_is_never_its_own_relative():
    """Left out and without a family, a model must not be explained by its own answers."""
    case = simulated(2, n_models=40)
    benchmark, held_out, figures, weights, observed = case
    settings = Settings("map", "paper", 0.6)
    errors = {}
    answers = benchmark.training.responses
    found = estimate(benchmark, figures, settings, answers, answers, benchmark.anchors, weights)
    errors["itself"] = np.abs(found.scores["pirt"] - benchmark.training.scores).mean()
    parts = module.ingredients(
        benchmark,
        figures,
        "map",
        0.6,
        answers,
        answers,
        benchmark.anchors,
        weights,
        corrected=False,
        exclude=np.arange(40),
    )
    left_out = np.concatenate([part.predicted.score for part in parts])
    errors["left out"] = np.abs(left_out - benchmark.training.scores).mean()
    assert errors["itself"] < 0.5 * errors["left out"]
    for row in range(0, 40, 7):  # as if the training models had not known it
        others = np.delete(np.arange(40), row)
        training = Training(*(values[others] for values in benchmark.training))
        kin_share = 39 / 40  # excluded, its share of the prior is lost
        share = 0.6 * kin_share / (0.6 * kin_share + 0.4)
        alone = estimate(
            benchmark._replace(training=training),
            figures,
            settings._replace(share=share),
            answers[[row]],
            answers[[row]],
            benchmark.anchors,
            weights,
        )
        np.testing.assert_allclose(alone.scores["pirt"][0], left_out[row], rtol=1e-9)


def test_wrong_items_give_a_larger_bias_and_wider_errors():
    right, wrong = (tuned(simulated(3, bias=b, n_anchors=30)) for b in (0.0, 4.0))
    assert wrong[0].usual_bias[0] >= right[0].usual_bias[0]
    row = KINDS.index(("pirt", None, False))
    assert wrong[1][row, 0] > 1.3 * right[1][row, 0]
    naive = KINDS.index(("naive", None, False))
    assert wrong[1][naive, 0] == pytest.approx(right[1][naive, 0], rel=1e-9)


def test_calibrated_errors_of_left_out_models_are_covered():
    """The calibration is the coverage factor of the errors of `estimate`, brute force."""
    case = simulated(4, n_models=120)
    benchmark, held_out, figures, weights, _ = case
    tuning, calibration, _ = tuned(case)
    answers = benchmark.training.responses
    for kind in ("naive", "pirt"):
        found = estimate(
            benchmark,
            tuning,
            Settings("map", "paper", 0.0),
            answers,
            answers,
            benchmark.anchors,
            weights,
        )
        error = np.abs(found.scores[kind] - benchmark.training.scores)[:, 0]
        z = error / found.stds[kind][:, 0]
        factor = np.quantile(z, 0.9 * (1 + 1 / 120)) / norm.ppf(0.95)
        expected = factor ** (120 / 125)
        row = KINDS.index((kind, None, False))
        assert calibration[row, 0] == pytest.approx(expected, rel=1e-6)
        covered = error <= norm.ppf(0.95) * calibration[row, 0] * found.stds[kind][:, 0]
        assert covered.mean() == pytest.approx(0.9, abs=0.04)


def test_scores_that_are_little_known_do_not_count():
    case = simulated(5, n_scenarios=2)
    benchmark, held_out, figures, weights, observed = case
    observed = observed.copy()
    observed[:, 1] = 0.3
    tuning, calibration, pairing = tuned((benchmark, held_out, figures, weights, observed))
    full = tuned(case)
    np.testing.assert_array_equal(calibration[:, 1:], 1.0)
    np.testing.assert_array_equal(pairing[:, 1:], np.tile([0.0, 0.0, 1.0], (7, 2, 1)))
    assert tuning.usual_bias[0, 0] == full[0].usual_bias[0, 0]
    assert np.isfinite(tuning.usual_bias).all()


def test_where_all_items_are_anchors_some_are_left_to_predict():
    case = simulated(6, n_items=40, n_anchors=40)
    tuning, calibration, _ = tuned(case)
    assert (calibration > 0.2).all() and (calibration < 5.0).all()
    assert not np.allclose(calibration[:, 0], 1.0)


def test_few_models_cost_no_error_and_say_little():
    case = simulated(7, n_models=3)
    tuning, calibration, pairing = tuned(case)
    assert 0.0 < tuning.share < 0.8
    assert (np.abs(np.log(calibration)) < 1.2).all()
    np.testing.assert_array_equal(pairing, np.tile([0.0, 0.0, 1.0], (7, 2, 1)))


def test_more_models_than_are_left_out(monkeypatch):
    monkeypatch.setattr(module, "MAX_HELD_OUT", 25)
    case = simulated(8)
    found = [tuned(case, seed) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(found[0][1], found[1][1])
    assert (found[0][1] != found[2][1]).any()  # other models are left out


@pytest.mark.parametrize("unlike", [0.15, 0.7])
@pytest.mark.parametrize("usual", [0.005, 0.03, 0.1])
def test_robust_mixing_is_the_posterior_of_the_bias(usual, unlike):
    """Prior (1 - e) N(0, usual^2) + e N(0, .15^2), the residual is the bias and its noise."""
    residual = np.array([-0.4, -0.05, 0.0, 0.01, 0.08, 0.3])
    bias = np.linspace(-1.5, 1.5, 30_001)
    prior = (1 - unlike) * norm.pdf(bias, scale=usual) + unlike * norm.pdf(bias, scale=0.15)
    for variance in (1e-4, 0.002, 0.02):
        found = robust_mixing(residual, np.full(6, variance), usual, unlike)
        for i, r in enumerate(residual):
            posterior = prior * norm.pdf(r - bias, scale=variance**0.5)
            posterior /= posterior.sum()
            mean = posterior @ bias
            assert found.share[i] * r == pytest.approx(mean, abs=1e-8)
            assert found.variance[i] == pytest.approx(posterior @ (bias - mean) ** 2, rel=1e-6)


def test_robust_mixing_without_answers_takes_the_bias_as_usual():
    found = robust_mixing(np.zeros(1), np.array([np.inf]), 0.02)
    assert found.share[0] == 0.0
    assert found.variance[0] == pytest.approx(0.02**2, rel=1e-12)


def test_robust_mixing_model_by_model():
    """Each has its own prior probability of being unlike the training models."""
    residual, noise = np.full((2, 3), 0.1), np.full((2, 3), 0.004)
    unlike, usual = np.array([[0.1], [0.8]]), np.array([0.005, 0.01, 0.05])
    found = robust_mixing(residual, noise, usual, unlike)
    for row in range(2):
        for s in range(3):
            alone = robust_mixing(np.array(0.1), np.array(0.004), usual[s], unlike[row, 0])
            assert found.share[row, s] == pytest.approx(float(alone.share), rel=1e-12)
            assert found.variance[row, s] == pytest.approx(float(alone.variance), rel=1e-12)
    assert (found.share[1] > found.share[0]).all()


def test_robust_mixing_is_symmetric_and_takes_more_of_larger_residuals():
    residual, noise = np.linspace(0, 0.6, 50), np.full(50, 0.002)
    up, down = robust_mixing(residual, noise, 0.01), robust_mixing(-residual, noise, 0.01)
    np.testing.assert_array_equal(up.share, down.share)
    assert (np.diff(up.share) >= -1e-12).all() and (up.share > 0).all() and (up.share < 1).all()
    exact = robust_mixing(residual, np.zeros(50), 0.01)
    np.testing.assert_allclose(exact.share, 1.0, atol=1e-6)
