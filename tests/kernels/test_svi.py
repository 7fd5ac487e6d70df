"""The stochastic fit: its lower bound by hand, its model under other guides, isolation, CAVI."""

import importlib
import os
import random
import threading

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal, wishart

from sklearn_irt.kernels import logistic, svi
from sklearn_irt.kernels.cavi import _moments, _update_hyper, fit_cavi


def optional(module):
    """A module of the extra svi; where SKLEARN_IRT_REQUIRE_SVI is set, its absence is a failure."""
    if os.environ.get("SKLEARN_IRT_REQUIRE_SVI"):
        return importlib.import_module(module)
    return pytest.importorskip(module, reason=f"{module} is not installed (the extra svi)")


torch = optional("torch")
pyro = optional("pyro")

NAMES = ("discrimination", "difficulty", "item_covariance", "ability", "ability_covariance")


def simulate(n_models, n_items, n_dims, seed=0):
    """Responses, and the probabilities behind them."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=(n_models, n_dims))
    loadings = rng.normal(0.5, 1.0, size=(n_items, n_dims))
    chance = expit(ability @ loadings.T - rng.normal(size=n_items))
    return (rng.random(chance.shape) < chance).astype(float), chance


def chances(fit):
    return expit(fit.ability @ fit.discrimination.T - fit.difficulty)


def nearly(responses, n_dims, **options):
    """Rounds enough for what is tested, not for convergence."""
    return svi.fit_svi(responses, n_dims, random_state=0, max_iter=25, tol=0, **options)


def briefly(responses, n_dims=1, **options):
    """Three rounds."""
    options = {"random_state": 0, "max_iter": 3, "tol": 0, **options}
    return svi.fit_svi(responses, n_dims, **options)


@pytest.fixture(scope="module")
def X():
    return simulate(90, 70, 2)[0]


@pytest.fixture(scope="module")
def fitted(X):
    return svi.fit_svi(X, 2, random_state=0, tol=3e-4)


@pytest.fixture
def small_batches(monkeypatch):
    """Several strips of rows, several parts of columns."""
    monkeypatch.setattr(svi, "STRIP_ROWS", 32)
    monkeypatch.setattr(svi, "BATCH_CELLS", 32 * 25)


def tiny_guide(responses, n_dims, groups, device="cpu"):
    """A guide in a random state, and that state."""
    rng = np.random.default_rng(1)
    n_models, n_items = responses.shape

    def spread(count, size):
        root = np.tril(rng.normal(0, 0.2, size=(count, size, size)), -1) + 0.4 * np.eye(size)
        return root @ root.swapaxes(1, 2)

    mean, covariance = rng.normal(size=(n_items, n_dims + 1)), spread(n_items, n_dims + 1)
    ability, ability_cov = rng.normal(size=(n_models, n_dims)), spread(n_models, n_dims)
    members = [np.flatnonzero(groups == g) for g in range(groups.max() + 1)]
    hyper = _update_hyper(_moments(mean, covariance, members))
    state = mean, covariance, ability, ability_cov, hyper
    return svi._Guide(torch, pyro, torch.device(device), *state), state, members


def bound_by_hand(responses, groups, state, n_draws, seed=0):
    """Draws of log p(y, theta, x, mu, Lambda) - log q, with scipy's densities."""
    mean, covariance, ability, ability_cov, hyper = state
    rng = np.random.default_rng(seed)
    size = mean.shape[1]
    terms = np.zeros(n_draws)
    seen = ~np.isnan(responses)
    centre = np.stack(
        [
            rng.multivariate_normal(m, c, size=n_draws)
            for m, c in zip(hyper.mean, hyper.mean_covariance, strict=True)
        ],
        axis=1,
    )
    posterior = wishart(hyper.degrees, np.linalg.inv(hyper.inverse_scale))
    precision = posterior.rvs(size=n_draws, random_state=rng)
    prior = wishart(size + 2, np.eye(size) / 2)
    for draw in range(n_draws):
        terms[draw] += prior.logpdf(precision[draw]) - posterior.logpdf(precision[draw])
    for g in range(len(hyper.mean)):
        terms += multivariate_normal(np.zeros(size), 100 * np.eye(size)).logpdf(centre[:, g])
        terms -= multivariate_normal(hyper.mean[g], hyper.mean_covariance[g]).logpdf(centre[:, g])
    items = np.empty((n_draws, len(mean), size))
    for i, (m, c) in enumerate(zip(mean, covariance, strict=True)):
        items[:, i] = rng.multivariate_normal(m, c, size=n_draws)
        terms -= multivariate_normal(m, c).logpdf(items[:, i])
        away = items[:, i] - centre[:, groups[i]]
        terms += 0.5 * np.linalg.slogdet(precision)[1] - 0.5 * size * np.log(2 * np.pi)
        terms -= 0.5 * np.einsum("sp,spq,sq->s", away, precision, away)
    for row, (m, c) in enumerate(zip(ability, ability_cov, strict=True)):
        theta = rng.multivariate_normal(m, c, size=n_draws)
        terms += multivariate_normal(np.zeros(len(m)), np.eye(len(m))).logpdf(theta)
        terms -= multivariate_normal(m, c).logpdf(theta)
        logit = np.einsum("sd,sid->si", theta, items[:, :, :-1]) - items[:, :, -1]
        likelihood = np.nan_to_num(responses[row]) * logit - np.logaddexp(0, logit)
        terms += likelihood[:, seen[row]].sum(axis=1)
    return terms


@pytest.mark.slow
def test_the_lower_bound_is_that_computed_by_hand():
    """Groups, missing cells and fractional responses; means of draws, to four standard errors."""
    responses = np.random.default_rng(0).random((5, 7)).round(1)
    responses[[0, 3], [2, 6]] = np.nan
    groups = np.array([0, 0, 1, 1, 1, 0, 1])
    with svi._isolated(torch, pyro, torch.device("cpu"), 0):
        guide, state, _ = tiny_guide(responses, 2, groups)
        elbo = pyro.infer.Trace_ELBO()
        every = {"rows": torch.arange(5), "columns": torch.arange(7)}
        sizes = {"n_dims": 2, "n_groups": 2, "shape": (5, 7), "groups": torch.as_tensor(groups)}
        part = torch.as_tensor(responses, dtype=torch.float32)
        found = [-elbo.loss(svi.irt_model, guide, part, **every, **sizes) for _ in range(200)]
    expected = bound_by_hand(responses, groups, state, 6000)
    error = np.hypot(np.std(found) / 200**0.5, np.std(expected) / 6000**0.5)
    assert error < 0.8
    assert abs(np.mean(found) - np.mean(expected)) < 4 * error


@pytest.mark.slow
def test_batches_say_the_same_of_the_whole_on_average():
    responses = np.random.default_rng(0).random((6, 8)).round(1)
    responses[1, 1] = np.nan
    groups = np.zeros(8, dtype=int)
    sizes = {"n_dims": 1, "n_groups": 1, "shape": (6, 8)}

    def bound(rows, columns):
        part = torch.as_tensor(responses[np.ix_(rows, columns)], dtype=torch.float32)
        where = {"rows": torch.as_tensor(rows), "columns": torch.as_tensor(columns)}
        return -elbo.loss(svi.irt_model, guide, part, groups=where["columns"] * 0, **where, **sizes)

    with svi._isolated(torch, pyro, torch.device("cpu"), 0):
        guide, _, _ = tiny_guide(responses, 1, groups)
        elbo = pyro.infer.Trace_ELBO()
        whole = [bound(np.arange(6), np.arange(8)) for _ in range(100)]
        quarters = [
            np.mean([bound(rows, columns) for rows in rows_of for columns in columns_of])
            for rows_of, columns_of in [
                (np.split(np.arange(6), 2), np.split(np.arange(8), 2)) for _ in range(40)
            ]
        ]
    error = np.hypot(np.std(whole) / 100**0.5, np.std(quarters) / 40**0.5)
    assert error < 1.2
    assert abs(np.mean(whole) - np.mean(quarters)) < 4 * error


@pytest.mark.slow
def test_a_guide_of_pyros_own_finds_the_same_items_and_no_higher_bound():
    responses, _ = simulate(40, 12, 1)
    fit = nearly(responses, 1)
    part = torch.as_tensor(responses)
    with svi._isolated(torch, pyro, torch.device("cpu"), 0):
        items_first = pyro.infer.autoguide.init_to_value(
            values={
                "item": torch.as_tensor(np.c_[fit.discrimination, fit.difficulty]),
                "ability": torch.as_tensor(fit.ability)[:, None],
            }
        )
        guide = pyro.infer.autoguide.AutoNormal(svi.irt_model, init_loc_fn=items_first)
        optimiser = pyro.optim.ClippedAdam({"lr": 0.02, "lrd": 0.985})
        inference = pyro.infer.SVI(svi.irt_model, guide, optimiser, pyro.infer.Trace_ELBO())
        losses = [inference.step(part, n_dims=1) for _ in range(200)]
        theirs = guide.median()["item"].numpy()
    assert np.corrcoef(theirs[:, 0], fit.discrimination[:, 0])[0, 1] > 0.97
    assert np.corrcoef(theirs[:, 1], fit.difficulty)[0, 1] > 0.99
    bound = -np.array(losses[-100:]) / responses.size
    error = np.std(bound) / 100**0.5
    assert bound.mean() < fit.lower_bounds[-10:].mean() + 4 * error


@pytest.mark.slow
def test_it_agrees_with_coordinate_ascent(X, fitted):
    cavi = fit_cavi(X, 2, max_iter=200)
    assert fitted.converged and fitted.n_iter < 200
    assert np.corrcoef(chances(fitted).ravel(), chances(cavi).ravel())[0, 1] > 0.99
    assert np.corrcoef(fitted.difficulty, cavi.difficulty)[0, 1] > 0.99
    assert np.corrcoef(fitted.ability[:, 0], cavi.ability[:, 0])[0, 1] > 0.99
    # The logistic likelihood is above the Polya-Gamma bound of it.
    assert cavi.lower_bounds[-1] < fitted.lower_bounds[-20:].mean() < cavi.lower_bounds[-1] + 0.03
    ratio = np.sqrt(
        np.diagonal(fitted.item_covariance, axis1=1, axis2=2)
        / np.diagonal(cavi.item_covariance, axis1=1, axis2=2)
    )
    assert 0.8 < np.median(ratio) < 1.25


@pytest.mark.slow
def test_dimensions_are_ordered_and_point_upwards(fitted):
    sizes = (fitted.discrimination**2).sum(axis=0)
    assert sizes[0] > sizes[1] and (fitted.discrimination.sum(axis=0) > 0).all()
    for covariances in (fitted.item_covariance, fitted.ability_covariance):
        assert (np.linalg.eigvalsh(covariances) > 0).all()


@pytest.mark.slow
def test_small_batches_find_what_whole_matrices_find(X, fitted, small_batches):
    assert svi.n_batches(*X.shape) == 9
    batched = nearly(X, 2)
    assert np.corrcoef(chances(batched).ravel(), chances(fitted).ravel())[0, 1] > 0.99


def test_a_pass_reads_every_cell_once(small_batches):
    cells = np.arange(90 * 70, dtype=float).reshape(90, 70)
    batches = svi._batches(torch, cells, np.random.RandomState(0), torch.device("cpu"))
    order = []
    for _ in range(2):
        seen = np.zeros(cells.shape, dtype=int)
        for rows, columns, part in (next(batches) for _ in range(svi.n_batches(90, 70))):
            seen[np.ix_(rows, columns)] += 1
            np.testing.assert_array_equal(part, cells[np.ix_(rows, columns)])
            order.append(rows[0])
        assert (seen == 1).all()
    assert order[:9] != order[9:]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((2, 1), 1),
        ((448, 541), 1),
        ((2000, 541), 8),
        ((395, 28659), 44),
        ((10**6, 10**6), 125_000 * 31),
    ],
)
def test_number_of_batches(shape, expected):
    assert svi.n_batches(*shape) == pytest.approx(expected, rel=0.01)


class Rows:
    """Responses that can only be read some rows at a time."""

    def __init__(self, array):
        self._array, self.most = array, 0
        self.shape, self.dtype = array.shape, array.dtype

    def __getitem__(self, rows):
        part = self._array[rows]
        assert part.ndim == 2
        self.most = max(self.most, len(part))
        return part.copy()


def test_no_more_than_a_strip_of_rows_is_read_at_a_time(X, small_batches, monkeypatch):
    monkeypatch.setattr(logistic, "BLOCK_ELEMENTS", 32 * 70)
    rows = Rows(X)
    found, expected = briefly(rows), briefly(X)
    assert rows.most <= 32
    for name in NAMES:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_the_seed_reproduces(X, small_batches):
    one, two, other = (briefly(X, random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.lower_bounds, two.lower_bounds)
    for name in NAMES:
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert (one.lower_bounds != other.lower_bounds).all()


@pytest.mark.slow
def test_the_users_torch_and_pyro_are_left_as_they_were(X):
    random.seed(5), torch.manual_seed(5)
    mine = pyro.param("item_mean", torch.ones(3))
    before = (
        random.getstate(),
        np.random.mtrand._rand.get_state()[1].tolist(),
        torch.get_rng_state(),
    )
    settings = pyro.settings.get(), torch.get_num_threads(), torch.get_default_dtype()
    try:
        with torch.no_grad():
            first = briefly(X)
            assert not torch.is_grad_enabled()
        with torch.inference_mode():
            second = briefly(X)
        torch.set_default_dtype(torch.float64)
        third = briefly(X)
    finally:
        torch.set_default_dtype(settings[2])
    assert (
        random.getstate() == before[0]
        and np.random.mtrand._rand.get_state()[1].tolist() == before[1]
    )
    assert torch.equal(torch.get_rng_state(), before[2])
    assert (pyro.settings.get(), torch.get_num_threads()) == settings[:2]
    assert dict(pyro.get_param_store()).keys() == {"item_mean"}
    assert pyro.param("item_mean") is mine
    pyro.clear_param_store()
    for name in NAMES:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
        np.testing.assert_array_equal(getattr(first, name), getattr(third, name))


def test_what_fails_leaves_pyro_as_it_was(X):
    pyro.clear_param_store()

    def stop(n_iter, bound):
        raise KeyboardInterrupt

    before = torch.get_rng_state()
    with pytest.raises(KeyboardInterrupt):
        briefly(X, callback=stop)
    assert not dict(pyro.get_param_store())
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.slow
def test_fits_in_threads_are_those_of_one_after_the_other(X):
    parts, found = [X[:, :30], X[:, 30:]], {}

    def work(number):
        found[number] = briefly(parts[number])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(2):
        expected = briefly(parts[number])
        np.testing.assert_array_equal(found[number].difficulty, expected.difficulty)
        np.testing.assert_array_equal(found[number].lower_bounds, expected.lower_bounds)


@pytest.mark.slow
def test_missing_cells_are_not_seen(X):
    holed = X.copy()
    holed[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
    fit, cavi = nearly(holed, 2), fit_cavi(holed, 2, max_iter=200)
    assert np.corrcoef(chances(fit).ravel(), chances(cavi).ravel())[0, 1] > 0.98
    wide = np.c_[holed, np.full(len(X), np.nan)]
    wide = np.vstack([wide, np.full(wide.shape[1], np.nan)])
    unasked = briefly(wide, 2)
    np.testing.assert_array_equal(unasked.ability[-1], np.zeros(2))
    np.testing.assert_allclose(unasked.ability_covariance[-1], np.eye(2), atol=1e-12)
    np.testing.assert_allclose(
        np.append(unasked.discrimination[-1], unasked.difficulty[-1]), unasked.item_mean[0]
    )
    np.testing.assert_allclose(
        unasked.item_covariance[-1], np.linalg.inv(unasked.item_precision), rtol=1e-6, atol=1e-9
    )


@pytest.mark.slow
def test_groups_have_a_prior_mean_of_their_own():
    responses, _ = simulate(80, 40, 1)
    responses[:, 20:] = np.maximum(responses[:, 20:], responses[:, :20])  # easy
    groups = np.repeat([5, 2], 20)
    fit = nearly(responses, 1, groups=groups)
    cavi = fit_cavi(responses, 1, groups=groups, max_iter=200)
    assert fit.item_mean.shape == (2, 2)
    np.testing.assert_allclose(fit.item_mean, cavi.item_mean, atol=0.2)
    assert fit.item_mean[1, 1] > fit.item_mean[0, 1] + 0.5


@pytest.mark.slow
def test_fractional_responses():
    _, chance = simulate(60, 50, 1)
    fractional = np.random.default_rng(0).beta(4 * chance, 4 * (1 - chance))
    fit = nearly(fractional, 1)
    assert np.sqrt(((chances(fit) - chance) ** 2).mean()) < 0.1


@pytest.mark.parametrize("shape", [(2, 1), (2, 3), (4, 2), (1, 4)])
@pytest.mark.parametrize("value", [0.0, 1.0, None])
def test_small_and_constant_matrices(shape, value):
    responses = np.full(shape, value) if value is not None else np.eye(5)[: shape[0], : shape[1]]
    fit = briefly(responses, 3)
    assert fit.discrimination.shape == (shape[1], 3) and fit.ability.shape == (shape[0], 3)
    assert all(np.isfinite(getattr(fit, name)).all() for name in NAMES)


def test_float32_in_float32_out(X):
    single, double = briefly(X.astype(np.float32)), briefly(X)
    for name in NAMES:
        assert getattr(single, name).dtype == np.float32
        assert getattr(double, name).dtype == np.float64
        np.testing.assert_allclose(getattr(single, name), getattr(double, name), atol=1e-2)


def test_rounds_are_counted_and_reported(X):
    seen = []
    fit = briefly(X, max_iter=4, callback=lambda *report: seen.append(report))
    assert fit.n_iter == 4 and fit.converged is False
    assert [n_iter for n_iter, _ in seen] == [1, 2, 3, 4]
    np.testing.assert_array_equal([bound for _, bound in seen], fit.lower_bounds)
    assert fit.lower_bounds[-1] > fit.lower_bounds[0]


def test_it_settles_when_the_smoothed_bound_no_longer_rises():
    noise = np.random.default_rng(0).normal(0, 1e-4, 60)
    rising = list(-1 + 1e-3 * np.arange(60) + noise)
    level = list(-1 + noise)
    assert not svi.has_settled(rising, 1e-4)
    assert svi.has_settled(rising, 2e-3)
    assert svi.has_settled(level, 1e-4)
    assert not svi.has_settled(level, 0)
    assert not svi.has_settled(level[: 2 * svi.SMOOTHING - 1], 1e-4)


@pytest.mark.parametrize("device", ["cuda", "abacus", "cuda:99"])
def test_a_device_that_is_not_there_is_named(device, X):
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    with pytest.raises(ValueError, match=f'device=.{device}. cannot be used: .*use device="cpu"'):
        briefly(X, device=device)


def test_a_cuda_device_is_used_and_its_random_numbers_left_alone(X):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    before = torch.cuda.get_rng_state()
    one, two = (briefly(X, device="cuda") for _ in range(2))
    assert torch.equal(torch.cuda.get_rng_state(), before)
    np.testing.assert_allclose(one.difficulty, two.difficulty, atol=1e-3)
    np.testing.assert_allclose(one.difficulty, briefly(X).difficulty, atol=0.2)


@pytest.mark.slow
def test_it_recovers_a_large_matrix_in_batches(monkeypatch):
    n_dims = 3
    monkeypatch.setattr(svi, "BATCH_CELLS", 2**17)
    responses, chance = simulate(800, 700, n_dims)
    assert svi.n_batches(*responses.shape) > 3
    fit = svi.fit_svi(responses, n_dims, random_state=0)
    cavi = fit_cavi(responses, n_dims, max_iter=200)
    errors = [np.sqrt(((chances(f) - chance) ** 2).mean()) for f in (fit, cavi)]
    assert errors[0] < 1.1 * errors[1]
