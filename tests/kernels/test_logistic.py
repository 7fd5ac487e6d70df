"""Probabilities and abilities against scipy's optimisers and formulas written out here."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq, minimize, root

from sklearn_irt.kernels import logistic
from sklearn_irt.kernels.logistic import (
    estimate_abilities,
    map_abilities,
    mle_abilities,
    pack,
    response_probabilities,
    row_blocks,
    unpack,
)


def log_likelihood(theta, answers, loadings, difficulty):
    """Sum of y log p + (1 - y) log(1 - p) over the answered items, written item by item."""
    total = 0.0
    for y, a, b in zip(answers, loadings, difficulty, strict=True):
        if not math.isnan(y):
            logit = float(np.dot(a, theta)) - b
            total -= y * np.logaddexp(0.0, -logit) + (1.0 - y) * np.logaddexp(0.0, logit)
    return total


def score(theta, answers, loadings, difficulty):
    """Gradient of `log_likelihood`."""
    total = np.zeros(len(theta))
    for y, a, b in zip(answers, loadings, difficulty, strict=True):
        if not math.isnan(y):
            total += (y - 1.0 / (1.0 + math.exp(b - float(np.dot(a, theta))))) * a
    return total


def reference_map(answers, loadings, difficulty, mean, precision):
    """The mode by BFGS on the explicit objective, polished to the root of its slope."""

    def negative(theta):
        deviation = theta - mean
        value = log_likelihood(theta, answers, loadings, difficulty)
        return 0.5 * deviation @ precision @ deviation - value

    def slope(theta):
        return precision @ (theta - mean) - score(theta, answers, loadings, difficulty)

    found = minimize(negative, mean, jac=slope, method="BFGS")
    found = root(slope, found.x, options={"xtol": 1e-12})
    assert np.abs(found.fun).max() < 1e-8
    return found.x


def problem(seed, n_models=6, n_items=25, n_dims=3, kind="binary"):
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(n_items, n_dims))
    difficulty = rng.normal(size=n_items)
    ability = rng.normal(size=(n_models, n_dims))
    chance = 1.0 / (1.0 + np.exp(difficulty - ability @ loadings.T))
    if kind == "fractional":
        answers = rng.beta(3 * chance, 3 * (1 - chance))
    else:
        answers = (rng.random(chance.shape) < chance).astype(float)
    if kind == "missing":
        answers[rng.random(answers.shape) < 0.4] = np.nan
    return answers, loadings, difficulty


def prior(seed, n_dims):
    rng = np.random.default_rng(1000 + seed)
    root = rng.normal(size=(n_dims, n_dims + 2))
    return rng.normal(size=n_dims), root @ root.T / n_dims + 0.1 * np.eye(n_dims)


def test_probabilities_are_the_logistic_function_of_the_logit():
    rng = np.random.default_rng(0)
    ability, loadings, difficulty = rng.normal(size=(4, 2)), rng.normal(size=(5, 2)), np.arange(5.0)
    computed = response_probabilities(ability, loadings, difficulty)
    assert computed.shape == (4, 5)
    for row in range(4):
        for item in range(5):
            logit = sum(ability[row, j] * loadings[item, j] for j in range(2)) - difficulty[item]
            assert computed[row, item] == pytest.approx(1 / (1 + math.exp(-logit)), rel=1e-14)


@pytest.mark.filterwarnings("error")
def test_probabilities_of_huge_logits_neither_overflow_nor_leave_the_unit_interval():
    computed = response_probabilities(
        np.array([[-50.0], [0.0], [50.0]]), np.array([[30.0]]), np.array([0.0])
    )
    np.testing.assert_array_equal(computed[1:, 0], [0.5, 1.0])
    assert 0.0 <= computed[0, 0] < 1e-300


@pytest.mark.parametrize("size", [1, 2, 5])
def test_pack_keeps_the_upper_triangle_row_by_row_and_unpack_restores_it(size):
    rng = np.random.default_rng(size)
    matrices = rng.normal(size=(3, 2, size, size))
    matrices = matrices + matrices.swapaxes(-1, -2)
    packed = pack(matrices)
    expected = [[matrices[..., i, j] for j in range(i, size)] for i in range(size)]
    np.testing.assert_array_equal(packed, np.stack(sum(expected, []), axis=-1))
    np.testing.assert_array_equal(unpack(packed, size), matrices)
    assert unpack(packed.astype(np.float32), size).dtype == np.float32


@pytest.mark.parametrize("n_rows, n_columns", [(0, 5), (1, 0), (7, 3), (10, 5), (3, 100)])
def test_row_blocks_cover_every_row_once_within_the_workspace(monkeypatch, n_rows, n_columns):
    monkeypatch.setattr(logistic, "BLOCK_ELEMENTS", 10)
    blocks = row_blocks(n_rows, n_columns)
    rows = [row for block in blocks for row in range(n_rows)[block]]
    assert rows == list(range(n_rows))
    assert all((b.stop - b.start) * n_columns <= max(10, n_columns) for b in blocks)


@pytest.mark.parametrize("kind", ["binary", "missing", "fractional"])
@pytest.mark.parametrize("informative_prior", [False, True])
@pytest.mark.parametrize("n_dims", [1, 3])
def test_map_is_the_optimum_that_scipy_finds(kind, informative_prior, n_dims):
    answers, loadings, difficulty = problem(n_dims, n_dims=n_dims, kind=kind)
    mean, precision = np.zeros(n_dims), np.eye(n_dims)
    options = {}
    if informative_prior:
        mean, precision = prior(n_dims, n_dims)
        options = {"prior_mean": mean, "prior_precision": precision}
    fit = map_abilities(answers, loadings, difficulty, **options)
    assert fit.converged.all() and not fit.bounded.any()
    for row, answer in enumerate(answers):
        expected = reference_map(answer, loadings, difficulty, mean, precision)
        np.testing.assert_allclose(fit.ability[row], expected, atol=1e-6, rtol=0)


def test_map_of_float32_inputs_is_computed_in_double_precision():
    answers, loadings, difficulty = problem(5, kind="missing")
    loadings, difficulty = loadings.astype(np.float32), difficulty.astype(np.float32)
    single = map_abilities(answers.astype(np.float32), loadings, difficulty)
    double = map_abilities(answers, loadings.astype(float), difficulty.astype(float))
    assert single.ability.dtype == np.float64
    np.testing.assert_array_equal(single.ability, double.ability)


@pytest.mark.parametrize("n_items", [1, 30, 1000])
def test_map_of_all_right_and_all_wrong_is_the_finite_optimum(n_items):
    _, loadings, difficulty = problem(7, n_items=n_items, n_dims=2)
    answers = np.vstack([np.ones(n_items), np.zeros(n_items)])
    fit = map_abilities(answers, loadings, difficulty)
    assert fit.converged.all()
    for row in range(2):
        expected = reference_map(answers[row], loadings, difficulty, np.zeros(2), np.eye(2))
        np.testing.assert_allclose(fit.ability[row], expected, atol=1e-6, rtol=0)


def test_map_of_a_row_with_nothing_asked_is_the_prior():
    answers, loadings, difficulty = problem(8, n_dims=3)
    answers[2] = np.nan
    mean, precision = prior(8, 3)
    for some in (answers, answers[2:3]):
        fit = map_abilities(some, loadings, difficulty, prior_mean=mean, prior_precision=precision)
        row = 2 if len(some) > 1 else 0
        assert fit.converged.all()
        np.testing.assert_allclose(fit.ability[row], mean, atol=1e-14)
        np.testing.assert_allclose(fit.covariance[row], np.linalg.inv(precision), rtol=1e-11)


def test_map_without_any_item_or_any_row():
    empty = map_abilities(np.empty((3, 0)), np.empty((0, 2)), np.empty(0))
    np.testing.assert_array_equal(empty.ability, np.zeros((3, 2)))
    np.testing.assert_array_equal(empty.covariance, np.tile(np.eye(2), (3, 1, 1)))
    nobody = map_abilities(np.empty((0, 4)), np.ones((4, 2)), np.zeros(4))
    assert nobody.ability.shape == (0, 2) and nobody.covariance.shape == (0, 2, 2)


@pytest.mark.parametrize("estimate", [map_abilities, mle_abilities])
def test_rows_at_once_are_rows_one_by_one(estimate):
    answers, loadings, difficulty = problem(9, n_models=15, kind="missing", n_items=40)
    answers[3] = np.where(np.isnan(answers[3]), np.nan, 1.0)  # unbounded likelihood
    together = estimate(answers, loadings, difficulty)
    for row in range(len(answers)):
        alone = estimate(answers[row : row + 1], loadings, difficulty)
        np.testing.assert_allclose(alone.ability[0], together.ability[row], atol=1e-10, rtol=0)
        np.testing.assert_allclose(alone.covariance[0], together.covariance[row], rtol=1e-7)
        assert alone.converged[0] == together.converged[row]
        assert alone.bounded[0] == together.bounded[row]


def test_map_does_not_depend_on_the_order_of_rows_and_items():
    answers, loadings, difficulty = problem(10, n_models=12, kind="missing")
    rng = np.random.default_rng(10)
    rows, items = rng.permutation(12), rng.permutation(25)
    fit = map_abilities(answers, loadings, difficulty)
    moved = map_abilities(answers[np.ix_(rows, items)], loadings[items], difficulty[items])
    np.testing.assert_allclose(moved.ability, fit.ability[rows], atol=1e-10, rtol=0)
    np.testing.assert_allclose(moved.covariance, fit.covariance[rows], atol=1e-10, rtol=0)


@pytest.mark.parametrize("estimate", [map_abilities, mle_abilities])
@pytest.mark.parametrize("elements", [1, 60, 10_000])
def test_abilities_do_not_depend_on_the_block_size(monkeypatch, estimate, elements):
    answers, loadings, difficulty = problem(11, n_models=13, kind="missing", n_items=40)
    answers[4] = np.nan
    answers[5] = np.where(np.isnan(answers[5]), np.nan, 0.0)
    whole = estimate(answers, loadings, difficulty)
    monkeypatch.setattr(logistic, "BLOCK_ELEMENTS", elements)
    parts = estimate(answers, loadings, difficulty)
    np.testing.assert_allclose(parts.ability, whole.ability, atol=1e-10, rtol=0)
    np.testing.assert_allclose(parts.covariance, whole.covariance, rtol=1e-7)
    np.testing.assert_array_equal(parts.converged, whole.converged)
    assert parts.n_iter == whole.n_iter


def test_swapping_right_and_wrong_with_the_items_reversed_changes_nothing():
    answers, loadings, difficulty = problem(12, kind="fractional")
    fit = map_abilities(answers, loadings, difficulty)
    swapped = map_abilities(1.0 - answers, -loadings, -difficulty)
    np.testing.assert_allclose(swapped.ability, fit.ability, atol=1e-9, rtol=0)


def test_one_more_right_answer_always_raises_a_one_dimensional_ability():
    rng = np.random.default_rng(13)
    loadings, difficulty = rng.uniform(0.2, 3.0, size=(20, 1)), rng.normal(size=20)
    answers = np.tril(np.ones((21, 20)), k=-1)  # row k has the first k items right
    ability = map_abilities(answers, loadings, difficulty).ability[:, 0]
    assert (np.diff(ability) > 1e-3).all()


@pytest.mark.parametrize("kind", ["missing", "fractional"])
def test_map_covariance_is_the_inverse_of_a_finite_difference_hessian(kind):
    answers, loadings, difficulty = problem(14, n_models=3, kind=kind)
    mean, precision = prior(14, 3)
    fit = map_abilities(answers, loadings, difficulty, prior_mean=mean, prior_precision=precision)
    step = 1e-5
    for row in range(3):
        hessian = np.empty((3, 3))
        for j in range(3):
            move = step * np.eye(3)[j]
            slopes = [
                precision @ (theta - mean) - score(theta, answers[row], loadings, difficulty)
                for theta in (fit.ability[row] + move, fit.ability[row] - move)
            ]
            hessian[:, j] = (slopes[0] - slopes[1]) / (2 * step)
        np.testing.assert_allclose(
            fit.covariance[row], np.linalg.inv(hessian), rtol=1e-6, atol=1e-9
        )


def test_too_few_steps_are_reported():
    answers, loadings, difficulty = problem(15)
    fit = map_abilities(answers, loadings, difficulty, max_iter=1)
    assert fit.n_iter == 1 and not fit.converged.any()
    fit = map_abilities(answers, loadings, difficulty)
    assert 1 < fit.n_iter < 20


@pytest.mark.parametrize("scale", [5.0, 30.0])
def test_extreme_items_still_converge_to_the_optimum(scale):
    """One dimension: the slope falls in theta, so its root is found by bisection."""
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n_items = int(rng.integers(1, 40))
        loadings = rng.uniform(-scale, scale, size=(n_items, 1))
        loadings[0] = scale
        difficulty = rng.uniform(-50, 50, size=n_items) * (1.0, 0.1, 0.01)[seed % 3]
        answers = rng.integers(0, 2, size=(4, n_items)).astype(float)
        answers[0] = 1.0
        fit = map_abilities(answers, loadings, difficulty)
        assert np.isfinite(fit.ability).all() and np.isfinite(fit.covariance).all()
        assert fit.converged.all(), seed
        for row in range(4):

            def slope(theta, answer=answers[row], a=loadings[:, 0], b=difficulty):
                with np.errstate(over="ignore"):
                    return float(((answer - 1.0 / (1.0 + np.exp(b - a * theta))) * a).sum() - theta)

            expected = brentq(slope, -2000, 2000, xtol=1e-13)
            assert fit.ability[row, 0] == pytest.approx(expected, abs=1e-8), seed


@pytest.mark.parametrize("n_dims", [2, 4])
def test_extreme_items_of_several_dimensions_reach_a_point_without_slope(n_dims):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n_items = int(rng.integers(1, 60))
        loadings = rng.uniform(-30, 30, size=(n_items, n_dims))
        difficulty = rng.uniform(-50, 50, size=n_items)
        answers = rng.integers(0, 2, size=(10, n_items)).astype(float)
        answers[rng.random(answers.shape) < 0.2] = np.nan
        answers[0] = 1.0
        fit = map_abilities(answers, loadings, difficulty)
        assert fit.converged.all(), seed
        with np.errstate(over="ignore"):
            chance = 1.0 / (1.0 + np.exp(difficulty - fit.ability @ loadings.T))
        slope = np.where(np.isnan(answers), 0.0, answers - chance) @ loadings - fit.ability
        # A step, the covariance times the slope, is all that is left to go.
        step = np.einsum("lde,le->ld", fit.covariance, slope)
        assert np.abs(step).max() < 1e-7


def test_mle_is_the_optimum_that_scipy_finds():
    answers, loadings, difficulty = problem(16, n_models=8, n_items=80, n_dims=2, kind="missing")
    fit = mle_abilities(answers, loadings, difficulty)
    assert fit.converged.all() and not fit.bounded.any()
    for row, answer in enumerate(answers):
        expected = reference_map(answer, loadings, difficulty, np.zeros(2), np.zeros((2, 2)))
        np.testing.assert_allclose(fit.ability[row], expected, atol=1e-6, rtol=0)


def test_mle_of_fractional_answers_inverts_the_probabilities():
    """Answers equal to their probabilities have no slope at the ability that gave them."""
    rng = np.random.default_rng(17)
    ability, loadings = rng.normal(size=(5, 2)), rng.normal(size=(30, 2))
    difficulty = rng.normal(size=30)
    answers = 1.0 / (1.0 + np.exp(difficulty - ability @ loadings.T))
    fit = mle_abilities(answers, loadings, difficulty)
    np.testing.assert_allclose(fit.ability, ability, atol=1e-6, rtol=0)


@pytest.mark.parametrize("case", ["all right", "all wrong", "one side", "distant"])
@pytest.mark.parametrize("max_norm", [3.0, 10.0])
def test_mle_at_the_bound_is_the_maximum_within_the_ball(case, max_norm):
    rng = np.random.default_rng(18)
    loadings, difficulty = rng.normal(size=(15, 2)) * 0.5, rng.normal(size=15)
    answers = np.full(15, float(case != "all wrong"))
    if case == "one side":  # right exactly where the first loading is positive: separable
        answers = (loadings[:, 0] > 0).astype(float)
    else:
        loadings = np.abs(loadings)
    if case == "distant":  # a maximum, but far out
        loadings[:, 1] = 0.0
        loadings[:, 0] = 0.05
        answers = np.r_[np.zeros(3), np.ones(12)]
    fit = mle_abilities(answers[None], loadings, difficulty, max_norm=max_norm)
    theta = fit.ability[0]
    assert fit.bounded[0]
    assert np.linalg.norm(theta) == pytest.approx(max_norm, rel=1e-6)
    assert np.linalg.norm(theta) <= max_norm
    ball = {"type": "ineq", "fun": lambda t: max_norm**2 - t @ t, "jac": lambda t: -2.0 * t}
    found = minimize(
        lambda t: -log_likelihood(t, answers, loadings, difficulty),
        np.array([0.1, 0.1]),
        jac=lambda t: -score(t, answers, loadings, difficulty),
        constraints=[ball],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    best = -found.fun
    assert log_likelihood(theta, answers, loadings, difficulty) == pytest.approx(best, abs=1e-6)
    np.testing.assert_allclose(theta, found.x, atol=2e-3 * max_norm)


@pytest.mark.parametrize("slope", [0.5, 2.0, 4.0, 10.0])
def test_mle_of_all_right_is_held_at_the_bound_however_steep_the_items(slope):
    items = np.full((20, 1), slope), np.zeros(20)
    fit = mle_abilities(np.vstack([np.ones(20), np.zeros(20)]), *items)
    assert fit.bounded.all()
    np.testing.assert_allclose(fit.ability[:, 0], [10.0, -10.0], rtol=1e-6)


def test_mle_of_a_row_with_nothing_asked_stays_at_the_centre():
    answers, loadings, difficulty = problem(19, n_items=60)
    answers[1] = np.nan
    fit = mle_abilities(answers, loadings, difficulty)
    np.testing.assert_allclose(fit.ability[1], np.zeros(3), atol=1e-12)
    assert np.isfinite(fit.covariance).all() and not fit.bounded[1]


def test_mle_leaves_a_direction_that_nobody_asked_about_at_zero():
    answers, loadings, difficulty = problem(20, n_items=60, n_dims=2)
    loadings[:, 1] = 0.0
    ability = mle_abilities(answers, loadings, difficulty).ability
    np.testing.assert_array_equal(ability[:, 1], np.zeros(len(answers)))
    line = mle_abilities(answers, loadings[:, :1], difficulty).ability
    np.testing.assert_allclose(ability[:, :1], line, atol=1e-8)


def test_kinds_of_estimates():
    answers, loadings, difficulty = problem(21, kind="missing", n_items=60)
    _, precision = prior(21, 3)
    computed = estimate_abilities("map", answers, loadings, difficulty, precision)
    expected = map_abilities(answers, loadings, difficulty, prior_precision=precision)
    np.testing.assert_array_equal(computed.ability, expected.ability)
    computed = estimate_abilities("mle", answers, loadings, difficulty, precision)
    expected = mle_abilities(answers, loadings, difficulty)
    np.testing.assert_array_equal(computed.ability, expected.ability)


def test_a_strong_prior_holds_the_ability_and_a_weak_one_leaves_the_likelihood():
    answers, loadings, difficulty = problem(22, n_items=100, n_dims=2)
    strong = map_abilities(answers, loadings, difficulty, prior_precision=1e9 * np.eye(2))
    assert np.abs(strong.ability).max() < 1e-6
    weak = map_abilities(answers, loadings, difficulty, prior_precision=1e-9 * np.eye(2))
    free = mle_abilities(answers, loadings, difficulty)
    np.testing.assert_allclose(weak.ability, free.ability, atol=1e-6)


def test_ten_thousand_models_with_a_hundred_answers():
    answers, loadings, difficulty = problem(23, n_models=10_000, n_items=100, n_dims=5)
    fit = map_abilities(answers, loadings, difficulty)
    assert fit.converged.all() and fit.ability.shape == (10_000, 5)
    chance = 1.0 / (1.0 + np.exp(difficulty - fit.ability @ loadings.T))
    slope = (answers - chance) @ loadings - fit.ability
    assert np.abs(slope).max() < 1e-6
