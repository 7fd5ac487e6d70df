"""GPIRTEstimator.compare: differences of pairs of models."""

import numpy as np
import pytest
from gpirt_benches import DEFAULT, PAPER, kind
from scipy.stats import norm

from sklearn_irt import AnchorSelector, GPIRTEstimator
from sklearn_irt.datasets import make_responses


def test_a_model_compared_with_itself_does_not_differ(bench):
    for settings in (PAPER, DEFAULT):
        estimator = kind(bench.estimator, "gpirt", **settings)
        table = estimator.compare(bench.answers, bench.answers)
        n_rows = bench.n_scenarios + (bench.n_scenarios > 1)
        assert len(table) == len(bench.answers) * n_rows
        np.testing.assert_array_equal(table["difference"], 0.0)
        np.testing.assert_array_equal(table["probability_lower"], 0.5)
        assert (table["std_error"] > 0).all()
        np.testing.assert_allclose(table["low"], -table["high"], atol=1e-15)


def test_compare_is_antisymmetric_and_that_of_the_estimates(bench):
    estimator = kind(bench.estimator, "gpirt", **DEFAULT)
    a, b = bench.all_answers[:10], bench.all_answers[10:]
    one, two = estimator.compare(a, b, 0.8), estimator.compare(b, a, 0.8)
    assert list(one.columns) == [
        "a",
        "b",
        "difference",
        "std_error",
        "low",
        "high",
        "probability_lower",
    ]
    assert one.index.names == ["a", "b", "scenario"]
    np.testing.assert_allclose(one["difference"], -two["difference"], atol=1e-15)
    np.testing.assert_allclose(one["std_error"], two["std_error"], rtol=1e-12)
    np.testing.assert_allclose(one["low"], -two["high"], atol=1e-12)
    # Their sum: the difference of a number near 1 from 1 has no digits left.
    both = one["probability_lower"] + two["probability_lower"]
    np.testing.assert_allclose(both, 1.0, rtol=1e-14)
    np.testing.assert_allclose(one["difference"], one["a"] - one["b"], atol=1e-15)
    half = norm.ppf(0.9) * one["std_error"]
    np.testing.assert_allclose(one["high"], one["difference"] + half)
    probability = norm.cdf(0, one["difference"], one["std_error"])
    np.testing.assert_allclose(one["probability_lower"], probability, atol=1e-12)
    last = one.iloc[len(one) // 10 - 1 :: len(one) // 10]
    np.testing.assert_allclose(last["a"], estimator.predict(a), rtol=1e-10)
    np.testing.assert_allclose(last["b"], estimator.predict(b), rtol=1e-10)


def test_one_compared_with_many(families):
    one, many = families.answers.iloc[[0]], families.answers
    table = families.estimator.compare(one, many)
    assert table.index.get_level_values("a").tolist() == ["new 0"] * 4
    assert table.index.get_level_values("b").tolist() == list(many.index)
    swapped = families.estimator.compare(many, one)
    np.testing.assert_allclose(swapped["difference"], -table["difference"], atol=1e-15)
    for i in range(4):
        alone = families.estimator.compare(one, many.iloc[[i]])
        np.testing.assert_allclose(table.iloc[[i]], alone, atol=1e-9)
    with pytest.raises(ValueError, match="X_a has 3 models and X_b 2: give as many, or one"):
        families.estimator.compare(many.iloc[:3], many.iloc[:2])
    with pytest.raises(ValueError, match="coverage must be a number"):
        families.estimator.compare(many, many, coverage=2)


def test_differences_of_alike_models_are_known_better_than_of_independent_ones():
    """Versions of ten models that differ in some answers, on the same anchors."""
    base = make_responses(10, 200, n_dims=2, random_state=0).responses.to_numpy()
    rng = np.random.RandomState(1)

    def versions(n):
        copied = np.repeat(base, n, axis=0)
        drawn = (rng.rand(*copied.shape) < copied.mean(axis=1, keepdims=True)) * 1.0
        return np.where(rng.rand(*copied.shape) < 0.85, copied, drawn)

    selector = AnchorSelector(40, method="random", n_dims=2, random_state=0)
    estimator = GPIRTEstimator(**PAPER, random_state=0)
    estimator.fit(selector.fit_transform(versions(12)))
    new_a, new_b = versions(6), versions(6)
    a, b = new_a[:, selector.anchors_], new_b[:, selector.anchors_]
    table = estimator.compare(a, b)
    apart = np.hypot(*(estimator.predict(x, return_std=True)[1] for x in (a, b)))
    assert (table["std_error"] < apart).mean() > 0.8
    truth = new_a.mean(axis=1) - new_b.mean(axis=1)
    covered = (table["low"] <= truth) & (truth <= table["high"])
    assert covered.mean() > 0.8


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore:the lower bound still rose")
@pytest.mark.parametrize("estimate", ["gpirt", "pirt", "naive"])
def test_training_models_without_any_spread_give_numbers(estimate):
    """They err by nothing, which says nothing of new models."""
    fitted = GPIRTEstimator(estimate, random_state=0).fit(np.zeros((20, 25)))
    answers = np.full((2, 25), np.nan)
    answers[0, :8], answers[1, :8] = 1.0, 0.0
    table = fitted.compare(answers[:1], answers[1:])
    assert np.isfinite(table).all().all() and (table["std_error"] > 0).all()
    assert (fitted.calibration_ > 0.4).all()
