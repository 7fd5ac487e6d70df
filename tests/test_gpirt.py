"""GPIRTEstimator: every figure against its formula, computed by brute force."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from gpirt_benches import DEFAULT, PAPER, kind
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline

from sklearn_irt import AnchorSelector, GPIRTEstimator, IRTRegressor
from sklearn_irt.datasets import make_responses
from sklearn_irt.kernels.tuning import KINDS


def calibration(estimator):
    """Learned factors of the standard errors: one per scenario and one overall."""
    mixing = None if estimator.estimate != "gpirt" else estimator.mixing
    related = estimator.estimate != "naive" and estimator.relatives is not False
    return estimator.calibration_[KINDS.index((estimator.estimate, mixing, related))]


def brute_ability(estimator, answers):
    """Maximum a posteriori by scipy, from the fitted parameters alone."""
    irt, asked = estimator.irt_, ~np.isnan(answers)
    a = irt.discrimination_[estimator.anchors_][asked]
    b = irt.difficulty_[estimator.anchors_][asked]
    y, precision = answers[asked], irt.prior_precision_

    def loss(theta):
        logit = a @ theta - b
        return theta @ precision @ theta / 2 - (y * logit - np.logaddexp(0, logit)).sum()

    def gradient(theta):
        return precision @ theta - (y - expit(a @ theta - b)) @ a

    start = np.zeros(a.shape[1])
    return minimize(loss, start, jac=gradient, method="BFGS", options={"gtol": 1e-9}).x


def brute_pirt(estimator, index, answers, theta):
    """Score of every scenario: known answers, and the model's probability of all others."""
    irt = estimator.irt_
    best_guess = expit(irt.discrimination_ @ theta - irt.difficulty_)
    asked = ~np.isnan(answers)
    best_guess[estimator.anchors_[asked]] = answers[asked]
    return np.bincount(index, estimator.item_weights_ * best_guess)


def brute_naive(estimator, index, answers):
    asked = ~np.isnan(answers)
    where = index[estimator.anchors_[asked]]
    size = index.max() + 1
    total = np.bincount(where, estimator.weights_[asked] * answers[asked], minlength=size)
    mass = np.bincount(where, estimator.weights_[asked], minlength=size)
    return np.where(mass > 0, total / np.where(mass > 0, mass, 1), np.nan)


def brute_mixing(estimator, index, answers):
    asked = ~np.isnan(answers)
    n = np.bincount(index[estimator.anchors_[asked]], minlength=index.max() + 1)
    gain = 1 if estimator._gain == 1 else 4
    noise = estimator.variance_ / (gain * n)
    return np.where(n > 0, estimator.bias_**2 / (noise + estimator.bias_**2), 0.0)


def brute_gradient(function, theta, step=1e-5):
    columns = [
        (function(theta + step * e) - function(theta - step * e)) / (2 * step)
        for e in np.eye(len(theta))
    ]
    return np.stack(columns, axis=-1)


def test_pirt_is_its_formula(bench):
    pirt = kind(bench.estimator, "pirt")
    table = pirt.predict_scenarios(bench.answers).to_numpy()
    overall = pirt.predict(bench.answers)
    for row, answers in enumerate(bench.answers):
        theta = brute_ability(pirt, answers)
        expected = brute_pirt(pirt, bench.index, answers, theta)
        np.testing.assert_allclose(table[row], expected, atol=1e-6)
        assert overall[row] == pytest.approx(expected.mean(), abs=1e-6)


def test_naive_is_the_weighted_mean_renormalised(bench):
    naive = kind(bench.estimator, "naive")
    table = naive.predict_scenarios(bench.answers).to_numpy()
    expected = np.array([brute_naive(naive, bench.index, answers) for answers in bench.answers])
    np.testing.assert_allclose(table, expected, rtol=1e-12)
    np.testing.assert_allclose(naive.predict(bench.answers), expected.mean(axis=1), rtol=1e-12)
    complete = bench.all_answers
    weighted = complete * naive.weights_
    np.testing.assert_allclose(
        naive.predict(complete), weighted.sum(axis=1) / bench.n_scenarios, rtol=1e-12
    )


def test_gpirt_is_their_combination(bench):
    estimator = bench.estimator
    scores = {
        name: kind(estimator, name).predict_scenarios(bench.answers).to_numpy()
        for name in ("naive", "pirt", "gpirt")
    }
    for row, answers in enumerate(bench.answers):
        mixing = brute_mixing(estimator, bench.index, answers)
        assert ((mixing > 0) & (mixing < 1)).all()
        expected = mixing * scores["naive"][row] + (1 - mixing) * scores["pirt"][row]
        np.testing.assert_allclose(scores["gpirt"][row], expected, rtol=1e-12)
    complete = brute_mixing(estimator, bench.index, bench.all_answers[0])
    np.testing.assert_allclose(estimator.mixing_, complete, rtol=1e-12)
    np.testing.assert_allclose(
        estimator.predict(bench.answers), scores["gpirt"].mean(axis=1), rtol=1e-12
    )


@pytest.mark.parametrize("mixing", [0, 0.0, 0.3, 1, 1.0])
def test_a_number_as_mixing(mixing, bench):
    naive, pirt = (kind(bench.estimator, name).predict(bench.answers) for name in ("naive", "pirt"))
    found = kind(bench.estimator, "gpirt", mixing=mixing).predict(bench.answers)
    np.testing.assert_allclose(found, mixing * naive + (1 - mixing) * pirt, rtol=1e-12)


def test_variance_is_the_mean_variance_of_a_models_responses(bench):
    X, weights = bench.train.to_numpy(), bench.estimator.item_weights_
    for s in range(bench.n_scenarios):
        members = bench.index == s
        mean = X[:, members] @ weights[members]
        variance = ((X[:, members] - mean[:, None]) ** 2 @ weights[members]).mean()
        variance /= 1 - (weights[members] ** 2).sum()
        assert bench.estimator.variance_[s] == pytest.approx(variance, rel=1e-12)
    assert (bench.estimator.bias_ > 0.005).all() and (bench.estimator.bias_ < 0.15).all()


def test_standard_error_of_pirt_is_its_formula(bench):
    """Gradient and information by finite differences, responses not seen as Bernoulli."""
    pirt = kind(bench.estimator, "pirt")
    irt, weights, index = pirt.irt_, pirt.item_weights_, bench.index
    _, overall = pirt.predict(bench.answers, return_std=True)
    table = pirt.predict_table(bench.answers)["std_error"].to_numpy().reshape(len(overall), -1)
    for row, answers in enumerate(bench.answers[:8]):
        theta, asked = brute_ability(pirt, answers), ~np.isnan(answers)
        seen = pirt.anchors_[asked]
        a, b = irt.discrimination_[seen], irt.difficulty_[seen]

        def minus_gradient(theta, a=a, b=b, y=answers[asked]):
            return irt.prior_precision_ @ theta - (y - expit(a @ theta - b)) @ a

        covariance = np.linalg.inv(brute_gradient(minus_gradient, theta))
        gradient = brute_gradient(
            lambda theta, answers=answers: brute_pirt(pirt, index, answers, theta), theta
        )
        p = expit(irt.discrimination_ @ theta - irt.difficulty_)
        unseen = np.setdiff1d(np.arange(len(p)), seen)
        noise = np.bincount(
            index[unseen], (weights**2 * p * (1 - p))[unseen], minlength=bench.n_scenarios
        )
        alone = np.sqrt(np.einsum("sd,de,se->s", gradient, covariance, gradient) + noise)
        factor = calibration(pirt)
        np.testing.assert_allclose(table[row, : bench.n_scenarios] / factor[:-1], alone, rtol=1e-5)
        mean = gradient.mean(axis=0)
        together = mean @ covariance @ mean + noise.sum() / bench.n_scenarios**2
        assert overall[row] / factor[-1] == pytest.approx(np.sqrt(together), rel=1e-5)
        assert table[row, -1] == pytest.approx(overall[row], rel=1e-12)


def test_standard_error_of_naive_is_its_formula(bench):
    naive = kind(bench.estimator, "naive")
    _, overall = naive.predict(bench.answers, return_std=True)
    for row, answers in enumerate(bench.answers):
        asked = ~np.isnan(answers)
        variances = []
        for s in range(bench.n_scenarios):
            mine = asked & (bench.index[naive.anchors_] == s)
            w = naive.weights_[mine] / naive.weights_[mine].sum()
            left = 1 - naive.item_weights_[naive.anchors_[mine]].sum()
            variances.append(naive.variance_[s] * (w**2).sum() * left)
        expected = np.sqrt(sum(variances)) / bench.n_scenarios
        assert overall[row] / calibration(naive)[-1] == pytest.approx(expected, rel=1e-9)


def test_standard_error_of_gpirt_lies_between(one):
    mixing = one.estimator.mixing_[0]
    estimators = [kind(one.estimator, name) for name in ("naive", "pirt", "gpirt")]
    calibrated = [e.predict(one.all_answers, return_std=True)[1] for e in estimators]
    stds = [
        std / calibration(estimator)[-1]
        for std, estimator in zip(calibrated, estimators, strict=True)
    ]
    np.testing.assert_allclose(stds[2], mixing * stds[0] + (1 - mixing) * stds[1], rtol=1e-12)
    for fixed, expected in ((0, calibrated[1]), (1, calibrated[0])):
        found = kind(one.estimator, "gpirt", mixing=fixed).predict(one.all_answers, True)[1]
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_fewer_answers_are_less_certain(bench):
    for name in ("naive", "pirt", "gpirt"):
        estimator = kind(bench.estimator, name)
        partial, full = (
            estimator.predict(answers, return_std=True)[1]
            for answers in (bench.answers, bench.all_answers)
        )
        missing = np.isnan(bench.answers).any(axis=1)
        assert missing.sum() >= 15 and not missing[0]
        np.testing.assert_allclose(partial[~missing], full[~missing])
        assert (partial[missing] > full[missing]).mean() > 0.9


def test_estimates_are_good_and_scored_by_r2(bench):
    score, std = bench.estimator.predict(bench.all_answers, return_std=True)
    error = np.abs(score - bench.truth)
    assert error.mean() < 0.1 and r2_score(bench.truth, score) > 0.5
    assert (std > 0.01).all() and (std < 0.15).all()
    assert bench.estimator.score(bench.all_answers, bench.truth) == pytest.approx(
        r2_score(bench.truth, score)
    )


@pytest.mark.parametrize("name", ["naive", "pirt", "gpirt"])
def test_everything_asked_is_the_exact_score_without_error(name, several):
    for method in ("irt", "random"):
        pipe = make_pipeline(
            AnchorSelector(1.0, method=method, n_dims=2, scenarios=several.labels, random_state=0),
            GPIRTEstimator(name, n_dims=2, random_state=0),
        ).fit(several.train)
        score, std = pipe.predict(several.new, return_std=True)
        np.testing.assert_allclose(score, several.truth, atol=1e-12)
        np.testing.assert_allclose(std, 0, atol=1e-7)
    whole = GPIRTEstimator(name, n_dims=2, scenarios=several.labels, random_state=0)
    score, std = whole.fit(several.train).predict(several.new, return_std=True)
    np.testing.assert_allclose(score, several.truth, atol=1e-12)
    np.testing.assert_allclose(std, 0, atol=1e-7)


def test_a_row_without_answers(bench):
    nothing = np.full((1, bench.answers.shape[1]), np.nan)
    irt = bench.estimator.irt_
    p = expit(-irt.difficulty_)
    expected = (np.bincount(bench.index, bench.estimator.item_weights_ * p)).mean()
    for name in ("pirt", "gpirt"):
        score, std = kind(bench.estimator, name).predict(nothing, return_std=True)
        assert score[0] == pytest.approx(expected)
        assert std[0] > bench.estimator.predict(bench.answers, return_std=True)[1].max()
    score, std = kind(bench.estimator, "naive").predict(nothing, return_std=True)
    assert np.isnan(score[0]) and np.isnan(std[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = bench.estimator.predict_table(nothing)
    assert (table["answered"] == 0).all() and table["naive"].isna().all()
    assert np.isfinite(table.drop(columns=["naive", "relatives"])).all(axis=None)


def test_a_scenario_without_answers_is_filled_by_the_others(several):
    answers = several.all_answers.copy()
    in_b = several.index[several.estimator.anchors_] == 1
    answers[:, in_b] = np.nan
    score, std = several.estimator.predict(answers, return_std=True)
    assert np.isfinite(score).all()
    assert (std > several.estimator.predict(several.all_answers, return_std=True)[1]).all()
    b = several.estimator.predict_scenarios(answers)["b"]
    np.testing.assert_allclose(b, kind(several.estimator, "pirt").predict_scenarios(answers)["b"])
    truth = several.new[:, several.index == 1].mean(axis=1)
    assert np.corrcoef(b, truth)[0, 1] > 0.5  # what was asked elsewhere says something about b
    assert np.isnan(kind(several.estimator, "naive").predict(answers)).all()


@pytest.mark.slow
def test_parameters_of_predict_time_need_no_refit(bench):
    estimator = pickle.loads(pickle.dumps(bench.estimator))
    anchored = clone(bench.selector).fit_transform(bench.train)
    for name in ("naive", "pirt", "gpirt"):
        for mixing, relatives in (("paper", False), (0.25, "auto"), ("robust", 0.4)):
            estimator.set_params(estimate=name, mixing=mixing, relatives=relatives)
            fresh = GPIRTEstimator(name, mixing=mixing, relatives=relatives, random_state=0).fit(
                anchored
            )
            np.testing.assert_array_equal(
                estimator.predict(bench.answers, True), fresh.predict(bench.answers, True)
            )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("estimate", "x"),
        ("estimate", None),
        ("mixing", "robustly"),
        ("relatives", True),
        ("relatives", 1.0),
        ("relatives", -0.1),
        ("relatives", "none"),
        ("mixing", 2),
        ("mixing", -0.1),
        ("mixing", np.nan),
        ("mixing", None),
        ("ability", "eap"),
    ],
)
def test_bad_parameters_of_predict_time_are_named_then_too(name, value, one):
    estimator = pickle.loads(pickle.dumps(one.estimator))
    before, given = estimator.predict(one.answers), estimator.get_params()[name]
    estimator.set_params(**{name: value})
    for method in ("predict", "predict_interval", "predict_scenarios", "predict_table"):
        with pytest.raises(ValueError, match=f"The '{name}' parameter of GPIRTEstimator must be"):
            getattr(estimator, method)(one.answers)
    estimator.set_params(**{name: given})
    np.testing.assert_array_equal(estimator.predict(one.answers), before)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("estimate", "x"),
        ("n_dims", 0),
        ("n_dims", 2.5),
        ("irt", "cavi"),
        ("mixing", "robustly"),
        ("relatives", True),
        ("relatives", 1.0),
        ("relatives", -0.1),
        ("relatives", "none"),
        ("mixing", 2),
        ("ability", "x"),
        ("scenarios", "ab"),
        ("response_range", 5),
        ("memory", 3),
        ("random_state", "x"),
    ],
)
def test_bad_parameters_are_named_in_fit(name, value, one):
    estimator = GPIRTEstimator(**{name: value})
    with pytest.raises(ValueError, match=f"The '{name}' parameter of GPIRTEstimator must be"):
        estimator.fit(one.train)
    assert estimator.set_params(**{name: getattr(GPIRTEstimator(), name)}).fit(one.train)


@pytest.mark.parametrize("coverage", [1.5, 0, 1, -0.5, "0.9", None, np.nan, [0.9]])
def test_bad_coverage_is_named(coverage, one):
    for method in (one.estimator.predict_interval, one.estimator.predict_table):
        with pytest.raises(ValueError, match=r"coverage must be a number in \(0, 1\)"):
            method(one.answers, coverage=coverage)


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.99])
def test_interval_is_the_normal_one_within_the_range(coverage, bench):
    score, std = bench.estimator.predict(bench.answers, return_std=True)
    half = norm.ppf((1 + coverage) / 2) * std
    expected = np.clip(np.stack([score - half, score + half], axis=1), 0, 1)
    found = bench.estimator.predict_interval(bench.answers, coverage=coverage)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert (found[:, 0] < found[:, 1]).all()


def test_interval_stays_within_the_range(one):
    answers = np.vstack([np.ones(12), np.zeros(12)])
    low, high = one.estimator.predict_interval(answers, coverage=0.999).T
    assert high[0] == 1.0 and low[1] == 0.0


def test_predict_is_the_mean_over_scenarios(several):
    for name in ("naive", "pirt", "gpirt"):
        estimator = kind(several.estimator, name)
        table = estimator.predict_scenarios(several.answers)
        assert list(table.columns) == ["a", "b", "c"] and table.columns.name == "scenario"
        np.testing.assert_allclose(estimator.predict(several.answers), table.mean(axis=1))


def test_single_labels_are_scenarios_too(several):
    single = several.labels["scenario"].to_numpy()
    anchored = AnchorSelector(k=12, n_dims=2, scenarios=single, random_state=0).fit_transform(
        several.train
    )
    estimator = GPIRTEstimator(random_state=0).fit(anchored)
    assert estimator.scenarios_ == ("a", "b", "c")
    np.testing.assert_allclose(estimator.item_weights_[:40], 1 / 40)
    answers = several.new[:, estimator.anchors_]
    np.testing.assert_allclose(
        estimator.predict(answers), estimator.predict_scenarios(answers).mean(axis=1)
    )
    truth = np.mean([several.new[:, single == s].mean(axis=1) for s in "abc"], axis=0)
    assert np.abs(estimator.predict(answers) - truth).mean() < 0.06


def test_table(bench):
    names = [f"new{i}" for i in range(len(bench.answers))]
    answers = pd.DataFrame(
        bench.answers, index=names, columns=bench.selector.get_feature_names_out()
    )
    several = bench.n_scenarios > 1
    table = bench.estimator.predict_table(answers, coverage=0.8)
    scenarios = list(bench.estimator.scenarios_) + (["(all)"] if several else [])
    assert list(table.columns) == [
        "answered",
        "naive",
        "pirt",
        "gpirt",
        "std_error",
        "low",
        "high",
        "unusual",
        "relatives",
    ]
    assert table.index.names == ["model", "scenario"]
    assert table.index.tolist() == [(n, s) for n in names for s in scenarios]
    assert np.issubdtype(table["answered"].dtype, np.integer)
    last = table.xs(scenarios[-1], level="scenario")
    score, std = bench.estimator.predict(bench.answers, return_std=True)
    np.testing.assert_allclose(last["gpirt"], score)
    np.testing.assert_allclose(last["std_error"], std)
    np.testing.assert_allclose(
        last[["low", "high"]], bench.estimator.predict_interval(bench.answers, 0.8)
    )
    np.testing.assert_array_equal(last["answered"], (~np.isnan(bench.answers)).sum(axis=1))
    for s, scenario in enumerate(bench.estimator.scenarios_):
        rows = table.xs(scenario, level="scenario")
        mine = bench.index[bench.estimator.anchors_] == s
        np.testing.assert_array_equal(
            rows["answered"], (~np.isnan(bench.answers[:, mine])).sum(axis=1)
        )
        for name in ("naive", "pirt", "gpirt"):
            expected = kind(bench.estimator, name).predict_scenarios(answers)
            np.testing.assert_allclose(rows[name], expected[scenario])
            assert list(expected.index) == names and expected.index.name == "model"
    chosen = kind(bench.estimator, "naive").predict_table(answers, coverage=0.8)
    assert (table["relatives"] == "off").all()
    assert table["unusual"].dtype == bool
    assert (table["unusual"].groupby(level="model", sort=False).nunique() == 1).all()
    pd.testing.assert_frame_equal(chosen.iloc[:, :4], table.iloc[:, :4])
    assert not np.allclose(chosen["std_error"], table["std_error"])
    unnamed = bench.estimator.predict_table(bench.answers)
    assert unnamed.index[0] == ("row_0", scenarios[0])


def test_training_models_are_kept(bench):
    estimator = bench.estimator
    assert list(estimator.training_models_) == list(bench.train.index)
    np.testing.assert_array_equal(
        estimator.training_responses_, bench.train.to_numpy()[:, estimator.anchors_]
    )
    weights = estimator.item_weights_
    for s in range(bench.n_scenarios):
        mine = bench.index == s
        np.testing.assert_allclose(
            estimator.training_scores_[:, s], bench.train.to_numpy()[:, mine] @ weights[mine]
        )


def test_missing_training_responses_are_filled_by_the_model(one):
    holed = one.train.to_numpy().copy()
    holed[np.random.RandomState(0).rand(*holed.shape) < 0.3] = np.nan
    estimator = GPIRTEstimator(n_dims=2, random_state=0).fit(holed)
    error = estimator.training_scores_[:, 0] - one.train.to_numpy().mean(axis=1)
    naive_error = np.nanmean(holed, axis=1) - one.train.to_numpy().mean(axis=1)
    assert np.isfinite(error).all()
    assert np.abs(error).mean() < np.abs(naive_error).mean() < 0.05


def test_the_selectors_model_is_used_as_it_is(one):
    assert one.estimator.irt_.discrimination_.shape == (90, 2)
    np.testing.assert_array_equal(
        one.estimator.irt_.discrimination_, one.selector.irt_.discrimination_
    )
    anchored = clone(one.selector).fit_transform(one.train)
    same = GPIRTEstimator(n_dims=2, **PAPER, random_state=0).fit(anchored)
    np.testing.assert_array_equal(same.predict(one.answers), one.estimator.predict(one.answers))
    for params, expected in (
        ({"n_dims": 3}, IRTRegressor(3)),
        ({"irt": IRTRegressor(1, max_iter=9, tol=0)}, IRTRegressor(1, max_iter=9, tol=0)),
        ({"irt": IRTRegressor(1), "n_dims": 4}, IRTRegressor(4)),
    ):
        other = GPIRTEstimator(random_state=0, **params).fit(anchored)
        np.testing.assert_allclose(
            other.irt_.discrimination_, expected.fit(one.train).discrimination_, atol=1e-12
        )


def test_anchors_without_a_model_get_one(several):
    anchored = AnchorSelector(
        k=12, method="correctness", n_dims=2, scenarios=several.labels, random_state=0
    ).fit_transform(several.train)
    estimator = GPIRTEstimator(random_state=0).fit(anchored)
    expected = IRTRegressor(2, scenarios=several.labels).fit(several.train)
    np.testing.assert_allclose(estimator.irt_.discrimination_, expected.discrimination_)


def test_full_matrix_without_a_selector(one):
    """Every column is an item; NaN is what is not asked."""
    estimator = GPIRTEstimator("pirt", n_dims=2, **PAPER, random_state=0).fit(one.train)
    np.testing.assert_array_equal(estimator.anchors_, np.arange(90))
    np.testing.assert_allclose(estimator.weights_, 1 / 90)
    asked = np.full_like(one.new, np.nan)
    asked[:, one.selector.anchors_] = one.answers
    np.testing.assert_allclose(
        estimator.predict(asked), kind(one.estimator, "pirt").predict(one.answers), atol=1e-9
    )


def test_maximum_likelihood(one):
    mle = GPIRTEstimator("pirt", n_dims=2, ability="mle", **PAPER, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        mle.fit(clone(one.selector).fit_transform(one.train))
    right = np.ones((1, 12))
    with pytest.warns(UserWarning, match="1 of 1 models have no finite maximum-likelihood"):
        score = mle.predict(right)
    assert 0.9 < score[0] <= 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kind(one.estimator, "pirt").predict(right)[0] < score[0]


@pytest.mark.parametrize(("low", "high"), [(0, 100), (1, 10), (-1, 1), (-250, -50)])
def test_units(low, high, several):
    """In another unit everything is the same, in that unit."""

    def unit(X):
        return low + (high - low) * X

    selector = clone(several.selector).set_params(response_range=(low, high))
    estimator = GPIRTEstimator(**PAPER, random_state=0).fit(
        selector.fit_transform(unit(several.train))
    )
    np.testing.assert_array_equal(estimator.anchors_, several.estimator.anchors_)
    np.testing.assert_allclose(estimator.mixing_, several.estimator.mixing_, rtol=1e-6)
    tolerance = 1e-12 if (low, high) == (0, 100) else 1e-7
    close = {"rtol": tolerance, "atol": tolerance * (high - low)}
    for settings in (PAPER, DEFAULT):
        ours = kind(estimator, "gpirt", **settings)
        theirs = kind(several.estimator, "gpirt", **settings)
        score, std = theirs.predict(several.answers, return_std=True)
        found, found_std = ours.predict(unit(several.answers), return_std=True)
        np.testing.assert_allclose(found, unit(score), **close)
        np.testing.assert_allclose(found_std, (high - low) * std, **close)
        np.testing.assert_allclose(
            ours.predict_interval(unit(several.answers)),
            unit(theirs.predict_interval(several.answers)),
            **close,
        )
        np.testing.assert_allclose(
            ours.predict_scenarios(unit(several.answers)),
            unit(theirs.predict_scenarios(several.answers)),
            **close,
        )
        table, expected = (
            e.predict_table(a).drop(columns=["answered", "std_error"])
            for e, a in ((ours, unit(several.answers)), (theirs, several.answers))
        )
        for column in ("relatives", "unusual"):
            assert (table.pop(column) == expected.pop(column)).all()
        np.testing.assert_allclose(table, unit(expected), **close)
        compared, expected = (
            e.compare(a, a[::-1]).drop(columns="probability_lower")
            for e, a in ((ours, unit(several.answers)), (theirs, several.answers))
        )
        np.testing.assert_allclose(compared[["a", "b"]], unit(expected[["a", "b"]]), **close)
        rest = ["difference", "std_error", "low", "high"]
        np.testing.assert_allclose(compared[rest], (high - low) * expected[rest], **close)
    np.testing.assert_allclose(
        estimator.training_scores_, unit(several.estimator.training_scores_), **close
    )
    np.testing.assert_allclose(
        estimator.training_responses_, several.estimator.training_responses_, atol=1e-12
    )
    with pytest.raises(ValueError, match="outside the response range"):
        estimator.predict(np.full((1, 36), high + 1.0))


def test_learned_range_warns_and_gives_the_same(one):
    with pytest.warns(UserWarning, match=r"\[0, 100\].*percentages.*response_range=\(0, 100\)"):
        anchored = clone(one.selector).fit_transform(one.train * 100)
    estimator = GPIRTEstimator(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator.fit(anchored)
        score = estimator.predict(100 * one.answers)
    expected = kind(one.estimator, "gpirt", **DEFAULT).predict(one.answers)
    np.testing.assert_allclose(score, 100 * expected, rtol=1e-12)
    with pytest.warns(UserWarning, match="clipped"):
        estimator.predict(np.full((1, 12), 101.0))


def test_float32_is_close(several):
    anchored = clone(several.selector).fit_transform(several.train.astype(np.float32))
    assert anchored.dtype == np.float32
    estimator = GPIRTEstimator(random_state=0).fit(anchored)
    index = several.index
    naive = kind(estimator, "naive").predict(several.new[:, estimator.anchors_])
    assert np.abs(naive - several.truth).mean() < 0.1 and len(index) == 115
    whole = [
        GPIRTEstimator(n_dims=2, scenarios=several.labels, random_state=0)
        .fit(several.train.astype(dtype))
        .predict(np.where(np.arange(115) % 3 == 0, several.new, np.nan).astype(dtype))
        for dtype in (np.float32, np.float64)
    ]
    np.testing.assert_allclose(whole[0], whole[1], atol=2e-3)


def test_seeds_reproduce(several):
    anchored = clone(several.selector).fit_transform(several.train)
    one, two = (GPIRTEstimator(random_state=3).fit(anchored) for _ in range(2))
    np.testing.assert_array_equal(one.bias_, two.bias_)
    assert (GPIRTEstimator(random_state=4).fit(anchored).bias_ != one.bias_).any()
    np.testing.assert_array_equal(
        one.predict(several.answers, True), two.predict(several.answers, True)
    )
    np.testing.assert_array_equal(
        kind(one, "pirt", **PAPER).predict(several.answers),
        kind(several.estimator, "pirt").predict(several.answers),
    )


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_results_do_not_depend_on_n_jobs(n_jobs, several):
    selector = clone(several.selector).set_params(irt=IRTRegressor(2, n_jobs=n_jobs))
    estimator = GPIRTEstimator(random_state=0).fit(selector.fit_transform(several.train))
    expected = kind(several.estimator, "gpirt", **DEFAULT)
    np.testing.assert_array_equal(
        estimator.predict(several.answers, True), expected.predict(several.answers, True)
    )


def test_memory_gives_the_same(tmp_path, several):
    for _ in range(2):
        anchored = clone(several.selector).fit_transform(several.train)
        estimator = GPIRTEstimator(random_state=0, memory=str(tmp_path), n_dims=3).fit(anchored)
        fresh = GPIRTEstimator(random_state=0, n_dims=3).fit(anchored)
        np.testing.assert_array_equal(
            estimator.predict(several.answers, True), fresh.predict(several.answers, True)
        )
    assert len(list(tmp_path.rglob("output.pkl"))) == 2  # the model and the bias


def test_predictions_do_not_depend_on_the_other_rows(bench):
    together = np.array(bench.estimator.predict(bench.answers, return_std=True))
    alone = np.hstack(
        [bench.estimator.predict(row[None], return_std=True) for row in bench.answers]
    )
    np.testing.assert_allclose(alone, together, rtol=0, atol=1e-9)


def test_balanced_truth():
    """Subscenarios of 10, 100 and 1,000 items in which every model has one accuracy."""
    sizes = [10, 100, 1000]
    rng = np.random.RandomState(0)
    accuracy = expit(rng.normal(size=(80, 1)) + 0.5 * rng.normal(size=(80, 3)))
    responses = np.repeat(accuracy, sizes, axis=1)
    pairs = np.column_stack([np.repeat("s", 1110), np.repeat(["x", "y", "z"], sizes)])
    truth = accuracy.mean(axis=1)
    selector = AnchorSelector(k=60, method="random", n_dims=3, scenarios=pairs, random_state=0)
    estimator = GPIRTEstimator(**PAPER, random_state=0).fit(selector.fit_transform(responses[:60]))
    answers = responses[60:, selector.anchors_]
    naive, pirt, gpirt = (
        kind(estimator, name).predict(answers) for name in ("naive", "pirt", "gpirt")
    )
    np.testing.assert_allclose(naive, truth[60:], atol=1e-12)
    # The prior shrinks abilities towards the mean of the training models.
    assert np.abs(pirt - truth[60:]).max() < 0.025
    assert np.abs(gpirt - truth[60:]).max() < np.abs(pirt - truth[60:]).max()
    estimator.set_params(ability="mle")
    for name in ("naive", "pirt", "gpirt"):
        found = kind(estimator, name).predict(answers)
        np.testing.assert_allclose(found, truth[60:], atol=1e-5)
    unbalanced = responses[60:].mean(axis=1)
    assert np.abs(unbalanced - truth[60:]).mean() > 0.05  # what the weights are there for
    np.testing.assert_allclose(estimator.training_scores_[:, 0], truth[:60], atol=1e-12)


@pytest.mark.parametrize("method", ["random", "correctness", "irt"])
@pytest.mark.parametrize("ability", ["map", "mle"])
def test_balanced_truth_of_equal_models(method, ability):
    """Subscenarios of 10, 100 and 1,000 items, each with one accuracy that all models have."""
    sizes = [10, 100, 1000]
    responses = np.tile(np.repeat([0.2, 0.5, 0.9], sizes), (60, 1))
    pairs = np.column_stack([np.repeat("s", 1110), np.repeat(["x", "y", "z"], sizes)])
    selector = AnchorSelector(k=30, method=method, n_dims=3, scenarios=pairs, random_state=0)
    estimator = GPIRTEstimator(ability=ability, random_state=0)
    estimator.fit(selector.fit_transform(responses[:50]))
    for name in ("naive", "pirt", "gpirt"):
        for settings in (PAPER, DEFAULT):
            found = kind(estimator, name, **settings).predict(responses[50:, selector.anchors_])
            np.testing.assert_allclose(found, 1.6 / 3, atol=1e-3)


@pytest.mark.parametrize("settings", [PAPER, DEFAULT], ids=["paper", "default"])
@pytest.mark.parametrize("method", ["random", "irt", "design"])
def test_intervals_cover_what_they_say(method, settings):
    """510 simulated models, 12 of 90 items: nine in ten, give or take sampling and Laplace."""
    data = make_responses(600, 90, n_dims=2, random_state=0)
    selector = AnchorSelector(k=12, method=method, n_dims=2, random_state=0)
    estimator = GPIRTEstimator(**settings, random_state=0).fit(
        selector.fit_transform(data.responses[:90])
    )
    answers = data.responses.to_numpy()[90:, selector.anchors_]
    truth = data.scores.to_numpy()[90:]
    for name in ("naive", "pirt", "gpirt"):
        low, high = kind(estimator, name).predict_interval(answers, coverage=0.9).T
        assert 0.84 <= ((low <= truth) & (truth <= high)).mean() <= 0.96, name


def test_target_is_not_used(several):
    anchored = clone(several.selector).fit_transform(several.train)
    estimator = GPIRTEstimator(random_state=0).fit(anchored, np.random.RandomState(0).rand(90))
    expected = kind(several.estimator, "gpirt", **DEFAULT)
    np.testing.assert_array_equal(
        estimator.predict(several.answers), expected.predict(several.answers)
    )


def test_parameters_are_left_alone(several):
    irt = IRTRegressor(2)
    estimator = GPIRTEstimator(irt=irt, random_state=0)
    estimator.fit(clone(several.selector).fit_transform(several.train))
    assert estimator.irt is irt and not hasattr(irt, "discrimination_")
    assert irt.random_state is None and estimator.n_dims is None


def test_named_columns_must_be_anchors():
    data = make_responses(n_models=30, n_items=40, random_state=0)
    pipe = make_pipeline(AnchorSelector(5, random_state=0), GPIRTEstimator(random_state=0))
    pipe.fit(data.responses)
    answers = data.responses[pipe[0].get_feature_names_out()]
    expected = pipe[1].predict(answers)
    np.testing.assert_array_equal(pipe[1].predict(answers[answers.columns[::-1]]), expected)
    np.testing.assert_array_equal(pipe[1].predict(data.responses), expected)
    np.testing.assert_array_equal(pipe[1].predict(answers.set_axis(range(5), axis=1)), expected)
    with pytest.raises(ValueError, match="no column for 5 of the 5 anchors"):
        pipe[1].predict(answers.set_axis(list("abcde"), axis=1))


@pytest.mark.parametrize("setting", [{"scenarios": ["a"] * 40}, {"response_range": (0, 1)}])
def test_settings_of_the_selector_do_not_hide_in_its_irt(setting):
    data = make_responses(n_models=30, n_items=40, random_state=0)
    selector = AnchorSelector(5, irt=IRTRegressor(2, **setting))
    with pytest.raises(ValueError, match="belongs to AnchorSelector"):
        selector.fit(data.responses)


def test_answers_beyond_the_anchors_leave_no_false_certainty():
    """Everything of a scenario is answered: gp-IRT is the score itself, without an error."""
    data = make_responses(n_models=60, n_items=80, random_state=1)
    pipe = make_pipeline(AnchorSelector(10, random_state=0), GPIRTEstimator(random_state=0))
    pipe.fit(data.responses[:40])
    estimator, answers = pipe[1], data.responses[40:].to_numpy()
    weights = np.zeros(80)
    weights[estimator.anchors_] = estimator.weights_
    every = np.arange(80)
    found = estimator._estimates_at(answers, every, weights)
    np.testing.assert_allclose(found.scores["gpirt"][:, 0], answers.mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(found.stds["gpirt"], 0.0, atol=1e-9)
    asked = np.union1d(estimator.anchors_, every[:60])
    found = estimator._estimates_at(answers[:, asked], asked, weights[asked])
    assert (found.stds["naive"] > 0.05).all() and (found.stds["gpirt"] > 0.005).all()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["irt", "random"])
def test_a_maximum_likelihood_error_stays_on_the_scale(method):
    data = make_responses(n_models=60, scenarios={"a": 30, "b": 30}, random_state=1)
    selector = AnchorSelector(
        5, n_dims=2, method=method, scenarios=data["items"]["scenario"], random_state=0
    )
    pipe = make_pipeline(selector, GPIRTEstimator(ability="mle", random_state=0))
    pipe.fit(data.responses)
    answers = np.array([[1.0, 0, 1, 0, 1] + [np.nan] * 5, [np.nan] * 10])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        table = pipe[1].predict_table(answers)
    assert (table["std_error"] < 0.5).all()


def test_win_rates_are_those_of_the_estimated_scores():
    sizes = {"a": 30, "b": 40}
    data = make_responses(n_models=60, scenarios=sizes, random_state=2)
    labels = data["items"]["scenario"]
    pipe = make_pipeline(
        AnchorSelector(10, scenarios=labels, random_state=0),
        GPIRTEstimator(aggregate="mean_win_rate", random_state=0),
    ).fit(data.responses[:40])
    answers = pipe[0].transform(data.responses[40:])
    rate, std = pipe[1].predict(answers, return_std=True)
    scores = pipe[1].predict_scenarios(answers).to_numpy()
    known = np.stack(
        [data.responses[:40].T[(labels == s).to_numpy()].mean() for s in sizes], axis=1
    )
    expected = [
        np.mean(
            [(row[s] > known[:, s]).mean() + 0.5 * (row[s] == known[:, s]).mean() for s in (0, 1)]
        )
        for row in scores
    ]
    np.testing.assert_allclose(rate, expected, atol=1e-12)
    assert ((std > 0.005) & (std < 0.5)).all()
    low, high = pipe[1].predict_interval(answers).T
    assert (low >= 0).all() and (high <= 1).all() and (low <= rate).all() and (rate <= high).all()
    table = pipe[1].predict_table(answers)
    np.testing.assert_allclose(table.xs("(all)", level="scenario")["gpirt"], rate)
    pipe[1].set_params(aggregate="mean")
    np.testing.assert_allclose(pipe[1].predict(answers), scores.mean(axis=1), atol=1e-12)


def test_score_says_that_it_needs_the_scores():
    data = make_responses(n_models=30, n_items=40, random_state=0)
    estimator = GPIRTEstimator(random_state=0).fit(data.responses)
    with pytest.raises(ValueError, match="y is needed"):
        estimator.score(data.responses)
    assert estimator.score(data.responses, data.scores) == pytest.approx(1.0)


def test_the_order_of_the_training_models_changes_no_estimate():
    """With given shares; what is learned depends on who is left out."""
    data = make_responses(70, 80, n_dims=2, random_state=0)
    train, new = data.responses[:50], data.responses.to_numpy()[50:]
    rows = np.random.RandomState(0).permutation(50)
    found = []
    for X in (train, train.iloc[rows]):
        selector = AnchorSelector(
            20, method="random", irt=IRTRegressor(2, max_iter=30, tol=0), random_state=0
        )
        estimator = GPIRTEstimator("pirt", relatives=0.6, random_state=0)
        estimator.fit(selector.fit_transform(X))
        pirt = estimator.predict(new[:, selector.anchors_])
        estimator.set_params(estimate="gpirt", mixing=0.7)
        found.append((selector.anchors_, pirt, estimator.predict(new[:, selector.anchors_])))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=0, atol=1e-8)
    np.testing.assert_allclose(found[0][2], found[1][2], rtol=0, atol=1e-8)


def test_thousands_of_new_models_at_once(families):
    many = np.tile(families.answers.to_numpy(), (1000, 1))
    score, std = families.estimator.predict(many, return_std=True)
    expected = families.estimator.predict(families.answers.to_numpy(), return_std=True)
    np.testing.assert_allclose(score, np.tile(expected[0], 1000), atol=1e-9)
    np.testing.assert_allclose(std, np.tile(expected[1], 1000), atol=1e-9)


@pytest.mark.parametrize("n_models", [2, 3, 5, 8])
def test_a_few_training_models_do_little_harm(n_models):
    data = make_responses(n_models + 200, 150, n_dims=2, random_state=n_models)
    train, new = data.responses[:n_models], data.responses.to_numpy()[n_models:]
    selector = AnchorSelector(30, method="random", n_dims=2, random_state=0)
    estimator = GPIRTEstimator(random_state=0).fit(selector.fit_transform(train))
    answers = new[:, selector.anchors_]
    score, std = estimator.predict(answers, return_std=True)
    naive = kind(estimator, "naive").predict(answers)
    truth = new.mean(axis=1)
    assert np.isfinite(score).all() and np.isfinite(std).all() and (std > 0).all()
    assert np.abs(score - truth).mean() < 1.25 * np.abs(naive - truth).mean()
    table = estimator.predict_table(answers[:3])
    assert np.isfinite(table.drop(columns="relatives")).all(axis=None)
    assert np.isfinite(estimator.compare(answers[:3], answers[3:6])).all(axis=None)


@pytest.mark.parametrize("method", ["random", "design"])
def test_one_training_model_is_refused_clearly(method):
    responses = make_responses(2, 50, random_state=0).responses[:1]
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        selector = AnchorSelector(10, method=method, n_dims=1, random_state=0)
        GPIRTEstimator(random_state=0).fit(selector.fit_transform(responses))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["random", "design"])
def test_intervals_cover_pooled_over_benchmarks(method):
    covered = {"naive": [], "pirt": [], "gpirt": []}
    for seed in range(8):
        data = make_responses(400, 200, n_dims=2, random_state=seed)
        selector = AnchorSelector(25, method=method, n_dims=2, random_state=seed)
        estimator = GPIRTEstimator(random_state=0).fit(selector.fit_transform(data.responses[:100]))
        answers = data.responses.to_numpy()[100:, selector.anchors_]
        truth = data.scores.to_numpy()[100:]
        for name, hits in covered.items():
            low, high = kind(estimator, name).predict_interval(answers).T
            hits.append(((low <= truth) & (truth <= high)).mean())
    for name, hits in covered.items():
        assert 0.85 <= np.mean(hits) <= 0.95, name
