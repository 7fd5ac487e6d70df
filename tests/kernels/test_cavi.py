"""The variational fit against loops, brute-force evidence, MCMC, symmetries and the truth."""

import tracemalloc

import numpy as np
import pytest
from scipy.special import digamma
from scipy.stats import multivariate_normal, wishart
from threadpoolctl import threadpool_limits

from sklearn_irt.kernels import cavi
from sklearn_irt.kernels.cavi import column_blocks, fit_cavi
from sklearn_irt.kernels.logistic import map_abilities


@pytest.fixture(autouse=True)
def one_thread():
    """On matrices as small as these, several threads cost more than they give."""
    with threadpool_limits(1):
        yield


def simulate(n_models, n_items, n_dims, seed, kind="binary"):
    """Responses, and the probabilities behind them."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=(n_models, n_dims))
    loadings = rng.normal(0.5, 1.0, size=(n_items, n_dims))
    logit = ability @ loadings.T - rng.normal(size=n_items)
    chance = 1.0 / (1.0 + np.exp(-logit))
    if "fractional" in kind:
        responses = rng.beta(4 * chance, 4 * (1 - chance))
    else:
        responses = (rng.random(chance.shape) < chance).astype(float)
    if "missing" in kind:
        responses[rng.random(responses.shape) < 0.3] = np.nan
    return responses, chance


def logits(fit):
    return fit.ability.astype(float) @ fit.discrimination.astype(float).T - fit.difficulty


def predicted(fit):
    return 1.0 / (1.0 + np.exp(-logits(fit)))


def second_moments(fit):
    """E[z z'] of z = (theta, -1) and E[x x'] of x = (a, b), one by one."""
    n_dims = fit.ability.shape[1]
    models, items = [], []
    for theta, covariance in zip(fit.ability, fit.ability_covariance, strict=True):
        z = np.append(theta, -1.0)
        wide = np.zeros((n_dims + 1, n_dims + 1))
        wide[:n_dims, :n_dims] = covariance
        models.append(wide + np.outer(z, z))
    for a, b, covariance in zip(
        fit.discrimination, fit.difficulty, fit.item_covariance, strict=True
    ):
        x = np.append(a, b)
        items.append(covariance + np.outer(x, x))
    return models, items


def some_groups(n_items, n_groups, seed=0):
    """A group of each item, none empty; None for a single one."""
    if n_groups == 1:
        return None
    first = np.arange(min(n_groups, n_items))
    others = np.random.default_rng(seed).integers(n_groups, size=n_items - len(first))
    return np.random.default_rng(seed).permutation(np.concatenate([first, others]))


def loop_bound(fit, responses, groups):
    """Evidence lower bound of the state that `fit` holds, term by term as in section 2."""
    n_models, n_items = responses.shape
    n_dims = fit.ability.shape[1]
    size = n_dims + 1
    models, items = second_moments(fit)
    total = 0.0
    for row in range(n_models):
        for item in range(n_items):
            if not np.isnan(responses[row, item]):
                mean = fit.discrimination[item] @ fit.ability[row] - fit.difficulty[item]
                c = np.sqrt(np.trace(models[row] @ items[item]))
                total += (responses[row, item] - 0.5) * mean - np.log(2 * np.cosh(c / 2))
    # q(mu) = N(m, V) and q(Lambda) = Wishart(degrees, scale), as the fixed rest implies them.
    precision = fit.item_precision
    degrees = size + 2 + n_items
    scale = precision / degrees
    groups = np.zeros(n_items, dtype=int) if groups is None else groups
    mu_covariances = [
        np.linalg.inv(count * precision + np.eye(size) / 100.0) for count in np.bincount(groups)
    ]
    expected_log_det = (
        sum(digamma((degrees - j) / 2) for j in range(size))
        + size * np.log(2)
        + np.linalg.slogdet(scale)[1]
    )
    for theta, covariance in zip(fit.ability, fit.ability_covariance, strict=True):
        total += multivariate_normal(np.zeros(n_dims), np.eye(n_dims)).logpdf(theta)
        total += -0.5 * np.trace(covariance)
        total += multivariate_normal(theta, covariance).entropy()
    for a, b, covariance, group in zip(
        fit.discrimination, fit.difficulty, fit.item_covariance, groups, strict=True
    ):
        x = np.append(a, b)
        deviation = x - fit.item_mean[group]
        scatter = np.outer(deviation, deviation) + covariance + mu_covariances[group]
        total += 0.5 * (expected_log_det - size * np.log(2 * np.pi) - np.trace(precision @ scatter))
        total += multivariate_normal(x, covariance).entropy()
    for mean, mu_covariance in zip(fit.item_mean, mu_covariances, strict=True):
        total += multivariate_normal(np.zeros(size), 100.0 * np.eye(size)).logpdf(mean)
        total += -0.5 * np.trace(mu_covariance) / 100.0
        total += multivariate_normal(mean, mu_covariance).entropy()
    prior_degrees, prior_scale = size + 2, np.eye(size) / 2.0
    # log p at the identity gives the normaliser: there the density is exp(-tr(I) ) / normaliser.
    log_constant = wishart(prior_degrees, prior_scale).logpdf(np.eye(size)) + size
    total += log_constant + 0.5 * (prior_degrees - size - 1) * expected_log_det
    total -= 0.5 * np.trace(2.0 * np.eye(size) @ precision)
    total += wishart(degrees, scale).entropy()
    return total


def loop_round(fit, responses, groups):
    """One round of the updates, cell by cell; returns the means of q(theta) and q(x)."""
    n_models, n_items = responses.shape
    n_dims = fit.ability.shape[1]
    models, items = second_moments(fit)
    weight = np.zeros((n_models, n_items))
    kappa = np.zeros((n_models, n_items))
    for row in range(n_models):
        for item in range(n_items):
            if not np.isnan(responses[row, item]):
                c = np.sqrt(np.trace(models[row] @ items[item]))
                weight[row, item] = np.tanh(c / 2) / (2 * c)
                kappa[row, item] = responses[row, item] - 0.5
    x_mean, x_second = [], []
    for item in range(n_items):
        precision = fit.item_precision.copy()
        right = fit.item_precision @ fit.item_mean[0 if groups is None else groups[item]]
        for row in range(n_models):
            precision += weight[row, item] * models[row]
            right = right + kappa[row, item] * np.append(fit.ability[row], -1.0)
        covariance = np.linalg.inv(precision)
        x_mean.append(covariance @ right)
        x_second.append(covariance + np.outer(x_mean[-1], x_mean[-1]))
    theta_mean = []
    for row in range(n_models):
        precision, right = np.eye(n_dims), np.zeros(n_dims)
        for item in range(n_items):
            precision += weight[row, item] * x_second[item][:n_dims, :n_dims]
            right += kappa[row, item] * x_mean[item][:n_dims]
            right += weight[row, item] * x_second[item][:n_dims, n_dims]
        theta_mean.append(np.linalg.solve(precision, right))
    return np.array(theta_mean), np.array(x_mean)


CASES = [
    ("binary", 7, 5, 1),
    ("missing", 6, 9, 2),
    ("fractional", 5, 4, 3),
    ("fractional missing", 12, 8, 2),
    ("binary", 3, 4, 5),
]


@pytest.mark.parametrize("n_groups", [1, 3])
@pytest.mark.parametrize("kind, n_models, n_items, n_dims", CASES)
def test_the_bound_equals_the_loops(kind, n_models, n_items, n_dims, n_groups):
    responses, _ = simulate(n_models, n_items, n_dims, 0, kind)
    groups = some_groups(n_items, n_groups)
    n_observed = np.isfinite(responses).sum()
    bounds = fit_cavi(responses, n_dims, groups=groups, max_iter=30, tol=0.0).lower_bounds
    assert len(bounds) == 30
    for rounds in (1, 2, 5, 29):
        state = fit_cavi(responses, n_dims, groups=groups, max_iter=rounds, tol=0.0)
        expected = loop_bound(state, responses, groups)
        # The state after so many rounds is the one that the next round starts from.
        assert bounds[rounds] * n_observed == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n_groups", [1, 3])
@pytest.mark.parametrize("kind, n_models, n_items, n_dims", CASES)
def test_a_round_equals_the_loops(kind, n_models, n_items, n_dims, n_groups):
    """Standardising and rotating leave the logits as they are, so these can be compared."""
    responses, _ = simulate(n_models, n_items, n_dims, 1, kind)
    groups = some_groups(n_items, n_groups)
    for rounds in (1, 2, 6):
        before = fit_cavi(responses, n_dims, groups=groups, max_iter=rounds, tol=0.0)
        after = fit_cavi(responses, n_dims, groups=groups, max_iter=rounds + 1, tol=0.0)
        ability, items = loop_round(before, responses, groups)
        expected = ability @ items[:, :-1].T - items[:, -1]
        np.testing.assert_allclose(logits(after), expected, atol=1e-9, rtol=1e-9)


@pytest.mark.slow
def test_the_bound_lies_below_the_evidence():
    """Three models, two items, one dimension: the evidence by two million prior draws."""
    responses = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, np.nan]])
    rng = np.random.default_rng(0)
    n_draws = 500_000
    likelihood = []
    for _ in range(4):
        # Wishart(4, I/2) as the sum of four outer products of N(0, I/2).
        root = rng.normal(scale=np.sqrt(0.5), size=(n_draws, 4, 2))
        precision = np.einsum("skp,skq->spq", root, root)
        centre = rng.normal(scale=10.0, size=(n_draws, 1, 2))
        factor = np.linalg.cholesky(precision)  # x = mu + inv(L') e has precision L L'
        noise = rng.normal(size=(n_draws, 2, 2))
        second = noise[:, :, 1] / factor[:, None, 1, 1]
        first = (noise[:, :, 0] - factor[:, None, 1, 0] * second) / factor[:, None, 0, 0]
        items = centre + np.stack([first, second], axis=-1)
        ability = rng.normal(size=(n_draws, 3))
        logit = ability[:, :, None] * items[:, None, :, 0] - items[:, None, :, 1]
        signed = np.where(responses == 1.0, logit, -logit)
        cells = -np.logaddexp(0.0, -signed)
        likelihood.append(np.exp(np.where(np.isnan(responses), 0.0, cells).sum(axis=(1, 2))))
    likelihood = np.concatenate(likelihood)
    error = likelihood.std() / np.sqrt(len(likelihood)) / likelihood.mean()
    assert error < 0.005
    evidence = np.log(likelihood.mean())
    fit = fit_cavi(responses, 1, max_iter=500, tol=0.0)
    bound = fit.lower_bounds[-1] * 5
    assert bound < evidence + 4 * error
    assert bound > evidence - 6.0  # the price of independent factors


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    "kind",
    [
        *(
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in ("binary", "missing", "fractional missing")
        ),
    ],
)
def test_the_bound_never_falls(kind, grouped):
    rng = np.random.default_rng(2)
    for seed in range(20 if grouped else 40):
        n_models, n_items = rng.integers(1, 25, size=2)
        n_dims = int(rng.integers(1, 5))
        responses, _ = simulate(n_models, n_items, n_dims, seed, kind)
        groups = some_groups(n_items, 1 + seed % n_items, seed) if grouped else None
        fit = fit_cavi(responses, n_dims, groups=groups, max_iter=60, tol=0.0)
        # On the scale of the whole bound, in nats; rounding is 1e-12.
        change = np.diff(fit.lower_bounds) * np.isfinite(responses).sum()
        assert change.min() > -1e-9, (seed, n_models, n_items, n_dims)


@pytest.mark.parametrize("n_groups", [1, 4, 90])
@pytest.mark.parametrize("kind", ["binary", "missing", "fractional"])
def test_the_bound_of_a_larger_fit_never_falls(kind, n_groups):
    responses, _ = simulate(120, 90, 3, 3, kind)
    fit = fit_cavi(responses, 3, groups=some_groups(90, n_groups), max_iter=80, tol=0.0)
    assert (np.diff(fit.lower_bounds) * np.isfinite(responses).sum()).min() > -1e-8
    assert fit.lower_bounds[-1] > fit.lower_bounds[0] + 0.01


def test_the_fit_says_how_it_went():
    responses, _ = simulate(40, 30, 2, 4)
    calls = []
    fit = fit_cavi(responses, 2, callback=lambda *call: calls.append(call))
    assert fit.converged and 1 < fit.n_iter < 100
    assert calls == [(i + 1, bound) for i, bound in enumerate(fit.lower_bounds)]
    assert len(calls) == fit.n_iter
    assert abs(fit.lower_bounds[-1] - fit.lower_bounds[-2]) < 1e-5
    assert (np.abs(np.diff(fit.lower_bounds[:-1])) >= 1e-5).all()
    short = fit_cavi(responses, 2, max_iter=2)
    assert short.n_iter == 2 and not short.converged and len(short.lower_bounds) == 2
    np.testing.assert_array_equal(short.lower_bounds, fit.lower_bounds[:2])


def test_shapes_and_covariances():
    responses, _ = simulate(20, 15, 3, 5, "missing")
    original = responses.copy()
    fit = fit_cavi(responses, 3)
    np.testing.assert_array_equal(responses, original)
    assert fit.discrimination.shape == (15, 3) and fit.difficulty.shape == (15,)
    assert fit.ability.shape == (20, 3)
    assert fit.item_covariance.shape == (15, 4, 4)
    assert fit.ability_covariance.shape == (20, 3, 3)
    assert fit.item_mean.shape == (1, 4) and fit.item_precision.shape == (4, 4)
    for covariance in (fit.item_covariance, fit.ability_covariance, fit.item_precision[None]):
        np.testing.assert_allclose(covariance, covariance.swapaxes(1, 2), atol=1e-12)
        assert np.linalg.eigvalsh(covariance).min() > 0
    # No answer tells less than the prior: posterior covariances are at most the identity.
    assert np.linalg.eigvalsh(fit.ability_covariance).max() < 1.0 + 1e-9


def assert_same_fit(one, other, tolerance, rows=slice(None), items=slice(None)):
    for name in ("ability", "ability_covariance"):
        expected = getattr(other, name)[rows]
        np.testing.assert_allclose(getattr(one, name), expected, atol=tolerance, rtol=tolerance)
    for name in ("discrimination", "difficulty", "item_covariance"):
        expected = getattr(other, name)[items]
        np.testing.assert_allclose(getattr(one, name), expected, atol=tolerance, rtol=tolerance)
    np.testing.assert_allclose(one.lower_bounds, other.lower_bounds, rtol=tolerance)


@pytest.mark.parametrize("kind", ["binary", "missing", "fractional"])
def test_the_order_of_models_and_items_does_not_matter(kind):
    responses, _ = simulate(35, 50, 3, 6, kind)
    rng = np.random.default_rng(6)
    rows, items = rng.permutation(35), rng.permutation(50)
    fit = fit_cavi(responses, 3, max_iter=25, tol=0.0)
    moved = fit_cavi(responses[np.ix_(rows, items)], 3, max_iter=25, tol=0.0)
    assert_same_fit(moved, fit, 1e-9, rows, items)


def test_one_group_is_none_whatever_its_number():
    responses, _ = simulate(35, 50, 3, 6, "missing")
    none = fit_cavi(responses, 3)
    for number in (0, 7):
        one = fit_cavi(responses, 3, groups=np.full(50, number))
        assert_same_fit(one, none, 0.0)
        np.testing.assert_array_equal(one.item_mean, none.item_mean)
        np.testing.assert_array_equal(one.item_precision, none.item_precision)


def test_the_order_of_items_and_the_numbers_of_groups_do_not_matter():
    responses, _ = simulate(35, 50, 3, 6, "missing")
    rng = np.random.default_rng(6)
    rows, items = rng.permutation(35), rng.permutation(50)
    groups = some_groups(50, 4)
    fit = fit_cavi(responses, 3, groups=groups, max_iter=25, tol=0.0)
    numbers = np.array([9, 2, 30, 5])
    moved = fit_cavi(
        responses[np.ix_(rows, items)], 3, groups=numbers[groups[items]], max_iter=25, tol=0.0
    )
    assert_same_fit(moved, fit, 1e-9, rows, items)
    by_number = fit.item_mean[np.argsort(numbers)]
    np.testing.assert_allclose(moved.item_mean, by_number, atol=1e-9, rtol=1e-9)


def test_the_means_of_the_groups_are_recovered():
    rng = np.random.default_rng(23)
    groups = np.repeat([0, 1, 2], [200, 40, 10])
    centres = np.array([[0.6, -1.5], [1.2, 0.5], [1.8, 2.0]])
    items = centres[groups] + rng.normal(scale=0.3, size=(250, 2))
    ability = rng.normal(size=(800, 1))
    chance = 1.0 / (1.0 + np.exp(items[:, 1] - ability * items[:, 0]))
    responses = (rng.random(chance.shape) < chance).astype(float)
    fit = fit_cavi(responses, 1, groups=groups, max_iter=300, tol=1e-7)
    np.testing.assert_allclose(fit.item_mean, centres, atol=0.25)
    # Around their means the items spread as little as they do in truth.
    np.testing.assert_allclose(np.linalg.inv(fit.item_precision), 0.09 * np.eye(2), atol=0.03)
    assert fit.lower_bounds[-1] > fit_cavi(responses, 1, tol=1e-7).lower_bounds[-1]


@pytest.mark.parametrize("n_groups", [1, 3])
@pytest.mark.parametrize("cells", [1, 35 * 7, 35 * 49, 35 * 50])
def test_the_block_size_does_not_matter(monkeypatch, cells, n_groups):
    responses, _ = simulate(35, 50, 2, 7, "missing")
    groups = some_groups(50, n_groups)
    whole = fit_cavi(responses, 2, groups=groups, max_iter=25, tol=0.0)
    monkeypatch.setattr(cavi, "BLOCK_CELLS", cells)
    blocks = column_blocks(35, 50)
    assert [i for block in blocks for i in range(50)[block]] == list(range(50))
    assert max(b.stop - b.start for b in blocks) == max(1, cells // 35)
    fit = fit_cavi(responses, 2, groups=groups, max_iter=25, tol=0.0)
    assert_same_fit(fit, whole, 1e-9)


def test_responses_may_lie_in_any_order_in_memory():
    responses, _ = simulate(30, 20, 2, 8, "missing")
    fit = fit_cavi(responses, 2, max_iter=20, tol=0.0)
    turned = fit_cavi(np.asfortranarray(responses), 2, max_iter=20, tol=0.0)
    assert_same_fit(turned, fit, 1e-9)


def test_integers_are_fitted_as_doubles():
    responses, _ = simulate(30, 20, 2, 9)
    fit = fit_cavi(responses, 2)
    whole = fit_cavi(responses.astype(np.int64), 2)
    assert whole.ability.dtype == np.float64
    assert_same_fit(whole, fit, 1e-12)


@pytest.mark.parametrize("kind", ["binary", "missing", "fractional"])
def test_single_precision_stays_single_and_close(kind):
    responses, _ = simulate(80, 120, 2, 10, kind)
    double = fit_cavi(responses, 2, max_iter=30, tol=0.0)
    single = fit_cavi(responses.astype(np.float32), 2, max_iter=30, tol=0.0)
    for name in ("discrimination", "difficulty", "item_covariance", "ability"):
        assert getattr(single, name).dtype == np.float32
        assert getattr(double, name).dtype == np.float64
    assert single.ability_covariance.dtype == np.float32
    np.testing.assert_allclose(predicted(single), predicted(double), atol=2e-5)
    np.testing.assert_allclose(single.lower_bounds, double.lower_bounds, atol=1e-6)


def test_swapping_right_and_wrong_reverses_the_items():
    responses, _ = simulate(30, 40, 2, 11, "fractional missing")
    fit = fit_cavi(responses, 2, max_iter=30, tol=0.0)
    swapped = fit_cavi(1.0 - responses, 2, max_iter=30, tol=0.0)
    np.testing.assert_allclose(predicted(swapped), 1.0 - predicted(fit), atol=1e-10)
    np.testing.assert_allclose(swapped.lower_bounds, fit.lower_bounds, rtol=1e-11)


def test_a_model_never_asked_gets_the_prior_and_changes_nobody():
    responses, _ = simulate(40, 30, 2, 12)
    fit = fit_cavi(responses, 2, max_iter=400, tol=0.0)
    longer = np.insert(responses, 7, np.nan, axis=0)
    wider = fit_cavi(longer, 2, max_iter=400, tol=0.0)
    others = np.arange(41) != 7
    np.testing.assert_allclose(wider.ability[7], 0.0, atol=1e-6)
    np.testing.assert_allclose(wider.ability_covariance[7], np.eye(2), atol=1e-6)
    np.testing.assert_allclose(predicted(wider)[others], predicted(fit), atol=1e-6)
    # Its posterior is its prior, so it adds nothing to the bound either.
    assert wider.lower_bounds[-1] == pytest.approx(fit.lower_bounds[-1], abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("n_groups", [1, 3])
def test_an_item_never_asked_gets_the_items_prior_and_changes_hardly_anything(n_groups):
    responses, _ = simulate(40, 60, 2, 13)
    groups, wide_groups = some_groups(60, n_groups), None
    if groups is not None:
        wide_groups = np.insert(groups, 7, 1)
    fit = fit_cavi(responses, 2, groups=groups, max_iter=400, tol=0.0)
    wide = np.insert(responses, 7, np.nan, axis=1)
    wider = fit_cavi(wide, 2, groups=wide_groups, max_iter=400, tol=0.0)
    x = np.append(wider.discrimination[7], wider.difficulty[7])
    np.testing.assert_allclose(x, wider.item_mean[min(1, n_groups - 1)], atol=1e-6)
    np.testing.assert_allclose(
        wider.item_covariance[7] @ wider.item_precision, np.eye(3), atol=1e-6
    )
    others = np.arange(61) != 7
    np.testing.assert_allclose(predicted(wider)[:, others], predicted(fit), atol=1e-4)


def test_a_hidden_answer_is_ignored_whatever_it_was():
    """Unhidden, the same three values give different fits."""
    responses, _ = simulate(30, 25, 2, 14)
    hidden = np.random.default_rng(14).random(responses.shape) < 0.3
    fits = []
    for value in (0.0, 1.0, 0.123):
        changed = np.where(hidden, value, responses)
        fits.append(fit_cavi(np.where(hidden, np.nan, changed), 2))
        assert np.abs(predicted(fit_cavi(changed, 2)) - predicted(fits[0])).max() > 0.05
    assert_same_fit(fits[1], fits[0], 0.0)
    assert_same_fit(fits[2], fits[0], 0.0)


@pytest.mark.filterwarnings("error")
def test_items_and_models_all_right_or_all_wrong_are_finite():
    responses, _ = simulate(30, 25, 2, 15)
    responses[:2], responses[2:4] = 1.0, 0.0
    responses[4:, :2], responses[4:, 2:4] = 1.0, 0.0
    for data in (responses, responses[:, :2], responses[:4], np.ones((5, 6)), np.zeros((5, 6))):
        fit = fit_cavi(data, 2, max_iter=200)
        for value in fit[:8]:
            assert np.isfinite(value).all()
        assert np.abs(logits(fit)).max() < 50
    easy, hard = predicted(fit_cavi(np.ones((5, 6)), 1)), predicted(fit_cavi(np.zeros((5, 6)), 1))
    assert easy.min() > 0.8 and hard.max() < 0.2


@pytest.mark.parametrize("n_models, n_items", [(3, 40), (40, 3), (1, 10), (10, 1), (1, 1)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_more_dimensions_than_models_or_items(n_models, n_items, dtype):
    responses, _ = simulate(n_models, n_items, 2, 16)
    fit = fit_cavi(responses.astype(dtype), 5)
    assert fit.ability.shape == (n_models, 5) and fit.discrimination.shape == (n_items, 5)
    for value in fit[:8]:
        assert np.isfinite(value).all()


@pytest.mark.parametrize("kind", ["binary", "missing"])
@pytest.mark.parametrize("n_dims", [1, 2, 4])
def test_dimensions_are_the_principal_axes_of_the_discriminations(kind, n_dims):
    responses, _ = simulate(60, 80, 2, 17, kind)
    loadings = fit_cavi(responses, n_dims).discrimination
    gram = loadings.T @ loadings
    off_diagonal = gram - np.diag(np.diag(gram))
    assert np.abs(off_diagonal).max() < 1e-10 * gram[0, 0]
    assert (np.diff(np.diag(gram)) < 0).all()
    assert (loadings.sum(axis=0) > 0).all()


@pytest.mark.parametrize("n_dims", [1, 2, 5])
def test_all_right_lies_above_all_wrong(n_dims):
    for seed in range(8):
        responses, _ = simulate(30, 60, 2, 100 + seed, ("binary", "missing")[seed % 2])
        unknown = np.isnan(responses[:2])
        responses[:2] = [[1.0], [0.0]]
        responses[:2][unknown] = np.nan
        fit = fit_cavi(responses, n_dims, random_state=seed)
        assert fit.ability[0, 0] > fit.ability[1, 0] + 0.5


def test_more_models_bring_the_fit_to_the_truth():
    """The end point is the error that abilities alone leave when the true items are known."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        loadings, difficulty = rng.normal(0.5, 1.0, size=(150, 2)), rng.normal(size=150)
        ability = rng.normal(size=(800, 2))
        chance = 1.0 / (1.0 + np.exp(difficulty - ability @ loadings.T))
        responses = (rng.random(chance.shape) < chance).astype(float)
        errors = []
        for n_models in (50, 200, 800):
            fit = fit_cavi(responses[:n_models], 2)
            errors.append(np.sqrt(np.mean((predicted(fit) - chance[:n_models]) ** 2)))
        known = map_abilities(responses, loadings, difficulty).ability
        floor = np.sqrt(
            np.mean((1.0 / (1.0 + np.exp(difficulty - known @ loadings.T)) - chance) ** 2)
        )
        assert errors[0] > 1.2 * errors[1] and errors[1] > 1.1 * errors[2]
        assert errors[2] < 1.2 * floor and errors[2] < 0.06


def test_abilities_and_items_are_recovered_up_to_rotation():
    rng = np.random.default_rng(19)
    ability, loadings = rng.normal(size=(600, 1)), rng.normal(1.2, 0.4, size=(120, 1))
    difficulty = rng.normal(size=120)
    chance = 1.0 / (1.0 + np.exp(difficulty - ability @ loadings.T))
    fit = fit_cavi((rng.random(chance.shape) < chance).astype(float), 1)
    assert np.corrcoef(fit.ability[:, 0], ability[:, 0])[0, 1] > 0.97
    assert np.corrcoef(fit.discrimination[:, 0], loadings[:, 0])[0, 1] > 0.9
    assert np.corrcoef(fit.difficulty, difficulty)[0, 1] > 0.99


def test_dimensions_that_the_data_do_not_need_stay_small():
    ratios, better = [], []
    for n_models, n_items in ((150, 80), (500, 250)):
        responses, chance = simulate(n_models, n_items, 1, 1)
        needed = fit_cavi(responses, 1, max_iter=40, tol=0.0)
        extra = fit_cavi(responses, 4, max_iter=40, tol=0.0)
        # Spread of the logits that a dimension makes, against the first one's.
        spread = np.linalg.norm(extra.discrimination, axis=0) * extra.ability.std(axis=0)
        ratios.append(spread[1:].max() / spread[0])
        errors = [np.sqrt(np.mean((predicted(f) - chance) ** 2)) for f in (needed, extra)]
        better.append(errors[1] / errors[0])
        # The bound tells how many dimensions there are.
        assert needed.lower_bounds[-1] > extra.lower_bounds[-1]
    assert ratios[1] < 0.1 and ratios[1] < 0.5 * ratios[0]
    assert max(better) < 1.35


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_memory_beside_the_responses_is_a_fixed_workspace(monkeypatch, dtype):
    monkeypatch.setattr(cavi, "BLOCK_CELLS", 200_000)
    responses = np.zeros((300, 20_000), dtype=dtype)
    responses[np.random.default_rng(20).random((300, 20_000)) < 0.5] = 1.0
    tracemalloc.start()
    try:
        fit = fit_cavi(responses, 2, max_iter=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    parameters = 8 * sum(part.size for part in fit[:5])
    workspace = 200_000 * responses.itemsize
    assert peak < 8 * workspace + 6 * parameters
    assert peak < 0.5 * responses.nbytes


def test_above_two_thousand_models_the_sparse_decomposition_gives_the_same_fit(monkeypatch):
    responses, _ = simulate(2050, 30, 2, 21, "missing")
    fits = [
        fit_cavi(responses, 2, max_iter=10, tol=0.0, random_state=state)
        for state in (0, 1, np.random.RandomState(5), None)
    ]

    def dense(residuals, blocks, n_models, rank, random_state):
        whole = np.hstack([residuals(block) for block in blocks])
        return np.linalg.svd(whole, full_matrices=False)[0][:, :rank]

    monkeypatch.setattr(cavi, "_left_singular_vectors", dense)
    exact = fit_cavi(responses, 2, max_iter=10, tol=0.0)
    for fit in fits:
        assert_same_fit(fit, exact, 1e-7)


def test_below_two_thousand_models_the_decomposition_is_numpys(monkeypatch):
    responses, _ = simulate(50, 70, 3, 22, "missing")
    fit = fit_cavi(responses, 3, max_iter=5, tol=0.0, random_state=0)
    assert_same_fit(fit_cavi(responses, 3, max_iter=5, tol=0.0, random_state=9), fit, 0.0)

    def dense(residuals, blocks, n_models, rank, random_state):
        whole = np.hstack([residuals(block) for block in blocks])
        return np.linalg.svd(whole, full_matrices=False)[0][:, :rank]

    monkeypatch.setattr(cavi, "_left_singular_vectors", dense)
    assert_same_fit(fit, fit_cavi(responses, 3, max_iter=5, tol=0.0), 1e-9)


def metropolis(responses, seed, n_burn, n_keep):
    """Posterior mean probabilities under the same priors, d = 1, by Metropolis within Gibbs.

    All abilities move at once (they are independent given the items), then all items, then mu
    and Lambda from their exact conditionals.
    """
    rng = np.random.default_rng(seed)
    n_models, n_items = responses.shape
    theta, items = rng.normal(size=n_models), rng.normal(size=(n_items, 2))
    items[:, 0] = np.abs(items[:, 0])
    mu, precision = np.zeros(2), np.eye(2)
    theta_step, item_step = np.full(n_models, 0.8), np.full(n_items, 0.5)
    sign = 2.0 * responses - 1.0

    def cells(theta, items):
        return -np.logaddexp(0.0, -sign * (np.outer(theta, items[:, 0]) - items[:, 1]))

    def item_prior(items):
        deviation = items - mu
        return -0.5 * np.einsum("ip,pq,iq->i", deviation, precision, deviation)

    total = np.zeros(responses.shape)
    current = cells(theta, items)
    for draw in range(n_burn + n_keep):
        proposal = theta + theta_step * rng.normal(size=n_models)
        new = cells(proposal, items)
        change = (new - current).sum(axis=1) - 0.5 * (proposal**2 - theta**2)
        taken = np.log(rng.random(n_models)) < change
        theta = np.where(taken, proposal, theta)
        current = np.where(taken[:, None], new, current)
        proposal = items + item_step[:, None] * rng.normal(size=(n_items, 2))
        new = cells(theta, proposal)
        change = (new - current).sum(axis=0) + item_prior(proposal) - item_prior(items)
        moved = np.log(rng.random(n_items)) < change
        items = np.where(moved[:, None], proposal, items)
        current = np.where(moved, new, current)
        if draw < n_burn:  # to an acceptance of about 0.35
            theta_step *= np.exp((taken - 0.4) / np.sqrt(draw + 10))
            item_step *= np.exp((moved - 0.3) / np.sqrt(draw + 10))
        covariance = np.linalg.inv(n_items * precision + np.eye(2) / 100.0)
        mu = rng.multivariate_normal(covariance @ (precision @ items.sum(axis=0)), covariance)
        deviation = items - mu
        inverse_scale = 2.0 * np.eye(2) + deviation.T @ deviation
        factor = np.linalg.cholesky(np.linalg.inv(inverse_scale))
        draws = rng.normal(size=(4 + n_items, 2)) @ factor.T
        precision = draws.T @ draws
        if draw >= n_burn and draw % 4 == 0:
            likelihood = np.exp(current)
            total += np.where(sign > 0, likelihood, 1.0 - likelihood)
    return total / len([draw for draw in range(n_burn, n_burn + n_keep) if draw % 4 == 0])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
def test_posterior_means_agree_with_mcmc(seed):
    responses, _ = simulate(40, 15, 1, 30 + seed)
    chains = [metropolis(responses, chain, 2_000, 16_000) for chain in range(2)]
    assert np.abs(chains[0] - chains[1]).mean() < 0.006  # Monte Carlo error
    reference = (chains[0] + chains[1]) / 2
    fit = fit_cavi(responses, 1, max_iter=1000, tol=1e-9)
    rng = np.random.default_rng(seed)
    theta = fit.ability[:, 0] + rng.normal(size=(4000, 40)) * np.sqrt(
        fit.ability_covariance[:, 0, 0]
    )
    factor = np.linalg.cholesky(fit.item_covariance)
    items = np.einsum("ipq,siq->sip", factor, rng.normal(size=(4000, 15, 2)))
    a, b = items[:, :, 0] + fit.discrimination[:, 0], items[:, :, 1] + fit.difficulty
    means = np.zeros((40, 15))
    for draw in range(4000):
        means += 1.0 / (1.0 + np.exp(b[draw] - np.outer(theta[draw], a[draw]))) / 4000
    for estimate in (means, predicted(fit)):
        difference = np.abs(estimate - reference)
        assert np.corrcoef(estimate.ravel(), reference.ravel())[0, 1] > 0.99
        assert difference.mean() < 0.02 and difference.max() < 0.1
