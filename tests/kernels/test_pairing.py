"""Honest standard errors, of one model and of the difference of two, on simulated errors."""

import numpy as np
import pytest

from sklearn_irt.kernels.pairing import (
    alikeness,
    coverage_factor,
    learn_pairing,
    paired_std,
    row_alikeness,
)


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_factor_is_by_how_much_errors_exceed_their_estimate(scale):
    rng = np.random.default_rng(0)
    std = rng.uniform(0.01, 0.05, size=20_000)
    error = scale * std * rng.normal(size=20_000)
    assert coverage_factor(error, std) == pytest.approx(scale, rel=0.02)


def test_factor_makes_intervals_of_other_distributions_cover():
    rng = np.random.default_rng(1)
    std = rng.uniform(0.01, 0.05, size=20_000)
    error = std * rng.standard_t(3, size=20_000)
    factor = coverage_factor(error, std)
    covered = np.abs(error) <= 1.6448536 * factor * std
    assert covered.mean() == pytest.approx(0.9, abs=0.002)


def test_few_models_say_little():
    assert coverage_factor(np.empty(0), np.empty(0)) == 1.0
    one = coverage_factor(np.array([5.0]), np.array([1.0]))
    assert one == pytest.approx((5.0 / 1.6448536) ** (1 / 6), rel=1e-6)
    many = coverage_factor(np.full(1000, 5.0), np.ones(1000))
    assert 1.0 < one < many < 5.0 / 1.6448536
    assert coverage_factor(np.zeros(3), np.ones(3)) > 0.2


def test_factor_is_the_conformal_quantile_of_few_models():
    rng = np.random.default_rng(2)
    error, std = rng.normal(size=9), np.ones(9)
    # 0.9 * (1 + 1 / 9) = 1: the largest of the nine.
    expected = (np.abs(error).max() / 1.6448536) ** (9 / 14)
    assert coverage_factor(error, std) == pytest.approx(expected, rel=1e-6)


def test_factor_does_not_depend_on_the_order_or_the_unit():
    rng = np.random.default_rng(3)
    error, std = rng.normal(size=40), rng.uniform(0.5, 2, size=40)
    found = coverage_factor(error, std)
    order = rng.permutation(40)
    assert coverage_factor(-error[order], std[order]) == pytest.approx(found, rel=1e-12)
    assert coverage_factor(100 * error, 100 * std) == pytest.approx(found, rel=1e-12)


def test_alikeness_is_the_cosine_of_what_is_unexplained():
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(4, 7)), rng.normal(size=(3, 7))
    a[1], b[0, 2:] = 0.0, 0.0
    found = alikeness(a, b)
    for i in range(4):
        for j in range(3):
            norms = np.linalg.norm(a[i]) * np.linalg.norm(b[j])
            expected = a[i] @ b[j] / norms if norms > 0 else 0.0
            assert found[i, j] == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(row_alikeness(a[:3], b), np.diag(found[:3]), atol=1e-12)
    np.testing.assert_allclose(np.diag(alikeness(b, b)), 1.0)


def simulated_pairs(seed, n_models, correlated, n_items=80):
    """Errors whose correlation is `correlated` times how alike the models are."""
    rng = np.random.default_rng(seed)
    family = rng.integers(6, size=n_models)
    rest = 0.6 * rng.normal(size=(6, n_items))[family] + 0.5 * rng.normal(size=(n_models, n_items))
    alike = alikeness(rest, rest)
    covariance = correlated * alike + (1 - correlated) * np.eye(n_models)
    std = rng.uniform(0.01, 0.04, size=n_models)
    root = np.linalg.cholesky(covariance + 1e-9 * np.eye(n_models))
    return alike, std, root


@pytest.mark.parametrize("correlated", [0.0, 0.4, 0.9])
def test_correlation_of_errors_is_learned_and_differences_are_covered(correlated):
    slopes, covered = [], []
    for seed in range(8):
        alike, std, root = simulated_pairs(seed, 150, correlated)
        rng = np.random.default_rng(100 + seed)
        pairing = learn_pairing(std * (root @ rng.normal(size=150)), std, alike)
        slopes.append(pairing[1])
        # Other errors of the same models.
        error = std * (root @ rng.normal(size=150))
        a, b = np.triu_indices(150, 1)
        paired = paired_std(std[a], std[b], alike[a, b], pairing)
        covered.append((np.abs(error[a] - error[b]) <= 1.6448536 * paired).mean())
    assert np.mean(slopes) == pytest.approx(correlated, abs=0.15)
    assert 0.85 < np.mean(covered) < 0.95


def test_few_models_are_taken_as_independent():
    rng = np.random.default_rng(5)
    for n in (0, 1, 9):
        pairing = learn_pairing(rng.normal(size=n), np.ones(n), np.ones((n, n)))
        np.testing.assert_array_equal(pairing, [0.0, 0.0, 1.0])


@pytest.mark.filterwarnings("error")
def test_models_that_are_all_alike_do_not_fail():
    rng = np.random.default_rng(6)
    pairing = learn_pairing(rng.normal(size=20), np.ones(20), np.ones((20, 20)))
    assert np.isfinite(pairing).all() and pairing[1] == 0.0 and pairing[2] > 0.0


def test_errors_that_are_opposed_give_no_negative_slope():
    alike, std, _ = simulated_pairs(7, 60, 0.5)
    opposed = std * np.where(np.linalg.eigh(alike)[1][:, 0] > 0, 1.0, -1.0)
    assert learn_pairing(opposed, std, alike)[1] >= 0.0


def test_paired_standard_error_is_that_of_a_difference():
    rng = np.random.default_rng(8)
    std_a, std_b, alike = rng.uniform(1, 2, 50), rng.uniform(1, 2, 50), rng.uniform(-1, 1, 50)
    for intercept, slope, factor in ((0.0, 0.0, 1.0), (0.1, 0.5, 1.3), (0.5, 2.0, 0.7)):
        found = paired_std(std_a, std_b, alike, np.array([intercept, slope, factor]))
        for i in range(50):
            r = min(max(intercept + slope * alike[i], 0.0), 0.95)
            variance = std_a[i] ** 2 + std_b[i] ** 2 - 2 * r * std_a[i] * std_b[i]
            assert found[i] == pytest.approx(factor * variance**0.5, rel=1e-12)
        swapped = paired_std(std_b, std_a, alike, np.array([intercept, slope, factor]))
        np.testing.assert_allclose(swapped, found, rtol=1e-12)
    exact = paired_std(np.zeros(2), np.zeros(2), np.ones(2), np.array([0.0, 1.0, 1.0]))
    np.testing.assert_array_equal(exact, 0.0)


def test_the_error_of_a_difference_is_not_widened_twice_for_few_models():
    # Opposed errors: differences are larger than independent ones, and the models are few.
    error = np.array([2.0, -2.0] * 6)
    alike = np.random.default_rng(9).uniform(-0.1, 0.1, size=(12, 12))
    assert learn_pairing(error, np.ones(12), alike)[2] == 1.0
    # Chosen anchors: half of what seems too wide is believed.
    small = np.tile([0.5, -0.5], 30)
    alike = np.zeros((60, 60))
    found, chosen = (learn_pairing(small, np.ones(60), alike, c)[2] for c in (False, True))
    assert found < 1.0 and chosen == pytest.approx(np.sqrt(found))
