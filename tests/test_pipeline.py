"""Selector and estimator in scikit-learn's machinery: always what wiring by hand gives."""

import copy
import functools
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_irt import AnchorSelector, GPIRTEstimator, IRTRegressor
from sklearn_irt.datasets import fetch_open_llm, make_responses

CV = KFold(3, shuffle=True, random_state=0)


@pytest.fixture(scope="module")
def ifeval(shared):
    """Every third model of a real matrix: 150 x 541."""
    X, y = fetch_open_llm("ifeval", data_home=shared / "data", return_X_y=True)
    return X.iloc[::3], y.iloc[::3]


@pytest.fixture(scope="module")
def split(ifeval):
    X, y = ifeval
    new = np.arange(len(X)) % 5 == 0
    return X[~new], y[~new], X[new], y[new]


def pipeline(memory=None, k=30, n_dims=2, method="irt"):
    return Pipeline(
        [
            (
                "anchors",
                AnchorSelector(k=k, n_dims=n_dims, method=method, n_init=2, random_state=0),
            ),
            ("score", GPIRTEstimator(random_state=0)),
        ],
        memory=memory,
    )


def by_hand(X, X_new, k=30, n_dims=2, method="irt"):
    """Without Pipeline: the answers are looked up in the raw matrix."""
    selector = AnchorSelector(k=k, n_dims=n_dims, method=method, n_init=2, random_state=0)
    X, X_new = np.asarray(X), np.asarray(X_new)
    estimator = GPIRTEstimator(random_state=0).fit(selector.fit_transform(X))
    return estimator.predict(X_new[:, selector.anchors_])


@pytest.fixture(scope="module")
def expected(split):
    X, _, X_new, _ = split
    return by_hand(X, X_new)


def same(predicted, expected):
    assert isinstance(predicted, np.ndarray)
    np.testing.assert_allclose(predicted, expected, rtol=0, atol=1e-8)


def test_by_hand_estimates_well(split, expected):
    """What the rest is compared with is worth comparing with."""
    assert mean_absolute_error(split[3], expected) < 0.05
    assert r2_score(split[3], expected) > 0.9


@pytest.mark.parametrize("frames", [True, False])
def test_plain_pipeline(frames, split, expected):
    X, y, X_new, _ = split
    if not frames:
        X, y, X_new = X.to_numpy(), y.to_numpy(), X_new.to_numpy()
    for target in (y, None):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            same(pipeline().fit(X, target).predict(X_new), expected)


def test_make_pipeline_and_unnamed_steps(split, expected):
    X, y, X_new, _ = split
    pipe = make_pipeline(
        AnchorSelector(k=30, n_dims=2, method="irt", n_init=2, random_state=0),
        GPIRTEstimator(random_state=0),
    )
    same(pipe.fit(X, y).predict(X_new), expected)


def test_missing_outside_the_anchors_changes_nothing(split, expected):
    X, y, X_new, _ = split
    pipe = pipeline().fit(X, y)
    sparse = X_new.copy()
    sparse.loc[:, ~pipe["anchors"].get_support()] = np.nan
    assert np.isnan(sparse.to_numpy()).mean() > 0.9
    same(pipe.predict(sparse), expected)


COPIES = {
    "clone": clone,
    "deepcopy": copy.deepcopy,
    "pickle": lambda pipe: pickle.loads(pickle.dumps(pipe)),
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_copies_before_and_after_fit(copied, split, expected):
    X, y, X_new, _ = split
    pipe = pipeline()
    same(copied(pipe).fit(X, y).predict(X_new), expected)
    pipe.fit(X, y)
    if copied is clone:
        with pytest.raises(sklearn.exceptions.NotFittedError):
            copied(pipe)["score"].predict(X_new)
    else:
        same(copied(pipe).predict(X_new), expected)


def test_joblib_file(tmp_path, split, expected):
    X, y, X_new, _ = split
    joblib.dump(pipeline().fit(X, y), tmp_path / "pipe.joblib", compress=3)
    same(joblib.load(tmp_path / "pipe.joblib").predict(X_new), expected)


def test_another_process(split, expected):
    X, y, X_new, _ = split
    pipe = pipeline().fit(X, y)
    results = joblib.Parallel(n_jobs=2)(
        joblib.delayed(type(pipe).predict)(pipe, X_new) for _ in range(2)
    )
    for result in results:
        same(result, expected)


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_cache_of_the_pipeline_miss_then_hit(tmp_path, output, split, expected):
    X, y, X_new, _ = split
    fits = []
    for _ in range(2):
        pipe = pipeline(memory=str(tmp_path)).set_output(transform=output)
        fits.append(pipe.fit(X, y))
        same(pipe.predict(X_new), expected)
    stored = list(tmp_path.rglob("output.pkl"))
    assert len(stored) == 1
    same(pipeline(memory=str(tmp_path), k=20).fit(X, y).predict(X_new), by_hand(X, X_new, k=20))
    assert len(list(tmp_path.rglob("output.pkl"))) == 2


@pytest.mark.slow
@pytest.mark.parametrize("output", ["default", "pandas"])
def test_a_cached_step_after_the_selector_never_returns_old_weights(tmp_path, output):
    """All items are anchors, so the values are the same: only the weights change."""
    data = make_responses(40, 60, random_state=0)
    labels = [np.repeat(["a", "b"], [first, 60 - first]) for first in (20, 45)]
    predicted, by_memory = [], []
    answers = data.responses.copy()
    answers.iloc[:, ::3] = np.nan
    for scenarios in labels * 2:
        for memory, results in ((None, predicted), (str(tmp_path), by_memory)):
            pipe = Pipeline(
                [
                    (
                        "anchors",
                        AnchorSelector(k=60, scenarios=scenarios, random_state=0, n_dims=1),
                    ),
                    ("same", FunctionTransformer()),
                    ("score", GPIRTEstimator("naive", random_state=0)),
                ],
                memory=memory,
            ).set_output(transform=output)
            results.append(pipe.fit(data.responses).predict(answers))
    same(np.array(by_memory), predicted)
    assert np.abs(predicted[0] - predicted[1]).max() > 0.01
    same(predicted[2], predicted[0])
    assert len(list(tmp_path.rglob("output.pkl"))) == 4  # two selectors, two identities; then hits


def test_pandas_output(split, expected):
    X, y, X_new, _ = split
    pipe = pipeline().set_output(transform="pandas").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(pipe.predict(X_new), expected)
        answers = X_new[pipe["anchors"].get_feature_names_out()]
        same(pipe["score"].predict(answers), expected)
    assert list(pipe["score"].feature_names_in_) == list(answers.columns)


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_answers_are_matched_by_item_name(output, split, expected):
    """Whatever went between the steps, a DataFrame of answers in another order is no trap."""
    X, y, X_new, _ = split
    pipe = pipeline().set_output(transform=output).fit(X, y)
    answers = X_new[pipe["anchors"].get_feature_names_out()]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(pipe["score"].predict(answers), expected)
        same(pipe["score"].predict(answers.iloc[:, ::-1]), expected)
        same(pipe["score"].predict(X_new), expected)
    with pytest.raises(ValueError, match=f"{answers.columns[4]}.*NaN for what was not asked"):
        pipe["score"].predict(answers.drop(columns=answers.columns[4]))
    same(pipe["score"].predict(answers), expected)
    with pytest.raises(ValueError, match="same order"):
        pipe.predict(X_new.iloc[:, ::-1])  # the selector: scikit-learn's own error


@pytest.mark.slow
def test_global_pandas_output(split, expected):
    X, y, X_new, _ = split
    with sklearn.config_context(transform_output="pandas"):
        pipe = pipeline().fit(X, y)
        same(pipe.predict(X_new), expected)
        for method in ("correctness", "random"):
            predicted = pipeline(method=method).fit(X, y).predict(X_new)
            with sklearn.config_context(transform_output="default"):
                same(predicted, by_hand(X, X_new, method=method))
        assert isinstance(IRTRegressor(2).fit(X).transform(X), pd.DataFrame)
    same(pipe.predict(X_new), expected)


def test_polars_output_is_reported(split):
    pytest.importorskip("polars")
    X, y, _, _ = split
    with pytest.warns(UserWarning, match="context was lost"):
        pipeline().set_output(transform="polars").fit(X, y)


@pytest.mark.slow
def test_metadata_routing(split, expected, small, folds_by_hand):
    X, y, X_new, y_new = split
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = pipeline()
        same(pipe.fit(X, y).predict(X_new), expected)
        pipe["score"].set_predict_request(return_std=True)
        score, std = pipe.predict(X_new, return_std=True)
        same(score, expected)
        assert (std > 0).all()
        assert pipe.score(X_new, y_new) == pytest.approx(r2_score(y_new, expected))
        with pytest.raises((TypeError, ValueError), match="sample_weight"):
            pipeline().fit(X, y, sample_weight=np.ones(len(X)))
        predicted = cross_val_predict(pipeline(), *small, cv=CV, params={})  # None fails in 1.6
    same(predicted, folds_by_hand(30, 2)[0])


def test_return_std_through_the_pipeline(split, expected):
    X, y, X_new, _ = split
    pipe = pipeline().fit(X, y)
    score, std = pipe.predict(X_new, return_std=True)
    same(score, expected)
    assert std.shape == score.shape and (std > 0).all() and (std < 0.2).all()


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_unknown_fit_parameters_are_refused(method, split):
    """They would be ignored without a sign of it."""
    X, y, _, _ = split
    selector = AnchorSelector(k=5, method="random", random_state=0)
    with pytest.raises(TypeError, match="sample_weight"):
        getattr(selector, method)(X, y, sample_weight=np.ones(len(X)))


@pytest.fixture(scope="module")
def small(ifeval):
    """Every third item too, for what fits many times: 150 x 181."""
    X = ifeval[0].iloc[:, ::3]
    return X, X.mean(axis=1)


@pytest.fixture(scope="module")
def folds_by_hand(small):
    """Out-of-fold predictions and the folds' mean absolute errors, by (k, n_dims)."""
    X, y = small

    @functools.cache
    def run(k, n_dims):
        predicted, errors = np.empty(len(X)), []
        for train, test in CV.split(X):
            predicted[test] = by_hand(X.iloc[train], X.iloc[test], k=k, n_dims=n_dims)
            errors.append(mean_absolute_error(y.iloc[test], predicted[test]))
        return predicted, np.array(errors)

    return run


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_cross_validation(n_jobs, small, folds_by_hand):
    X, y = small
    predicted, errors = folds_by_hand(30, 2)
    same(cross_val_predict(pipeline(), X, y, cv=CV, n_jobs=n_jobs), predicted)
    scores = cross_val_score(
        pipeline(), X, y, cv=CV, scoring="neg_mean_absolute_error", n_jobs=n_jobs
    )
    same(-scores, errors)
    if n_jobs == 1:
        scores = cross_validate(pipeline(), X, y, cv=CV, scoring=["r2", "neg_mean_squared_error"])
        assert (scores["test_r2"] > 0.85).all()


GRID = {"anchors__k": [30, 60], "anchors__n_dims": [2, 5]}


def search(memory=None, n_jobs=2, **params):
    return GridSearchCV(
        pipeline(memory).set_params(**params),
        GRID,
        scoring="neg_mean_absolute_error",
        cv=CV,
        n_jobs=n_jobs,
    )


@pytest.fixture(scope="module")
def grid(small):
    return search().fit(*small)


@pytest.mark.slow
def test_grid_search_finds_what_wiring_by_hand_finds(small, grid, folds_by_hand):
    X, _ = small
    results = grid.cv_results_
    assert len(results["params"]) == 4
    by_params = {}
    for i, params in enumerate(results["params"]):
        k, n_dims = params["anchors__k"], params["anchors__n_dims"]
        _, errors = folds_by_hand(k, n_dims)
        by_params[k, n_dims] = errors.mean()
        same(-np.array([results[f"split{f}_test_score"][i] for f in range(3)]), errors)
    best = min(by_params, key=by_params.get)
    assert (grid.best_params_["anchors__k"], grid.best_params_["anchors__n_dims"]) == best
    assert -grid.best_score_ == pytest.approx(by_params[best], abs=1e-8)
    assert best[0] == 60 and by_params[best] < 0.035
    same(grid.predict(X), by_hand(X, X, k=best[0], n_dims=best[1]))


@pytest.mark.slow
@pytest.mark.parametrize("where", ["pipeline", "steps"])
def test_grid_search_with_caches_gives_the_same(tmp_path, where, small, grid):
    memory = str(tmp_path)
    cached = search(memory) if where == "pipeline" else search(None, 2, anchors__memory=memory)
    for _ in range(2):  # all miss, all hit
        again = clone(cached).fit(*small)
        same(again.cv_results_["mean_test_score"], grid.cv_results_["mean_test_score"])
        assert again.best_params_ == grid.best_params_
    # One fit of each kind per fold and setting, and the refit.
    stored = len(list(tmp_path.rglob("output.pkl")))
    if where == "pipeline":
        assert stored == 3 * 4 + 1
    else:  # IRT fits and biases depend on n_dims only
        assert stored == 2 * (3 * 2 + 1)


@pytest.mark.slow
def test_randomized_search(small, grid):
    found = RandomizedSearchCV(
        pipeline(), GRID, n_iter=2, random_state=0, cv=CV, scoring="neg_mean_absolute_error"
    ).fit(*small)
    exhaustive = {
        tuple(sorted(params.items())): score
        for params, score in zip(
            grid.cv_results_["params"], grid.cv_results_["mean_test_score"], strict=True
        )
    }
    for params, score in zip(
        found.cv_results_["params"], found.cv_results_["mean_test_score"], strict=True
    ):
        assert score == pytest.approx(exhaustive[tuple(sorted(params.items()))], abs=1e-8)


@pytest.mark.slow
def test_grid_over_parameters_read_at_predict_time(small):
    X, y = small
    found = GridSearchCV(
        pipeline(),
        [
            {"score__estimate": ["naive", "pirt", "gpirt"], "score__relatives": [False]},
            {
                "score__estimate": ["gpirt"],
                "score__mixing": [0.0, 1.0],
                "score__relatives": [False],
            },
        ],
        scoring="neg_mean_absolute_error",
        cv=CV,
    ).fit(X, y)
    naive, pirt, gpirt, none, all_naive = found.cv_results_["mean_test_score"]
    assert none == pytest.approx(pirt, abs=1e-10)
    assert all_naive == pytest.approx(naive, abs=1e-10)
    assert gpirt > naive and len({naive, pirt, gpirt}) == 3


def _arrays(value, seen):
    """Every array that can be reached from an object's attributes."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        yield value
        if value.base is not None:
            yield from _arrays(value.base, seen)
        value = getattr(value, "_context", None)
    if isinstance(value, pd.DataFrame | pd.Series):
        yield value.to_numpy()
        value = value.attrs
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _arrays(part, seen)
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        yield from _arrays(vars(value), seen)


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_fitted_objects_hold_no_full_training_matrix(output):
    data = make_responses(200, 300, n_dims=2, random_state=0)
    for full in (data.responses, data.responses.to_numpy()):
        pipe = pipeline(k=20).set_output(transform=output).fit(full)
        anchors, irt = pipe["anchors"], IRTRegressor(2).fit(full)
        naive_only = GPIRTEstimator(random_state=0).fit(anchors.fit_transform(full))
        for fitted in (pipe, anchors, pipe["score"], naive_only, irt):
            sizes = [array.size for array in _arrays(fitted, set())]
            assert len(sizes) > 5
            assert max(sizes) <= 200 * 20  # models x anchors; a full matrix has 60,000
            assert len(pickle.dumps(fitted)) < full.size * 8 / 2


def test_grid_search_of_irt_regressor_selects_the_dimension():
    data = make_responses(
        150, 300, n_dims=3, scenarios={"a": 150, "b": 150}, random_state=0
    )  # two directions of ability that correlate at 0.7
    X = data.responses
    found = GridSearchCV(IRTRegressor(), {"n_dims": [1, 2, 5]}, cv=CV).fit(X)
    assert found.best_params_["n_dims"] > 1
    by_hand_scores = [
        IRTRegressor(found.best_params_["n_dims"]).fit(X.iloc[train]).score(X.iloc[test])
        for train, test in CV.split(X)
    ]
    assert found.best_score_ == pytest.approx(np.mean(by_hand_scores), abs=1e-10)
    one = found.cv_results_["mean_test_score"][0]
    assert one + 0.002 < found.best_score_ < 0


def test_grid_search_of_irt_regressor_keeps_one_dimension_where_there_is_one():
    X = make_responses(150, 300, n_dims=1, random_state=0).responses
    scores = GridSearchCV(IRTRegressor(), {"n_dims": [1, 5]}, cv=CV).fit(X).cv_results_
    one, five = scores["mean_test_score"]
    assert abs(one - five) < 0.005  # dimensions that are not needed shrink


@pytest.mark.slow
def test_full_grid_on_the_full_matrix(shared):
    X, y = fetch_open_llm("ifeval", data_home=shared / "data", return_X_y=True)
    assert X.shape == (448, 541)
    folds = KFold(3, shuffle=True, random_state=0)
    found = GridSearchCV(
        pipeline(),
        {"anchors__k": [30, 100], "anchors__n_dims": [1, 5]},
        scoring="neg_mean_absolute_error",
        cv=folds,
        n_jobs=2,
    ).fit(X, y)
    errors = {}
    for params, score in zip(
        found.cv_results_["params"], found.cv_results_["mean_test_score"], strict=True
    ):
        k, n_dims = params["anchors__k"], params["anchors__n_dims"]
        errors[k, n_dims] = np.mean(
            [
                mean_absolute_error(
                    y.iloc[test], by_hand(X.iloc[train], X.iloc[test], k=k, n_dims=n_dims)
                )
                for train, test in folds.split(X)
            ]
        )
        assert -score == pytest.approx(errors[k, n_dims], abs=1e-8)
    assert found.best_params_["anchors__k"] == 100
    assert -found.best_score_ < 0.025
    few, many = (min(errors[k, d] for d in (1, 5)) for k in (30, 100))
    assert few > many
