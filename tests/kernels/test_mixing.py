"""Bias, variance and lambda of gp-IRT against explicit loops."""

import numpy as np
import pytest

from sklearn_irt.kernels import logistic, mixing
from sklearn_irt.kernels.logistic import ItemModel
from sklearn_irt.kernels.mixing import paper_mixing, prediction_bias, response_variance


def loop_variance(responses, weights):
    variances = []
    for row in responses:
        seen = [(w, y) for w, y in zip(weights, row, strict=True) if not np.isnan(y)]
        mass = sum(w for w, _ in seen)
        if mass > 0:
            mean = sum(w * y for w, y in seen) / mass
            left = 1 - sum((w / mass) ** 2 for w, _ in seen)  # (n - 1) / n for equal weights
            if left > 1e-9:
                variances.append(sum(w * (y - mean) ** 2 for w, y in seen) / mass / left)
    return sum(variances) / len(variances)


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("elements", [4_000_000, 20])
def test_variance_is_the_weighted_variance_of_what_was_seen(monkeypatch, missing, elements):
    monkeypatch.setattr(logistic, "BLOCK_ELEMENTS", elements)
    rng = np.random.default_rng(0)
    responses, weights = rng.random((17, 9)), rng.dirichlet(np.ones(9))
    weights[2] = 0.0
    responses[rng.random((17, 9)) < missing] = np.nan
    responses[4] = np.nan
    expected = loop_variance(responses, weights)
    assert response_variance(responses, weights) == pytest.approx(expected, rel=1e-12)


def test_variance_of_equal_weights_is_numpys_sample_variance():
    rng = np.random.default_rng(1)
    responses = (rng.random((30, 50)) < 0.3).astype(float)
    computed = response_variance(responses, np.full(50, 1 / 50))
    assert computed == pytest.approx(responses.var(axis=1, ddof=1).mean(), rel=1e-12)


def test_variance_of_few_answers_is_not_biased():
    rng = np.random.default_rng(3)
    responses = (rng.random((4000, 50)) < 0.3).astype(float)
    order = rng.random(responses.shape).argsort(axis=1)
    responses[order >= 2] = np.nan  # two answers a model
    assert response_variance(responses, np.full(50, 1 / 50)) == pytest.approx(0.21, abs=0.01)


def test_variance_does_not_depend_on_the_scale_of_the_weights_nor_on_unweighted_items():
    rng = np.random.default_rng(2)
    responses, weights = rng.random((6, 8)), rng.random(8)
    computed = response_variance(responses, weights)
    assert response_variance(responses, 7 * weights) == pytest.approx(computed, rel=1e-12)
    wider = np.hstack([responses, rng.random((6, 3))])
    assert response_variance(wider, np.r_[weights, np.zeros(3)]) == pytest.approx(computed)


@pytest.mark.filterwarnings("error")
def test_variance_is_the_largest_without_responses_and_never_zero():
    assert response_variance(np.full((3, 4), np.nan), np.full(4, 0.25)) == 0.25
    only_unweighted = np.array([[1.0, np.nan], [0.0, np.nan]])
    assert response_variance(only_unweighted, np.array([0.0, 1.0])) == 0.25
    assert response_variance(np.ones((3, 4)), np.full(4, 0.25)) == 0.001


class Recorder:
    """Fits nothing: hands out fixed items and remembers which models it was given."""

    def __init__(self, n_items, n_dims, seed):
        rng = np.random.default_rng(seed)
        self.model = ItemModel(
            rng.normal(size=(n_items, n_dims)), rng.normal(size=n_items), 2.0 * np.eye(n_dims)
        )
        self.seen = []

    def __call__(self, responses):
        self.seen.append(responses.copy())
        return self.model


def tagged_responses(n_models, n_items, seed, missing=0.0):
    """Every row is recognised by its first column, which is never missing."""
    rng = np.random.default_rng(seed)
    responses = rng.random((n_models, n_items))
    hidden = rng.random((n_models, n_items)) < missing
    hidden[:, 0] = False
    responses[hidden] = np.nan
    return responses


@pytest.mark.parametrize("kind", ["map", "mle"])
@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("elements", [4_000_000, 60])
def test_bias_is_the_mean_absolute_error_on_the_other_half(monkeypatch, kind, missing, elements):
    """The split is read off the calls; everything after it is computed in loops."""
    n_models, n_items, n_dims = 15, 24, 2
    responses = tagged_responses(n_models, n_items, 3, missing)
    responses[6, 1:] = np.nan
    rng = np.random.default_rng(4)
    scenario = rng.integers(0, 2, size=n_items)
    scenario[:2] = 0, 1
    weights = np.array([np.where(scenario == s, rng.random(n_items), 0.0) for s in range(2)])
    weights /= weights.sum(axis=1, keepdims=True)
    fit = Recorder(n_items, n_dims, 5)
    calls = []
    original = mixing.estimate_abilities

    def spy(name, known, discrimination, difficulty, precision):
        calls.append((name, known.copy(), difficulty.copy(), precision))
        return original(name, known, discrimination, difficulty, precision)

    monkeypatch.setattr(mixing, "estimate_abilities", spy)
    monkeypatch.setattr(logistic, "BLOCK_ELEMENTS", elements)
    computed, items, test_rows = prediction_bias(
        responses, weights, fit, np.random.RandomState(0), kind
    )

    assert len(fit.seen) == 1
    train = {float(tag) for tag in fit.seen[0][:, 0]}
    test = [row for row in range(n_models) if float(responses[row, 0]) not in train]
    assert len(train) == 8 and len(test) == 7
    assert items is fit.model
    np.testing.assert_array_equal(test_rows, test)
    asked = [i for i in range(n_items) if fit.model.difficulty[i] in calls[0][2]]
    for s in range(2):
        size = int((scenario == s).sum())
        assert sum(scenario[i] == s for i in asked) == (size + 1) // 2
    assert all(name == kind for name, *_ in calls)
    assert all((precision == fit.model.prior_precision).all() for *_, precision in calls)
    assert sum(len(known) for _, known, *_ in calls) == len(test)

    errors = [[], []]
    for row in test:
        theta = original(
            kind,
            responses[row : row + 1, asked],
            fit.model.discrimination[asked],
            fit.model.difficulty[asked],
            fit.model.prior_precision,
        ).ability[0]
        for s in range(2):
            truth = predicted = mass = 0.0
            for i in range(n_items):
                if scenario[i] == s and i not in asked and not np.isnan(responses[row, i]):
                    logit = fit.model.discrimination[i] @ theta - fit.model.difficulty[i]
                    truth += weights[s, i] * responses[row, i]
                    predicted += weights[s, i] / (1.0 + np.exp(-logit))
                    mass += weights[s, i]
            if mass > 0:
                errors[s].append(abs(truth - predicted) / mass)
    assert computed.shape == (2,)
    np.testing.assert_allclose(computed, [np.mean(e) for e in errors], rtol=1e-9)


def test_bias_of_the_model_that_made_the_responses_is_small_and_of_a_wrong_one_is_not():
    rng = np.random.default_rng(6)
    loadings, difficulty = rng.normal(1.0, 0.3, size=(400, 1)), rng.normal(size=400)
    ability = rng.normal(size=(40, 1))
    responses = 1.0 / (1.0 + np.exp(difficulty - ability @ loadings.T))
    weights = np.full((1, 400), 1 / 400)
    right = ItemModel(loadings, difficulty, 1e-6 * np.eye(1))
    wrong = ItemModel(loadings, difficulty + np.where(np.arange(400) % 2, 2.0, 0.5), np.eye(1))
    good, _, _ = prediction_bias(responses, weights, lambda _: right, np.random.RandomState(0))
    bad, _, _ = prediction_bias(responses, weights, lambda _: wrong, np.random.RandomState(0))
    assert good[0] < 1e-6
    assert bad[0] > 1e-3


@pytest.mark.filterwarnings("error")
def test_bias_that_cannot_be_measured_is_zero():
    fit = Recorder(4, 1, 7)
    rng = np.random.RandomState(0)
    bias, _, test = prediction_bias(np.ones((1, 4)), np.full((1, 4), 0.25), fit, rng)
    np.testing.assert_array_equal(bias, [0.0])
    assert len(test) == 0
    # The second scenario has one item, which is asked: nothing is left to predict.
    weights = np.array([[1 / 3, 1 / 3, 1 / 3, 0.0], [0.0, 0.0, 0.0, 1.0]])
    bias, _, _ = prediction_bias(np.ones((6, 4)), weights, fit, rng)
    assert bias[0] > 0.0 and bias[1] == 0.0


def test_bias_depends_on_the_random_state_alone():
    responses = tagged_responses(20, 30, 8)
    weights = np.full((1, 30), 1 / 30)
    fit = Recorder(30, 2, 9)
    first = prediction_bias(responses, weights, fit, np.random.RandomState(3))
    again = prediction_bias(responses, weights, fit, np.random.RandomState(3))
    other = prediction_bias(responses, weights, fit, np.random.RandomState(4))
    assert first[0] == again[0] and first[0] != other[0]
    np.testing.assert_array_equal(first[2], again[2])
    assert (first[2] != other[2]).any()


def test_paper_mixing_is_the_formula():
    rng = np.random.default_rng(10)
    for _ in range(50):
        bias, variance, gain = rng.uniform(0.001, 0.2), rng.uniform(0.01, 0.25), rng.choice([1, 4])
        n_asked = rng.integers(1, 200)
        expected = bias**2 / (variance / (gain * n_asked) + bias**2)
        computed = paper_mixing(bias, variance, np.array([n_asked]), float(gain))
        np.testing.assert_allclose(computed, [expected], rtol=1e-13)


def test_paper_mixing_broadcasts_scenarios_over_models():
    bias, variance = np.array([0.01, 0.05, 0.1]), np.array([0.2, 0.1, 0.25])
    n_asked = np.array([[1, 10, 100], [0, 5, 1000]])
    computed = paper_mixing(bias, variance, n_asked, 4.0)
    assert computed.shape == (2, 3)
    for row in range(2):
        for s in range(3):
            n = n_asked[row, s]
            expected = bias[s] ** 2 / (variance[s] / (4 * n) + bias[s] ** 2) if n else 0.0
            assert computed[row, s] == pytest.approx(expected, rel=1e-13)


@pytest.mark.filterwarnings("error")
def test_paper_mixing_at_the_edges():
    assert paper_mixing(0.1, 0.2, np.array([0]), 4.0)[0] == 0.0  # nothing asked: no mean
    assert paper_mixing(0.0, 0.2, np.array([10]), 4.0)[0] == 0.0  # no bias: p-IRT alone
    assert paper_mixing(0.1, 0.0, np.array([10]), 4.0)[0] == 1.0  # no variance: the mean alone
    assert paper_mixing(0.0, 0.0, np.array([10]), 4.0)[0] == 0.0  # both exact: p-IRT


def test_paper_mixing_rises_with_the_answers_with_the_gain_and_with_the_bias():
    n_asked = np.arange(1, 500)
    few, many = (paper_mixing(0.03, 0.2, n_asked, gain) for gain in (1.0, 4.0))
    assert (np.diff(few) > 0).all() and (few < many).all() and (many < 1).all()
    np.testing.assert_allclose(few[3::4], many[: len(few[3::4])], rtol=1e-12)
    assert (paper_mixing(0.04, 0.2, n_asked, 1.0) > few).all()
