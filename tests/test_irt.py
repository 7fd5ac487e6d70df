"""IRTRegressor: what it recovers, what it says about the fit, and its units."""

import importlib
import os
import subprocess
import sys
import tracemalloc
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import expit
from scipy.stats import kendalltau
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

from sklearn_irt import IRTRegressor
from sklearn_irt.datasets import make_responses
from sklearn_irt.kernels import logistic
from sklearn_irt.kernels.cavi import fit_cavi


@pytest.fixture(scope="module")
def data():
    return make_responses(n_models=150, n_items=120, n_dims=2, random_state=0)


@pytest.fixture(scope="module")
def X(data):
    return data.responses.to_numpy()


@pytest.fixture(scope="module")
def partly(X):
    """Three in ten asked."""
    return np.where(np.random.RandomState(1).rand(*X.shape) < 0.3, X, np.nan)


@pytest.fixture(scope="module")
def fitted(X):
    return IRTRegressor(2).fit(X)


@pytest.fixture(scope="module")
def scenarios(data):
    return make_responses(100, n_dims=2, scenarios={"a": 40, "b": 60}, random_state=3)


@pytest.fixture(scope="module")
def correlated(scenarios):
    return IRTRegressor(2, scenarios=scenarios["items"]["scenario"]).fit(scenarios.responses)


def test_recovers_the_simulated_model(data, fitted):
    p = expit(fitted.ability_ @ fitted.discrimination_.T - fitted.difficulty_)
    assert np.sqrt(((p - data.probabilities) ** 2).mean()) < 0.08
    assert np.corrcoef(fitted.difficulty_, data.difficulty)[0, 1] > 0.95
    space = np.linalg.lstsq(fitted.ability_, data.ability, rcond=None)[0]
    assert np.corrcoef((fitted.ability_ @ space)[:, 0], data.ability[:, 0])[0, 1] > 0.95


def test_shapes_and_how_the_fit_went(fitted, X):
    n, m = X.shape
    assert fitted.ability_.shape == (n, 2) and fitted.ability_covariance_.shape == (n, 2, 2)
    assert fitted.discrimination_.shape == (m, 2) and fitted.difficulty_.shape == (m,)
    assert fitted.item_covariance_.shape == (m, 3, 3)
    np.testing.assert_allclose(fitted.prior_precision_, np.eye(2))
    assert fitted.converged_ is True and 1 < fitted.n_iter_ < 200
    assert fitted.lower_bounds_.shape == (fitted.n_iter_,)
    assert (np.diff(fitted.lower_bounds_) > -1e-9).all()
    assert fitted.lower_bounds_[-1] - fitted.lower_bounds_[-2] < 1e-5
    for covariances in (fitted.ability_covariance_, fitted.item_covariance_):
        assert (np.linalg.eigvalsh(covariances) > 0).all()
    assert fitted.scenarios_ == ("all",)
    np.testing.assert_array_equal(fitted.item_weights_, np.full(m, 1 / m))


def test_dimensions_are_ordered_and_point_upwards(fitted):
    sizes = (fitted.discrimination_**2).sum(axis=0)
    assert sizes[0] > sizes[1]
    assert (fitted.discrimination_.sum(axis=0) > 0).all()
    right, wrong = fitted.transform(np.ones((1, 120))), fitted.transform(np.zeros((1, 120)))
    assert right[0, 0] > 1 > -1 > wrong[0, 0]


def test_dimensions_that_are_not_needed_shrink():
    X = make_responses(150, 120, n_dims=1, random_state=0).responses
    sizes = (IRTRegressor(5).fit(X).discrimination_ ** 2).mean(axis=0)
    assert sizes[0] > 0.5 and (sizes[1:] < 0.1 * sizes[0]).all()


def test_abilities_are_the_posterior_mode(fitted, partly):
    """By scipy's optimiser, with a gradient by finite differences."""
    found = fitted.transform(partly)
    for row in range(0, 150, 30):
        seen = ~np.isnan(partly[row])
        a, b, y = fitted.discrimination_[seen], fitted.difficulty_[seen], partly[row, seen]

        def loss(theta, a=a, b=b, y=y):
            logit = a @ theta - b
            prior = theta @ fitted.prior_precision_ @ theta / 2
            return prior - (y * logit - np.logaddexp(0, logit)).sum()

        best = minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-8}).x
        np.testing.assert_allclose(found[row], best, atol=1e-5)
        assert np.abs(approx_fprime(found[row], loss, 1e-7)).max() < 1e-4


def test_correlated_abilities_are_the_posterior_mode(correlated, scenarios):
    X = scenarios.responses.to_numpy()
    X = np.where(np.random.RandomState(1).rand(*X.shape) < 0.2, X, np.nan)
    found = correlated.transform(X)
    assert found.shape == (100, 4)
    for row in (0, 50, 99):
        seen = ~np.isnan(X[row])
        a, b = correlated.discrimination_[seen], correlated.difficulty_[seen]

        def loss(theta, a=a, b=b, y=X[row, seen]):
            logit = a @ theta - b
            prior = theta @ correlated.prior_precision_ @ theta / 2
            return prior - (y * logit - np.logaddexp(0, logit)).sum()

        best = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-8}).x
        np.testing.assert_allclose(found[row], best, atol=1e-4)


def test_several_scenarios_stack(correlated, scenarios):
    loads = correlated.discrimination_ != 0
    assert loads[:40, :2].all() and not loads[:40, 2:].any()
    assert loads[40:, 2:].all() and not loads[40:, :2].any()
    assert correlated.scenarios_ == ("a", "b")
    assert [len(bounds) for bounds in correlated.lower_bounds_] != []
    assert max(map(len, correlated.lower_bounds_)) == correlated.n_iter_
    covariance = np.linalg.inv(correlated.prior_precision_)
    assert np.linalg.eigvalsh(covariance).min() > 0
    # The spread over the models is learned: near 1 for the first ability of each scenario.
    np.testing.assert_allclose(np.diag(covariance)[[0, 2]], 1, atol=0.25)
    assert (np.diag(covariance) < 1.25).all()
    assert abs(covariance[0, 2]) > 0.3  # the first abilities of the two correlate
    assert correlated.ability_covariance_.shape == (100, 4, 4)
    assert correlated.ability_covariance_[:, 0, 2].mean() > 0  # the first ability of the two


def test_kinds_of_abilities_of_several_scenarios(scenarios):
    labels = scenarios["items"]["scenario"]
    fits = {
        kind: IRTRegressor(2, scenarios=labels, abilities=kind).fit(scenarios.responses)
        for kind in ("correlated", "separate", "joint")
    }
    assert fits["joint"].ability_.shape == (100, 2)
    assert fits["separate"].ability_.shape == fits["correlated"].ability_.shape == (100, 4)
    np.testing.assert_allclose(fits["separate"].prior_precision_, np.eye(4))
    np.testing.assert_array_equal(
        fits["separate"].discrimination_, fits["correlated"].discrimination_
    )
    alone = IRTRegressor(2).fit(scenarios.responses.iloc[:, :40])
    np.testing.assert_allclose(fits["separate"].discrimination_[:40, :2], alone.discrimination_)
    grouped = fit_cavi(
        scenarios.responses.to_numpy(), 2, groups=np.repeat([0, 1], [40, 60]), max_iter=200
    )
    np.testing.assert_allclose(fits["joint"].discrimination_, grouped.discrimination)
    plain = IRTRegressor(2).fit(scenarios.responses)
    assert np.abs(fits["joint"].difficulty_ - plain.difficulty_).max() > 1e-3


@pytest.mark.parametrize("abilities", ["correlated", "joint"])
def test_the_items_of_every_subscenario_have_a_prior_mean_of_their_own(abilities):
    sizes = {"a": {"x": 25, "y": 15}, "b": {"x": 20, "z": 30}}
    data = make_responses(60, n_dims=2, scenarios=sizes, random_state=0)
    pairs = data["items"][["scenario", "subscenario"]]
    irt = IRTRegressor(2, scenarios=pairs, abilities=abilities).fit(data.responses)
    groups = np.repeat([0, 1, 2, 3], [25, 15, 20, 30])
    items = [np.arange(90)] if abilities == "joint" else [np.arange(40), np.arange(40, 90)]
    for part, members in enumerate(items):
        responses = data.responses.to_numpy()[:, members]
        alone = fit_cavi(responses, 2, groups=groups[members], max_iter=200)
        block = irt.discrimination_[members, 2 * part : 2 * part + 2]
        np.testing.assert_allclose(block, alone.discrimination)
        np.testing.assert_allclose(irt.difficulty_[members], alone.difficulty)


def test_an_item_without_answers_gets_the_mean_of_its_subscenario():
    sizes = {"a": {"easy": 40, "hard": 40}}
    data = make_responses(80, n_dims=1, scenarios=sizes, random_state=0)
    responses = data.responses.to_numpy().copy()
    responses[:, :40] = np.maximum(responses[:, :40], data.responses.to_numpy()[:, 40:])
    responses[:, [3, 43]] = np.nan
    pairs = data["items"][["scenario", "subscenario"]]
    irt = IRTRegressor(1, scenarios=pairs).fit(responses)
    for item, others in ((3, range(40)), (43, range(40, 80))):
        mean = np.mean([irt.difficulty_[i] for i in others if i != item])
        assert irt.difficulty_[item] == pytest.approx(mean, abs=0.05)
    assert irt.difficulty_[43] > irt.difficulty_[3] + 0.5


def test_what_is_asked_in_one_scenario_sharpens_the_other(scenarios, correlated):
    X = scenarios.responses.to_numpy().copy()
    truth = X[:, :40].mean(axis=1)
    X[:, 3:40] = np.nan  # three questions of a, all of b
    separate = IRTRegressor(2, scenarios=scenarios["items"]["scenario"], abilities="separate").fit(
        scenarios.responses
    )
    errors = [
        np.abs(irt.predict_responses(X)[:, :40].mean(axis=1) - truth).mean()
        for irt in (correlated, separate)
    ]
    assert errors[0] < 0.8 * errors[1]


def test_predictions_are_the_models_expectation(fitted, partly):
    theta = fitted.transform(partly)
    expected = expit(theta @ fitted.discrimination_.T - fitted.difficulty_)
    np.testing.assert_allclose(fitted.predict_responses(partly), expected, rtol=1e-12)
    np.testing.assert_allclose(fitted.predict(partly), expected.mean(axis=1), rtol=1e-12)
    information = expected * (1 - expected) * (fitted.discrimination_**2).sum(axis=1)
    np.testing.assert_allclose(fitted.item_information(theta), information, rtol=1e-12)


def test_predict_is_the_mean_over_scenarios_and_subscenarios():
    data = make_responses(60, scenarios={"a": {"x": 30, "y": 5}, "b": 45}, n_dims=1, random_state=0)
    pairs = data["items"][["scenario", "subscenario"]]
    irt = IRTRegressor(1, scenarios=pairs).fit(data.responses)
    each = irt.predict_responses(data.responses)
    a = (each[:, :30].mean(axis=1) + each[:, 30:35].mean(axis=1)) / 2
    expected = (a + each[:, 35:].mean(axis=1)) / 2
    np.testing.assert_allclose(irt.predict(data.responses), expected, rtol=1e-12)
    assert np.abs(expected - data.scores).mean() < 0.04


def test_score_is_the_held_out_log_likelihood(fitted, partly):
    total = count = 0.0
    for known in (np.arange(120) % 2 == 0, np.arange(120) % 2 == 1):
        p = fitted.predict_responses(np.where(known, partly, np.nan))[:, ~known]
        judged = partly[:, ~known]
        seen = ~np.isnan(judged)
        total += np.log(np.where(judged == 1, p, 1 - p))[seen].sum()
        count += seen.sum()
    assert fitted.score(partly) == pytest.approx(total / count, rel=1e-10)
    assert count == (~np.isnan(partly)).sum()
    weight = np.r_[np.ones(75), np.zeros(75)]
    assert fitted.score(partly, sample_weight=weight) == pytest.approx(fitted.score(partly[:75]))
    assert fitted.score(partly, None) == fitted.score(partly, np.zeros(150))
    with pytest.raises(ValueError, match="no observed response"):
        fitted.score(partly * np.nan)


def test_target_is_ignored(X, fitted):
    with_target = IRTRegressor(2).fit(X, np.random.RandomState(0).rand(150))
    np.testing.assert_array_equal(with_target.discrimination_, fitted.discrimination_)


def test_the_seed_is_of_no_influence_on_few_models(X, fitted):
    for seed in (0, 1, np.random.RandomState(5)):
        again = IRTRegressor(2, random_state=seed).fit(X)
        np.testing.assert_array_equal(again.ability_, fitted.ability_)


def test_the_seed_reproduces_on_many_models():
    X = make_responses(2100, 40, n_dims=1, random_state=0).responses.to_numpy()
    one, two = (IRTRegressor(1, random_state=7).fit(X) for _ in range(2))
    np.testing.assert_array_equal(one.ability_, two.ability_)
    other = IRTRegressor(1, random_state=8).fit(X)
    np.testing.assert_allclose(other.ability_, one.ability_, atol=0.02)


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_results_do_not_depend_on_n_jobs(n_jobs, scenarios, correlated):
    again = IRTRegressor(2, scenarios=scenarios["items"]["scenario"], n_jobs=n_jobs)
    again.fit(scenarios.responses)
    for name in ("discrimination_", "difficulty_", "ability_", "prior_precision_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(correlated, name))


def test_memory_gives_the_same(tmp_path, X, fitted):
    for seed in (0, 1):  # of no influence: one entry for both
        cached = IRTRegressor(2, memory=str(tmp_path), random_state=seed).fit(X)
        np.testing.assert_array_equal(cached.ability_, fitted.ability_)
        assert cached.n_iter_ == fitted.n_iter_
    assert len(list(tmp_path.rglob("output.pkl"))) == 1
    IRTRegressor(1, memory=str(tmp_path)).fit(X)
    assert len(list(tmp_path.rglob("output.pkl"))) == 2


def test_too_few_rounds_warn(X):
    with pytest.warns(ConvergenceWarning, match="max_iter=2 rounds; raise max_iter or tol"):
        fitted = IRTRegressor(2, max_iter=2).fit(X)
    assert fitted.converged_ is False and fitted.n_iter_ == 2
    assert len(fitted.lower_bounds_) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exact = IRTRegressor(2, max_iter=3, tol=0).fit(X)  # a fixed number of rounds
    assert exact.n_iter_ == 3


def test_verbose_prints_the_lower_bound(capsys, X):
    IRTRegressor(2, verbose=1, max_iter=12, tol=0).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        f"[IRTRegressor] part 1/1, round {i}" for i in (1, 10)
    ]
    IRTRegressor(2, max_iter=12, tol=0).fit(X)
    assert capsys.readouterr().out == ""


def test_maximum_likelihood_warns_and_holds_the_norm(X):
    rows = np.vstack([np.ones(120), np.zeros(120), X[0]])
    mle = IRTRegressor(2, ability="mle").fit(X)
    with pytest.warns(UserWarning, match="2 of 3 models have no finite maximum-likelihood"):
        found = mle.transform(rows)
    np.testing.assert_allclose(np.linalg.norm(found[:2], axis=1), 10, rtol=1e-4)
    a, b = mle.discrimination_, mle.difficulty_
    gradient = (X[0] - expit(a @ found[2] - b)) @ a
    assert np.abs(gradient).max() < 1e-5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.linalg.norm(IRTRegressor(2).fit(X).transform(rows), axis=1).max() < 6


def test_a_row_without_answers_gets_the_prior_mean(fitted):
    nothing = np.full((1, 120), np.nan)
    np.testing.assert_array_equal(fitted.transform(nothing), np.zeros((1, 2)))
    assert fitted.predict(nothing)[0] == pytest.approx(expit(-fitted.difficulty_).mean())


def test_an_item_without_answers_gets_the_mean_of_the_items(X):
    holed = X.copy()
    holed[:, 7] = np.nan
    irt = IRTRegressor(2).fit(holed)
    others = np.delete(np.arange(120), 7)
    assert irt.difficulty_[7] == pytest.approx(irt.difficulty_[others].mean(), abs=0.05)
    np.testing.assert_allclose(
        irt.discrimination_[7], irt.discrimination_[others].mean(axis=0), atol=0.05
    )


@pytest.mark.parametrize(("low", "high"), [(0, 100), (1, 10), (-1, 1), (-250, -50)])
def test_units(low, high, X, partly, fitted):
    scaled = IRTRegressor(2, response_range=(low, high)).fit(low + (high - low) * X)
    answers = low + (high - low) * partly
    np.testing.assert_allclose(
        scaled.predict(answers), low + (high - low) * fitted.predict(partly), rtol=1e-7
    )
    np.testing.assert_allclose(
        scaled.predict_responses(answers),
        low + (high - low) * fitted.predict_responses(partly),
        rtol=1e-6,
        atol=1e-7 * (high - low),
    )
    np.testing.assert_allclose(scaled.transform(answers), fitted.transform(partly), atol=1e-7)
    assert scaled.score(answers) == pytest.approx(fitted.score(partly), abs=1e-7)


def test_fractional_responses():
    data = make_responses(100, 80, n_dims=1, response="fractional", random_state=0)
    irt = IRTRegressor(1).fit(data.responses)
    assert np.abs(irt.predict(data.responses) - data.scores).mean() < 0.01
    p = expit(irt.ability_ @ irt.discrimination_.T - irt.difficulty_)
    assert np.sqrt(((p - data.probabilities) ** 2).mean()) < 0.07


def test_item_information_refuses_other_shapes(fitted):
    with pytest.raises(ValueError, match=r"ability must have shape \(n_models, 2\), got \(3, 1\)"):
        fitted.item_information(np.zeros((3, 1)))
    with pytest.raises(ValueError, match="Expected 2D array"):
        fitted.item_information(np.zeros(2))
    with pytest.raises(ValueError, match="NaN"):
        fitted.item_information([[np.nan, 1.0]])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_dims", 0),
        ("n_dims", 1.5),
        ("solver", "nuts"),
        ("device", 1),
        ("max_iter", 0),
        ("tol", -1),
        ("abilities", "x"),
        ("ability", "map "),
        ("memory", 3),
        ("n_jobs", "2"),
        ("random_state", -1),
        ("verbose", -1),
        ("scenarios", "ab"),
        ("response_range", 5),
    ],
)
def test_bad_parameters_are_named(name, value, X):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of IRTRegressor must be"):
        IRTRegressor(**{name: value}).fit(X)


def test_names_of_the_output(data, fitted):
    assert list(fitted.get_feature_names_out()) == ["irtregressor0", "irtregressor1"]
    table = IRTRegressor(2).set_output(transform="pandas").fit_transform(data.responses)
    assert isinstance(table, pd.DataFrame)
    assert list(table.index) == list(data.responses.index)
    np.testing.assert_allclose(table, fitted.transform(data.responses.to_numpy()))


def test_threshold_is_the_fit_of_right_or_wrong():
    data = make_responses(
        n_models=40, scenarios={"a": 30, "b": 20}, response="fractional", random_state=0
    )
    labels, X = data["items"]["scenario"], data.responses.to_numpy()
    irt = IRTRegressor(2, scenarios=labels, response_model="threshold").fit(X)
    index = np.repeat([0, 1], [30, 20])
    binary = (X >= irt.thresholds_[index]).astype(float)
    for s, members in enumerate([slice(0, 30), slice(30, 50)]):
        surplus = binary[:, members].sum() - X[:, members].sum()
        assert abs(surplus) <= 0.5, s
    same = IRTRegressor(2, scenarios=labels).fit(binary)
    np.testing.assert_array_equal(irt.discrimination_, same.discrimination_)
    np.testing.assert_array_equal(irt.transform(X), same.transform(binary))
    assert irt.score(X) == same.score(binary)
    assert IRTRegressor(2).fit(X).thresholds_ is None


def test_threshold_that_separates_nothing_is_refused():
    X = np.full((10, 6), 0.9)
    X[0, 0] = 0.95
    X[1:, 1] = 1.0
    X[:, 2:] = 0.99
    with pytest.raises(ValueError, match="scenario 'all' on one side"):
        IRTRegressor(1, response_model="threshold").fit(np.clip(X, 0.99, 1.0))


def test_most_cells_missing_keeps_the_order_of_abilities(shared):
    full = joblib.load(shared / "data" / "benchmark_prediction" / "ifeval.jbl").astype(float)
    sparse = full.copy()
    sparse[np.random.default_rng(0).random(full.shape) < 0.7] = np.nan
    first = [IRTRegressor(5).fit(X).ability_[:, 0] for X in (full, sparse)]
    assert kendalltau(*first).statistic > 0.9
    score = [IRTRegressor(5).fit(X).predict(X) for X in (full, sparse)]
    assert kendalltau(*score).statistic > 0.9


@pytest.fixture(scope="module")
def pyro():
    """Where SKLEARN_IRT_REQUIRE_SVI is set, the absence of torch or Pyro is a failure."""
    if os.environ.get("SKLEARN_IRT_REQUIRE_SVI"):
        return importlib.import_module("pyro")
    return pytest.importorskip("pyro", reason="pyro is not installed (the extra svi)")


def stochastic(n_dims=2, **options):
    """Three rounds of the stochastic solver."""
    options = {"solver": "svi", "random_state": 0, "max_iter": 3, "tol": 0, **options}
    return IRTRegressor(n_dims, **options)


FITTED = ("discrimination_", "difficulty_", "item_covariance_", "ability_", "ability_covariance_")


@pytest.fixture(scope="module")
def by_svi(pyro, X):
    return IRTRegressor(2, solver="svi", random_state=0, tol=3e-4).fit(X)


@pytest.mark.slow
def test_both_solvers_find_the_same_model(by_svi, fitted, data, X):
    p, q = (
        expit(irt.ability_ @ irt.discrimination_.T - irt.difficulty_) for irt in (by_svi, fitted)
    )
    assert np.corrcoef(p.ravel(), q.ravel())[0, 1] > 0.99
    assert np.sqrt(((p - data.probabilities) ** 2).mean()) < 0.08
    assert by_svi.score(X) == pytest.approx(fitted.score(X), abs=0.005)
    np.testing.assert_allclose(by_svi.predict(X), fitted.predict(X), atol=0.01)
    assert vars(by_svi).keys() == vars(fitted).keys()
    for name in FITTED:
        assert getattr(by_svi, name).shape == getattr(fitted, name).shape
        assert getattr(by_svi, name).dtype == getattr(fitted, name).dtype
    assert by_svi.converged_ is True and len(by_svi.lower_bounds_) == by_svi.n_iter_
    right, wrong = by_svi.transform(np.ones((1, 120))), by_svi.transform(np.zeros((1, 120)))
    assert right[0, 0] > 1 > -1 > wrong[0, 0]


@pytest.mark.slow
def test_stochastic_fits_of_several_scenarios(pyro, scenarios, correlated):
    labels, X = scenarios["items"]["scenario"], scenarios.responses
    fits = [stochastic(scenarios=labels, n_jobs=n_jobs).fit(X) for n_jobs in (None, 2)]
    assert vars(fits[0]).keys() == vars(correlated).keys()
    for name in (*FITTED, "prior_precision_"):
        np.testing.assert_array_equal(getattr(fits[0], name), getattr(fits[1], name))
        assert getattr(fits[0], name).shape == getattr(correlated, name).shape
    assert [len(bounds) for bounds in fits[0].lower_bounds_] == [3, 3]
    alone = stochastic().fit(X.iloc[:, :40])
    np.testing.assert_array_equal(fits[0].discrimination_[:40, :2], alone.discrimination_)
    joint = stochastic(scenarios=labels, abilities="joint").fit(X)
    assert joint.ability_.shape == (100, 2)


@pytest.mark.slow
def test_stochastic_fits_are_reproduced_cloned_and_cached(pyro, tmp_path, X, capsys):
    first = stochastic(verbose=1).fit(X)
    assert "[IRTRegressor] part 1/1, round 1:" in capsys.readouterr().out
    assert clone(first).get_params() == first.get_params()
    cached = stochastic(memory=str(tmp_path))
    for again in (clone(first).fit(X), cached.fit(X), clone(cached).fit(X)):
        np.testing.assert_array_equal(again.ability_, first.ability_)
    assert len(list(tmp_path.rglob("output.pkl"))) == 1
    other = stochastic(random_state=1, memory=str(tmp_path)).fit(X)
    assert (other.difficulty_ != first.difficulty_).any()
    with pytest.warns(ConvergenceWarning, match="max_iter=2 rounds"):
        stochastic(max_iter=2, tol=1e-5).fit(X)


def mapped(path, array):
    np.save(path, array)
    return np.load(path, mmap_mode="r")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8", "bool"])
def test_a_memory_mapped_matrix_gives_the_fit_of_that_in_memory(pyro, dtype, tmp_path, X):
    array = X.astype(dtype)
    found = stochastic().fit(mapped(tmp_path / "x.npy", array))
    kind = "float64" if dtype == "float64" else "float32"
    expected = stochastic().fit(array.astype(kind))
    chunked = stochastic().fit(iter(np.array_split(array, 4)))
    for name in FITTED:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        np.testing.assert_array_equal(getattr(chunked, name), getattr(expected, name))
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))


@pytest.mark.slow
def test_a_memory_mapped_matrix_in_its_unit_with_holes_and_scenarios(pyro, tmp_path, scenarios):
    labels = scenarios["items"]["scenario"]
    cells = (100 * scenarios.responses.to_numpy()).astype(np.float32)
    cells[::3, 5] = np.nan
    options = {"scenarios": labels, "response_range": (0, 100)}
    found = stochastic(**options).fit(mapped(tmp_path / "x.npy", cells))
    expected = stochastic(**options).fit(cells)
    for name in FITTED:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-5)
    with pytest.warns(UserWarning, match="percentages"):
        learned = stochastic().fit(mapped(tmp_path / "y.npy", cells))
    np.testing.assert_allclose(learned.predict(cells), expected.predict(cells), atol=20)


def test_a_memory_mapped_matrix_is_never_in_memory_as_a_whole(pyro, tmp_path, monkeypatch):
    stored = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.uint8, (3000, 1000))
    rng = np.random.default_rng(0)
    for at in range(0, 3000, 500):  # written in chunks of rows
        chance = expit(rng.normal(size=(500, 1)) - np.linspace(-2, 2, 1000))
        stored[at : at + 500] = rng.random(chance.shape) < chance
    stored.flush()
    monkeypatch.setattr(logistic, "BLOCK_ELEMENTS", 200_000)
    stochastic(1).fit(np.eye(4))  # what is imported is not counted
    tracemalloc.start()
    irt = stochastic(1, max_iter=1).fit(np.load(tmp_path / "x.npy", mmap_mode="r"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert irt.ability_.shape == (3000, 1)
    assert peak < 0.6 * 8 * stored.size  # as float64


def test_bad_memory_mapped_matrices_are_refused(pyro, tmp_path, X):
    def fit(array, **options):
        return stochastic(**options).fit(mapped(tmp_path / "x.npy", array))

    bad = X.copy()
    bad[140, 7] = np.inf
    with pytest.raises(ValueError, match=r"infinite at row 140 \(model\) and column 7 \(item\)"):
        fit(bad)
    with pytest.raises(ValueError, match=r"response 1 at row \d+ .* outside the response range"):
        fit(X, response_range=(0, 0.5))
    with pytest.raises(ValueError, match="every cell is NaN"):
        fit(X * np.nan)
    with pytest.raises(ValueError, match="at least two models"):
        fit(X[:1])
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        fit(X[0, :3])
    with pytest.raises(TypeError, match="dtype is <U3"):
        fit(X[:5].astype("U3"))
    with pytest.raises(ValueError, match='response_model="threshold" needs X in memory'):
        fit(X, response_model="threshold")
    with pytest.raises(ValueError, match="2 scenarios|scenarios"):
        fit(X, scenarios=["a", "b"])


def test_a_device_is_for_the_stochastic_solver(X):
    irt = IRTRegressor(2, device="cpu")
    with pytest.raises(ValueError, match="device='cpu' needs solver=\"svi\", got 'cavi'"):
        irt.fit(X)
    assert not hasattr(irt, "n_features_in_")


def test_without_torch_the_error_names_the_extra(X, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    irt = stochastic()
    with pytest.raises(ImportError, match=r'pip install "sklearn-irt\[svi\]"') as error:
        irt.fit(X)
    assert len(str(error.value).splitlines()) == 1
    assert not hasattr(irt, "n_features_in_")
    IRTRegressor(2).fit(X)


def test_torch_is_not_imported_before_it_is_used():
    code = (
        "import sys, numpy as np, sklearn_irt, sklearn_irt.kernels.svi as s;"
        "sklearn_irt.IRTRegressor(1).fit(np.eye(4));"
        "assert not {'torch', 'pyro'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.slow
def test_the_stochastic_solver_passes_scikit_learns_checks(pyro):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # random numbers are no responses
        warnings.simplefilter("ignore", ConvergenceWarning)
        check_estimator(stochastic(max_iter=1))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mmlu"])  # examples/svi.py measures gsm and ifeval, too
def test_both_solvers_agree_on_real_matrices(pyro, shared, name):
    X = joblib.load(shared / "data" / "benchmark_prediction" / f"{name}.jbl").astype(float)
    new, train = np.split(np.random.RandomState(0).permutation(X), [len(X) // 4])
    fits = [IRTRegressor(5, solver=solver, random_state=0).fit(train) for solver in ("cavi", "svi")]
    chances = [expit(irt.ability_ @ irt.discrimination_.T - irt.difficulty_) for irt in fits]
    assert np.corrcoef(*[p.ravel() for p in chances])[0, 1] > 0.99
    assert fits[1].score(new) == pytest.approx(fits[0].score(new), abs=0.005)
    errors = np.zeros(2)
    for draw in range(20):
        asked = np.random.RandomState(draw).permutation(X.shape[1])[:100]
        known = np.full(new.shape, np.nan)
        known[:, asked] = new[:, asked]
        for i, irt in enumerate(fits):
            pirt = np.where(np.isnan(known), irt.predict_responses(known), known).mean(axis=1)
            errors[i] += np.abs(pirt - new.mean(axis=1)).mean() / 20
    assert abs(errors[1] - errors[0]) < 0.001
